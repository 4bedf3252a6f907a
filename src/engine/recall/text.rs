//! The text of a piece of content, for searching and for showing.
//!
//! A piece says itself what it is: a string, a list of blocks or a block, as
//! JSON. Everything that is text in it comes out as it is; what nobody can read,
//! pictures above all, is told of in brackets.
//!
//! Entries point into this text by byte, so what it makes of a piece must stay
//! as it is: where it ever has to change, old entries show a passage that begins
//! a little earlier or later, which [`passage`] survives.

use std::fmt::Write;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::engine::pinned::decode;

/// Where the API keeps what only it can read, and from how many bytes on that is
/// not worth showing.
const DATA: [&str; 3] = ["data", "encrypted_content", "signature"];
const LONG: usize = 256;
/// How far what is nested is moved to the right, at most.
const INDENT: usize = 8;

/// What a piece of content says: a tool's result or a message's content, be it a
/// string or a list of blocks, or a block.
pub fn text(content: &[u8]) -> String {
    let content = content.trim_ascii();
    match content.first() {
        Some(b'"') => decode::string(content).unwrap_or_else(|| as_it_stands(content)),
        Some(b'[') => match serde_json::from_slice::<Vec<&RawValue>>(content) {
            Ok(blocks) => {
                let texts = blocks.iter().map(|block| text(block.get().as_bytes()));
                texts.collect::<Vec<_>>().join("\n")
            }
            Err(_) => as_it_stands(content),
        },
        Some(b'{') => match serde_json::from_slice::<Value>(content) {
            Ok(value) => block(&value, content),
            Err(_) => damaged(content),
        },
        _ if content == b"null" => String::new(),
        _ => as_it_stands(content),
    }
}

/// What a whole message says.
pub fn message(json: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        content: &'m RawValue,
    }
    match serde_json::from_slice::<Message<'_>>(json) {
        Ok(message) => text(message.content.get().as_bytes()),
        Err(_) => as_it_stands(json),
    }
}

/// What the input of a call says: a name and what it is given a line, short or
/// long.
pub fn input(json: &[u8]) -> String {
    match serde_json::from_slice::<Value>(json) {
        Ok(value) => readable(&value),
        Err(_) => as_it_stands(json),
    }
}

/// These bytes of a text, or as near to them as whole characters go.
pub fn passage(text: &str, from: u32, to: u32) -> &str {
    let from = text.floor_char_boundary(from as usize);
    let to = text.floor_char_boundary(to as usize);
    text.get(from..to).unwrap_or_default()
}

fn as_it_stands(json: &[u8]) -> String {
    String::from_utf8_lossy(json).into_owned()
}

/// A block that a strict reader refuses, for half of a letter in it.
fn damaged(json: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Block {
        text: Option<decode::Text>,
    }
    match serde_json::from_slice::<Block>(json) {
        Ok(Block {
            text: Some(decode::Text(text)),
        }) => text,
        _ => as_it_stands(json),
    }
}

fn block(value: &Value, json: &[u8]) -> String {
    let string = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = string("type").unwrap_or_default();
    match kind {
        "text" => string("text").map(str::to_owned),
        "thinking" => string("thinking").map(str::to_owned),
        "redacted_thinking" => {
            string("data").map(|data| format!("[hidden thinking, {} bytes]", data.len()))
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => string("name").map(|name| {
            let input = value.get("input").map(readable).unwrap_or_default();
            format!("{name}\n{input}")
        }),
        "tool_result" | "mcp_tool_result" | "compaction" => {
            Some(value.get("content").map(nested).unwrap_or_default())
        }
        "image" | "document" | "search_result" => attached(kind, value),
        _ => None,
    }
    .unwrap_or_else(|| unknown(value, json))
}

/// What stands where a string or a list of blocks may stand.
fn nested(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|inner| match inner {
                Value::Object(_) => block(inner, inner.to_string().as_bytes()),
                other => nested(other),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A picture, a document or something that was found, with all of its text.
fn attached(kind: &str, value: &Value) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in ["title", "context"] {
        lines.extend(value.get(name).and_then(Value::as_str).map(str::to_owned));
    }
    let source = value.get("source")?;
    let of_source = |name: &str| source.get(name).and_then(Value::as_str);
    let data = of_source("data");
    lines.push(match (source, of_source("type")) {
        (Value::String(place), _) => place.clone(),
        (_, Some("text")) => data?.to_owned(),
        (_, Some("content")) => nested(source.get("content")?),
        (_, Some("url")) => format!("[{kind} {}]", of_source("url")?),
        (_, Some("file")) => format!("[{kind} {}]", of_source("file_id")?),
        (_, Some("base64")) => {
            let media = of_source("media_type").unwrap_or("of unknown type");
            format!("[{kind} {media}, {} bytes]", decoded(data?))
        }
        _ => return None,
    });
    lines.extend(value.get("content").map(nested));
    Some(lines.join("\n"))
}

/// Bytes that such letters stand for.
fn decoded(base64: &str) -> usize {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    (base64.len() - padding) * 3 / 4
}

/// A block of a kind that is not known, as its JSON, less what nobody can read.
fn unknown(value: &Value, json: &[u8]) -> String {
    let mut value = value.clone();
    if shorten(&mut value) > 0 {
        value.to_string()
    } else {
        as_it_stands(json)
    }
}

/// Takes data out of a value, and answers with how many times.
fn shorten(value: &mut Value) -> usize {
    match value {
        Value::Array(list) => list.iter_mut().map(shorten).sum(),
        Value::Object(object) => {
            let members = object.iter_mut().map(|(name, inner)| {
                let bytes = inner.as_str().filter(|text| is_data(text)).map(str::len);
                match bytes {
                    Some(bytes) if DATA.contains(&name.as_str()) => {
                        *inner = Value::from(format!("[{bytes} bytes]"));
                        1
                    }
                    _ => shorten(inner),
                }
            });
            members.sum()
        }
        _ => 0,
    }
}

fn is_data(text: &str) -> bool {
    text.len() >= LONG && !text.bytes().any(|byte| byte.is_ascii_whitespace())
}

/// A value for a reader: names and texts as they are, a line each.
fn readable(value: &Value) -> String {
    let mut lines = String::new();
    write_value(&mut lines, value, 0);
    lines.truncate(lines.trim_end_matches('\n').len());
    lines
}

fn write_value(into: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth.min(INDENT));
    let mut member = |name: &str, inner: &Value| {
        // Writing to a string cannot fail.
        let _ = match inner {
            Value::String(text) if text.contains('\n') => writeln!(into, "{indent}{name}\n{text}"),
            Value::String(text) => writeln!(into, "{indent}{name} {text}"),
            Value::Array(list) if list.is_empty() => writeln!(into, "{indent}{name} []"),
            Value::Object(object) if object.is_empty() => writeln!(into, "{indent}{name} {{}}"),
            Value::Array(_) | Value::Object(_) => {
                let _ = writeln!(into, "{indent}{name}");
                write_value(into, inner, depth + 1);
                Ok(())
            }
            other => writeln!(into, "{indent}{name} {other}"),
        };
    };
    match value {
        Value::Object(object) => {
            for (name, inner) in object {
                member(&format!("{name}:"), inner);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| member("-", inner)),
        Value::String(text) => into.push_str(text),
        other => {
            let _ = write!(into, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_content_says_its_own() {
        let long = "A".repeat(400);
        let rows = [
            (json!("a\n\"b\""), "a\n\"b\"".to_owned()),
            (json!(null), String::new()),
            (json!([]), String::new()),
            (json!({"type": "text", "text": "words", "citations": []}), "words".to_owned()),
            (json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, "c"]), "a\nb\nc".to_owned()),
            (json!({"type": "thinking", "thinking": "hm", "signature": "s"}), "hm".to_owned()),
            (json!({"type": "redacted_thinking", "data": "AAAA"}), "[hidden thinking, 4 bytes]".to_owned()),
            (
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAAAA=="}}]),
                "[image image/png, 4 bytes]".to_owned(),
            ),
            (
                json!([{"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]),
                "[image https://x/y.png]".to_owned(),
            ),
            (
                json!({"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "all of it"}}),
                "T\nall of it".to_owned(),
            ),
            (
                json!({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}}),
                "x".to_owned(),
            ),
            (
                json!([{"type": "search_result", "title": "T", "source": "https://x", "content": [{"type": "text", "text": "found"}]}]),
                "T\nhttps://x\nfound".to_owned(),
            ),
            (
                json!({"type": "tool_use", "id": "t", "name": "Edit", "input": {"path": "a.rs", "n": 3, "edits": [{"old": "x\ny", "new": ""}], "none": {}}}),
                "Edit\npath: a.rs\nn: 3\nedits:\n  -\n    old:\nx\ny\n    new: \nnone: {}".to_owned(),
            ),
            (json!({"type": "compaction", "content": "so far"}), "so far".to_owned()),
            (json!({"type": "compaction", "content": null}), String::new()),
            (json!({"type": "tool_result", "content": [{"type": "text", "text": "r"}]}), "r".to_owned()),
            (json!({"type": "hologram", "depth": 1}), r#"{"type":"hologram","depth":1}"#.to_owned()),
            (json!({"type": "text"}), r#"{"type":"text"}"#.to_owned()),
            (
                json!({"type": "web_search_tool_result", "content": [{"url": "u", "encrypted_content": long}]}),
                r#"{"type":"web_search_tool_result","content":[{"url":"u","encrypted_content":"[400 bytes]"}]}"#.to_owned(),
            ),
        ];
        for (content, expected) in rows {
            assert_eq!(text(content.to_string().as_bytes()), expected, "{content}");
        }
    }

    #[test]
    fn what_is_badly_written_is_not_lost() {
        let rows = [
            (
                r#"[{"type":"text","text":"before \ud83d after"}]"#,
                "before",
            ),
            (r#""a\qb""#, r"a\qb"),
            ("[{]", "[{]"),
            ("{\"type\":\"text\",\"text\":\"raw\nline\"}", "raw\nline"),
            ("17", "17"),
        ];
        for (json, expected) in rows {
            let text = text(json.as_bytes());
            assert!(text.contains(expected), "{json}: {text}");
        }
    }

    #[test]
    fn a_message_is_its_content_and_an_input_its_names_and_values() {
        assert_eq!(message(br#"{"role":"user","content":"x"}"#), "x");
        assert_eq!(
            message(br#"{"content":[{"type":"text","text":"y"}],"role":"user"}"#),
            "y"
        );
        assert_eq!(message(b"{"), "{");
        assert_eq!(
            input(br#"{"command":"ls\t-l","list":[1,"b"]}"#),
            "command: ls\t-l\nlist:\n  - 1\n  - b"
        );
        assert_eq!(input(br#""x""#), "x");
        assert_eq!(input(b"{}"), "");
    }

    #[test]
    fn a_passage_never_parts_a_letter() {
        for (from, to, expected) in [
            (0, 1, "a"),
            (1, 2, ""),
            (1, 3, "é"),
            (2, 9, "éb"),
            (3, 1, ""),
        ] {
            assert_eq!(passage("aéb", from, to), expected, "{from}..{to}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a-z\n\"é ]{0,20}".prop_map(Value::from),
            "text|image|document|tool_use|base64|search_result".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = "type|text|source|content|input|name|data|title|x";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn all_text_of_a_result_is_there(texts in prop::collection::vec("\\PC{0,30}", 0..5)) {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            prop_assert_eq!(text(Value::from(blocks).to_string().as_bytes()), texts.join("\n"));
        }

        /// Indenting could multiply what is deeply nested.
        #[test]
        fn any_value_is_survived_and_hardly_grows(value in value()) {
            let json = value.to_string();
            let limit = json.len() * 20 + 40;
            prop_assert!(text(json.as_bytes()).len() <= limit);
            prop_assert!(input(json.as_bytes()).len() <= limit);
        }

        #[test]
        fn any_bytes_at_all_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (text(&bytes), message(&bytes), input(&bytes));
        }
    }
}
