//! Laws of views, over conversations of any shape, legal or not.
//!
//! A client may send what the API refuses; that is between the two. But a view
//! may never be worse than its history, whatever that is.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::chain;
use super::conversation::Conversation;
use super::legal::faults;
use super::overlay::{Change, Edit, Overlay};
use super::recall::reference;
use super::reduce::{Draft, Evicted, without_thinking};
use super::testing::{Settings, reduce};
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
        let content = if thinks {
            json!([{"type": "thinking", "thinking": "all", "signature": "s"}])
        } else {
            json!("done")
        };
        vec![
            json!({"role": "assistant", "content": content}),
            json!({"role": "user", "content": "next, please"}),
        ]
    })
}

pub(super) fn history(oddness: u32) -> impl Strategy<Value = Vec<Value>> {
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

pub(super) fn settings() -> impl Strategy<Value = Settings> {
    let target = select(vec![0, 500, 3_000, usize::MAX]);
    let live_turns = select(vec![None, None, Some(1), Some(2), Some(4)]);
    (0usize..4, any::<[bool; 3]>(), 1usize..8, target, live_turns).prop_map(
        |(
            keep_tool_uses,
            [clear, binds_thinking, manual_thinking],
            tail_messages,
            target_bytes,
            live_turns,
        )| {
            Settings {
                keep_tool_uses,
                exclude_tools: Vec::new(),
                clear,
                tail_messages,
                target_bytes,
                binds_thinking,
                manual_thinking,
                archives: true,
                live_turns,
            }
        },
    )
}

pub(super) fn body(messages: &[Value], pretty: bool) -> Bytes {
    let body = json!({"model": "m", "messages": messages, "tools": []});
    if pretty {
        serde_json::to_string_pretty(&body).unwrap().into()
    } else {
        body.to_string().into()
    }
}

fn view(bytes: &Bytes, overlay: &Overlay) -> Bytes {
    let split = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &split);
    let recipe = Recipe {
        overlay: Some(overlay),
        marks: None,
        drop_block: false,
        without_client_clear: false,
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

pub(super) fn drafted(bytes: &Bytes, current: &Overlay, settings: &Settings) -> Option<Draft> {
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

/// Invariant 6: whatever is shown before and not behind a pass is told of, under
/// the name that the view shows. Thinking is kept with its message.
fn is_recorded(bytes: &Bytes, before: &Overlay, draft: &Draft) -> Result<(), TestCaseError> {
    let body = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &body);
    let after = &draft.overlay;
    for at in 0..body.messages().len() {
        if before.shows(at) && !after.shows(at) {
            let mut spans = draft.evicted.iter().filter(|gone| gone.block.is_none());
            prop_assert!(
                spans.any(|gone| gone.messages.contains(&at)),
                "message {at}"
            );
        }
    }
    for edit in &after.edits {
        if before.edits.contains(edit) {
            continue;
        }
        let place = (edit.message as usize, edit.block as usize);
        let block = conversation.block_at(place).unwrap();
        let Change::Payload(shown) = &edit.change else {
            let added = matches!(edit.change, Change::Append(_));
            prop_assert!(added || block.kind == Kind::Thinking, "{edit:?}");
            continue;
        };
        let is_it = |gone: &&Evicted| {
            gone.messages == (place.0..place.0 + 1) && gone.block == Some(place.1)
        };
        let gone = draft.evicted.iter().find(is_it);
        let told = gone.is_some_and(|gone| shown.contains(&reference::shown(gone.reference)));
        prop_assert!(told, "{edit:?}");
    }
    Ok(())
}

/// Invariant 3: head, newest message of the assistant and what follows it. What
/// an earlier pass did stays, also where a summary of the API's has made it head.
fn keeps_what_it_must(bytes: &Bytes, before: &Overlay, draft: &Draft) -> Result<(), TestCaseError> {
    let body = Body::split(bytes).unwrap();
    let conversation = Conversation::new(bytes, &body);
    let last = conversation.last_assistant().unwrap_or(0);
    let overlay = &draft.overlay;
    for at in (0..conversation.head()).chain(last..conversation.len()) {
        prop_assert!(
            overlay.shows(at) || at < conversation.head(),
            "message {at}"
        );
        let new = |edit: &&Edit| !before.edits.contains(edit);
        for edit in overlay.edits_of(at).iter().filter(new) {
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
        keeps_what_it_must(&bytes, &none, &draft)?;
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
        keeps_what_it_must(&whole, &draft.overlay, &later)?;
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
        if let Some(bare) = without_thinking(&conversation, &draft.overlay, start) {
            is_no_worse(&bytes, &bare)?;
        }
    }
}
