//! A client's side of a conversation: what it has, and how it writes it down.
//!
//! The same messages can be written in many ways: compact, pretty, with every
//! escape that JSON allows, with cache marks that move. A talk keeps to its way,
//! as real clients do.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::look::Sent;

/// How JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Compact,
    Pretty,
    Escaped,
}

/// Where a client puts cache marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    None,
    /// On the last block.
    Last,
    /// On the last block, for an hour.
    LastLong,
    /// On the system prompt and on the last two messages of the user.
    LastTwo,
    /// Four: tools and system for an hour, and the last two messages.
    Four,
    /// Inside the last result that has blocks.
    Nested,
    /// One for the whole request.
    Automatic,
    /// None, spelled out.
    Null,
}

pub const MARKS: [Marks; 8] = [
    Marks::None,
    Marks::Last,
    Marks::LastLong,
    Marks::LastTwo,
    Marks::Four,
    Marks::Nested,
    Marks::Automatic,
    Marks::Null,
];

/// A conversation as its client holds it.
#[derive(Clone)]
pub struct Talk {
    /// Tells talks of one world apart.
    pub number: usize,
    pub model: String,
    /// Top-level fields before the messages, and behind them.
    pub fields: [Vec<(String, Value)>; 2],
    pub messages: Vec<Value>,
    pub style: Style,
    pub marks: Marks,
    pub headers: String,
    /// The client has gone back since its last request.
    pub rewound: bool,
    /// What upstream got, by model and number of messages.
    pub sent: HashMap<String, BTreeMap<usize, Sent>>,
}

impl Talk {
    pub fn new(number: usize, model: &str) -> Self {
        let tool = |name: &str| json!({"name": name, "description": "A tool.", "input_schema": {"type": "object"}});
        let thinking = match model {
            "claude-sonnet-4-5" | "claude-opus-4-5" => {
                json!({"type": "enabled", "budget_tokens": 1024})
            }
            _ => json!({"type": "adaptive", "display": "summarized"}),
        };
        Self {
            number,
            model: model.to_owned(),
            fields: [
                vec![
                    ("max_tokens".into(), json!(4000)),
                    ("metadata".into(), json!({"user_id": "ä \"quoted\""})),
                    ("thinking".into(), thinking),
                ],
                vec![
                    (
                        "system".into(),
                        json!([{"type": "text", "text": "Be brief."}]),
                    ),
                    ("tools".into(), json!([tool("Bash"), tool("Read")])),
                ],
            ],
            messages: Vec::new(),
            style: Style::Compact,
            marks: Marks::Last,
            headers: String::new(),
            rewound: false,
            sent: HashMap::new(),
        }
    }

    pub fn push(&mut self, role: &str, content: impl Into<Value>) -> &mut Self {
        let content = content.into();
        self.messages
            .push(json!({"role": role, "content": content}));
        self
    }

    pub fn field(&mut self, name: &str) -> Option<&mut Value> {
        let mut fields = self.fields.iter_mut().flatten();
        fields
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }

    /// The tool calls that wait for results.
    pub fn calls(&self) -> Vec<String> {
        let last = self.messages.iter().rfind(|m| m["role"] == "assistant");
        let blocks = last.and_then(|last| last["content"].as_array());
        let calls = blocks.into_iter().flatten();
        calls
            .filter(|block| block["type"] == "tool_use")
            .map(|block| block["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Goes back so that the messages end with the assistant's at or before `at`.
    pub fn rewind(&mut self, at: usize) {
        let assistant = |m: &Value| m["role"] == "assistant";
        let Some(last) = self.messages[..at].iter().rposition(assistant) else {
            return;
        };
        self.messages.truncate(last + 1);
        self.rewound = true;
        for sent in self.sent.values_mut() {
            sent.retain(|messages, _| *messages <= last + 1);
        }
    }

    /// The body of the next request.
    pub fn body(&self) -> Vec<u8> {
        let mut talk = self.clone();
        talk.mark();
        let messages: Vec<String> = talk.messages.iter().map(|m| self.write(m)).collect();
        let (open, comma, close) = match self.style {
            Style::Pretty => ("[ ", " ,\n  ", "\n]"),
            Style::Compact | Style::Escaped => ("[", ",", "]"),
        };
        let messages = format!("{open}{}{close}", messages.join(comma));
        let field = |(name, value): &(String, Value)| format!("{:?}: {}", name, self.write(value));
        let [before, after] = &talk.fields;
        let model = format!(r#""model":"{}""#, self.model);
        let fields: Vec<String> = [model]
            .into_iter()
            .chain(before.iter().map(field))
            .chain([format!(r#""messages" :{messages}"#)])
            .chain(after.iter().map(field))
            .collect();
        format!("{{{}}}", fields.join(", ")).into_bytes()
    }

    fn write(&self, value: &Value) -> String {
        match self.style {
            Style::Compact => value.to_string(),
            Style::Pretty => serde_json::to_string_pretty(value).unwrap(),
            Style::Escaped => escaped(&value.to_string()),
        }
    }

    fn mark(&mut self) {
        let (short, long) = (
            json!({"type": "ephemeral"}),
            json!({"type": "ephemeral", "ttl": "1h"}),
        );
        let users: Vec<usize> = (0..self.messages.len())
            .rev()
            .filter(|at| self.messages[*at]["role"] == "user")
            .take(2)
            .collect();
        let last = self.messages.len() - 1;
        match self.marks {
            Marks::None => {}
            Marks::Last => mark(&mut self.messages[last], &short),
            Marks::LastLong => mark(&mut self.messages[last], &long),
            Marks::LastTwo => {
                self.mark_field("system", &short);
                for at in users {
                    mark(&mut self.messages[at], &short);
                }
            }
            Marks::Four => {
                self.mark_field("tools", &long);
                self.mark_field("system", &long);
                for at in users {
                    mark(&mut self.messages[at], &short);
                }
            }
            Marks::Nested => {
                self.mark_field("system", &long);
                let content = self.messages.iter_mut().rev();
                let blocks = content.filter_map(|message| message["content"].as_array_mut());
                let mut results = blocks.flatten().filter(|b| b["type"] == "tool_result");
                let nested = results.find_map(|block| block.get_mut("content")?.as_array_mut());
                if let Some(block) = nested.and_then(|nested| nested.first_mut()) {
                    block["cache_control"] = long;
                }
            }
            Marks::Automatic => self.fields[1].push(("cache_control".into(), short)),
            Marks::Null => {
                self.mark_field("system", &Value::Null);
                mark(&mut self.messages[last], &Value::Null);
            }
        }
    }

    fn mark_field(&mut self, name: &str, mark: &Value) {
        let list = self.field(name).and_then(Value::as_array_mut);
        if let Some(block) = list.and_then(|list| list.last_mut()) {
            block["cache_control"] = mark.clone();
        }
    }
}

/// Marks the last block of a message that may be marked.
fn mark(message: &mut Value, mark: &Value) {
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    let blocks = message["content"].as_array_mut().unwrap();
    let never = ["thinking", "redacted_thinking", "hologram"];
    let may = |block: &&mut Value| !never.iter().any(|kind| block["type"] == *kind);
    if let Some(block) = blocks.iter_mut().rfind(may) {
        block["cache_control"] = mark.clone();
    }
}

/// The same JSON with every escape that it may have.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '/' => text.push_str("\\/"),
            letter if letter.is_ascii() => text.push(letter),
            letter => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    text.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    text
}
