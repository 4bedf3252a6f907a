//! What the blocks of a message say, decoded.
//!
//! One reading for two uses: the transcript that another model is given, and the
//! source that a narrative is held against. What cannot be decoded is taken as it
//! stands, so that nothing is called missing only because it is badly escaped.

use serde_json::Value;

use crate::engine::conversation::Conversation;
use crate::engine::stub::quoted;
use crate::wire::body::{Block, Kind};
use crate::wire::scan::spoken;

/// Words have white space within so many bytes.
const WORD: usize = 4096;
/// Where the API keeps what only it can read.
const DATA: [&str; 3] = ["data", "encrypted_content", "signature"];

/// Something that is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Words.
    Text(String),
    /// A thought, as far as it can be read.
    Thought(String),
    /// A tool is called.
    Call {
        /// Its name.
        tool: String,
        /// What it is given, as JSON.
        input: Value,
    },
    /// A tool has answered.
    Result {
        /// What came back.
        text: String,
        /// It failed.
        is_error: bool,
    },
    /// A block of a kind that is not known here.
    Other(Value),
}

/// What a message says, block by block.
pub(super) fn said(conversation: &Conversation<'_>, at: usize) -> Vec<Said> {
    let Some(message) = conversation.message(at) else {
        return Vec::new();
    };
    let bytes = conversation.bytes();
    if message.is_string {
        return vec![Said::Text(string(message.content.of(bytes)))];
    }
    let blocks = conversation.blocks(at).iter();
    blocks.map(|block| of_block(bytes, block)).collect()
}

fn of_block(bytes: &[u8], block: &Block) -> Said {
    let payload = block.payload.map_or(&b"null"[..], |span| span.of(bytes));
    match block.kind {
        Kind::Text | Kind::Compaction => Said::Text(text(&value(payload))),
        Kind::Thinking => Said::Thought(match payload {
            b"null" => String::new(),
            thought => string(thought),
        }),
        Kind::ToolUse => Said::Call {
            tool: block
                .name
                .map_or(String::new(), |name| string(name.of(bytes))),
            input: value(payload),
        },
        Kind::ToolResult => Said::Result {
            text: text(&value(payload)),
            is_error: block.is_error,
        },
        Kind::Image => Said::Text("[image]".to_owned()),
        Kind::Document => Said::Text("[document]".to_owned()),
        Kind::Other => Said::Other(value(block.span.of(bytes))),
    }
}

/// The words of a text or of a list of blocks.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let parts: Vec<String> = blocks.iter().map(part).collect();
            parts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A block inside a result.
fn part(block: &Value) -> String {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
    match block.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None if kind == "search_result" => {
            let mut words = String::new();
            strings(block, &mut |text| {
                words.push_str(text);
                words.push('\n');
            });
            words
        }
        None => format!("[{kind}]"),
    }
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_else(|_| string(json).into())
}

/// A JSON string, decoded where that is possible.
fn string(json: &[u8]) -> String {
    String::from_utf8_lossy(&spoken(json)).into_owned()
}

/// Every string, name and number in a value. Data that nobody can read is left
/// out, where the API is known to keep some.
pub(super) fn strings(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Number(number) => take(&number.to_string()),
        Value::Array(list) => list.iter().for_each(|inner| strings(inner, take)),
        Value::Object(object) => {
            for (name, inner) in object {
                take(name);
                let is_data = DATA.contains(&name.as_str()) && inner.as_str().is_some_and(is_data);
                if !is_data {
                    strings(inner, take);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Whether no white space is near the start, as in data written as letters.
fn is_data(text: &str) -> bool {
    let start = text.as_bytes().get(..WORD).unwrap_or(text.as_bytes());
    !start.iter().any(u8::is_ascii_whitespace)
}

/// Every string, name and number of a message.
pub(super) fn words(conversation: &Conversation<'_>, at: usize, take: &mut impl FnMut(&str)) {
    if let Some(message) = conversation.message(at) {
        strings(&value(message.span.of(conversation.bytes())), take);
    }
}

/// Whether a reader may see a new line behind this.
pub(super) fn breaks_line(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// A value for a reader: short texts as they are, everything else as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let members = object.iter().map(|(name, inner)| match inner {
                Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            });
            members.collect::<Vec<_>>().join("\n")
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::json;

    #[test]
    fn each_kind_of_block_says_its_own() {
        let content = json!([
            {"type": "text", "text": "a\nb"},
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "x.rs", "limit": 5}},
            {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": [
                {"type": "text", "text": "one"}, {"type": "image", "source": {}}]},
            {"type": "tool_result", "tool_use_id": "u"},
            {"type": "image", "source": {"data": "AAAA"}},
            {"type": "server_tool_use", "name": "web_search", "input": {"query": "rust"}},
        ]);
        let bytes = json!({"messages": [{"role": "user", "content": content},
            {"role": "user", "content": "plain \"words\""}]});
        let bytes = bytes.to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        let conversation = Conversation::new(bytes.as_bytes(), &body);
        let result = |text: &str, is_error| Said::Result {
            text: text.to_owned(),
            is_error,
        };
        let expected = [
            Said::Text("a\nb".to_owned()),
            Said::Thought("hm".to_owned()),
            Said::Thought(String::new()),
            Said::Call {
                tool: "Read".to_owned(),
                input: json!({"path": "x.rs", "limit": 5}),
            },
            result("one\n[image]", true),
            result("", false),
            Said::Text("[image]".to_owned()),
        ];
        let all = said(&conversation, 0);
        assert_eq!(all[..7], expected);
        let Said::Other(other) = &all[7] else {
            panic!("{all:?}");
        };
        let mut words = Vec::new();
        strings(other, &mut |text| words.push(text.to_owned()));
        assert!(words.contains(&"rust".to_owned()));
        let plain = Said::Text("plain \"words\"".to_owned());
        assert_eq!(said(&conversation, 1), [plain]);
        assert!(said(&conversation, 2).is_empty());
    }

    #[test]
    fn what_is_badly_escaped_is_taken_as_it_stands() {
        assert_eq!(string(br#""a \ud800 src/x.rs""#), r"a \ud800 src/x.rs");
        assert_eq!(value(br#""\q""#), json!(r"\q"));
    }

    #[test]
    fn data_is_not_words() {
        let mut words = Vec::new();
        let long = "A".repeat(WORD);
        strings(
            &json!({"data": long, "n": 8080, "x": [long]}),
            &mut |text| {
                words.push(text.to_owned());
            },
        );
        assert_eq!(words, ["data", "n", "8080", "x", long.as_str()]);
    }
}
