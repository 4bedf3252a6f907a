//! How long the API keeps what a mark ends, and the text of a mark.

/// How a mark begins, and what makes it live longer.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const LONG_MARK: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// The longest mark that is read; a real one has some forty bytes.
const READ: usize = 256;

/// How long the API keeps what a mark ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// Five minutes.
    Short,
    /// An hour.
    Long,
}

impl Lifetime {
    pub(super) fn of(mark: &[u8]) -> Self {
        // A mark is tiny, and its lifetime one of two words. What is not tiny is
        // none, and as a tree it would cost thirty times its size.
        let long = mark.len() <= READ
            && serde_json::from_slice::<serde_json::Value>(mark)
                .is_ok_and(|mark| mark.get("ttl").and_then(|ttl| ttl.as_str()) == Some("1h"));
        if long { Self::Long } else { Self::Short }
    }

    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Short => MARK,
            Self::Long => LONG_MARK,
        }
    }

    /// In seconds.
    pub fn seconds(self) -> u64 {
        match self {
            Self::Short => 300,
            Self::Long => 3_600,
        }
    }
}
