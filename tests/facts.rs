//! The facts of recordings of real agents.
//!
//! How many there are of each kind is printed. What was written must be among
//! them, the facts of a history must be those of its parts wherever a request
//! ended, and what is made of them must keep to its size.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs
)]

mod recordings;

use std::collections::BTreeSet;
use std::path::PathBuf;

use longhaul::engine::acts;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::facts::{Fact, FactKind, LONG, TEXT, facts, turns};
use longhaul::engine::handoff::{Material, handoff};
use longhaul::engine::status::Status;
use longhaul::wire::body::{Body, Role};
use serde_json::{Value, json};

/// The recordings, each with its messages.
fn recordings() -> Vec<(String, Vec<Value>)> {
    let read = |path: PathBuf| {
        let lines = recordings::lines(&path).into_iter();
        let messages = lines.map(|line| serde_json::from_str(&line).unwrap());
        (recordings::name(&path), messages.collect())
    };
    recordings::all().into_iter().map(read).collect()
}

/// The files that calls which did not fail have written, by their arguments.
fn written(messages: &[Value]) -> BTreeSet<String> {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let failed: BTreeSet<String> = messages
        .iter()
        .flat_map(blocks)
        .filter(|block| block["is_error"] == json!(true))
        .map(|block| block["tool_use_id"].to_string())
        .collect();
    let mut paths = BTreeSet::new();
    for block in messages.iter().flat_map(blocks) {
        if block["type"] == "tool_use" && !failed.contains(&block["id"].to_string()) {
            let input = serde_json::to_vec(&block["input"]).unwrap();
            let act = acts::act(block["name"].as_str().unwrap(), &input);
            paths.extend(
                act.writings()
                    .iter()
                    .map(|writing| writing.file.path.clone()),
            );
        }
    }
    paths
}

#[test]
fn the_facts_of_real_sessions_name_every_file_that_was_written() {
    for (name, messages) in recordings() {
        let bytes = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let all = facts(&conversation, 0, messages.len());
        let count = |kind: FactKind| all.iter().filter(|fact| fact.kind == kind).count();
        let counts: Vec<String> = FactKind::ALL
            .iter()
            .map(|kind| format!("{} {}", kind.name(), count(*kind)))
            .collect();
        println!("{name}: {} messages; {}", messages.len(), counts.join(", "));
        let named: BTreeSet<&str> = all
            .iter()
            .filter(|fact| fact.kind == FactKind::FileWritten)
            .filter_map(|fact| fact.path.as_deref())
            .collect();
        for path in written(&messages) {
            let is_named = named.iter().any(|name| name.starts_with(&path));
            assert!(is_named, "{name}: {path} is missing");
        }
        let status = Status::of(&all, turns(&conversation), 0).text();
        assert!(status.chars().count() < 2_000, "{name}: {status}");
        let room = 12_000;
        let handoff = handoff(&Material {
            facts: &all,
            narratives: &[],
            references: &[],
            room,
        });
        assert!(handoff.len() <= room, "{name}");
        println!(
            "  status {} bytes, hand-off {} bytes",
            status.len(),
            handoff.len()
        );
        for fact in &all {
            let letters = fact.text.chars().count();
            assert!((1..=LONG).contains(&letters), "{name}: {fact:?}");
            let is_long = matches!(fact.kind, FactKind::Words | FactKind::Todo);
            assert!(is_long || letters <= TEXT, "{name}: {fact:?}");
        }
    }
}

#[test]
fn a_session_told_request_by_request_is_told_whole() {
    for (name, messages) in recordings() {
        let bytes = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let ends = |at: &usize| body.messages()[*at].role == Role::Assistant;
        let mut ends: Vec<usize> = (0..messages.len()).filter(ends).collect();
        ends.push(messages.len());
        let mut told: Vec<Fact> = Vec::new();
        let mut from = 0;
        for to in ends {
            told.extend(facts(&conversation, from, to));
            from = to;
        }
        assert_eq!(told, facts(&conversation, 0, messages.len()), "{name}");
    }
}
