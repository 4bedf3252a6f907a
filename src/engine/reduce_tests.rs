//! What a reduction takes, and what it leaves alone.

use super::{Conversation, Draft, Overlay};
use crate::engine::chain;
use crate::engine::legal::{faults, keeps_newest};
use crate::engine::overlay::{Change, Edit};
use crate::engine::recall::reference;
use crate::engine::render::render;
use crate::engine::testing::{Settings, reduce};
use crate::wire::body::Body;
use crate::wire::splice::{joined, splice};
use bytes::Bytes;
use serde_json::{Value, json};

fn settings() -> Settings {
    Settings {
        keep_tool_uses: 1,
        exclude_tools: vec!["Keep".into()],
        clear: true,
        tail_messages: 4,
        target_bytes: usize::MAX,
        binds_thinking: false,
        manual_thinking: false,
        archives: true,
        live_turns: None,
    }
}

fn cycle(id: usize, tool: &str, thinks: bool) -> [Value; 2] {
    let mut blocks =
        vec![json!({"type": "tool_use", "id": format!("t{id}"), "name": tool, "input": {}})];
    if thinks {
        blocks.insert(
            0,
            json!({"type": "thinking", "thinking": "", "signature": format!("s{id}")}),
        );
    }
    let result = json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": "long ".repeat(100)});
    [
        json!({"role": "assistant", "content": blocks}),
        json!({"role": "user", "content": [result]}),
    ]
}

fn session(cycles: usize, tool: &str, thinks: bool) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for id in 0..cycles {
        messages.extend(cycle(id, tool, thinks));
    }
    messages
}

fn at_boundary(mut messages: Vec<Value>) -> Vec<Value> {
    let end = json!({"type": "thinking", "thinking": "", "signature": "end"});
    messages.push(json!({"role": "assistant", "content": [end]}));
    messages.push(json!({"role": "user", "content": "next"}));
    messages
}

struct Made {
    draft: Draft,
    view: Vec<Value>,
}

fn reduced(messages: &[Value], current: &Overlay, settings: &Settings) -> Option<Made> {
    let bytes = Bytes::from(json!({"messages": messages}).to_string());
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let draft = reduce(&conversation, current, chain::start("t"), settings)?;
    let changes = render(&conversation, &draft.overlay, "").unwrap();
    let view = joined(&splice(&bytes, changes).unwrap());
    let shown = Body::split(&view).unwrap();
    assert_eq!(faults(&view, &shown), faults(&bytes, &body));
    assert!(keeps_newest(
        &conversation,
        &Conversation::new(&view, &shown)
    ));
    for gone in &draft.evicted {
        let name = reference::shown(gone.reference);
        assert!(String::from_utf8_lossy(&view).contains(&name), "{gone:?}");
    }
    let value: Value = serde_json::from_slice(&view).unwrap();
    Some(Made {
        draft,
        view: value["messages"].as_array().unwrap().clone(),
    })
}

fn text(view: &[Value]) -> String {
    Value::from(view).to_string()
}

#[test]
fn old_results_get_stubs_and_the_newest_stay() {
    let made = reduced(&session(4, "Bash", false), &Overlay::default(), &settings()).unwrap();
    assert_eq!(made.draft.overlay.stubs(), 3);
    assert_eq!(made.draft.evicted.len(), 3);
    assert!(made.draft.freed.cleared.is_some() && made.draft.freed.truncated.is_none());
    assert_eq!(text(&made.view).matches("was cleared").count(), 3);
    assert!(text(&made.view[8..]).contains("long long"));
}

#[test]
fn excluded_tools_errors_and_small_results_stay() {
    assert!(reduced(&session(4, "Keep", false), &Overlay::default(), &settings()).is_none());
    let mut errors = session(3, "Bash", false);
    errors[2]["content"][0]["is_error"] = json!(true);
    errors[4]["content"][0]["content"] = json!("ok");
    assert!(reduced(&errors, &Overlay::default(), &settings()).is_none());
}

#[test]
fn what_does_not_fit_is_hidden_behind_a_notice_and_a_later_pass_appends_another() {
    let small = Settings {
        target_bytes: 2_500,
        ..settings()
    };
    let first = reduced(&session(10, "Keep", false), &Overlay::default(), &small).unwrap();
    assert!(first.draft.freed.truncated.is_some() && first.draft.freed.cleared.is_none());
    assert_eq!(first.draft.overlay.segments.len(), 1);
    let (head, cut) = (first.draft.overlay.head, first.draft.overlay.cut);
    let gone = &first.draft.evicted[0].messages;
    assert_eq!(*gone, head as usize..cut as usize);
    let roles: Vec<&str> = first
        .view
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
    let second = reduced(&session(30, "Keep", false), &first.draft.overlay, &small).unwrap();
    assert_eq!(second.draft.overlay.segments.len(), 2);
    let block = |made: &Made| made.draft.overlay.segments[0].block.clone();
    assert_eq!(block(&first), block(&second));
    assert_eq!(first.view[..2], second.view[..2]);
    assert_eq!(first.view[2]["content"][0], second.view[2]["content"][0]);
}

#[test]
fn thinking_behind_the_change_goes_at_a_turn_s_end_and_nothing_stays_empty() {
    let bound = Settings {
        binds_thinking: true,
        ..settings()
    };
    let made = reduced(
        &at_boundary(session(4, "Bash", true)),
        &Overlay::default(),
        &bound,
    )
    .unwrap();
    // All but the first cycle's, which stands before the first stub.
    assert_eq!(made.draft.thinking_dropped, 4);
    assert_eq!(text(&made.view).matches("signature").count(), 1);
    assert!(text(&made.view).contains("thinking left out"));
    let unbound = reduced(
        &at_boundary(session(4, "Bash", true)),
        &Overlay::default(),
        &settings(),
    )
    .unwrap();
    assert_eq!(unbound.draft.thinking_dropped, 0);
}

#[test]
fn in_a_tool_loop_thinking_stays_and_is_reported() {
    let bound = Settings {
        binds_thinking: true,
        ..settings()
    };
    let made = reduced(&session(4, "Bash", true), &Overlay::default(), &bound).unwrap();
    assert_eq!(made.draft.thinking_dropped, 0);
    assert!(made.draft.leaves_unfit_thinking);
}

/// The API's own summary stands for all before it: it must outlive a pass.
#[test]
fn a_summary_of_the_api_s_that_comes_later_is_never_hidden() {
    let small = Settings {
        target_bytes: 0,
        clear: false,
        ..settings()
    };
    let mut messages = session(6, "Bash", false);
    let first = reduced(&messages, &Overlay::default(), &small).unwrap();
    assert!(first.draft.overlay.hides());
    let summary = json!({"type": "compaction", "content": "so far"});
    messages.push(json!({"role": "assistant", "content": [summary]}));
    messages.push(json!({"role": "user", "content": "go on"}));
    for id in 10..16 {
        messages.extend(cycle(id, "Bash", false));
    }
    let second = reduced(&messages, &first.draft.overlay, &small).unwrap();
    assert!(text(&second.view).contains("so far"));
    assert_eq!(second.draft.overlay.segments.len(), 1);
    assert_eq!(second.draft.overlay.head, 14);
}

#[test]
fn what_stands_before_the_api_s_summary_is_not_worth_clearing() {
    let mut messages = session(6, "Bash", false);
    let summary = json!({"type": "compaction", "content": "so far"});
    messages.push(json!({"role": "assistant", "content": [summary]}));
    messages.push(json!({"role": "user", "content": "go on"}));
    assert!(reduced(&messages, &Overlay::default(), &settings()).is_none());
}

#[test]
fn nothing_to_give_makes_no_draft() {
    for messages in [session(0, "Bash", false), session(1, "Bash", false)] {
        let small = Settings {
            target_bytes: 0,
            ..settings()
        };
        assert!(reduced(&messages, &Overlay::default(), &small).is_none());
    }
}

/// Nothing is gained by going on with a text that is longer than the client's
/// own, but to change it alone would cost the cache all that stands behind it.
#[test]
fn a_trim_gives_way_to_what_the_client_has_cleared_itself_once_that_is_free() {
    let edit = |message: u32| Edit {
        message,
        block: 0,
        change: Change::Payload(json!("part ".repeat(500)).to_string()),
    };
    let mut messages = session(6, "Bash", false);
    for at in [2, 8] {
        messages[at]["content"][0]["content"] = json!("[cleared]");
    }
    // Still as long as it was when it was trimmed.
    messages[6]["content"][0]["content"] = json!("whole ".repeat(1_000));
    let trimmed = Overlay {
        made_at: 11,
        edits: [2, 6, 8].map(edit).into(),
        ..Overlay::default()
    };
    let keep_one = |keep_tool_uses, target_bytes| Settings {
        keep_tool_uses,
        target_bytes,
        ..settings()
    };
    // The first result that is cleared is that of message 4.
    let made = reduced(&messages, &trimmed, &keep_one(3, usize::MAX)).unwrap();
    assert_eq!(made.draft.first, 4);
    assert!(text(&made.view[2..3]).contains("part part"));
    assert!(text(&made.view[8..9]).contains("[cleared]"));
    assert!(made.draft.freed.trimmed.is_some());
    let size: usize = made.view.iter().map(|m| m.to_string().len()).sum();
    assert!(
        made.draft.weight.abs_diff(size as u64) < 200,
        "{} {size}",
        made.draft.weight
    );
    // Nothing else changes: neither does this.
    assert!(reduced(&messages, &trimmed, &keep_one(9, usize::MAX)).is_none());
    // It must be smaller, and would be without that.
    let made = reduced(&messages, &trimmed, &keep_one(9, 7_000)).unwrap();
    assert!(made.draft.freed.truncated.is_none());
    assert_eq!(made.draft.overlay.edits, [edit(6)]);
}
