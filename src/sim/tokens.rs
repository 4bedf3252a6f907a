//! Token counts of the simulated models.
//!
//! Counted with a public vocabulary times a drift factor that the proxy is not
//! told, because the real tokenizer is not public either. Counts are remembered
//! by the hash of the text: a conversation of hundreds of messages is resent
//! with every request and only its newest part is new.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

/// The tokenizer is slow, and fails, on very long runs of one character; it
/// gets the text in pieces of this many bytes.
const PIECE: usize = 64 * 1024;

/// Remembered texts; beyond this the memory starts afresh.
const REMEMBERED: usize = 2_000_000;

/// Tokens of an image, whatever its size.
const IMAGE: u64 = 1_600;

/// Bytes of a binary document that make a page, and the tokens of a page.
const PAGE_BYTES: u64 = 50_000;
const PAGE_TOKENS: u64 = 2_000;

/// Tokens that frame a block.
const FRAME: u64 = 4;

/// Counts tokens.
#[derive(Debug)]
pub struct Counter {
    drift: f64,
    memory: Mutex<HashMap<[u8; 16], u64>>,
}

impl Counter {
    /// A counter whose counts are the public vocabulary's times `drift`.
    pub fn new(drift: f64) -> Self {
        Self {
            drift,
            memory: Mutex::default(),
        }
    }

    /// Tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let hash = blake3::hash(text.as_bytes());
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        if let Some(count) = self.lock().get(&key) {
            return *count;
        }
        // Counted without the lock: the first count of a long text takes a while.
        let count = self.drifted(pieces(text).map(raw_count).sum());
        let mut memory = self.lock();
        if memory.len() >= REMEMBERED {
            memory.clear();
        }
        memory.insert(key, count);
        count
    }

    /// Tokens of a content block, its frame included.
    pub fn block(&self, block: &Map<String, Value>) -> u64 {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or("");
        let body = match kind {
            "text" => self.field(block, "text"),
            "image" => IMAGE,
            "document" => self.field(block, "title") + self.document(block.get("source")),
            "tool_result" => match block.get("content") {
                Some(Value::Array(nested)) => nested
                    .iter()
                    .filter_map(Value::as_object)
                    .map(|b| self.block(b))
                    .sum(),
                // A string is one text block.
                _ => match self.field(block, "content") {
                    0 => 0,
                    tokens => tokens + FRAME,
                },
            },
            "tool_use" => {
                self.field(block, "name") + block.get("input").map_or(0, |input| self.json(input))
            }
            "compaction" => self.field(block, "content"),
            _ => block
                .iter()
                .filter(|(key, _)| *key != "cache_control")
                .map(|(_, v)| self.json(v))
                .sum(),
        };
        body + FRAME
    }

    /// Tokens of a JSON value as the model sees it: its text.
    pub fn json(&self, value: &Value) -> u64 {
        self.text(&value.to_string())
    }

    /// How many images or document pages a block holds.
    pub fn pages(block: &Map<String, Value>) -> u64 {
        match block.get("type").and_then(Value::as_str) {
            Some("image") => 1,
            Some("document") => document_pages(block.get("source")),
            Some("tool_result") => {
                block
                    .get("content")
                    .and_then(Value::as_array)
                    .map_or(0, |nested| {
                        nested
                            .iter()
                            .filter_map(Value::as_object)
                            .map(Self::pages)
                            .sum()
                    })
            }
            _ => 0,
        }
    }

    fn document(&self, source: Option<&Value>) -> u64 {
        let kind = source.and_then(|s| s.get("type")).and_then(Value::as_str);
        match (kind, source) {
            (Some("text" | "content"), Some(source)) => self.json(source),
            _ => document_pages(source) * PAGE_TOKENS,
        }
    }

    fn field(&self, block: &Map<String, Value>, name: &str) -> u64 {
        block
            .get(name)
            .and_then(Value::as_str)
            .map_or(0, |text| self.text(text))
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts are far below 2^52 and the factor is positive"
    )]
    fn drifted(&self, count: u64) -> u64 {
        (count as f64 * self.drift).ceil().max(0.0) as u64
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 16], u64>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn document_pages(source: Option<&Value>) -> u64 {
    let data = source
        .and_then(|s| s.get("data"))
        .and_then(Value::as_str)
        .unwrap_or("");
    let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX) / 4 * 3;
    bytes.div_ceil(PAGE_BYTES).max(1)
}

fn raw_count(text: &str) -> u64 {
    let count = tiktoken_rs::o200k_base_singleton().count_ordinary(text);
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Cuts a text into pieces at character boundaries.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = PIECE.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn drift_scales_the_count() {
        let text = "the quick brown fox jumps over the lazy dog ".repeat(10);
        let plain = Counter::new(1.0).text(&text);
        assert!((85..=100).contains(&plain), "{plain}");
        assert_eq!(Counter::new(1.5).text(&text), (plain * 3).div_ceil(2));
    }

    #[test]
    fn long_runs_are_counted_in_pieces() {
        let counter = Counter::new(1.0);
        assert!(counter.text(&" ".repeat(200_000)) > 0);
        assert_eq!(
            pieces(&"ä".repeat(100_000)).map(str::len).sum::<usize>(),
            200_000
        );
    }

    #[test]
    fn string_and_block_content_of_a_tool_result_count_the_same() {
        let counter = Counter::new(1.0);
        let plain = block(&json!({"type": "tool_result", "tool_use_id": "a", "content": "hello"}));
        let nested = block(&json!({"type": "tool_result", "tool_use_id": "a",
            "content": [{"type": "text", "text": "hello"}]}));
        assert_eq!(counter.block(&plain), counter.block(&nested));
    }

    #[test]
    fn cache_marks_weigh_nothing() {
        let counter = Counter::new(1.0);
        let plain = block(&json!({"type": "text", "text": "hello"}));
        let marked = block(&json!({"type": "text", "text": "hello",
            "cache_control": {"type": "ephemeral"}}));
        assert_eq!(counter.block(&plain), counter.block(&marked));
    }
}
