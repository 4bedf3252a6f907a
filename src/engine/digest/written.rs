//! What a call wrote, as text: the long strings of its arguments, without what
//! they replace.

use serde_json::Value;

/// Shorter strings are names and switches.
const SHORT: usize = 40;
/// Arguments that hold what was there before.
const BEFORE: [&str; 5] = ["old_string", "old_str", "oldText", "old_text", "search"];
/// How deep arguments are looked into.
const DEPTH: usize = 4;

/// The text that a call writes, from its arguments as JSON; empty if none.
pub fn written(input: &[u8]) -> String {
    let value: Value = serde_json::from_slice(input).unwrap_or_default();
    let mut text = String::new();
    gather(&value, DEPTH, &mut text);
    text
}

fn gather(value: &Value, depth: usize, into: &mut String) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::String(string) if string.len() >= SHORT => {
            into.push_str(string);
            into.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, depth, into)),
        Value::Object(members) => {
            let new = members
                .iter()
                .filter(|(name, _)| !BEFORE.contains(&name.as_str()));
            new.for_each(|(_, value)| gather(value, depth, into));
        }
        _ => {}
    }
}
