//! Digests of what the model is shown.
//!
//! Two requests are the same to the prompt cache and to bound thinking if their
//! canonical forms are: cache marks do not count, absent and null are one, the
//! order of a block's own fields does not matter, a string is one text block.
//! What does matter, byte for byte, is text and the order of keys inside a tool
//! call's input.

use std::fmt;

use serde_json::Value;

use super::request::{Block, Role, kind};

/// A digest of canonical content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The digest of a text.
    pub fn of(text: &str) -> Self {
        Self::finish(&blake3::hash(text.as_bytes()))
    }

    /// The digest of this and what comes after it.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(&next.0);
        Self::finish(&hasher.finalize())
    }

    /// The digest of a content block said by a role.
    pub fn block(role: Role, block: &Block) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(match role {
            Role::User => b"user",
            Role::Assistant => b"asst",
            Role::System => b"syst",
        });
        feed_block(&mut hasher, block);
        Self::finish(&hasher.finalize())
    }

    /// The digest of a system block or of a tool.
    pub fn part(block: &Block) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"part");
        feed_block(&mut hasher, block);
        Self::finish(&hasher.finalize())
    }

    /// Reads the hexadecimal form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 {
            return None;
        }
        u128::from_str_radix(text, 16)
            .ok()
            .map(|number| Self(number.to_be_bytes()))
    }

    fn finish(hash: &blake3::Hash) -> Self {
        let mut digest = [0; 16];
        for (to, from) in digest.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        Self(digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

fn feed_block(hasher: &mut blake3::Hasher, block: &Block) {
    let mut keys: Vec<&String> = block
        .iter()
        .filter(|(key, value)| *key != "cache_control" && !value.is_null())
        .map(|(key, _)| key)
        .collect();
    keys.sort_unstable();
    for key in keys {
        let Some(value) = block.get(key) else {
            continue;
        };
        feed_text(hasher, key);
        match (key.as_str(), value) {
            ("content", Value::Array(nested)) => feed_blocks(hasher, nested),
            ("content", Value::String(text)) if kind(block) == "tool_result" => {
                let mut only = Block::new();
                only.insert("type".to_owned(), Value::from("text"));
                only.insert("text".to_owned(), Value::from(text.as_str()));
                feed_blocks(hasher, &[Value::Object(only)]);
            }
            (_, Value::String(text)) => feed_text(hasher, text),
            (_, other) => feed_text(hasher, &other.to_string()),
        }
    }
}

fn feed_blocks(hasher: &mut blake3::Hasher, blocks: &[Value]) {
    hasher.update(b"[");
    for block in blocks {
        match block {
            Value::Object(block) => feed_block(hasher, block),
            other => feed_text(hasher, &other.to_string()),
        }
        hasher.update(b";");
    }
}

/// The length first, so that no two sequences of texts look alike.
fn feed_text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn digest(value: &Value) -> Digest {
        Digest::block(Role::User, value.as_object().unwrap())
    }

    /// Fact: cache marks are no part of what is compared, nested ones included.
    #[test]
    fn cache_marks_do_not_count() {
        let mark = json!({"type": "ephemeral"});
        let plain = json!({"type": "tool_result", "tool_use_id": "a",
            "content": [{"type": "text", "text": "x"}]});
        let marked = json!({"type": "tool_result", "tool_use_id": "a", "cache_control": mark,
            "content": [{"type": "text", "text": "x", "cache_control": mark}]});
        assert_eq!(digest(&plain), digest(&marked));
    }

    /// Fact: string content equals one text block.
    #[test]
    fn a_string_equals_one_text_block() {
        let string = json!({"type": "tool_result", "tool_use_id": "a", "content": "x"});
        let block = json!({"type": "tool_result", "content": [{"type": "text", "text": "x"}],
            "tool_use_id": "a"});
        assert_eq!(digest(&string), digest(&block));
    }

    /// Fact: the key order of a tool call's input matters, and so do its `cache_control` keys.
    #[test]
    fn the_input_of_a_call_is_compared_exactly() {
        let call = |input: Value| {
            digest(&json!({"type": "tool_use", "id": "a", "name": "n", "input": input}))
        };
        assert_ne!(call(json!({"a": 1, "b": 2})), call(json!({"b": 2, "a": 1})));
        assert_ne!(call(json!({"cache_control": 1})), call(json!({})));
    }

    #[test]
    fn roles_and_order_count() {
        let block = json!({"type": "text", "text": "x"});
        let block = block.as_object().unwrap();
        assert_ne!(
            Digest::block(Role::User, block),
            Digest::block(Role::Assistant, block)
        );
        let (a, b) = (Digest::of("a"), Digest::of("b"));
        assert_ne!(a.then(b), b.then(a));
    }

    #[test]
    fn digests_survive_their_text_form() {
        let digest = Digest::of("x");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("zz"), None);
    }
}
