//! Session files of Claude Code: an event a line.
//!
//! An answer is spread over several lines, one for each block, that share the
//! message's id, and results may stand between them. Sub-agents have histories
//! of their own and are left out, and so are errors of the API that the client
//! wrote down as if the assistant had spoken. After a rewind the next prompt names as its
//! parent a line from further up; what had been said since then is gone. Where
//! the client compacted its history a new one begins.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::moment::moment;
use super::{Line, Wrong, content, counted};
use crate::replay::recording::{Recording, Spoken, opens_turn, text};

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

    /// Goes back to where the prompt was written, if that is further up.
    fn rewind(&mut self, parent: &str) {
        if let Some(place) = self.places.get(parent) {
            self.spoken.truncate(*place);
            self.ids.truncate(*place);
        }
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
    for Line { number, value } in lines {
        let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
        if is_aside(value) {
            continue;
        }
        let compacted = text(value, "subtype") == "compact_boundary" || flag("isCompactSummary");
        if compacted && !session.spoken.is_empty() {
            recording
                .stretches
                .push(std::mem::take(&mut session).spoken);
        }
        if is(value) && !flag("isApiErrorMessage") {
            let message = value.get("message").cloned().unwrap_or_default();
            let content = content(*number, message.get("content"))?;
            let spoken = Spoken {
                message: json!({"role": text(&message, "role"), "content": content}),
                at: moment(value.get("timestamp")),
            };
            if opens_turn(&spoken.message) {
                session.rewind(text(value, "parentUuid"));
            }
            session.say(text(&message, "id"), spoken);
        }
        let place = session.spoken.len();
        session.places.insert(text(value, "uuid").to_owned(), place);
    }
    recording.stretches.push(session.spoken);
    Ok(recording)
}
