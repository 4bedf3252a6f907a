//! What a reply said about itself: id, model, usage, why it stopped, tool calls.
//!
//! Filled event by event from a stream, or at once from a whole message. Usage
//! in a stream is cumulative, so the last value of each field wins and nothing
//! is ever added up. A field of an unexpected shape is left unknown and hinders
//! no other; lengths are bounded because they come from outside.

use serde_json::Value;

use super::sse::Sink;

/// The longest name or id that is kept, in characters.
const NAME_LIMIT: usize = 256;
/// The most tool calls of one reply that are kept.
const CALL_LIMIT: usize = 1024;

/// Tokens of one exchange, as upstream counts and bills them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input after the last cache mark, at the full price.
    pub input: Option<u64>,
    /// Input written to the cache.
    pub cache_write: Option<u64>,
    /// The part of `cache_write` that lives for an hour.
    pub cache_write_1h: Option<u64>,
    /// Input read from the cache.
    pub cache_read: Option<u64>,
    /// Output.
    pub output: Option<u64>,
}

impl Usage {
    /// The whole prompt: what was read from the cache, written to it, and neither.
    pub fn prompt(&self) -> Option<u64> {
        let rest = self.cache_write.unwrap_or(0) + self.cache_read.unwrap_or(0);
        self.input.map(|input| input + rest)
    }

    fn update(&mut self, usage: &Value) {
        let set = |field: &mut Option<u64>, value: Option<&Value>| {
            if let Some(count) = value.and_then(Value::as_u64) {
                *field = Some(count);
            }
        };
        set(&mut self.input, usage.get("input_tokens"));
        set(&mut self.output, usage.get("output_tokens"));
        set(&mut self.cache_read, usage.get("cache_read_input_tokens"));
        set(
            &mut self.cache_write,
            usage.get("cache_creation_input_tokens"),
        );
        set(
            &mut self.cache_write_1h,
            usage.pointer("/cache_creation/ephemeral_1h_input_tokens"),
        );
    }
}

/// One tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The id by which its result will refer to it.
    pub id: String,
    /// The tool's name.
    pub name: String,
}

/// What is known of one reply so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The message's id.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The tokens.
    pub usage: Usage,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The tools it wants called, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The type of the error that came instead of a reply, or in its middle.
    pub error: Option<String>,
    /// The message came to its proper end.
    pub complete: bool,
    /// Upstream itself left out part of the prompt, as the client asked, so that
    /// the usage is of less than what was sent.
    pub edited: bool,
    /// Thinking blocks that upstream left out of the prompt, because they do not
    /// fit it.
    pub thinking_dropped: usize,
}

impl Reply {
    /// Reads a whole body: a message, or an error.
    pub fn read_message(&mut self, body: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(body) else {
            return;
        };
        if message.get("type").and_then(Value::as_str) == Some("error") {
            return self.read_error(&message);
        }
        self.read_head(&message);
        set_name(&mut self.stop_reason, message.get("stop_reason"));
        let blocks = message.get("content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten() {
            self.read_block(block);
        }
        self.complete = self.id.is_some();
    }

    fn read_head(&mut self, message: &Value) {
        set_name(&mut self.id, message.get("id"));
        set_name(&mut self.model, message.get("model"));
        self.read_usage(message);
        self.read_transformations(message);
    }

    /// What upstream did to the prompt by itself.
    fn read_transformations(&mut self, holder: &Value) {
        let done = holder
            .get("input_transformations")
            .and_then(Value::as_array);
        if let Some(done) = done {
            let dropped = |entry: &&Value| {
                entry.get("type").and_then(Value::as_str) == Some("thinking_dropped")
            };
            self.thinking_dropped = done.iter().filter(dropped).count();
        }
    }

    /// The usage, and whether it is of all that was sent.
    fn read_usage(&mut self, holder: &Value) {
        if let Some(usage) = holder.get("usage") {
            self.usage.update(usage);
        }
        let edits = holder.pointer("/context_management/applied_edits");
        self.edited |= edits
            .and_then(Value::as_array)
            .is_some_and(|e| !e.is_empty());
    }

    fn read_block(&mut self, block: &Value) {
        if block.get("type").and_then(Value::as_str) != Some("tool_use")
            || self.tool_calls.len() >= CALL_LIMIT
        {
            return;
        }
        let (mut id, mut name) = (None, None);
        set_name(&mut id, block.get("id"));
        set_name(&mut name, block.get("name"));
        if let (Some(id), Some(name)) = (id, name) {
            self.tool_calls.push(ToolCall { id, name });
        }
    }

    fn read_error(&mut self, body: &Value) {
        set_name(&mut self.error, body.pointer("/error/type"));
        if self.error.is_none() {
            self.error = Some("unknown".to_owned());
        }
    }
}

impl Sink for Reply {
    fn wants(&self, event: &[u8]) -> bool {
        !matches!(
            event,
            b"content_block_delta" | b"content_block_stop" | b"ping"
        )
    }

    fn event(&mut self, event: &[u8], data: &[u8]) {
        let Ok(data) = serde_json::from_slice::<Value>(data) else {
            return;
        };
        let kind = data.get("type").and_then(Value::as_str).map(str::as_bytes);
        match kind.unwrap_or(event) {
            b"message_start" => {
                if let Some(message) = data.get("message") {
                    self.read_head(message);
                }
            }
            b"content_block_start" => {
                if let Some(block) = data.get("content_block") {
                    self.read_block(block);
                }
            }
            b"message_delta" => {
                self.read_usage(&data);
                self.read_transformations(&data);
                set_name(&mut self.stop_reason, data.pointer("/delta/stop_reason"));
            }
            b"message_stop" => self.complete = true,
            b"error" => self.read_error(&data),
            _ => {}
        }
    }
}

fn set_name(field: &mut Option<String>, value: Option<&Value>) {
    if let Some(name) = value.and_then(Value::as_str) {
        *field = Some(name.chars().take(NAME_LIMIT).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sse::Decoder;

    #[test]
    fn thinking_that_upstream_left_out_is_counted_and_the_last_word_holds() {
        let head = r#"{"type":"message_start","message":{"id":"m","input_transformations":[{"type":"thinking_dropped"},{"type":"thinking_mismatch_allowed"},{"type":"thinking_dropped"}]}}"#;
        let mut reply = stream(&[&format!("data: {head}\n\n")]);
        assert_eq!(reply.thinking_dropped, 2);
        let last =
            r#"{"type":"message_delta","input_transformations":[{"type":"thinking_dropped"}]}"#;
        reply.event(b"message_delta", last.as_bytes());
        assert_eq!(reply.thinking_dropped, 1);
        reply.event(b"message_delta", br#"{"type":"message_delta"}"#);
        assert_eq!(reply.thinking_dropped, 1);
    }

    fn stream(events: &[&str]) -> Reply {
        let mut reply = Reply::default();
        let mut decoder = Decoder::default();
        for event in events {
            decoder.push(event.as_bytes(), &mut reply);
        }
        reply
    }

    const START: &str = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",",
        "\"model\":\"claude-opus-5-5\",\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":100,",
        "\"cache_creation_input_tokens\":20,\"cache_creation\":{\"ephemeral_1h_input_tokens\":5},",
        "\"output_tokens\":1}}}\n\n",
    );

    #[test]
    fn usage_in_a_stream_is_cumulative_and_the_last_value_wins() {
        let delta = |tokens: u64| {
            format!(
                "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":{tokens}}}}}\n\n"
            )
        };
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        let reply = stream(&[START, &delta(10), &delta(25), stop]);
        assert_eq!(
            reply.usage,
            Usage {
                input: Some(7),
                cache_write: Some(20),
                cache_write_1h: Some(5),
                cache_read: Some(100),
                output: Some(25),
            }
        );
        assert_eq!(reply.usage.prompt(), Some(127));
        assert_eq!(reply.stop_reason.as_deref(), Some("end_turn"));
        assert_eq!(reply.id.as_deref(), Some("msg_1"));
        assert!(reply.complete);
    }

    #[test]
    fn tool_calls_and_errors_are_seen_in_a_stream() {
        let reply = stream(&[
            START,
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Bash\",\"input\":{}}}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ]);
        assert_eq!(
            reply.tool_calls,
            [ToolCall {
                id: "toolu_1".into(),
                name: "Bash".into()
            }]
        );
        assert_eq!(reply.error.as_deref(), Some("overloaded_error"));
        assert!(!reply.complete);
    }

    #[test]
    fn a_whole_message_tells_the_same() {
        let mut reply = Reply::default();
        reply.read_message(
            br#"{"id":"msg_2","type":"message","model":"m","stop_reason":"tool_use","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"n","input":{}}],"usage":{"input_tokens":3,"output_tokens":4}}"#,
        );
        assert_eq!(reply.tool_calls.len(), 1);
        assert_eq!((reply.usage.input, reply.usage.output), (Some(3), Some(4)));
        assert!(reply.complete);
    }

    #[test]
    fn edits_of_upstream_s_own_are_seen() {
        let rows = [
            (
                r#"{"applied_edits":[{"type":"clear_tool_uses_20250919"}]}"#,
                true,
            ),
            (r#"{"applied_edits":[]}"#, false),
            (r#"{"applied_edits":null}"#, false),
            (r#"{"applied_edits":{"a":1}}"#, false),
            ("null", false),
            ("5", false),
        ];
        for (management, expected) in rows {
            let delta = format!(
                "event: message_delta\ndata: {{\"type\":\"message_delta\",\"context_management\":{management}}}\n\n"
            );
            let later = "event: message_delta\ndata: {\"type\":\"message_delta\"}\n\n";
            assert_eq!(stream(&[START, &delta, later]).edited, expected, "{delta}");
            let mut reply = Reply::default();
            let body = format!(r#"{{"type":"message","context_management":{management}}}"#);
            reply.read_message(body.as_bytes());
            assert_eq!(reply.edited, expected, "{body}");
        }
        assert!(!stream(&[START]).edited);
    }

    #[test]
    fn odd_shapes_leave_a_field_unknown_and_harm_no_other() {
        let rows: &[(&str, Option<u64>)] = &[
            (
                r#"{"id":5,"usage":{"input_tokens":"x","output_tokens":9}}"#,
                Some(9),
            ),
            (r#"{"usage":[],"content":{}}"#, None),
            (r#"{"usage":{"output_tokens":-1}}"#, None),
            ("[1,2]", None),
            ("not json", None),
            ("", None),
        ];
        for (body, output) in rows {
            let mut reply = Reply::default();
            reply.read_message(body.as_bytes());
            assert_eq!(reply.usage.output, *output, "{body}");
            assert!(!reply.complete);
        }
    }
}
