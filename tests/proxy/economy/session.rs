//! Sessions to compare policies on: recorded and generated ones, with pauses.
//!
//! Neither kind says when things happened, so pauses are drawn from a seed: some
//! seconds between the requests of a tool loop; between turns mostly minutes,
//! within the life of a cache, sometimes ten minutes, sometimes two hours.

use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;

use super::coding;
use crate::recordings;
use crate::views::transcripts::{opens_turn, stretches};

/// Fewer messages than this are no session.
const SHORTEST: usize = 20;

/// One request: what is waited for, sent and answered.
pub struct Step {
    pub pause: Duration,
    pub asked: Value,
    pub answer: Value,
}

pub struct Session {
    pub name: String,
    pub steps: Vec<Step>,
}

impl Session {
    fn new(name: String, seed: u64, messages: &[Value]) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x9a05_e5ed);
        let step = |pair: &[Value]| Step {
            pause: pause(&mut rng, opens_turn(&pair[0])),
            asked: pair[0].clone(),
            answer: pair[1].clone(),
        };
        Self {
            name,
            steps: messages.chunks_exact(2).map(step).collect(),
        }
    }
}

fn pause(rng: &mut Rng, between_turns: bool) -> Duration {
    let seconds = match (between_turns, rng.u8(0..20)) {
        (false, _) => rng.u64(5..=40),
        (true, 0..15) => rng.u64(60..=240),
        (true, 15..18) => 600,
        (true, _) => 7_200,
    };
    Duration::from_secs(seconds)
}

/// A generated session of so many cycles that grows to about so many tokens.
pub fn generated(seed: u64, cycles: usize, tokens: usize) -> Session {
    let messages = coding::session(seed, cycles, tokens);
    Session::new(format!("coding-{seed}-{cycles}"), seed, &messages)
}

/// The same of an agent that says at length what it does.
pub fn wordy(seed: u64, cycles: usize, tokens: usize) -> Session {
    let messages = coding::wordy(seed, cycles, tokens);
    Session::new(format!("wordy-{seed}-{cycles}"), seed, &messages)
}

/// Wordy sessions of 600,000 tokens, of as many requests as recordings would
/// have that grew so far.
pub fn all_wordy() -> Vec<Session> {
    let cycles = [(41, 450), (42, 600), (43, 800), (44, 1_000)];
    cycles
        .map(|(seed, cycles)| wordy(seed, cycles, 600_000))
        .into()
}

/// Generated sessions, short and long, thin and thick.
pub fn all_generated() -> Vec<Session> {
    const SIZES: [(usize, usize); 14] = [
        (60, 90_000),
        (75, 120_000),
        (90, 160_000),
        (110, 140_000),
        (130, 200_000),
        (150, 240_000),
        (170, 180_000),
        (200, 260_000),
        (230, 160_000),
        (260, 220_000),
        (290, 300_000),
        (320, 200_000),
        (360, 240_000),
        (400, 280_000),
    ];
    let numbered = SIZES.into_iter().zip(1..);
    numbered
        .map(|((cycles, tokens), seed)| generated(seed, cycles, tokens))
        .collect()
}

/// Every stretch of every recording, or of those that are named and there; at most
/// so many messages of each.
pub fn recorded(names: &[&str], most: usize) -> Vec<Session> {
    let mut recordings = recordings::all();
    recordings.retain(|path| {
        let name = recordings::name(path);
        names.is_empty() || names.contains(&name.as_str())
    });
    stretches_of(&recordings, most)
}

/// Every stretch of the recordings that ship with the project.
pub fn shipped(most: usize) -> Vec<Session> {
    stretches_of(&recordings::shipped(), most)
}

fn stretches_of(recordings: &[PathBuf], most: usize) -> Vec<Session> {
    let mut sessions = Vec::new();
    for recording in recordings {
        let name = recordings::name(recording);
        for (at, messages) in stretches(recording).iter().enumerate() {
            let messages = &messages[..messages.len().min(most)];
            if messages.len() >= SHORTEST {
                let seed = (sessions.len() + 1_000) as u64;
                sessions.push(Session::new(format!("{name}-{at}"), seed, messages));
            }
        }
    }
    sessions
}
