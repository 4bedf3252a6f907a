//! Captured request bodies: each holds the whole history so far, so that of a
//! growing one only the last counts. System prompt and tools come along.

use serde_json::Value;

use super::plain::spoken;
use super::{Line, Wrong};
use crate::replay::recording::{Recording, Spoken, text};

/// Whether a line is a request body.
pub fn is(value: &Value) -> bool {
    value.get("messages").is_some_and(Value::is_array)
}

/// Reads bodies, in the order in which they were sent.
pub fn read(lines: &[Line]) -> Result<Recording, Wrong> {
    let mut recording = Recording::default();
    for line in lines {
        let Some(messages) = line.value.get("messages").and_then(Value::as_array) else {
            return Err(Wrong {
                line: line.number,
                problem: "this is no request body: it has no list of messages".to_owned(),
            });
        };
        let messages = messages.iter().map(|message| spoken(line.number, message));
        let messages = messages.collect::<Result<Vec<Spoken>, _>>()?;
        let goes_on = recording.stretches.last().is_some_and(|before| {
            before.len() <= messages.len()
                && before.iter().zip(&messages).all(|(a, b)| is_same(a, b))
        });
        if goes_on {
            recording.stretches.pop();
        }
        recording.stretches.push(messages);
        let held = |field: &str| line.value.get(field).filter(|held| !held.is_null());
        recording.system = held("system").cloned().or(recording.system);
        recording.tools = held("tools").cloned().or(recording.tools);
    }
    Ok(recording)
}

/// Whether two are one message, told by what does not change from one request to
/// the next: a text may become a block.
fn is_same(one: &Spoken, other: &Spoken) -> bool {
    let blocks = |spoken: &Spoken| crate::replay::recording::blocks(&spoken.message);
    text(&one.message, "role") == text(&other.message, "role") && blocks(one) == blocks(other)
}
