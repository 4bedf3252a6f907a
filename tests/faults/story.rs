//! How a violation came about: the requests of its agent around it, as the client
//! and as upstream saw them.
//!
//! An episode cannot be lived through twice in the same way, since threads and
//! connections take their time as they like, so whatever may be needed to
//! understand it is told at once.

use std::fmt::Write;

use longhaul::sim::Entry;
use serde_json::Value;

use crate::agent::Agent;
use crate::attempt::Attempt;
use crate::invariants::Judge;

/// How many requests before it are told.
const BEFORE: usize = 14;
/// How many after it.
const AFTER: usize = 3;

/// The requests of an agent around one of them.
pub fn story(judge: &Judge<'_>, agent: &Agent, of: &Attempt) -> String {
    let at = agent.log.iter().position(|held| held.tag == of.tag);
    let at = at.unwrap_or(0);
    let around = agent.log.iter().take(at + AFTER + 1);
    let mut told = format!("around {}, {:?}", of.tag, judge.moments);
    for attempt in around.skip(at.saturating_sub(BEFORE)) {
        told.push_str("\n  ");
        told.push_str(&asked(attempt));
        let entries = judge.entries.get(attempt.tag.as_str());
        for entry in entries.into_iter().flatten() {
            told.push_str("\n    ");
            told.push_str(&sent(entry));
        }
    }
    told
}

fn asked(attempt: &Attempt) -> String {
    let answer = attempt.answer();
    let headers = answer.into_iter().flat_map(|answer| &answer.headers);
    let ours = headers.filter(|(name, _)| name.starts_with("x-longhaul"));
    let ours = ours.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)));
    let ours: Vec<String> = ours.collect();
    format!(
        "{} branch {} anew {} {}..{} {} {:?} {:?} good {}: {} | {}",
        attempt.tag,
        attempt.branch,
        attempt.anew,
        attempt.begun,
        attempt.ended,
        attempt.model,
        attempt.fault,
        attempt.manner,
        attempt.is_good(),
        shape(&attempt.own),
        ours.join(", ")
    )
}

fn sent(entry: &Entry) -> String {
    let body = entry.body.as_deref().unwrap_or_default();
    format!(
        "{:?} {:?} at {}: {}",
        entry.kind,
        entry.outcome,
        entry.at,
        shape(body)
    )
}

/// A letter for each block and a digest of each message; a capital for what is
/// ours.
fn shape(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut shape = String::new();
    for message in value["messages"].as_array().into_iter().flatten() {
        let digest = blake3::hash(message.to_string().as_bytes()).to_hex();
        let _ = write!(shape, "{}", &digest.as_str()[..3]);
        for block in message["content"].as_array().into_iter().flatten() {
            let is_ours = block.to_string().contains("[longhaul");
            shape.push(match (block["type"].as_str(), is_ours) {
                (Some("thinking"), _) => 't',
                (Some("tool_use"), false) => 'u',
                (Some("tool_use"), true) => 'U',
                (Some("tool_result"), false) => 'r',
                (Some("tool_result"), true) => 'R',
                (_, false) => 'x',
                (_, true) => 'X',
            });
        }
        shape.push(' ');
    }
    shape
}
