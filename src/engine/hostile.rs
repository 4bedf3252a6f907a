//! Requests made to hurt: whatever a client sends, the work grows no faster than
//! the body. None of these is timed; each is so large that work which grows with
//! its square would not come to an end while somebody waits.

use std::fmt::Write;

use bytes::Bytes;

use super::cache_marks::{self, Basis};
use super::chain;
use super::conversation::Conversation;
use super::legal::faults;
use super::overlay::{Change, Edit, Overlay};
use super::reduce::EDITS;
use super::testing::{Settings, reduce};
use crate::wire::body::Body;

const USER: &str = r#"{"role":"user","content":"go"}"#;
const SAYS: &str = r#"{"role":"assistant","content":"x"}"#;

fn settings() -> Settings {
    Settings {
        keep_tool_uses: 0,
        exclude_tools: Vec::new(),
        clear: true,
        tail_messages: 1,
        target_bytes: 0,
        binds_thinking: true,
        manual_thinking: true,
        archives: true,
        live_turns: None,
    }
}

fn request(messages: &str) -> Bytes {
    format!(r#"{{"model":"m","messages":[{messages}]}}"#).into()
}

/// A list of `count` of what `each` makes.
fn list(count: usize, each: impl Fn(usize) -> String) -> String {
    let all: Vec<String> = (0..count).map(each).collect();
    all.join(",")
}

#[test]
fn system_messages_without_end_are_looked_at_once_each() {
    let system = |_| r#"{"role":"system","content":"s"}"#.to_owned();
    let turn = |_| format!("{USER},{SAYS}");
    let bytes = request(&format!(
        "{USER},{SAYS},{},{}",
        list(50_000, system),
        list(20_000, turn)
    ));
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    // Either side of a turn, but for the last message of all.
    assert_eq!(conversation.cut_points(true).len(), 39_999);
    assert!(conversation.calls().is_empty());
    assert!(
        reduce(
            &conversation,
            &Overlay::default(),
            chain::start("t"),
            &settings()
        )
        .is_some()
    );
    faults(&bytes, &body);
}

#[test]
fn calls_answered_in_reverse_are_found_without_a_search() {
    const CALLS: usize = 100_000;
    let call = |n| format!(r#"{{"type":"tool_use","id":"{n}","name":"n","input":{{}}}}"#);
    let result = |n| {
        let id = CALLS - 1 - n;
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}"#)
    };
    let bytes = request(&format!(
        r#"{USER},{{"role":"assistant","content":[{}]}},{{"role":"user","content":[{}]}}"#,
        list(CALLS, call),
        list(CALLS, result)
    ));
    let body = Body::split(&bytes).unwrap();
    let calls = Conversation::new(&bytes, &body).calls();
    assert_eq!(calls.len(), CALLS);
    let mirrored =
        |(n, call): (usize, &super::conversation::Call)| call.result == Some((2, CALLS - 1 - n));
    assert!(calls.iter().enumerate().all(mirrored));
    assert!(faults(&bytes, &body).is_empty());
}

#[test]
fn thoughts_without_end_in_one_message_are_left_out_in_one_go() {
    const THOUGHTS: usize = 100_000;
    let thought = |_| r#"{"type":"thinking","thinking":"","signature":"s"}"#.to_owned();
    let long = "long ".repeat(200);
    let bytes = request(&format!(
        r#"{USER},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"{long}"}}]}},{{"role":"assistant","content":[{}]}},{USER}"#,
        list(THOUGHTS, thought)
    ));
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let settings = Settings {
        target_bytes: usize::MAX,
        ..settings()
    };
    let draft = reduce(
        &conversation,
        &Overlay::default(),
        chain::start("t"),
        &settings,
    )
    .unwrap();
    assert_eq!(draft.thinking_dropped, THOUGHTS);
}

#[test]
fn results_without_end_are_cleared_oldest_first_up_to_a_limit() {
    let call = |n| format!(r#"{{"type":"tool_use","id":"{n}","name":"n","input":{{}}}}"#);
    let long = "long ".repeat(60);
    let result = |n| format!(r#"{{"type":"tool_result","tool_use_id":"{n}","content":"{long}"}}"#);
    let bytes = request(&format!(
        r#"{USER},{{"role":"assistant","content":[{}]}},{{"role":"user","content":[{}]}},{SAYS},{USER}"#,
        list(EDITS + 100, call),
        list(EDITS + 100, result)
    ));
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let settings = Settings {
        target_bytes: usize::MAX,
        ..settings()
    };
    let made = |current: &Overlay| reduce(&conversation, current, chain::start("t"), &settings);
    let overlay = made(&Overlay::default()).unwrap().overlay;
    let blocks: Vec<usize> = overlay
        .edits
        .iter()
        .map(|edit| edit.block as usize)
        .collect();
    assert_eq!(blocks, (0..EDITS).collect::<Vec<_>>());
    assert!(made(&overlay).is_none(), "the rest stays");
}

#[test]
fn marks_and_changes_without_end_meet_without_a_search() {
    const BLOCKS: usize = 100_000;
    let mut blocks = String::new();
    for at in 0..BLOCKS {
        let comma = if at > 0 { "," } else { "" };
        let mark = if at % 10 == 1 {
            r#","cache_control":{}"#
        } else {
            ""
        };
        write!(blocks, r#"{comma}{{"type":"text","text":"x"{mark}}}"#).unwrap();
    }
    let bytes = request(&format!(
        r#"{USER},{SAYS},{{"role":"user","content":[{blocks}]}}"#
    ));
    let body = Body::split(&bytes).unwrap();
    let gone = |block| Edit {
        message: 2,
        block,
        change: Change::Gone,
    };
    let overlay = Overlay {
        made_at: 3,
        edits: (1..u32::try_from(BLOCKS).unwrap()).map(gone).collect(),
        ..Overlay::default()
    };
    let conversation = Conversation::new(&bytes, &body);
    let placed = cache_marks::place(&conversation, &overlay, Basis::default());
    assert_eq!(placed.last, None, "no mark survives");
}
