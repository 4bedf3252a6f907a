//! A message as a stream of server-sent events.
//!
//! `message_start`, then per block start, deltas and stop, then `message_delta` with
//! the final counts, then `message_stop`; a ping behind the first block's start.
//! Whatever the pieces, they add up to the message that is answered without
//! streaming.

use bytes::Bytes;
use serde_json::{Value, json};

use super::message::{Message, put};
use super::request::{Block, kind, text};

/// All events of a message, each with its name line and blank line.
pub fn events(message: &Message, delta_chars: usize) -> Vec<Bytes> {
    let mut events = vec![start(message)];
    for (index, block) in message.content.iter().enumerate() {
        let (head, deltas) = split(block, delta_chars.max(1));
        events.push(event(&json!({
            "type": "content_block_start", "index": index, "content_block": head,
        })));
        if index == 0 {
            events.push(event(&json!({"type": "ping"})));
        }
        for delta in deltas {
            events.push(event(
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        events.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    events.push(end(message));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

/// An error in the middle of a stream.
pub fn error(inner: &Value, request_id: &str) -> Bytes {
    event(&json!({"type": "error", "error": inner, "request_id": request_id}))
}

/// One event; its name is its type.
pub fn event(data: &Value) -> Bytes {
    let name = data.get("type").and_then(Value::as_str).unwrap_or("");
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

fn start(message: &Message) -> Bytes {
    let mut opening = message.json();
    put(&mut opening, "content", json!([]));
    put(&mut opening, "stop_reason", Value::Null);
    put(&mut opening, "stop_sequence", Value::Null);
    put(&mut opening, "usage", message.usage(1));
    if let Some(object) = opening.as_object_mut() {
        // What editing came to, and how it ends, is only known at the end.
        object.shift_remove("context_management");
        object.shift_remove("stop_details");
        if let Some(usage) = object.get_mut("usage").and_then(Value::as_object_mut) {
            usage.shift_remove("iterations");
        }
    }
    event(&json!({"type": "message_start", "message": opening}))
}

fn end(message: &Message) -> Bytes {
    let mut usage = message.usage(message.tokens.output);
    if let Some(usage) = usage.as_object_mut() {
        usage.shift_remove("service_tier");
    }
    let mut data = json!({
        "type": "message_delta",
        "delta": {"stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence},
        "usage": usage,
    });
    if let (Some(details), Some(delta)) = (message.stop_details(), data.get_mut("delta")) {
        put(delta, "stop_details", details);
    }
    if let Some(management) = &message.context_management {
        put(&mut data, "context_management", management.clone());
    }
    event(&data)
}

/// The block as it starts, and the deltas that complete it.
fn split(block: &Block, size: usize) -> (Value, Vec<Value>) {
    let mut head = block.clone();
    let mut blank = |field: &str, value: Value| {
        head.insert(field.to_owned(), value);
    };
    let deltas = match kind(block) {
        "text" => {
            blank("text", json!(""));
            chunks(text(block, "text"), size)
                .map(|t| json!({"type": "text_delta", "text": t}))
                .collect()
        }
        "thinking" => {
            blank("thinking", json!(""));
            blank("signature", json!(""));
            let thought = chunks(text(block, "thinking"), size);
            let mut deltas: Vec<Value> = thought
                .map(|t| json!({"type": "thinking_delta", "thinking": t}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": text(block, "signature")}));
            deltas
        }
        "tool_use" | "server_tool_use" => {
            blank("input", json!({}));
            let input = block.get("input").filter(|input| *input != &json!({}));
            let input = input.map(Value::to_string).unwrap_or_default();
            // The first piece is often empty, and so is the whole of an empty input.
            std::iter::once("")
                .chain(chunks(&input, size))
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        }
        "compaction" => {
            blank("content", Value::Null);
            let mut delta = json!({"type": "compaction_delta"});
            for field in ["content", "encrypted_content"] {
                if let Some(value) = block.get(field) {
                    put(&mut delta, field, value.clone());
                }
            }
            vec![delta]
        }
        // Redacted thinking and results of server tools come whole.
        _ => Vec::new(),
    };
    (Value::Object(head), deltas)
}

/// A text in pieces of so many characters.
fn chunks(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(cut);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(blocks: &Value) -> Vec<String> {
        let content = blocks
            .as_array()
            .unwrap()
            .iter()
            .map(|b| b.as_object().unwrap().clone());
        let message = Message {
            id: "msg_1".to_owned(),
            model: "m".to_owned(),
            content: content.collect(),
            stop_reason: "end_turn".to_owned(),
            stop_sequence: None,
            tokens: crate::sim::prices::Tokens::default(),
            compaction: None,
            iterations: None,
            transformations: None,
            context_management: None,
            diagnostics: None,
        };
        let name = |event: &Bytes| {
            let text = std::str::from_utf8(event).unwrap();
            let (name, data) = text
                .strip_prefix("event: ")
                .unwrap()
                .split_once("\ndata: ")
                .unwrap();
            let data: Value = serde_json::from_str(data.trim_end()).unwrap();
            assert_eq!(data["type"], name);
            match data.get("delta").and_then(|delta| delta.get("type")) {
                Some(kind) => kind.as_str().unwrap().to_owned(),
                None => name.to_owned(),
            }
        };
        events(&message, 4).iter().map(name).collect()
    }

    /// Fact: the order of events, with a ping after the first block's start and no `[DONE]`.
    #[test]
    fn events_come_in_order() {
        assert_eq!(
            names(&json!([{"type": "text", "text": "hello"}])),
            [
                "message_start",
                "content_block_start",
                "ping",
                "text_delta",
                "text_delta",
                "content_block_stop",
                "message_delta",
                "message_stop"
            ]
        );
    }

    /// Fact: the signature comes once, just before the stop; with omitted thinking it
    /// is the only delta. Redacted thinking has none.
    #[test]
    fn thinking_ends_with_its_signature() {
        let blocks = json!([{"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"}]);
        assert_eq!(
            names(&blocks)[1..6],
            [
                "content_block_start",
                "ping",
                "signature_delta",
                "content_block_stop",
                "content_block_start"
            ]
        );
        assert_eq!(names(&blocks)[6], "content_block_stop");
    }

    /// Fact: tool input comes as pieces of JSON, the first one empty; an empty input is no text.
    #[test]
    fn tool_input_comes_in_pieces() {
        let blocks = json!([{"type": "tool_use", "id": "a", "name": "n", "input": {"a": 1}}]);
        let deltas = names(&blocks)
            .iter()
            .filter(|name| *name == "input_json_delta")
            .count();
        assert_eq!(deltas, 3);
        let blocks = json!([{"type": "tool_use", "id": "a", "name": "n", "input": {}}]);
        assert_eq!(
            names(&blocks)
                .iter()
                .filter(|name| *name == "input_json_delta")
                .count(),
            1
        );
    }

    /// Fact: a compaction comes as one delta with the whole summary; the SDKs know no
    /// signature in a delta and keep the one of the block as it starts.
    #[test]
    fn a_compaction_is_one_delta() {
        let blocks = json!([{"type": "compaction", "content": "long summary", "signature": "s"}]);
        let (start, deltas) = split(blocks[0].as_object().unwrap(), 40);
        assert_eq!(
            start,
            json!({"type": "compaction", "content": null, "signature": "s"})
        );
        assert_eq!(
            deltas,
            [json!({"type": "compaction_delta", "content": "long summary"})]
        );
        assert!(names(&blocks).contains(&"compaction_delta".to_owned()));
        assert_eq!(names(&blocks).len(), 7);
    }
}
