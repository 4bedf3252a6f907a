//! Laws of views, over conversations of any shape, legal or not.
//!
//! A client may send what the API refuses; that is between the two. But a view
//! may never be worse than its history, whatever that is.

use std::ops::Range;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::cache_marks::Basis;
use super::chain;
use super::conversation::Conversation;
use super::legal::faults;
use super::overlay::{Change, Overlay};
use super::reduce::{Draft, Settings, reduce, without_thinking};
use super::view::{Recipe, View};
use crate::wire::body::{Body, Kind};

/// A block of any kind, in a place where it may not belong.
fn block() -> impl Strategy<Value = Value> {
    let id = || select(vec!["t0", "t1", "t2", "t3"]);
    let content = || {
        prop_oneof![
            Just(json!("")),
            Just(json!(null)),
            Just(json!("long result ".repeat(40))),
            Just(json!([{"type": "text", "text": "nested ".repeat(60)}])),
            Just(json!([{"type": "tool_reference", "tool_name": "x"}])),
        ]
    };
    prop_oneof![
        select(vec!["", " ", "words"]).prop_map(|text| json!({"type": "text", "text": text})),
        Just(json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        Just(json!({"data": "d", "type": "redacted_thinking"})),
        id().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})),
        (id(), content()).prop_map(|(id, content)| {
            json!({"content": content, "type": "tool_result", "tool_use_id": id})
        }),
        id().prop_map(|id| json!({"type": "tool_result", "tool_use_id": id, "is_error": true})),
        Just(json!({"type": "compaction", "content": "so far"})),
        Just(json!({"type": "compaction", "content": null})),
        Just(json!({"type": "hologram", "depth": 1})),
        Just(json!({"type": "image", "source": {"type": "url", "url": "u"}})),
    ]
}

/// A message of any kind.
fn odd() -> impl Strategy<Value = Vec<Value>> {
    let role = select(vec![
        "user",
        "user",
        "assistant",
        "assistant",
        "system",
        "narrator",
    ]);
    let content = prop_oneof![
        Just(json!("words")),
        Just(json!("")),
        vec(block(), 0..4).prop_map(Value::from),
    ];
    (role, content).prop_map(|(role, content)| vec![json!({"role": role, "content": content})])
}

/// A cycle as it should be: calls, and results in the next message or the next two.
fn cycle() -> impl Strategy<Value = Vec<Value>> {
    let shape = (
        0usize..1_000_000,
        1usize..4,
        0usize..900,
        any::<[bool; 6]>(),
    );
    shape.prop_map(|(serial, calls, size, [thinks, split, note, error, text, later])| {
        let id = |call: usize| format!("c{serial}_{call}");
        let mut blocks = Vec::new();
        if thinks {
            blocks.push(json!({"type": "thinking", "thinking": "", "signature": "s"}));
        }
        blocks.extend((0..calls).map(|call| {
            json!({"type": "tool_use", "id": id(call), "name": "Bash", "input": {"cache_control": 1}})
        }));
        let mut results: Vec<Value> = (0..calls)
            .map(|call| {
                json!({"type": "tool_result", "tool_use_id": id(call), "content": "r".repeat(size), "is_error": error && call == 0})
            })
            .collect();
        let rest = if split { results.split_off(1) } else { Vec::new() };
        if text && rest.is_empty() {
            results.push(json!({"type": "text", "text": "and"}));
        }
        let mut messages = vec![
            json!({"role": "assistant", "content": blocks}),
            json!({"role": "user", "content": results}),
        ];
        if !rest.is_empty() {
            messages.push(json!({"role": "user", "content": rest}));
        }
        if later {
            messages.push(json!({"role": "user", "content": "one more thing"}));
        }
        if note {
            messages.push(json!({"role": "system", "content": "note"}));
        }
        messages
    })
}

/// A turn without calls.
fn turn() -> impl Strategy<Value = Vec<Value>> {
    let thinks = any::<bool>();
    thinks.prop_map(|thinks| {
        let content = match thinks {
            true => json!([{"type": "thinking", "thinking": "all", "signature": "s"}]),
            false => json!("done"),
        };
        vec![
            json!({"role": "assistant", "content": content}),
            json!({"role": "user", "content": "next, please"}),
        ]
    })
}

fn history(oddness: u32) -> impl Strategy<Value = Vec<Value>> {
    let piece = prop_oneof![6 => cycle(), 3 => turn(), oddness => odd()];
    let begin = prop_oneof![
        4 => Just(vec![json!({"role": "user", "content": "go"})]),
        1 => Just(vec![json!({"role": "user", "content": "go"}), json!({"role": "system", "content": "note"})]),
        1 => Just(vec![
            json!({"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]}),
            json!({"role": "user", "content": "go"}),
        ]),
        oddness => odd(),
    ];
    (begin, vec(piece, 0..12)).prop_map(|(begin, pieces)| {
        begin
            .into_iter()
            .chain(pieces.into_iter().flatten())
            .collect()
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let target = select(vec![0, 500, 3_000, usize::MAX]);
    (0usize..4, any::<[bool; 3]>(), 1usize..8, target).prop_map(
        |(
            keep_tool_uses,
            [clear, binds_thinking, manual_thinking],
            tail_messages,
            target_bytes,
        )| {
            Settings {
                keep_tool_uses,
                exclude_tools: Vec::new(),
                clear,
                tail_messages,
                target_bytes,
                binds_thinking,
                manual_thinking,
            }
        },
    )
}

fn body(messages: &[Value], pretty: bool) -> Bytes {
    let body = json!({"model": "m", "messages": messages, "tools": []});
    match pretty {
        true => serde_json::to_string_pretty(&body).unwrap().into(),
        false => body.to_string().into(),
    }
}

fn view(bytes: &Bytes, overlay: &Overlay) -> Bytes {
    let split = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &split);
    let recipe = Recipe {
        overlay: Some(overlay),
        marks: None,
        drop_block: false,
    };
    View::make(bytes, &conversation, recipe).unwrap().bytes()
}

fn messages_of(bytes: &Bytes) -> Vec<Vec<u8>> {
    let body = Body::split(bytes).unwrap();
    let messages = body.messages().iter();
    messages
        .map(|message| message.span.of(bytes).to_vec())
        .collect()
}

fn drafted(bytes: &Bytes, current: &Overlay, settings: &Settings) -> Option<Draft> {
    let split = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &split);
    reduce(&conversation, current, chain::start("t"), settings)
}

/// Invariant 2: what is wrong with a view is wrong with its history.
fn is_no_worse(bytes: &Bytes, overlay: &Overlay) -> Result<(), TestCaseError> {
    let view = view(bytes, overlay);
    let mine = faults(bytes, &Body::split(bytes).unwrap());
    let shown = faults(&view, &Body::split(&view).unwrap());
    prop_assert!(shown.is_subset(&mine), "{shown:?} {mine:?}\n{view:?}");
    Ok(())
}

/// Invariant 6: whatever is shown before and not behind a pass is evicted.
fn is_recorded(bytes: &Bytes, before: &Overlay, draft: &Draft) -> Result<(), TestCaseError> {
    let body = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &body);
    let after = &draft.overlay;
    let evicted = |range: Range<usize>| draft.evicted.iter().any(|(_, known)| *known == range);
    for (at, message) in body.messages().iter().enumerate() {
        if before.shows(at) && !after.shows(at) {
            prop_assert!(evicted(message.span.range()), "message {at}");
        }
    }
    for edit in &after.edits {
        if before.edits.contains(edit) {
            continue;
        }
        let place = (edit.message as usize, edit.block as usize);
        let block = conversation.block_at(place).unwrap();
        let gone = match edit.change {
            Change::Payload(_) => block.payload.unwrap().range(),
            Change::Block(_) | Change::Gone => block.span.range(),
        };
        prop_assert!(evicted(gone), "{edit:?}");
    }
    Ok(())
}

/// Invariant 3: head, newest message of the assistant and what follows it.
fn keeps_what_it_must(bytes: &Bytes, draft: &Draft) -> Result<(), TestCaseError> {
    let body = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &body);
    let last = conversation.last_assistant().unwrap_or(0);
    let overlay = &draft.overlay;
    for at in (0..conversation.head()).chain(last..conversation.len()) {
        prop_assert!(
            overlay.shows(at) || at < conversation.head(),
            "message {at}"
        );
        for edit in overlay.edits_of(at) {
            let kind = conversation.blocks(at)[edit.block as usize].kind;
            prop_assert!(kind == Kind::Thinking, "{edit:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_view_is_never_worse_than_its_history_and_everything_left_out_is_kept(
        messages in history(2),
        first in settings(),
        second in settings(),
        cut in 0usize..40,
        pretty: bool,
    ) {
        let early = messages.get(..cut.min(messages.len())).unwrap();
        let bytes = body(early, pretty);
        let none = Overlay::default();
        let Some(draft) = drafted(&bytes, &none, &first) else {
            return Ok(());
        };
        is_no_worse(&bytes, &draft.overlay)?;
        is_recorded(&bytes, &none, &draft)?;
        keeps_what_it_must(&bytes, &draft)?;
        let (_, stored) = draft.overlay.store(chain::start("t")).unwrap();
        prop_assert_eq!(&Overlay::read(&stored).unwrap(), &draft.overlay);
        // Prefix stability: what is added to the history is added to the view.
        let whole = body(&messages, pretty);
        let (before, after) = (view(&bytes, &draft.overlay), view(&whole, &draft.overlay));
        let (before, after) = (messages_of(&before), messages_of(&after));
        prop_assert_eq!(&after[..before.len()], &before[..]);
        prop_assert_eq!(after.len() - before.len(), messages.len() - early.len());
        is_no_worse(&whole, &draft.overlay)?;
        // And a second pass stands on the first.
        let Some(later) = drafted(&whole, &draft.overlay, &second) else {
            return Ok(());
        };
        is_no_worse(&whole, &later.overlay)?;
        is_recorded(&whole, &draft.overlay, &later)?;
        keeps_what_it_must(&whole, &later)?;
    }

    #[test]
    fn legal_histories_have_legal_views_without_thinking_too(
        messages in history(0),
        settings in settings(),
    ) {
        let bytes = body(&messages, false);
        let Some(draft) = drafted(&bytes, &Overlay::default(), &settings) else {
            return Ok(());
        };
        is_no_worse(&bytes, &draft.overlay)?;
        let split = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &split);
        let start = chain::start("t");
        if let Some((bare, _)) = without_thinking(&conversation, &draft.overlay, start) {
            is_no_worse(&bytes, &bare)?;
        }
    }

    /// At most four, longer first, none where none may stand.
    #[test]
    fn marks_are_legal_wherever_the_client_has_put_its_own(
        messages in history(0),
        settings in settings(),
        marked in vec((0usize..60, any::<bool>()), 0..5),
        long in 0usize..5,
        [system, automatic, swap] in any::<[bool; 3]>(),
        previous in (0usize..40, 0usize..3),
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
            marks: Some(Basis { swap, previous }),
            drop_block: false,
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
    };
    let draft = drafted(&bytes, &Overlay::default(), &settings).unwrap();
    let recipe = Recipe {
        overlay: Some(&draft.overlay),
        marks: Some(Basis {
            swap: true,
            previous: None,
        }),
        drop_block: false,
    };
    let view = View::make(&bytes, &conversation, recipe).unwrap();
    assert!(view.edited && !view.added_marks);
    assert!(!String::from_utf8_lossy(&view.bytes()).contains("ephemeral"));
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
    if nested && block["type"] == "tool_result" {
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
