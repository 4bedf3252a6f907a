//! How long the API keeps what a mark ends, and the text of a mark.

use crate::wire::scan::{Cursor, says};

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

/// The value of a mark with a lifetime of an hour, everything else in it as it is;
/// none: it has that already, or is not understood.
pub(super) fn lengthened(mark: &[u8]) -> Option<Vec<u8>> {
    if mark.len() > READ || Lifetime::of(mark) == Lifetime::Long {
        return None;
    }
    let mut cursor = Cursor::new(mark);
    cursor.expect(b'{').ok()?;
    let (mut first, mut members) = (true, 0);
    while let Some(key) = cursor.key(&mut first).ok()? {
        let value = cursor.value().ok()?;
        if says(key.span.of(mark), "ttl") {
            let (before, after) = (mark.get(..value.start())?, mark.get(value.end()..)?);
            return Some([before, br#""1h""#, after].concat());
        }
        members += 1;
    }
    let brace = mark.iter().rposition(|byte| *byte == b'}')?;
    let comma: &[u8] = if members > 0 { b"," } else { b"" };
    let (before, after) = (mark.get(..brace)?, mark.get(brace..)?);
    Some([before, comma, br#""ttl":"1h""#, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_lifetime_leaves_the_rest_of_a_mark_as_it_is() {
        for (mark, expected) in [
            (
                r#"{"type":"ephemeral"}"#,
                Some(r#"{"type":"ephemeral","ttl":"1h"}"#),
            ),
            (
                r#"{ "ttl" : "5m", "type":"ephemeral","scope":"global" }"#,
                Some(r#"{ "ttl" : "1h", "type":"ephemeral","scope":"global" }"#),
            ),
            (r#"{"type":"ephemeral","ttl":"1h"}"#, None),
            ("{}", Some(r#"{"ttl":"1h"}"#)),
            ("[]", None),
        ] {
            let longer = lengthened(mark.as_bytes()).map(|mark| String::from_utf8(mark).unwrap());
            assert_eq!(longer.as_deref(), expected, "{mark}");
        }
    }
}
