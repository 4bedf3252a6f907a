//! The shape of histories: heads, cuts, calls and their results.
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is not general enough"
)]

use super::*;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

fn calls(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}}))
        .collect();
    json!({"role": "assistant", "content": blocks})
}

fn results(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}))
        .collect();
    json!({"role": "user", "content": blocks})
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn with<T>(messages: &[Value], ask: impl FnOnce(&Conversation<'_>) -> T) -> T {
    let bytes = serde_json::to_vec(&json!({"messages": messages})).unwrap();
    let body = Body::split(&bytes).unwrap();
    ask(&Conversation::new(&bytes, &body))
}

#[test]
fn a_cut_parts_no_call_from_its_result() {
    let history = [
        user("go"),
        calls(&["a"]),
        results(&["a"]),
        calls(&["b", "c"]),
        results(&["b"]),
        results(&["c"]),
        says("done"),
        user("next"),
        says("yes"),
        user("more"),
    ];
    assert_eq!(with(&history, |c| c.cut_points(false)), [3, 6, 7, 8]);
    assert_eq!(with(&history, |c| c.head()), 1);
}

#[test]
fn a_system_message_stays_with_the_message_it_follows() {
    let history = [
        user("go"),
        says("1"),
        user("2"),
        system("note"),
        says("3"),
        user("4"),
        says("5"),
        user("6"),
    ];
    assert_eq!(with(&history, |c| c.cut_points(false)), [2, 4, 5, 6]);
}

#[test]
fn with_manual_thinking_an_open_loop_is_cut_only_before_thinking() {
    let thinks = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "tool_use", "id": "b", "name": "Bash", "input": {}},
    ]});
    let history = [
        user("go"),
        calls(&["a"]),
        results(&["a"]),
        thinks,
        results(&["b"]),
        calls(&["c"]),
        results(&["c"]),
    ];
    assert_eq!(with(&history, |c| c.cut_points(true)), [3]);
    assert_eq!(with(&history, |c| c.cut_points(false)), [3, 5]);
    assert!(with(&history, |c| c.is_in_tool_loop()));
}

#[test]
fn what_loads_tools_is_never_hidden() {
    let reference = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b",
        "content": [{"type": "tool_reference", "tool_name": "x"}]}]});
    let history = [
        user("go"),
        calls(&["a"]),
        results(&["a"]),
        calls(&["b"]),
        reference,
        says("x"),
        user("y"),
        says("z"),
        user("w"),
    ];
    assert_eq!(with(&history, |c| c.cut_points(false)), [3]);
}

#[test]
fn the_api_s_own_summary_is_the_head() {
    let summary =
        json!({"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]});
    let history = [
        summary,
        user("go"),
        says("1"),
        user("2"),
        says("3"),
        user("4"),
    ];
    assert_eq!(with(&history, |c| c.head()), 1);
    assert_eq!(with(&history, |c| c.cut_points(false)), [2, 3, 4]);
}

#[test]
fn a_summary_that_calls_tools_is_the_head_with_their_results_and_a_failed_one_is_none() {
    let summary = |content: Value| {
        json!({"role": "assistant", "content": [{"type": "compaction", "content": content},
            {"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]})
    };
    let rest = [results(&["a"]), says("1"), user("2"), says("3"), user("4")];
    let after = |first: Value| [&[user("go"), first], &rest[..]].concat();
    assert_eq!(with(&after(summary(json!("so far"))), |c| c.head()), 3);
    assert_eq!(with(&after(summary(Value::Null)), |c| c.head()), 1);
}

/// The newest message may not be changed while its calls are answered.
#[test]
fn results_are_being_answered_whatever_follows_them() {
    let text = json!({"role": "user", "content": [{"type": "text", "text": "and"}]});
    for rest in [
        vec![results(&["a"])],
        vec![results(&["a"]), text.clone()],
        vec![results(&["a"]), user("and"), system("note")],
        vec![],
    ] {
        let history = [vec![user("go"), calls(&["a"])], rest].concat();
        assert!(with(&history, |c| c.is_in_tool_loop()), "{history:?}");
    }
    let done = [
        user("go"),
        calls(&["a"]),
        results(&["a"]),
        says("1"),
        user("2"),
    ];
    assert!(!with(&done, |c| c.is_in_tool_loop()));
}

/// The API may answer its own tool only after the client has answered its.
#[test]
fn a_cut_parts_no_server_tool_from_its_result() {
    let asks = json!({"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]});
    let answered = json!({"role": "assistant", "content": [
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "found"}]});
    let history = [
        user("go"),
        asks,
        results(&["a"]),
        answered,
        user("2"),
        says("3"),
        user("4"),
    ];
    assert_eq!(with(&history, |c| c.cut_points(false)), [4, 5]);
}

#[test]
fn calls_find_their_results_by_id_within_their_turn() {
    let history = [
        user("go"),
        calls(&["a", "b"]),
        results(&["b", "a"]),
        calls(&["a"]),
        results(&["a"]),
        calls(&["x"]),
    ];
    let found = with(&history, |c| c.calls());
    let results: Vec<_> = found.iter().map(|call| call.result).collect();
    assert_eq!(results, [Some((2, 1)), Some((2, 0)), Some((4, 0)), None]);
}

#[test]
fn a_short_history_has_no_cut() {
    for history in [
        vec![],
        vec![user("a")],
        vec![says("a")],
        vec![user("a"), says("b")],
        vec![user("a"), says("b"), user("c")],
    ] {
        assert!(with(&history, |c| c.cut_points(false)).is_empty());
    }
}
