//! Laws of cache marks, wherever a client has put its own.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cache_marks::{Basis, Stable};
use super::conversation::Conversation;
use super::overlay::Overlay;
use super::properties::{body, drafted, history, settings};
use super::testing::Settings;
use super::view::{Recipe, View};
use crate::wire::body::Body;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// At most four, longer first, none where none may stand.
    #[test]
    fn marks_are_legal_wherever_the_client_has_put_its_own(
        messages in history(0),
        settings in settings(),
        marked in vec((0usize..60, any::<bool>()), 0..5),
        long in 0usize..5,
        [system, automatic, swap, kept_long] in any::<[bool; 4]>(),
        previous in (0usize..40, 0usize..3),
        stable in proptest::option::of((0usize..40, 0usize..3)),
    ) {
        let mut messages = messages;
        let bytes = body(&messages, false);
        let draft = drafted(&bytes, &Overlay::default(), &settings);
        let overlay = draft.map(|draft| draft.overlay).unwrap_or_default();
        let mut left = 4 - usize::from(system) - usize::from(automatic);
        let mut given = usize::from(system);
        let mut places: Vec<(usize, bool)> = marked;
        places.sort_unstable();
        places.dedup_by_key(|place| place.0);
        for (at, nested) in places {
            let lifetime = if given < long { mark("1h") } else { mark("5m") };
            if left > 0 && mark_message(&mut messages, at, nested, lifetime) {
                left -= 1;
                given += 1;
            }
        }
        let mut body = json!({"model": "m", "system": [{"type": "text", "text": "s"}], "messages": messages});
        if system {
            body["system"][0]["cache_control"] = mark(if long > 0 { "1h" } else { "5m" });
        }
        if automatic {
            body["cache_control"] = mark(if given < long { "1h" } else { "5m" });
        }
        let theirs = marks(&body);
        let bytes = Bytes::from(body.to_string());
        let split = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &split);
        let previous = (!swap).then_some(previous);
        let recipe = Recipe {
            overlay: Some(&overlay),
            marks: Some(Basis {
                swap,
                previous,
                stable: stable.map(|(message, block)| match block {
                    2 => Stable::Segments,
                    _ => Stable::Block(message, block),
                }),
                long: kept_long,
            }),
            drop_block: false,
            without_client_clear: false,
        };
        let made = View::make(&bytes, &conversation, recipe).unwrap();
        prop_assert_eq!(&made, &View::make(&bytes, &conversation, recipe).unwrap());
        let view: Value = serde_json::from_slice(&made.bytes()).unwrap();
        let found = marks(&view);
        prop_assert!(found.len() <= 4, "{found:?}");
        prop_assert!(!theirs.is_empty() || found.is_empty(), "a client that uses none");
        prop_assert!(found.is_sorted_by(|a, b| a.0 >= b.0), "{theirs:?} {found:?}");
        prop_assert!(found.iter().all(|(_, may)| *may), "{found:?}");
    }
}

#[test]
fn a_mark_that_is_null_is_none() {
    let blocks = json!([{"type": "text", "text": "x", "cache_control": null}]);
    let mut messages = vec![json!({"role": "user", "content": blocks})];
    for at in 0..6 {
        messages.push(json!({"role": "assistant", "content": format!("{at}")}));
        messages.push(json!({"role": "user", "content": blocks}));
    }
    let whole = json!({"system": [{"type": "text", "text": "s", "cache_control": null}],
        "messages": messages, "cache_control": null});
    let bytes = Bytes::from(whole.to_string());
    let split = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &split);
    let settings = Settings {
        keep_tool_uses: 0,
        exclude_tools: Vec::new(),
        clear: false,
        tail_messages: 1,
        target_bytes: 0,
        binds_thinking: false,
        manual_thinking: false,
        archives: true,
        live_turns: None,
    };
    let draft = drafted(&bytes, &Overlay::default(), &settings).unwrap();
    let recipe = Recipe {
        overlay: Some(&draft.overlay),
        marks: Some(Basis {
            swap: true,
            ..Basis::default()
        }),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(&bytes, &conversation, recipe).unwrap();
    assert!(view.edited && !view.added_marks);
    assert!(!String::from_utf8_lossy(&view.bytes()).contains("ephemeral"));
}

/// The API refuses a mark on an empty text. A client that puts one there hears
/// so as it would without us: the mark stays, and ours go elsewhere or nowhere.
#[test]
fn a_mark_of_the_clients_on_an_empty_text_stays_its_own_affair() {
    let empty = json!([{"type": "text", "text": "", "cache_control": mark("5m")}]);
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "x"}});
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for id in ["a", "b", "c"] {
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": ""}]);
        messages.push(json!({"role": "assistant", "content": [call(id)]}));
        messages.push(json!({"role": "user", "content": result}));
    }
    messages[6]["content"][0]["content"] = empty;
    let bytes = body(&messages, false);
    let split = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &split);
    for swap in [false, true] {
        for at in 0..messages.len() {
            let recipe = Recipe {
                overlay: None,
                marks: Some(Basis {
                    swap,
                    previous: Some((at, 0)),
                    ..Basis::default()
                }),
                drop_block: false,
                without_client_clear: false,
            };
            let view = View::make(&bytes, &conversation, recipe).unwrap();
            let view: Value = serde_json::from_slice(&view.bytes()).unwrap();
            let illegal = marks(&view).iter().filter(|(_, may)| !may).count();
            assert_eq!(illegal, 1, "{view}");
        }
    }
}

fn mark(lifetime: &str) -> Value {
    json!({"type": "ephemeral", "ttl": lifetime})
}

/// Marks the n-th block that may be marked; whether there is one.
fn mark_message(messages: &mut [Value], at: usize, nested: bool, mark: Value) -> bool {
    let blocks = messages
        .iter_mut()
        .filter_map(|m| m["content"].as_array_mut());
    let may = |block: &&mut Value| may_carry(block);
    let Some(block) = blocks.flatten().filter(may).nth(at) else {
        return false;
    };
    // In a result with nothing in it there is nothing that may be marked.
    if nested && block["type"] == "tool_result" && block["content"] != "" {
        let content = block["content"].clone();
        block["content"] = json!([{"type": "text", "text": content, "cache_control": mark}]);
    } else {
        block["cache_control"] = mark;
    }
    true
}

fn may_carry(block: &Value) -> bool {
    let kind = block["type"].as_str().unwrap_or("");
    !kind.contains("thinking") && (kind != "text" || block["text"] != "")
}

/// The marks of a body in the API's order: lifetime, and whether they may stand.
fn marks(body: &Value) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut look = |block: &Value| {
        if let Some(mark) = block.get("cache_control") {
            // As text, so that an hour sorts before five minutes downwards.
            let long = mark["ttl"] == "1h";
            let lifetime = if long { "b long" } else { "a short" };
            found.push((lifetime.to_owned(), may_carry(block)));
        }
    };
    body["system"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(&mut look);
    let messages = body["messages"].as_array().into_iter().flatten();
    for block in messages.filter_map(|m| m["content"].as_array()).flatten() {
        // A result's own mark counts before those inside it.
        look(block);
        block["content"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(&mut look);
    }
    if let Some(mark) = body.get("cache_control") {
        look(&json!({"type": "whole", "cache_control": mark}));
    }
    found
}
