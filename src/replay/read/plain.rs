//! Plain messages: a role and a content each, as the API has them.

use serde_json::{Value, json};

use super::moment::moment;
use super::notes::JOINED;
use super::{Line, Wrong, content};
use crate::replay::recording::{NotPlayed, Recording, Spoken, count_joined};

/// Whether a line is a message.
pub fn is(value: &Value) -> bool {
    value.get("role").is_some() && value.get("content").is_some()
}

/// Reads messages.
pub fn read(lines: &[Line]) -> Result<Recording, Wrong> {
    let messages = lines.iter().map(|line| spoken(line.number, &line.value));
    let stretches = vec![messages.collect::<Result<_, _>>()?];
    let joined = NotPlayed::some(count_joined(&stretches), JOINED);
    Ok(Recording {
        not_played: joined.into_iter().collect(),
        stretches,
        ..Recording::default()
    })
}

/// A message; its time may stand beside it.
pub fn spoken(line: usize, value: &Value) -> Result<Spoken, Wrong> {
    let Some(role) = value.get("role").and_then(Value::as_str) else {
        return Err(Wrong {
            line,
            problem: "this is no message: it has no role".to_owned(),
        });
    };
    let at = value.get("timestamp").or_else(|| value.get("time"));
    Ok(Spoken {
        message: json!({"role": role, "content": content(line, value.get("content"))?}),
        at: moment(at),
    })
}
