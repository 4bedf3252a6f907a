//! The references that a view shows, and what each of them must stand for.
//!
//! Told from the view alone: a stub stands where the result was that it stands
//! for, and a notice says which messages are not shown.

use longhaul::engine::ids::Reference;
use longhaul::engine::recall::reference;
use longhaul::engine::recall::text;
use serde_json::Value;

/// What a reference in a view stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The result of this call, cleared or trimmed.
    Result(String),
    /// What this call was given.
    Input(String),
    /// Messages, counted from one, the last included.
    Messages(usize, usize),
}

/// Every reference in the messages of a view, with what it stands for; none if
/// the view does not say.
pub fn promises(view: &[Value]) -> Vec<(Reference, Option<What>)> {
    let mut found = Vec::new();
    for message in view {
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            other => vec![other.clone()],
        };
        for block in &blocks {
            let says = block.to_string();
            let what = what(block);
            found.extend(references(&says).into_iter().map(|one| (one, what.clone())));
        }
    }
    found
}

fn what(block: &Value) -> Option<What> {
    let string = |name: &str| block[name].as_str().unwrap_or_default();
    match string("type") {
        "tool_result" => Some(What::Result(string("tool_use_id").to_owned())),
        "tool_use" => Some(What::Input(string("id").to_owned())),
        "text" => {
            let rest = string("text").strip_prefix("[longhaul: ")?;
            let rest = rest.strip_prefix("summary of ").unwrap_or(rest);
            let mut words = rest.strip_prefix("messages ")?.split(' ');
            let from = words.next()?.parse().ok()?;
            let to = words.nth(1)?.parse().ok()?;
            Some(What::Messages(from, to))
        }
        _ => None,
    }
}

/// The references that are written out in a text.
pub fn references(text: &str) -> Vec<Reference> {
    let starts = text.match_indices("lh-").map(|(at, _)| at);
    let written = starts.filter_map(|at| text.get(at..at + 23));
    written.filter_map(reference::read).collect()
}

/// What a block says, as whoever asks for it is shown it.
pub fn says(block: &Value) -> String {
    let json = |value: &Value| value.to_string().into_bytes();
    match block["type"].as_str() {
        Some("tool_result") => text::text(&json(&block["content"])),
        Some("tool_use") => text::input(&json(&block["input"])),
        _ => text::text(&json(block)),
    }
}

/// The texts that must come back for a reference, in their order.
pub fn expected(what: &What, history: &[Value]) -> Vec<String> {
    let blocks = |message: &Value| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![serde_json::json!({"type": "text", "text": text})],
    };
    let named = |kind: &str, field: &str, id: &str| {
        let mut all = history.iter().flat_map(blocks);
        let found = all.find(|block| block["type"] == kind && block[field] == id);
        vec![says(&found.unwrap())]
    };
    match what {
        What::Result(id) => named("tool_result", "tool_use_id", id),
        What::Input(id) => named("tool_use", "id", id),
        What::Messages(from, to) => {
            let hidden = history[from - 1..*to].iter().flat_map(blocks);
            hidden.map(|block| says(&block)).collect()
        }
    }
}
