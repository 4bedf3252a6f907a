//! What the tiers do together, where more than one of them comes to a result.

use super::*;
use crate::engine::cache_marks::{self, Basis};
use crate::engine::chain;
use crate::engine::overlay::Edit;
use crate::engine::render::render;
use crate::engine::split::Split;
use crate::engine::view::{Recipe, View};
use crate::wire::body::Body;
use crate::wire::splice::{joined, splice};
use bytes::Bytes;
use serde_json::json;

/// A call whose newest results are a giant and a large one.
fn body() -> (Bytes, Body) {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let result = |id: &str, chars: usize| json!({"type": "tool_result", "tool_use_id": id, "content": "a word\n".repeat(chars / 7)});
    let bytes = Bytes::from(
        json!({"messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [call("a"), call("b")]},
            {"role": "user", "content": [result("a", 400_000), result("b", 39_000)]},
        ]})
        .to_string(),
    );
    let body = Body::split(&bytes).unwrap();
    (bytes, body)
}

fn settings() -> Settings {
    Settings {
        trim: Some(Trims {
            max_chars: 40_000,
            ..Trims::default()
        }),
        split: Split {
            tail_messages: 10,
            ..Split::default()
        },
        ..Settings::default()
    }
}

/// The bytes of a draft's messages.
fn shown(bytes: &Bytes, conversation: &Conversation<'_>, draft: &Draft) -> u64 {
    let changes = render(conversation, &draft.overlay, "").unwrap();
    joined(&splice(bytes, changes).unwrap()).len() as u64
}

#[test]
fn a_result_that_is_trimmed_twice_in_one_draft_is_counted_once() {
    let (bytes, body) = body();
    let conversation = Conversation::new(&bytes, &body);
    let (none, settings) = (Overlay::default(), settings());
    let survey = Survey::in_bytes(&conversation, &none, chain::start("t"), &settings);
    for fits in [40_000, 20_000, 6_000] {
        let draft = survey
            .draft(&[], Close::Nothing, survey.arrivals(2), Some(1), fits)
            .unwrap();
        let size = shown(&bytes, &conversation, &draft);
        assert!(size <= fits, "{size} {fits}");
        assert!(
            draft.weight.abs_diff(size) < 1_000,
            "{} {size}",
            draft.weight
        );
        let trimmed = draft.freed.trimmed.unwrap();
        assert!(trimmed < bytes.len() as u64, "{trimmed}");
        assert_eq!(draft.evicted.len(), draft.overlay.edits.len());
    }
}

/// Upstream may refuse it all the same.
#[test]
fn what_was_trimmed_as_it_arrived_can_be_trimmed_harder() {
    let (bytes, body) = body();
    let conversation = Conversation::new(&bytes, &body);
    let (none, settings) = (Overlay::default(), settings());
    let first = Survey::in_bytes(&conversation, &none, chain::start("t"), &settings);
    let arrivals = first.arrivals(2);
    assert_eq!(arrivals.len(), 1);
    let edits = arrivals.iter().map(|arrival| Edit {
        message: 2,
        block: 0,
        change: Change::Payload(arrival.with.clone()),
    });
    let trimmed = Overlay {
        made_at: 3,
        edits: edits.collect(),
        ..Overlay::default()
    };
    let again = Survey::in_bytes(&conversation, &trimmed, chain::start("t"), &settings);
    assert!(again.arrivals(2).is_empty(), "not by the same rule");
    let draft = again
        .draft(&[], Close::Nothing, Vec::new(), Some(1), 6_000)
        .unwrap();
    let size = shown(&bytes, &conversation, &draft);
    assert!(size <= 6_000, "{size}");
    assert!(
        draft.weight.abs_diff(size) < 1_000,
        "{} {size}",
        draft.weight
    );
}

/// A turn of so many cycles; only its first reply thinks.
fn turn(cycles: usize, result: usize, loads: bool) -> (Bytes, Body) {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for number in 0..cycles {
        let id = format!("t{number}");
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let said = if number == 0 {
            vec![thinking, call]
        } else {
            vec![call]
        };
        let content = if loads && number == 0 {
            json!([{"type": "tool_reference", "tool_name": "x"}])
        } else {
            json!("a word\n".repeat(result / 7))
        };
        messages.push(json!({"role": "assistant", "content": said}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": content}
        ]}));
    }
    let bytes = Bytes::from(json!({"messages": messages}).to_string());
    let body = Body::split(&bytes).unwrap();
    (bytes, body)
}

/// Invariant 7, with nothing that may be cleared.
#[test]
fn a_turn_with_manual_thinking_fits_however_long_it_is() {
    for (cycles, result, loads) in [(40, 900, false), (400, 900, false), (12, 20_000, true)] {
        let (bytes, body) = turn(cycles, result, loads);
        let conversation = Conversation::new(&bytes, &body);
        let settings = Settings {
            manual_thinking: true,
            split: settings().split,
            ..Settings::default()
        };
        let none = Overlay::default();
        let survey = Survey::in_bytes(&conversation, &none, chain::start("t"), &settings);
        let fits = if loads { 20_000 } else { 6_000 };
        let draft = survey
            .draft(&[], Close::Nothing, Vec::new(), Some(5_000), fits)
            .unwrap();
        let size = shown(&bytes, &conversation, &draft);
        assert!(size <= fits, "{cycles}: {size}");
        assert!(
            draft.weight.abs_diff(size) < 1_000,
            "{cycles}: {} {size}",
            draft.weight
        );
        let carried = draft.overlay.carried().len();
        assert_eq!(carried, if loads { 0 } else { 2 }, "{cycles}");
    }
}

/// A client that marks the newest block inside its newest result, with lifetimes
/// that change: whatever was trimmed before, a view has the client's own marks and
/// no other.
#[test]
fn a_cache_mark_inside_a_trimmed_result_is_not_kept_with_it() {
    let call = |id: usize| json!({"type": "tool_use", "id": format!("t{id}"), "name": "Bash", "input": {}});
    let result = |id: usize, mark: Option<&str>| {
        let mut text = json!({"type": "text", "text": format!("line {id}\n").repeat(7_000)});
        if let Some(ttl) = mark {
            text["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
        }
        json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": [text, {"type": "text", "text": "end"}]})
    };
    let settings = settings();
    let mut overlay = Overlay::default();
    for turns in 1..8_usize {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        for id in 1..=turns {
            let ttl = if turns.is_multiple_of(2) { "1h" } else { "5m" };
            let mark = (id + 1 >= turns).then_some(ttl);
            messages.push(json!({"role": "assistant", "content": [call(id)]}));
            messages.push(json!({"role": "user", "content": [result(id, mark)]}));
        }
        let source = json!({"model": "m", "messages": messages}).to_string();
        let bytes = Bytes::from(source);
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let survey = Survey::in_bytes(&conversation, &overlay, chain::start("t"), &settings);
        let arrivals = survey.arrivals(2 * turns - 1);
        let draft = survey.draft(&[], Close::Nothing, arrivals, None, u64::MAX);
        overlay = draft.expect("it is oversized").overlay;
        let (_, stored) = overlay.store(chain::start("t")).unwrap();
        assert!(!String::from_utf8(stored).unwrap().contains("cache_control"));

        let recipe = Recipe {
            overlay: Some(&overlay),
            marks: Some(Basis::default()),
            drop_block: false,
            without_client_clear: false,
        };
        let view = View::make(&bytes, &conversation, recipe).unwrap();
        let shown = Body::split(&view.bytes()).unwrap();
        assert_eq!(cache_marks::count(&view.bytes(), &shown), turns.min(2));
        let newest: serde_json::Value = serde_json::from_slice(&view.bytes()).unwrap();
        let newest = &newest["messages"][2 * turns]["content"][0];
        let ttl = if turns.is_multiple_of(2) { "1h" } else { "5m" };
        assert_eq!(
            newest["cache_control"]["ttl"], ttl,
            "it goes on the result itself"
        );
    }
}
