//! What a recording needs, and whether a view has it.

use super::*;
use crate::engine::overlay::{Origin, Segment};
use serde_json::json;

fn say(role: &str, words: &str) -> Value {
    json!({"role": role, "content": [{"type": "text", "text": words}]})
}

fn watched() -> Watch {
    let mut watch = Watch::default();
    let messages = [
        say("user", "Port it to new_api."),
        say(
            "assistant",
            "I looked at src/old.rs and decided on flat_layout.",
        ),
        say("user", "Never touch legacy_tables, please."),
        say("assistant", "There is also lost_value and kept_value."),
        say("user", "Now kept_value again."),
    ];
    for (at, message) in messages.iter().enumerate() {
        watch.heard(at, message);
    }
    watch
}

fn hiding(summary: &str) -> Overlay {
    Overlay {
        made_at: 5,
        head: 1,
        cut: 4,
        segments: vec![Segment {
            block: json!({"type": "text", "text": summary}).to_string(),
            from: 1,
            to: 4,
            origin: Origin::Summary,
            pinned: 0,
        }],
        ..Overlay::default()
    }
}

#[test]
fn what_is_named_again_must_be_shown_or_have_been_carried_over() {
    let mut watch = watched();
    let answer = say(
        "assistant",
        "new_api, src/old.rs, flat_layout, lost_value, kept_value, brand_new",
    );
    assert_eq!(watch.needs(&answer), []);
    watch.passed(hiding("src/old.rs; flat_layout"), Vec::new());
    let needs = watch.needs(&answer);
    let told: Vec<_> = needs
        .iter()
        .map(|need| (need.what.as_str(), need.kind, need.in_view))
        .collect();
    assert_eq!(
        told,
        [
            ("src/old.rs", Kind::Path, true),
            ("flat_layout", Kind::Decision, true),
            ("lost_value", Kind::Identifier, false),
        ]
    );
    assert_eq!(needs[2].places, [(3, 0)]);
}

/// `src/main` is not in view because `src/main.rs` is.
#[test]
fn a_part_of_a_longer_word_is_another_thing() {
    for (summary, in_view) in [
        ("See lost_value_2 and old_lost_value.", false),
        ("See lost_value/x.rs.", false),
        ("See `lost_value`.", true),
    ] {
        let mut watch = watched();
        watch.passed(hiding(summary), Vec::new());
        let needs = watch.needs(&say("assistant", "lost_value"));
        assert_eq!(needs[0].in_view, in_view, "{summary}");
    }
}

#[test]
fn what_a_long_input_names_is_needed_up_to_a_bound() {
    let mut watch = watched();
    let names: Vec<String> = (0..60).map(|at| format!("name_{at:02}")).collect();
    watch.heard(2, &say("assistant", &names.join(" ")));
    watch.passed(hiding(""), Vec::new());
    let call = |content: &str| {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1",
            "name": "Write", "input": {"file_path": "/n", "content": content}}]})
    };
    let long = format!("{} lost_value", "unknown_word ".repeat(100));
    let needs = watch.needs(&call(&long));
    assert_eq!(needs.len(), 1);
    assert_eq!(needs[0].what, "lost_value");
    assert_eq!(watch.needs(&call(&names.join(" "))).len(), CALL);
}

#[test]
fn a_rule_is_asked_for_once_when_an_answer_is_about_it() {
    let rule = "Never change legacy tables without asking, please.";
    let mut watch = watched();
    watch.heard(2, &say("user", rule));
    watch.passed(hiding(&format!("The user: {rule}")), Vec::new());
    assert_eq!(watch.needs(&say("assistant", "Something else.")), []);
    let about = say("assistant", "I will change no legacy tables without it.");
    let needs = watch.needs(&about);
    assert_eq!(needs.len(), 1);
    assert!(needs[0].is_rule() && needs[0].in_view);
    watch.passed(hiding(""), Vec::new());
    assert_eq!(watch.needs(&about), []);
}

#[test]
fn a_planted_fact_is_asked_for_where_it_is_hidden() {
    let mut watch = watched();
    assert_eq!(watch.planted("lost_value", Shape::Sentence), None);
    watch.passed(hiding(""), Vec::new());
    let need = watch.planted("lost_value", Shape::Sentence).unwrap();
    assert_eq!((need.kind, need.in_view), (Kind::Planted, false));
    assert_eq!(watch.planted("kept_value", Shape::Sentence), None);
    assert_eq!(watch.planted("never_heard", Shape::Sentence), None);
}

#[test]
fn what_is_gone_and_fetched_again_is_counted_once() {
    let mut watch = watched();
    let input = |path: &str| json!({"file_path": path, "offset": 1, "limit": 50});
    let call = |path: &str| {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1",
            "name": "Read", "input": input(path)}]})
    };
    let whole = |path: &str| {
        let input = json!({"file_path": path}).to_string();
        reread::thing("Read", input.as_bytes()).unwrap()
    };
    watch.passed(hiding(""), vec![whole("/a"), whole("/b")]);
    for path in ["/a", "/c", "/a"] {
        watch.fetches(&call(path));
    }
    assert_eq!(watch.rereads(), (2, 1));
}

fn read(content: &str) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": content}]})
}

fn calls(name: &str, input: &Value) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "2", "name": name, "input": input}]})
}

const LINES: &str = "   11→fn open_store(max_wait: u64) {\n   12→    let port = 8443;\n   13→}";

/// What an answer finds in a view where a text stands for what was read.
fn judged(summary: &str, answer: &Value) -> Quality {
    let mut watch = Watch::default();
    for (at, message) in [say("user", "Go."), say("assistant", "Yes."), read(LINES)]
        .iter()
        .enumerate()
    {
        watch.heard(at, message);
    }
    watch.passed(hiding(summary), Vec::new());
    watch.judge_answer(answer, 1);
    watch.quality()
}

#[test]
fn what_the_next_call_names_must_be_in_view_as_far_as_the_history_has_it() {
    let call = calls(
        "Grep",
        &json!({"pattern": "open_store|brand_new|please", "port": 8443, "limit": 2000}),
    );
    for (summary, found) in [("", 0), ("open_store", 1), ("open_store on 8443", 2)] {
        let tally = judged(summary, &call).next_action.total();
        assert_eq!((tally.asked, tally.found), (2, found), "{summary}");
    }
}

#[test]
fn an_edit_needs_its_old_lines_and_word_soup_has_none() {
    let whole = "fn open_store(max_wait: u64) {\n    let port = 8443;\n}";
    let part = "open_store(max_wait: u64";
    let rows = [
        (
            whole,
            "| 11: fn open_store(max_wait: u64) {\n| 12:     let port = 8443;",
            1,
        ),
        (whole, "   11→fn open_store(max_wait: u64) {", 0),
        (whole, "open_store max_wait u64 port 8443 fn let", 0),
        (part, "fn open_store(max_wait: u64) {", 1),
        (part, "open_store max_wait u64", 0),
    ];
    for (old, summary, found) in rows {
        let call = calls("Edit", &json!({"file_path": "/w/a", "old_string": old}));
        let tally = judged(summary, &call).edits.total();
        assert_eq!((tally.asked, tally.found), (1, found), "{old} {summary}");
    }
    let unknown = calls("Edit", &json!({"old_string": "never shown to anybody"}));
    assert_eq!(judged("", &unknown).edits.total().asked, 0);
}

#[test]
fn an_order_must_survive_word_for_word() {
    let rows = [
        ("> Never touch legacy_tables, please.", 1),
        ("legacy_tables never touch please", 0),
    ];
    for (summary, found) in rows {
        let mut watch = watched();
        watch.passed(hiding(summary), Vec::new());
        watch.judge_pass(2);
        let quality = watch.quality();
        let tally = quality.rules.total();
        assert_eq!((tally.asked, tally.found), (1, found), "{summary}");
        assert_eq!(quality.rules_by_age[0], tally);
    }
}
