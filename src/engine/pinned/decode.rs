//! JSON strings as the text they stand for.
//!
//! A string that a strict reader refuses, because it holds half of a surrogate
//! pair, comes from real clients, and what the user wrote around that must not
//! be lost: the half becomes a replacement character and the rest stays.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A string, however it is written.
pub(in crate::engine) struct Text(pub(in crate::engine) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }
}

/// What a JSON string says; `None` if it is no string.
pub(in crate::engine) fn string(json: &[u8]) -> Option<String> {
    let inside = json.strip_prefix(b"\"")?;
    match serde_json::from_slice::<Text>(json) {
        Ok(Text(text)) => Some(text),
        // Unheard-of escapes: better as they stand than not at all.
        Err(_) => Some(String::from_utf8_lossy(inside.strip_suffix(b"\"")?).into_owned()),
    }
}

/// The text of a tool's result: a string, or blocks of which some are text.
pub(in crate::engine) fn result(payload: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Part {
        text: Option<Text>,
    }
    if let Some(text) = string(payload) {
        return text;
    }
    match serde_json::from_slice::<Vec<Part>>(payload) {
        Ok(parts) => {
            let texts = parts.into_iter().filter_map(|part| part.text);
            texts.map(|text| text.0).collect::<Vec<_>>().join("\n")
        }
        Err(_) => String::from_utf8_lossy(payload).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_read_whatever_is_wrong_with_it() {
        let rows = [
            (r#""plain""#, Some("plain")),
            (r#""a\n\u00e9\ud83d\ude00""#, Some("a\né😀")),
            (
                r#""never \ud83d push""#,
                Some("never \u{fffd}\u{fffd}\u{fffd} push"),
            ),
            (r#""a\qb""#, Some(r"a\qb")),
            (r#"{"a":1}"#, None),
            ("null", None),
        ];
        for (json, expected) in rows {
            assert_eq!(string(json.as_bytes()).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn a_result_is_all_its_texts() {
        let rows = [
            (r#""one""#, "one"),
            (
                r#"[{"type":"text","text":"a"},{"type":"image","source":{"data":"x"}},{"text":"b","type":"text"}]"#,
                "a\nb",
            ),
            ("", ""),
            ("[]", ""),
            ("7", "7"),
        ];
        for (json, expected) in rows {
            assert_eq!(result(json.as_bytes()), expected, "{json}");
        }
    }
}
