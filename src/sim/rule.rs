//! Rules: what the model says when nothing is scripted.
//!
//! The default is a short text that is a function of the request. A rule can
//! keep a tool loop going for a number of cycles, which is how long sessions
//! are made. Its counter follows the conversation, not the length of what was
//! sent, so that a shortened history does not start the loop afresh, and a
//! repeated request gets the same answer again.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::canonical::Digest;
use super::reply::Reply;
use super::request::{Block, Request, text};

/// What to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// A text of so many words; `None` takes the simulator's setting.
    Text {
        /// Words.
        #[serde(default)]
        words: Option<usize>,
    },
    /// After each new user turn, call a tool a number of times, then finish.
    CallTool {
        /// The tool; `None` takes the first of the request.
        #[serde(default)]
        name: Option<String>,
        /// The input; `None` makes one up from the tool's schema.
        #[serde(default)]
        input: Option<Value>,
        /// How many replies call the tool.
        times: u64,
        /// Calls per reply.
        #[serde(default = "one")]
        parallel: u64,
        /// Words of text before the calls.
        #[serde(default)]
        words: usize,
        /// The text that finishes the turn.
        #[serde(default)]
        finish: Option<String>,
    },
}

fn one() -> u64 {
    1
}

impl Default for Rule {
    fn default() -> Self {
        Self::Text { words: None }
    }
}

impl Rule {
    /// Call a tool so many times in a row, then finish.
    pub fn call_tool(name: &str, times: u64) -> Self {
        Self::CallTool {
            name: Some(name.to_owned()),
            input: None,
            times,
            parallel: 1,
            words: 0,
            finish: None,
        }
    }
}

/// How far each conversation is in its tool loop.
#[derive(Debug, Default)]
pub struct Progress(HashMap<String, Cycle>);

#[derive(Debug, Clone, Copy)]
struct Cycle {
    request: Digest,
    /// Replies that called the tool since the last user turn, this one not counted.
    done: u64,
    /// Calls of the conversation so far, for inputs that differ.
    calls: u64,
}

impl Progress {
    fn next(&mut self, conversation: &str, request: Digest, in_loop: bool) -> Cycle {
        let cycle = match self.0.get(conversation).copied() {
            Some(cycle) if cycle.request == request => cycle,
            Some(cycle) => Cycle {
                request,
                done: if in_loop { cycle.done + 1 } else { 0 },
                calls: cycle.calls + 1,
            },
            None => Cycle {
                request,
                done: 0,
                calls: 0,
            },
        };
        self.0.insert(conversation.to_owned(), cycle);
        cycle
    }
}

/// Words of an unscripted text.
pub fn apply(
    rule: &Rule,
    progress: &mut Progress,
    request: &Request,
    conversation: &str,
    digest: Digest,
    default_words: usize,
) -> Reply {
    let mut reply = match rule {
        Rule::Text { words } => Reply::text(prose(digest, words.unwrap_or(default_words))),
        Rule::CallTool {
            name,
            input,
            times,
            parallel,
            words,
            finish,
        } => {
            let cycle = progress.next(conversation, digest, request.answers_calls());
            let tool = request.tools.iter().find(|tool| {
                let wanted = name.as_deref().unwrap_or_else(|| text(tool, "name"));
                text(tool, "name") == wanted && tool.contains_key("input_schema")
            });
            match tool {
                Some(tool) if cycle.done < *times => calls(
                    request,
                    tool,
                    input.as_ref(),
                    cycle,
                    *parallel,
                    &prose(digest, *words),
                ),
                _ => Reply::text(
                    finish
                        .clone()
                        .unwrap_or_else(|| prose(digest, default_words)),
                ),
            }
        }
    };
    reply.with_thinking = true;
    reply
}

fn calls(
    request: &Request,
    tool: &Block,
    input: Option<&Value>,
    cycle: Cycle,
    parallel: u64,
    words: &str,
) -> Reply {
    let mut reply = Reply::default();
    // On the newest models prose between tool calls comes back as thinking.
    let thinks = request.model.binds_thinking && request.thinking.is_on();
    if !words.is_empty() {
        let field = if thinks { "thinking" } else { "text" };
        reply.content.push(json!({"type": field, field: words}));
    }
    for number in 0..parallel.max(1) {
        let serial = cycle.calls * parallel.max(1) + number;
        let input = input.cloned().unwrap_or_else(|| invent(tool, serial));
        reply = reply.and_call(text(tool, "name"), &input);
    }
    reply
}

/// An input with all required fields of the tool's schema.
fn invent(tool: &Block, serial: u64) -> Value {
    let schema = tool.get("input_schema");
    let properties = schema.and_then(|schema| schema.get("properties"));
    let required = schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array);
    let mut input = serde_json::Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = properties.and_then(|properties| properties.get(name));
        input.insert(name.to_owned(), invent_value(name, property, serial));
    }
    Value::Object(input)
}

fn invent_value(name: &str, schema: Option<&Value>, serial: u64) -> Value {
    let first = schema
        .and_then(|s| s.get("enum"))
        .and_then(|list| list.get(0));
    if let Some(first) = first {
        return first.clone();
    }
    match schema.and_then(|s| s.get("type")).and_then(Value::as_str) {
        Some("integer" | "number") => json!(serial + 1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ if name.contains("path") || name.contains("file") => {
            json!(format!("/project/src/module_{serial}.rs"))
        }
        _ if name.contains("command") => json!(format!("make step-{serial}")),
        _ => json!(format!("{name} {serial}")),
    }
}

const WORDS: &[&str] = &[
    "the", "change", "is", "in", "place", "and", "every", "caller", "was", "checked", "against",
    "its", "contract", "so", "that", "nothing", "else", "moves", "while", "tests", "stay", "green",
];

/// A text of so many words that depends on nothing but the digest.
pub fn prose(digest: Digest, words: usize) -> String {
    let seed = digest.to_string();
    let mut bytes = seed.bytes().cycle();
    let mut prose = String::new();
    for number in 0..words {
        let pick = usize::from(bytes.next().unwrap_or(0)) * 7 + number * 5;
        let word = WORDS.get(pick % WORDS.len()).copied().unwrap_or("so");
        if !prose.is_empty() {
            prose.push(' ');
        }
        prose.push_str(word);
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{assistant, call, request, result, user};

    fn tool() -> Value {
        json!([{"name": "read", "input_schema": {"type": "object", "required": ["path", "limit"],
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}}])
    }

    fn asked() -> Request {
        request(&json!({"tools": tool(), "messages": [user("x")]}), &[])
    }

    fn looping(id: &str) -> Request {
        let messages = json!([
            user("x"),
            assistant(json!([call(id)])),
            user(json!([result(id)]))
        ]);
        request(&json!({"tools": tool(), "messages": messages}), &[])
    }

    fn run(rule: &Rule, progress: &mut Progress, request: &Request, digest: &str) -> Reply {
        apply(rule, progress, request, "c", Digest::of(digest), 5)
    }

    #[test]
    fn a_tool_is_called_n_times_in_each_turn() {
        let (rule, mut progress) = (Rule::call_tool("read", 2), Progress::default());
        let mut calls = Vec::new();
        for (request, digest) in [
            (asked(), "1"),
            (looping("a"), "2"),
            (looping("b"), "3"),
            (asked(), "4"),
        ] {
            calls.push(
                !run(&rule, &mut progress, &request, digest)
                    .content
                    .is_empty(),
            );
        }
        assert_eq!(calls, [true, true, false, true]);
    }

    #[test]
    fn a_repeated_request_gets_the_same_reply() {
        let (rule, mut progress) = (Rule::call_tool("read", 1), Progress::default());
        let first = run(&rule, &mut progress, &asked(), "1");
        assert_eq!(first, run(&rule, &mut progress, &asked(), "1"));
    }

    #[test]
    fn inputs_follow_the_schema() {
        let (rule, mut progress) = (Rule::call_tool("read", 1), Progress::default());
        let reply = run(&rule, &mut progress, &asked(), "1");
        assert_eq!(
            reply.content[0]["input"],
            json!({"path": "/project/src/module_0.rs", "limit": 1})
        );
    }

    #[test]
    fn prose_has_the_wanted_length() {
        assert_eq!(prose(Digest::of("x"), 30).split(' ').count(), 30);
        assert_ne!(prose(Digest::of("x"), 30), prose(Digest::of("y"), 30));
    }
}
