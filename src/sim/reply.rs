//! Scripted replies.
//!
//! A reply is what the model is to say, in the API's own block format. Ids and
//! signatures may be left out; they are filled in when the reply is given.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A scripted reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// Content blocks. Thinking without a signature is signed, and left out if
    /// the request does not allow for it; a tool call without an id gets one.
    pub content: Vec<Value>,
    /// Short for one text block at the end of the content.
    pub text: Option<String>,
    /// Overrides the stop reason that follows from the content.
    pub stop_reason: Option<String>,
    /// Overrides the output size that follows from the content.
    pub output_tokens: Option<u64>,
    /// Wait before the first byte, instead of the simulator's own.
    pub first_byte_delay_ms: Option<u64>,
    /// Wait between stream events, instead of the simulator's own.
    pub event_delay_ms: Option<u64>,
    /// Whether the usual thinking is put in front, where the request allows for it.
    pub with_thinking: bool,
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Content blocks as given.
    pub fn blocks(content: Vec<Value>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// One tool call.
    pub fn call(name: &str, input: &Value) -> Self {
        Self::default().and_call(name, input)
    }

    /// A further tool call.
    #[must_use]
    pub fn and_call(mut self, name: &str, input: &Value) -> Self {
        self.content
            .push(json!({"type": "tool_use", "name": name, "input": input}));
        self
    }

    /// Thinking in front of everything else.
    #[must_use]
    pub fn after_thinking(mut self, text: &str) -> Self {
        self.content
            .insert(0, json!({"type": "thinking", "thinking": text}));
        self
    }

    /// Another stop reason.
    #[must_use]
    pub fn stopping_with(mut self, reason: &str) -> Self {
        self.stop_reason = Some(reason.to_owned());
        self
    }

    /// All content blocks, the short text included.
    pub fn all_blocks(&self) -> Vec<Value> {
        let mut blocks = self.content.clone();
        if let Some(text) = &self.text {
            blocks.push(json!({"type": "text", "text": text}));
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_reads_from_json() {
        let reply: Reply =
            serde_json::from_str(r#"{"text": "hello", "stop_reason": "refusal"}"#).unwrap();
        assert_eq!(reply, Reply::text("hello").stopping_with("refusal"));
        assert!(serde_json::from_str::<Reply>(r#"{"txt": "typo"}"#).is_err());
    }
}
