//! Superseded results in recordings of real agents, against a sample judged by
//! hand.
//!
//! `superseded/sample.tsv` names results by recording, stretch, message and
//! block, and says of each whether something later made it worthless. It was
//! drawn by a fixed rule before the code was run on it: every n-th result that a
//! later call repeats or overlaps, every n-th that later calls only touch, and
//! every n-th that nothing later is about. Its last row came up when everything
//! that the code called superseded was looked through. Nothing that is needed may
//! be called superseded or a duplicate; how many of the others are found is
//! printed.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`.
//! The sample has rows for those too, and only rows of recordings that are there
//! are looked at.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs
)]

mod recordings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul::engine::candidates::{Candidate, Choice, Reason, candidates};
use longhaul::engine::conversation::Conversation;
use longhaul::engine::overlay::Overlay;
use longhaul::wire::body::Body;
use serde_json::{Value, json};

/// The stretches of a recording in which one history grows.
fn stretches(recording: &Path) -> Vec<Vec<Value>> {
    let lines = std::fs::read_to_string(recording.join("messages.jsonl")).unwrap();
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let mut messages: Vec<Value> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
    let meta = std::fs::read_to_string(recording.join("meta.json")).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    let cuts = meta["client_compaction_before_message_index"].as_array();
    let cuts = cuts.into_iter().flatten().filter_map(Value::as_u64);
    let cuts: BTreeSet<usize> = cuts.map(|at| usize::try_from(at).unwrap()).collect();
    let mut stretches = Vec::new();
    for cut in cuts.into_iter().rev() {
        stretches.push(messages.split_off(cut.min(messages.len())));
    }
    stretches.push(messages);
    stretches.reverse();
    stretches.iter().map(|messages| legal(messages)).collect()
}

/// What the API takes of a recording: it begins with the user, results stand
/// first and answer a call, nothing is empty, one message a turn.
fn legal(messages: &[Value]) -> Vec<Value> {
    let mut legal: Vec<Value> = Vec::new();
    let mut calls = BTreeSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        let mut blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            _ => Vec::new(),
        };
        blocks.retain(|block| match block["type"].as_str() {
            Some("text") => !block["text"].as_str().unwrap().trim().is_empty(),
            Some("tool_result") => calls.contains(block["tool_use_id"].as_str().unwrap()),
            _ => true,
        });
        if blocks.is_empty() || (legal.is_empty() && role != "user") {
            continue;
        }
        let known = legal.last_mut().filter(|last| last["role"] == role);
        match known.and_then(|last| last["content"].as_array_mut()) {
            Some(last) => last.extend(blocks),
            None => legal.push(json!({"role": role, "content": blocks})),
        }
        let last = legal.last_mut().unwrap()["content"].as_array_mut().unwrap();
        last.sort_by_key(|block| block["type"] != "tool_result" && role == "user");
        if role == "assistant" {
            let uses = last.iter().filter(|block| block["type"] == "tool_use");
            calls = uses
                .map(|call| call["id"].as_str().unwrap().to_owned())
                .collect();
        }
    }
    legal
}

fn found(messages: &[Value]) -> Vec<Candidate> {
    let bytes = json!({ "messages": messages }).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    let choice = Choice {
        keep_tool_uses: 0,
        exclude_tools: &[],
        supersede: true,
        oversized: usize::MAX,
    };
    candidates(&conversation, &Overlay::default(), &choice)
}

/// A result: recording, stretch, message and block.
type Place = (String, usize, usize, usize);

/// The sample, and for each whether it is worthless.
fn sample() -> BTreeMap<Place, bool> {
    let text = include_str!("superseded/sample.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [recording, stretch, message, block, verdict, _] = fields.as_slice() else {
            panic!("six fields: {line}");
        };
        let number = |text: &str| text.parse::<usize>().unwrap();
        let place = (
            (*recording).to_owned(),
            number(stretch),
            number(message),
            number(block),
        );
        assert!(["superseded", "needed"].contains(verdict), "{line}");
        (place, *verdict == "superseded")
    };
    rows.map(row).collect()
}

#[test]
fn nothing_that_was_still_needed_is_called_superseded() {
    let recordings = recordings::all();
    let names: BTreeSet<String> = recordings
        .iter()
        .map(|path| recordings::name(path))
        .collect();
    let mut sample = sample();
    sample.retain(|place, _| names.contains(&place.0));
    assert!(
        !sample.is_empty(),
        "no row of the sample is about {names:?}"
    );
    let mut worthless: BTreeMap<Place, Reason> = BTreeMap::new();
    let mut total: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for recording in &recordings {
        let name = recording.file_name().unwrap().to_str().unwrap();
        let agent = name.split('-').next().unwrap();
        for (stretch, messages) in stretches(recording).iter().enumerate() {
            for candidate in found(messages) {
                let total = total.entry(agent.to_owned()).or_default();
                total[0] += 1;
                total[1] += candidate.bytes;
                if candidate.reason == Reason::Old {
                    continue;
                }
                total[2] += 1;
                total[3] += candidate.bytes;
                let (message, block) = candidate.result;
                println!(
                    "{name} {stretch} {message}.{block} {:?} {} {}",
                    candidate.reason, candidate.tool, candidate.subject
                );
                let place = (name.to_owned(), stretch, message, block);
                worthless.insert(place, candidate.reason);
            }
        }
    }
    let mut wrong = Vec::new();
    let mut recall: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (place, is_worthless) in &sample {
        let recall = recall
            .entry(place.0.split('-').next().unwrap())
            .or_default();
        recall[0] += 1;
        recall[1] += usize::from(*is_worthless);
        match worthless.get(place) {
            Some(reason) if !is_worthless => wrong.push((place, reason)),
            Some(_) => recall[2] += 1,
            None if *is_worthless => println!("missed: {place:?}"),
            None => {}
        }
    }
    for (agent, [judged, worthless, found]) in recall {
        let [all, bytes, superseded, superseded_bytes] = total[agent];
        println!(
            "{agent}: {judged} judged, {found} of {worthless} found; of all {all} candidates \
             ({bytes} bytes) {superseded} ({superseded_bytes} bytes)"
        );
    }
    assert!(wrong.is_empty(), "needed, but called worthless: {wrong:#?}");
}
