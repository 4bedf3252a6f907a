//! Everything of a request but its messages.
//!
//! Recordings of messages have neither system prompt nor tools, and both are a
//! good part of every prompt: without them figures would be too good. So they
//! are filled in, with about as much text as coding agents send.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::recording::{kind, text};
use super::session::Session;
use crate::sim::models;

/// Letters of the system prompt and of all tools: about 12,000 tokens together.
const SYSTEM: usize = 24_000;
const TOOLS: usize = 40_000;
/// The most cache marks that a request may have.
const MARKS: usize = 4;
/// The most that an answer may have, and the part of a small window.
const ANSWER: u64 = 32_000;
const PART: u64 = 4;

const WORDS: [&str; 24] = [
    "request", "buffer", "index", "stream", "handle", "config", "value", "entry", "cache",
    "reader", "writer", "table", "commit", "branch", "module", "session", "account", "window",
    "timeout", "result", "message", "header", "schema", "report",
];
const SAYINGS: [&str; 6] = [
    "should be checked before",
    "is called once for each",
    "must not be larger than",
    "was changed together with the",
    "does not depend on the",
    "is written after the",
];

/// Sentences of about so many letters, the same each time.
pub fn prose(seed: u64, letters: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = |list: &[&'static str]| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 33).unwrap_or(0) % list.len().max(1);
        list.get(at).copied().unwrap_or_default()
    };
    let mut text = String::with_capacity(letters + 80);
    while text.len() < letters.max(1) {
        let (a, b, saying, c) = (pick(&WORDS), pick(&WORDS), pick(&SAYINGS), pick(&WORDS));
        text.push_str("The ");
        for word in [a, " of the ", b, " ", saying, " ", c, ". "] {
            text.push_str(word);
        }
    }
    text.trim_end().to_owned()
}

/// What stands around the messages of every request of a session.
pub struct Around {
    before: String,
    after: String,
    /// The client's cache mark.
    pub mark: Value,
    /// How many marks are left for the messages.
    pub marks: usize,
}

impl Around {
    /// What stands around the messages of a session.
    pub fn new(session: &Session, model: &str, window: u64) -> Self {
        let mark = json!({"type": "ephemeral"});
        let filled = json!([
            {"type": "text", "text": "You are an agent."},
            {"type": "text", "text": prose(1, SYSTEM), "cache_control": mark},
        ]);
        let system = session.system.clone().unwrap_or(filled);
        let recorded = session.tools.as_ref().and_then(Value::as_array);
        let tools = tools(session, recorded.map_or(&[][..], Vec::as_slice));
        let given = system.as_array().into_iter().flatten().chain(&tools);
        let given = given.filter(|it| it.get("cache_control").is_some_and(|it| !it.is_null()));
        let marks = MARKS.saturating_sub(given.count());
        let most = models::find(model).map_or(ANSWER, |model| model.max_output);
        let mut fields = json!({
            "system": system,
            "tools": tools,
            "max_tokens": ANSWER.min(window / PART).min(most).max(1),
        });
        let adaptive = models::find(model).is_some_and(|model| model.thinking.adaptive);
        if let (true, Some(fields)) = (adaptive, fields.as_object_mut()) {
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            fields.insert("thinking".to_owned(), thinking);
        }
        let fields = fields.to_string();
        Self {
            before: format!(r#"{{"model":{},"messages":["#, json!(model)),
            after: format!("],{}", fields.get(1..).unwrap_or("}")),
            mark,
            marks,
        }
    }

    /// The whole body of a request.
    pub fn body(&self, messages: &str) -> Vec<u8> {
        [&self.before, messages, &self.after].concat().into_bytes()
    }
}

/// The recorded tools, and those that are called without having been recorded.
fn tools(session: &Session, recorded: &[Value]) -> Vec<Value> {
    let plain = |tool: &&Value| tool.get("input_schema").is_some();
    let mut tools: Vec<Value> = recorded.iter().filter(plain).cloned().collect();
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        tool.shift_remove("defer_loading");
    }
    let known: BTreeSet<String> = tools.iter().map(|it| text(it, "name").to_owned()).collect();
    let said = session
        .steps
        .iter()
        .filter_map(|step| step.answer.get("content"));
    let blocks = said.filter_map(Value::as_array).flatten();
    let names: BTreeSet<&str> = blocks
        .filter(|block| kind(block) == "tool_use")
        .map(|block| text(block, "name"))
        .filter(|name| !known.contains(*name))
        .collect();
    let each = if recorded.is_empty() {
        TOOLS / names.len().max(1)
    } else {
        200
    };
    tools.extend(names.iter().zip(2..).map(|(name, seed)| {
        json!({"name": name, "description": prose(seed, each), "input_schema": {"type": "object"}})
    }));
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_the_same_each_time() {
        assert_eq!(prose(3, 500), prose(3, 500));
        assert_ne!(prose(3, 500), prose(4, 500));
        assert!((500..600).contains(&prose(3, 500).len()));
    }

    #[test]
    fn a_body_is_a_request() {
        let session = Session {
            tools: Some(json!([{"name": "known", "input_schema": {"type": "object"}}])),
            system: Some(json!("be kind")),
            ..Session::default()
        };
        let around = Around::new(&session, "claude-opus-5-5", 20_000);
        let body: Value = serde_json::from_slice(&around.body("1,2")).unwrap();
        assert_eq!(body["messages"], json!([1, 2]));
        assert_eq!(body["max_tokens"], 5_000);
        assert_eq!(body["system"], "be kind");
        assert_eq!(body["tools"][0]["name"], "known");
        assert_eq!(around.marks, 4);
    }

    #[test]
    fn marks_on_system_and_tools_leave_fewer_for_messages() {
        let mark = json!({"type": "ephemeral"});
        let block = json!({"type": "text", "text": "be kind", "cache_control": mark});
        let tool = json!({"name": "t", "input_schema": {}, "cache_control": mark});
        for (system, tools, room) in [
            (json!([block]), json!([]), 3),
            (json!([block, block]), json!([tool]), 1),
            (json!([block, block, block]), json!([tool, tool]), 0),
        ] {
            let session = Session {
                system: Some(system),
                tools: Some(tools),
                ..Session::default()
            };
            assert_eq!(Around::new(&session, "claude-opus-5-5", 9_000).marks, room);
        }
    }
}
