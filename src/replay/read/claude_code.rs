//! Session files of Claude Code: an event a line.
//!
//! An answer is spread over several lines, one for each block, that share the
//! message's id, and results may stand between them. Sub-agents have histories
//! of their own and are left out, and so are errors of the API that the client
//! wrote down as if the assistant had spoken. After a rewind the next prompt names as its
//! parent a line from further up; what had been said since then is gone. Where
//! the client compacted its history a new one begins.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::moment::moment;
use super::notes::JOINED;
use super::{Line, Wrong, content, counted};
use crate::replay::recording::{NotPlayed, Recording, Spoken, count_joined, opens_turn, text};

/// How far back the rest of an answer may have begun.
const BACK: usize = 64;

/// Whether a line is an event with a message.
pub fn is(value: &Value) -> bool {
    let is_spoken = matches!(text(value, "type"), "user" | "assistant");
    is_spoken
        && value
            .get("message")
            .is_some_and(|it| it.get("role").is_some())
}

/// Whether a line is a sub-agent's.
pub fn is_aside(value: &Value) -> bool {
    value.get("isSidechain").and_then(Value::as_bool) == Some(true)
}

/// What was said so far in a stretch.
#[derive(Default)]
struct Session {
    spoken: Vec<Spoken>,
    /// The id of each message, where it has one.
    ids: Vec<String>,
    /// How many messages there were after each line.
    places: HashMap<String, usize>,
}

/// Requests that are left out.
#[derive(Default)]
struct LeftOut {
    rewound: usize,
    failed: usize,
    /// Those of sub-agents, by the id of the answer or the number of its line.
    of_agents: BTreeSet<String>,
}

impl LeftOut {
    fn note_of_agent(&mut self, line: &Line) {
        let message = line.value.get("message");
        let id = message.map_or("", |message| text(message, "id"));
        if text(&line.value, "type") == "assistant" {
            self.of_agents.insert(match id {
                "" => line.number.to_string(),
                id => id.to_owned(),
            });
        }
    }

    fn told(&self, stretches: &[Vec<Spoken>]) -> Vec<NotPlayed> {
        let each = [
            (self.of_agents.len(), "a sub-agent has a history of its own"),
            (self.rewound, "the user went back to an earlier message"),
            (self.failed, "the API answered with an error"),
            (count_joined(stretches), JOINED),
        ];
        let each = each.into_iter();
        each.filter_map(|(requests, why)| NotPlayed::some(requests, why))
            .collect()
    }
}

impl Session {
    fn say(&mut self, id: &str, spoken: Spoken) {
        let known = self.ids.iter().enumerate().rev().take(BACK);
        let known = known.filter(|(_, known)| !id.is_empty() && *known == id);
        let begun = known.map(|(at, _)| at).next();
        let blocks = crate::replay::recording::blocks(&spoken.message);
        let begun = begun.and_then(|at| self.spoken.get_mut(at)?.message.get_mut("content"));
        if let Some(Value::Array(content)) = begun {
            content.extend(blocks);
        } else {
            self.spoken.push(spoken);
            self.ids.push(id.to_owned());
        }
    }

    /// Goes back to where the prompt was written, if that is further up; says
    /// how many answers are gone with that.
    fn rewind(&mut self, parent: &str) -> usize {
        let Some(place) = self.places.get(parent).copied() else {
            return 0;
        };
        self.ids.truncate(place);
        let gone = self.spoken.split_off(place.min(self.spoken.len()));
        let is_answer = |spoken: &&Spoken| text(&spoken.message, "role") == "assistant";
        gone.iter().filter(is_answer).count()
    }
}

/// Reads a session.
pub fn read(lines: &[Line], warnings: &mut Vec<String>) -> Result<Recording, Wrong> {
    let asides = lines.iter().filter(|line| is_aside(&line.value)).count();
    warnings.extend((asides > 0).then(|| {
        let lines = counted(asides, "line");
        format!(": left out: {lines} of sub-agents")
    }));
    let mut recording = Recording::default();
    let mut session = Session::default();
    let mut left_out = LeftOut::default();
    for line in lines {
        let Line { number, value } = line;
        let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
        if is_aside(value) {
            left_out.note_of_agent(line);
            continue;
        }
        let compacted = text(value, "subtype") == "compact_boundary" || flag("isCompactSummary");
        if compacted && !session.spoken.is_empty() {
            recording
                .stretches
                .push(std::mem::take(&mut session).spoken);
        }
        if flag("isApiErrorMessage") {
            left_out.failed += 1;
        } else if is(value) {
            let message = value.get("message").cloned().unwrap_or_default();
            let content = content(*number, message.get("content"))?;
            let spoken = Spoken {
                message: json!({"role": text(&message, "role"), "content": content}),
                at: moment(value.get("timestamp")),
            };
            if opens_turn(&spoken.message) {
                left_out.rewound += session.rewind(text(value, "parentUuid"));
            }
            session.say(text(&message, "id"), spoken);
        }
        let place = session.spoken.len();
        session.places.insert(text(value, "uuid").to_owned(), place);
    }
    recording.stretches.push(session.spoken);
    recording.not_played = left_out.told(&recording.stretches);
    Ok(recording)
}
