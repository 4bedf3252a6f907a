//! What a client's own summary says of the plan.
//!
//! A client that sums its history up begins a new one, which holds nothing of the
//! old but that summary. Where the old messages are gone, goal, rules and next
//! steps are taken from it. It was written by a model, so that it is quoted as
//! data and never in the user's name.

use super::decode;
use crate::engine::conversation::Conversation;
use crate::engine::facts;
use crate::wire::body::Kind;

/// How a message begins that holds a client's summary.
const BEGINNINGS: [&str; 2] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
];
/// A longer summary is looked into only so far.
const TEXT: usize = 64 * 1024;
/// A longer line is no heading.
const HEADING: usize = 80;
/// Characters of one part, at most.
const PART: usize = 800;
/// Rules that are taken, at most.
const RULES: usize = 12;
/// Words in headings above what was asked for, and above what comes next.
const GOALS: [&str; 4] = ["request", "intent", "goal", "task overview"];
const NEXT: [&str; 5] = ["pending", "next step", "remaining", "current work", "to do"];

/// What a summary says of the plan: a part each, the most important first.
pub(super) fn from_summary(conversation: &Conversation<'_>, to: usize) -> Vec<String> {
    let Some(summary) = summary(conversation, to) else {
        return Vec::new();
    };
    let end = summary.floor_char_boundary(TEXT.min(summary.len()));
    let text = summary.get(..end).unwrap_or_default();
    let sections = sections(text);
    let about = |words: &[&str]| {
        let found = sections.iter().filter(|(heading, body)| {
            let heading = heading.to_ascii_lowercase();
            !body.trim().is_empty() && words.iter().any(|word| heading.contains(word))
        });
        let whole = |(heading, body): &(&str, &str)| format!("{heading}\n{}", body.trim());
        found.map(whole).collect::<Vec<String>>()
    };
    let mut goal = about(&GOALS);
    goal.truncate(1);
    if goal.is_empty() {
        goal.push(text.to_owned());
    }
    let mut rules: Vec<&str> = facts::rules(text);
    rules.truncate(RULES);
    let parts = goal.into_iter().chain(about(&NEXT));
    let parts = parts.chain(rules.into_iter().map(str::to_owned));
    parts.map(|part| facts::shortened(&part, PART)).collect()
}

/// Whether a history begins with a client's own summary of what came before.
pub fn begins_with_summary(conversation: &Conversation<'_>) -> bool {
    summary(conversation, conversation.len()).is_some()
}

/// The summary that a history begins with, if the messages before it are gone.
fn summary(conversation: &Conversation<'_>, to: usize) -> Option<String> {
    let begins = conversation.head().min(to);
    for at in 0..begins {
        let bytes = conversation.bytes();
        let message = conversation.message(at)?;
        let whole = message.is_string.then_some((Kind::Text, message.content));
        let blocks = conversation.blocks(at).iter();
        let blocks = blocks.filter_map(|block| Some((block.kind, block.payload?)));
        for (kind, text) in whole.into_iter().chain(blocks) {
            let is_text = matches!(kind, Kind::Text | Kind::Compaction);
            let Some(text) = decode::string(text.of(bytes)).filter(|_| is_text) else {
                continue;
            };
            let start = text.trim_start();
            if kind == Kind::Compaction || BEGINNINGS.iter().any(|words| start.starts_with(words)) {
                return Some(text);
            }
        }
        if super::genuine(conversation, at).is_some() {
            // The user's own words are here: nothing is gone.
            return None;
        }
    }
    None
}

/// The sections of a text: a heading and what stands below it.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut sections: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        match (heading(line.trim()), sections.last_mut()) {
            (Some(title), _) => sections.push((title, at, at)),
            (None, Some(last)) => last.2 = at,
            (None, None) => {}
        }
    }
    let body = |(title, from, to)| Some((title, text.get(from..to)?));
    sections.into_iter().filter_map(body).collect()
}

/// A line that is a heading: numbered, marked or in bold, with a colon behind it.
fn heading(line: &str) -> Option<&str> {
    let is_marked = line.starts_with('#') || line.starts_with("**");
    let is_numbered = line.starts_with(|letter: char| letter.is_ascii_digit());
    let ends = line.trim_end_matches('*').ends_with(':') || line.starts_with('#');
    (line.len() <= HEADING && ends && (is_marked || is_numbered)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::{Value, json};

    const SUMMARY: &str = "This session is being continued from a previous conversation that ran \
        out of context.\nAnalysis: x\n1. Primary Request and Intent:\n   Port the parser.\n2. Key \
        Concepts:\n   - Rust\n6. All user messages:\n   - Never push to main.\n7. Pending Tasks:\n   \
        - write the tests\n9. Optional Next Step:\n   Run make.\n";

    fn carried(messages: &[Value]) -> Vec<String> {
        let bytes = json!({"model": "m", "messages": messages}).to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        let conversation = Conversation::new(bytes.as_bytes(), &body);
        from_summary(&conversation, conversation.len())
    }

    #[test]
    fn goal_next_steps_and_rules_come_from_a_summary() {
        let expected = [
            "1. Primary Request and Intent:\nPort the parser.",
            "7. Pending Tasks:\n- write the tests",
            "9. Optional Next Step:\nRun make.",
            "Never push to main.",
        ];
        let user = json!({"role": "user", "content": SUMMARY});
        let done = json!({"role": "assistant", "content": "ok"});
        assert_eq!(carried(&[user, done.clone()]), expected);
        let api =
            json!({"role": "assistant", "content": [{"type": "compaction", "content": SUMMARY}]});
        let more = json!({"role": "user", "content": "go on"});
        assert_eq!(
            carried(&[api.clone(), more.clone(), done.clone()]),
            expected
        );
        let first = json!({"role": "user", "content": "Port the parser."});
        assert!(carried(&[first, api, more, done]).is_empty());
    }

    #[test]
    fn a_summary_without_headings_is_taken_from_its_beginning() {
        let text = format!("{} It was so. {}", BEGINNINGS[0], "x ".repeat(900));
        let user = json!({"role": "user", "content": text});
        let parts = carried(&[user, json!({"role": "assistant", "content": "ok"})]);
        assert!(
            parts.len() == 1 && parts[0].starts_with(BEGINNINGS[0]),
            "{parts:?}"
        );
        assert!(carried(&[json!({"role": "user", "content": "hello"})]).is_empty());
    }
}
