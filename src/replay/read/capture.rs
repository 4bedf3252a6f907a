//! Captured request bodies: each holds the whole history so far, so that of a
//! growing one only the last counts.
//!
//! A client talks about several things at once: it asks for a title, it lets
//! sub-agents work. So a request goes on from whichever conversation it begins
//! with the messages of, the longest first, and each conversation has its own
//! system prompt and tools. Where one with the same of both begins after another
//! has ended, the client has begun its history anew: that is another stretch of
//! the same recording. What was asked on the side and never led anywhere is left
//! out and counted.

use serde_json::{Value, json};

use super::plain::spoken;
use super::{Line, Wrong, counted};
use crate::replay::recording::{NotPlayed, Recording, Spoken, blocks, kind, legal, text};

/// What stands for an answer that was not captured: that of the newest request.
const NOT_CAPTURED: &str = "…";
/// A block of a system prompt that differs from one request to the next.
const CHANGING: &str = "x-anthropic-billing-header";
/// The most requests that a client goes back; from further up a conversation of
/// its own branches off.
const BACK: usize = 8;

/// Whether a line is a request body.
pub fn is(value: &Value) -> bool {
    value.get("messages").is_some_and(Value::is_array)
}

/// A history that grows from request to request.
struct Conversation<'a> {
    messages: Vec<Spoken>,
    /// How many messages each of its requests had.
    lengths: Vec<usize>,
    /// What the client went back behind: messages, and the lengths of requests.
    left: Vec<(Vec<Spoken>, Vec<usize>)>,
    /// Its newest body.
    body: &'a Value,
    /// How many bodies belong to it.
    bodies: usize,
    /// How many of them were sent before.
    repeats: usize,
    /// The bodies with which it began and ended.
    from: usize,
    to: usize,
}

/// How a request stands to a conversation.
enum Relation {
    GoesOn,
    Repeats,
    /// It leaves some requests behind and goes another way.
    TurnsBack,
}

impl Conversation<'_> {
    fn relation(&self, messages: &[Spoken], is_alike: bool) -> Option<(usize, Relation)> {
        let common = common(&self.messages, messages);
        let behind = self.lengths.iter().filter(|length| **length > common);
        let relation = match common {
            0 => return None,
            _ if common == self.messages.len() && messages.len() > common => Relation::GoesOn,
            _ if common == messages.len() && is_alike => Relation::Repeats,
            // An answer in common: the same question may be put to two agents.
            2.. if is_alike && behind.count() <= BACK => Relation::TurnsBack,
            _ => return None,
        };
        Some((common, relation))
    }

    fn turn_back(&mut self, common: usize) {
        let lengths = self.lengths.iter().copied();
        let (kept, left) = lengths.partition(|length| *length <= common);
        self.lengths = kept;
        self.left.push((std::mem::take(&mut self.messages), left));
    }

    /// How many requests have no part in what it became.
    fn left_out(&self) -> usize {
        let each = self.left.iter().map(|(messages, lengths)| {
            let common = common(messages, &self.messages);
            lengths.iter().filter(|length| **length > common).count()
        });
        each.sum()
    }
}

/// Reads bodies, in the order in which they were sent. The longest recording
/// comes first.
pub fn read(lines: &[Line], warnings: &mut Vec<String>) -> Result<Vec<Recording>, Wrong> {
    let mut known: Vec<Conversation<'_>> = Vec::new();
    for (at, Line { number, value }) in lines.iter().enumerate() {
        let Some(messages) = value.get("messages").and_then(Value::as_array) else {
            return Err(Wrong {
                line: *number,
                problem: "this is no request body: it has no list of messages".to_owned(),
            });
        };
        let messages = messages.iter().map(|message| spoken(*number, message));
        let messages = messages.collect::<Result<Vec<Spoken>, _>>()?;
        let related = known
            .iter()
            .enumerate()
            .filter_map(|(index, conversation)| {
                let is_alike = are_alike(conversation.body, value);
                let (common, relation) = conversation.relation(&messages, is_alike)?;
                Some(((common, is_alike, conversation.to), index, relation))
            });
        let nearest = related.max_by_key(|(rank, _, _)| *rank);
        let nearest = nearest
            .and_then(|(rank, index, relation)| Some((rank.0, relation, known.get_mut(index)?)));
        let Some((common, relation, conversation)) = nearest else {
            known.push(Conversation {
                lengths: vec![messages.len()],
                left: Vec::new(),
                messages,
                body: value,
                bodies: 1,
                repeats: 0,
                from: at,
                to: at,
            });
            continue;
        };
        conversation.bodies += 1;
        conversation.to = at;
        if matches!(relation, Relation::Repeats) {
            conversation.repeats += 1;
            continue;
        }
        if matches!(relation, Relation::TurnsBack) {
            conversation.turn_back(common);
        }
        conversation.lengths.push(messages.len());
        conversation.messages = messages;
        conversation.body = value;
    }
    let left = known.iter().map(Conversation::left_out).sum::<usize>();
    warnings.extend((left > 0).then(|| {
        format!(
            ": left out: {} that nothing went on from",
            counted(left, "request")
        )
    }));
    let aside = leave_out(&mut known, warnings);
    let repeated = known.iter().map(|it| it.repeats).sum();
    let mut recordings = recordings(known);
    let not_played = [
        (left, "nothing went on from it"),
        (aside, "it was asked on the side and never went on"),
        (repeated, "it was sent again"),
    ];
    let not_played = not_played.into_iter();
    if let Some(longest) = recordings.first_mut() {
        longest.not_played = not_played
            .filter_map(|(requests, why)| NotPlayed::some(requests, why))
            .collect();
    }
    Ok(recordings)
}

/// Leaves out what was asked once, unless there is nothing else; says how many
/// requests that were.
fn leave_out(known: &mut Vec<Conversation<'_>>, warnings: &mut Vec<String>) -> usize {
    let leads_on = |it: &Conversation<'_>| legal(&it.messages).len() > 1;
    if !known.iter().any(leads_on) {
        let others: usize = known.iter().skip(1).map(|it| it.bodies).sum();
        known.truncate(1);
        return others;
    }
    let aside = known.iter().filter(|it| !leads_on(it));
    let aside: usize = aside.map(|it| it.bodies).sum();
    known.retain(leads_on);
    warnings.extend((aside > 0).then(|| {
        format!(
            ": left out: {} on the side that never went on, such as for a title",
            counted(aside, "request")
        )
    }));
    aside
}

fn recordings(known: Vec<Conversation<'_>>) -> Vec<Recording> {
    let mut found: Vec<(Recording, usize, &Value)> = Vec::new();
    for mut conversation in known {
        let body = conversation.body;
        let last = legal(&conversation.messages).pop();
        if last.is_some_and(|last| text(&last.message, "role") == "user") {
            conversation.messages.push(Spoken {
                message: json!({"role": "assistant",
                    "content": [{"type": "text", "text": NOT_CAPTURED}]}),
                at: None,
            });
        }
        let before = found
            .iter_mut()
            .find(|(_, to, other)| *to < conversation.from && are_alike(other, body));
        let (recording, to, newest) = if let Some(before) = before {
            before
        } else {
            found.push((Recording::default(), 0, body));
            let Some(new) = found.last_mut() else {
                continue;
            };
            new
        };
        recording.stretches.push(conversation.messages);
        let held = |field: &str| body.get(field).filter(|held| !held.is_null()).cloned();
        recording.system = held("system").or(recording.system.take());
        recording.tools = held("tools").or(recording.tools.take());
        recording.model = body.get("model").and_then(Value::as_str).map(str::to_owned);
        (*to, *newest) = (conversation.to, body);
    }
    let mut recordings: Vec<Recording> = found.into_iter().map(|(it, _, _)| it).collect();
    let messages = |it: &Recording| it.stretches.iter().map(Vec::len).sum::<usize>();
    recordings.sort_by_key(|it| std::cmp::Reverse(messages(it)));
    recordings
}

/// Whether two bodies have the same tools and system prompt, told by what does
/// not change from one request to the next.
fn are_alike(one: &Value, other: &Value) -> bool {
    let tools = |body: &Value| -> Vec<String> {
        let tools = body.get("tools").and_then(Value::as_array);
        let names = tools.into_iter().flatten().map(|tool| text(tool, "name"));
        names.map(str::to_owned).collect()
    };
    let system = |body: &Value| -> Vec<String> {
        let blocks = match body.get("system") {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(blocks)) => {
                let texts = blocks.iter().filter(|block| kind(block) == "text");
                texts.map(|block| text(block, "text").to_owned()).collect()
            }
            _ => Vec::new(),
        };
        let kept = blocks.into_iter().filter(|it| !it.starts_with(CHANGING));
        kept.collect()
    };
    tools(one) == tools(other) && system(one) == system(other)
}

/// How many messages two histories begin with in common.
fn common(one: &[Spoken], other: &[Spoken]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(a, b)| is_same(a, b)).count()
}

/// Whether two are one message, told by what does not change from one request to
/// the next: a text may become a block.
fn is_same(one: &Spoken, other: &Spoken) -> bool {
    text(&one.message, "role") == text(&other.message, "role")
        && blocks(&one.message) == blocks(&other.message)
}
