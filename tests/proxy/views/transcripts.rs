//! The same invariants over recordings of real agents.
//!
//! What the assistant said comes out of the simulator again, so that thinking is
//! signed for the view it was born under; the rest is sent as it was recorded.
//! Where there are no recordings, made-up ones are taken: see `recordings`. A usual
//! run takes a piece of each; with `LONGHAUL_CASES` every message of every
//! recording is replayed.

use std::collections::BTreeSet;
use std::path::Path;

use fastrand::Rng;
use longhaul::replay::read::read;
use longhaul::replay::recording::{is_thinking, legal};
pub use longhaul::replay::recording::{opens_turn, said};
use longhaul::sim::Options;
use serde_json::{Value, json};

use super::properties::{Named, first_seed, style};
use super::talk::{MARKS, Talk};
use super::world::World;
use crate::recordings;

const MODELS: [&str; 3] = ["claude-opus-5-5", "claude-opus-4-8", "claude-opus-4-5"];
/// Requests of each stretch in a usual run.
const PIECE: usize = 14;
/// Messages before the first of them, at most.
const BEFORE: usize = 60;

/// The stretches of a recording in which one history grows.
pub fn stretches(recording: &Path) -> Vec<Vec<Value>> {
    let recording = read(recording).unwrap().recording;
    let stretches = recording.stretches.iter();
    let legal = stretches.map(|spoken| legal(spoken).into_iter());
    legal
        .map(|spoken| spoken.map(|spoken| spoken.message).collect())
        .collect()
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
    let whole = std::env::var_os("LONGHAUL_CASES").is_some();
    let recordings = recordings::all();
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
    assert!(passes > 0);
}
