//! The same invariants over recordings of real agents.
//!
//! What the assistant said comes out of the simulator again, so that thinking is
//! signed for the view it was born under; the rest is sent as it was recorded.
//! The recordings are not part of the project: `LONGHAUL_TRANSCRIPTS` says where
//! they are, and without them there is nothing to do. A usual run takes a piece
//! of each; with `LONGHAUL_CASES` every message of every recording is replayed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::properties::{Named, first_seed, style};
use super::talk::{MARKS, Talk};
use super::world::World;

const MODELS: [&str; 3] = ["claude-opus-5-5", "claude-opus-4-8", "claude-opus-4-5"];
/// Requests of each stretch in a usual run.
const PIECE: usize = 14;
/// Messages before the first of them, at most.
const BEFORE: usize = 60;

/// Where the recordings are, if they are.
pub fn folder() -> PathBuf {
    let said = std::env::var_os("LONGHAUL_TRANSCRIPTS").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    said.unwrap_or_else(|| root.join("../shared/transcripts"))
}

/// The stretches of a recording in which one history grows.
pub fn stretches(recording: &Path) -> Vec<Vec<Value>> {
    let lines = std::fs::read_to_string(recording.join("messages.jsonl")).unwrap();
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let mut messages: Vec<Value> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
    let meta = std::fs::read_to_string(recording.join("meta.json")).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    let cuts = meta["client_compaction_before_message_index"].as_array();
    let cuts = cuts.into_iter().flatten().filter_map(Value::as_u64);
    let mut cuts: Vec<usize> = cuts.map(|at| usize::try_from(at).unwrap()).collect();
    let mut stretches = Vec::new();
    cuts.sort_unstable();
    for cut in cuts.into_iter().rev() {
        stretches.push(messages.split_off(cut.min(messages.len())));
    }
    stretches.push(messages);
    stretches.reverse();
    stretches
        .into_iter()
        .map(|messages| legal(&messages))
        .collect()
}

/// What the API takes of a recording: it begins with the user, calls and results
/// in pairs, results first, nothing empty, one message a turn.
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

pub fn opens_turn(message: &Value) -> bool {
    let blocks = message["content"].as_array().unwrap();
    message["role"] == "user" && blocks.iter().all(|block| block["type"] != "tool_result")
}

fn is_thinking(block: &Value) -> bool {
    block["type"]
        .as_str()
        .is_some_and(|kind| kind.contains("thinking"))
}

/// A message of the assistant's, as somebody resumes it who has lost the thinking.
fn resumed(message: &Value) -> Value {
    let mut message = message.clone();
    let blocks = message["content"].as_array_mut().unwrap();
    blocks.retain(|block| !is_thinking(block));
    if blocks.is_empty() {
        blocks.push(json!({"type": "text", "text": "…"}));
    }
    message
}

/// What the assistant said, to be said again and signed anew.
pub fn said(message: &Value, manual: bool) -> Reply {
    let mut blocks = message["content"].as_array().unwrap().clone();
    for block in blocks.iter_mut().filter(|block| is_thinking(block)) {
        *block = json!({"type": "thinking", "thinking": block["thinking"].as_str().unwrap_or("…")});
    }
    if manual && !blocks.iter().any(is_thinking) {
        blocks.insert(0, json!({"type": "thinking", "thinking": "…"}));
    }
    if blocks.iter().all(is_thinking) {
        blocks.push(json!({"type": "text", "text": "…"}));
    }
    Reply::blocks(blocks)
}

fn talk(rng: &mut Rng, model: &str, messages: &[Value]) -> Talk {
    let mut talk = Talk::new(0, model);
    talk.marks = MARKS[rng.usize(0..MARKS.len())];
    let blocks = messages
        .iter()
        .filter_map(|m| m["content"].as_array())
        .flatten();
    let names: BTreeSet<&str> = blocks.filter_map(|block| block["name"].as_str()).collect();
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let tools: Vec<Value> = names.into_iter().map(tool).collect();
    if !tools.is_empty() {
        *talk.field("tools").unwrap() = tools.into();
    }
    *talk.field("max_tokens").unwrap() = json!(32_000);
    talk
}

/// Replays a stretch; requests and passes.
fn replay(rng: &mut Rng, model: &str, messages: &[Value], whole: bool) -> (usize, usize) {
    let budget = [5_000, 20_000, 60_000][rng.usize(0..3)];
    let file = format!("window.budget = {budget}\n{}", style(rng));
    let mut world = World::start(Options::default(), &file);
    let mut talk = talk(rng, model, messages);
    let starts: Vec<usize> = (0..messages.len().min(BEFORE))
        .filter(|at| opens_turn(&messages[*at]))
        .collect();
    let start = if whole || starts.is_empty() {
        0
    } else {
        starts[rng.usize(0..starts.len())]
    };
    talk.messages = messages[..start].iter().map(resumed).collect();
    let manual = model.contains("4-5");
    for pair in messages[start..].chunks(2) {
        let [asked, answer] = pair else {
            break;
        };
        talk.messages.push(asked.clone());
        let wish = if rng.u8(0..5) == 0 { "now" } else { "" };
        if rng.u8(0..12) == 0 {
            world.send(&mut talk, said(answer, manual), wish);
            world.restart();
        }
        world.ask(&mut talk, said(answer, manual), wish);
        if !whole && world.requests >= PIECE {
            break;
        }
    }
    (world.requests, world.passes)
}

#[test]
fn recorded_sessions_hold_the_invariants_message_by_message() {
    let folder = folder();
    let Ok(recordings) = std::fs::read_dir(&folder) else {
        println!("no recordings in {}: nothing is replayed", folder.display());
        return;
    };
    let whole = std::env::var_os("LONGHAUL_CASES").is_some();
    let mut recordings: Vec<PathBuf> = recordings.map(|entry| entry.unwrap().path()).collect();
    recordings.retain(|path| path.join("messages.jsonl").exists());
    recordings.sort();
    let (mut requests, mut passes) = (0, 0);
    for (number, recording) in recordings.iter().enumerate() {
        for (at, messages) in stretches(recording).iter().enumerate() {
            if messages.len() < 4 || (!whole && at > 0) {
                continue;
            }
            let seed = first_seed() + number as u64;
            let model = MODELS[(number + at) % MODELS.len()];
            let _named = Named(format!(
                "{}, stretch {at}, {model}, {seed}",
                recording.display()
            ));
            let done = replay(&mut Rng::with_seed(seed), model, messages, whole);
            requests += done.0;
            passes += done.1;
        }
    }
    println!(
        "{} recordings, {requests} requests, {passes} passes",
        recordings.len()
    );
    assert!(recordings.is_empty() || passes > 0);
}
