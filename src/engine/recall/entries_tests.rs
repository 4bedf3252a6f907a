//! Which entries come of which messages.

use super::*;
use crate::engine::chain;
use crate::engine::facts::FactKind;
use crate::engine::properties::history;
use crate::wire::body::Body;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;

fn with<T>(messages: &Value, run: impl FnOnce(&Conversation<'_>, &[u8]) -> T) -> T {
    let bytes = json!({ "messages": messages }).to_string().into_bytes();
    let body = Body::split(&bytes).unwrap();
    run(&Conversation::new(&bytes, &body), &bytes)
}

fn all(messages: &Value) -> Vec<Entry> {
    with(messages, |conversation, _| {
        left(conversation, 0..usize::MAX, &[])
    })
}

fn left(
    conversation: &Conversation<'_>,
    hidden: Range<usize>,
    blocks: &[(usize, usize)],
) -> Vec<Entry> {
    entries(&LeftOut {
        conversation,
        tenant: chain::start("t"),
        seed: chain::start("seed"),
        hidden,
        blocks,
    })
}

fn story() -> Value {
    json!([
        {"role": "user", "content": "Please fix the login"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "look first", "signature": "s"},
            {"type": "text", "text": "I'll read it."},
            {"type": "tool_use", "id": "a", "name": "Read", "input": {"file_path": "/app/login.rs"}},
            {"type": "tool_use", "id": "b", "name": "Bash", "input": {"command": "cargo test --lib\n"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "fn check_password() {}\n".repeat(300)},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": "panicked"},
            {"type": "text", "text": "<system-reminder>be brief</system-reminder>"}]},
        {"role": "system", "content": "hurry"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c", "name": "Write", "input": {"file_path": "b.rs", "content": "x ".repeat(400)}},
            {"type": "compaction", "content": "so far"},
            {"type": "web_search_tool_result", "content": []}]},
    ])
}

#[test]
fn everything_that_was_said_or_found_has_an_entry() {
    let rows: Vec<String> = all(&story())
        .iter()
        .map(|entry| {
            let Entry {
                message,
                block,
                part,
                turn,
                kind,
                tool,
                path,
                ..
            } = entry;
            format!(
                "{message}.{block}.{part} t{turn} {} {tool} {path}",
                kind.name()
            )
            .trim_end()
            .to_owned()
        })
        .collect();
    let expected = [
        "0.0.0 t1 user",
        "1.0.0 t1 assistant",
        "1.1.0 t1 assistant",
        "2.0.0 t2 tool_result Read /app/login.rs",
        "2.0.1 t2 tool_result Read /app/login.rs",
        "2.0.2 t2 tool_result Read /app/login.rs",
        "2.0.3 t2 tool_result Read /app/login.rs",
        "2.1.0 t2 tool_result Bash cargo test --lib",
        "2.2.0 t2 tool_result client",
        "3.0.0 t2 tool_result system",
        "4.0.0 t2 tool_call Write b.rs",
        "4.1.0 t2 summary",
        "4.2.0 t2 tool_result web_search_tool_result",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn an_entry_is_found_by_its_text_tool_path_kind_and_failure() {
    let entries = all(&story());
    let of = |message: u32, block: u32, part: u32| {
        let at = |e: &&Entry| (e.message, e.block, e.part) == (message, block, part);
        entries.iter().find(at).unwrap().terms.clone()
    };
    let rows: [(_, &[&str]); 5] = [
        (
            of(2, 0, 0),
            &["check_password", "read", "login", "tool_result"],
        ),
        (of(2, 0, 3), &["check_password", "read", "login"]),
        (
            of(2, 1, 0),
            &["panick", "bash", "cargo", "test", "lib", "error"],
        ),
        (of(0, 0, 0), &["fix", "login", "user"]),
        (of(4, 0, 0), &["writ", "x"]),
    ];
    for (terms, expected) in rows {
        for term in expected {
            assert!(terms.iter().any(|held| held == term), "{term} in {terms:?}");
        }
    }
    assert!(!of(0, 0, 0).contains(&"error".to_owned()));
}

#[test]
fn single_blocks_are_entries_too_and_none_comes_twice() {
    with(&story(), |conversation, _| {
        let places = |entries: Vec<Entry>| -> BTreeSet<(u32, u32)> {
            entries
                .iter()
                .map(|entry| (entry.message, entry.block))
                .collect()
        };
        let some = places(left(
            conversation,
            0..1,
            &[(2, 1), (1, 2), (9, 9), (2, 1), (0, 0)],
        ));
        assert_eq!(some, [(0, 0), (1, 2), (2, 1)].into());
    });
}

#[test]
fn notes_of_one_kind_at_one_block_are_parts_of_it() {
    let note = |kind, block, text| Note {
        kind,
        message: 7,
        block,
        turn: 2,
        tool: "Bash",
        path: "src/a.rs",
        text,
    };
    let notes = [
        note(EntryKind::Fact(FactKind::FileRead), 0, "wrote"),
        note(EntryKind::Fact(FactKind::Error), 0, "failed with E0308"),
        note(EntryKind::Fact(FactKind::FileRead), 0, "read"),
        note(EntryKind::Fact(FactKind::FileRead), 1, "read"),
    ];
    let entries = noted(chain::start("seed"), &notes);
    let parts: Vec<u32> = entries.iter().map(|entry| entry.part).collect();
    assert_eq!(parts, [0, 0, 1, 0]);
    assert_eq!(
        entries[1].text,
        Text::Inline("failed with E0308".to_owned())
    );
    assert!(entries[1].terms.contains(&"e0308".to_owned()));
    assert!(entries[1].terms.contains(&"src".to_owned()));
    assert_eq!(
        entries[0].reference,
        reference_at(chain::start("seed"), 7, 0)
    );
}

proptest! {
    /// Content entries point at what the archive stores, and all of its text is
    /// in one passage or another.
    #[test]
    fn what_an_entry_points_at_is_kept(messages in history(4)) {
        with(&Value::from(messages), |conversation, bytes| {
            let tenant = chain::start("t");
            let mut pieces = HashMap::new();
            for at in 0..conversation.len() {
                for range in archive::parts(conversation, at).contents() {
                    let content = &bytes[range.clone()];
                    pieces.insert(stub::blob_id(tenant, content), text::text(content));
                }
            }
            let entries = left(conversation, 0..conversation.len(), &[]);
            let mut keys = BTreeSet::new();
            let mut ends: HashMap<(u32, u32), u32> = HashMap::new();
            for entry in &entries {
                assert!(keys.insert((entry.message, entry.block, entry.kind, entry.part)));
                match &entry.text {
                    Text::Inline(text) => assert!(!text.trim().is_empty() && entry.bytes < 512),
                    Text::Content { blob, from, to } => {
                        let end = ends.entry((entry.message, entry.block)).or_default();
                        assert_eq!(from, end);
                        assert!(!text::passage(&pieces[blob], *from, *to).is_empty());
                        *end = *to;
                        if !entries.iter().any(|e| (e.message, e.block, e.part) == (entry.message, entry.block, entry.part + 1)) {
                            assert_eq!(*to as usize, pieces[blob].len());
                        }
                    }
                }
            }
        });
    }
}
