//! What an answer says of the edits that were made for its request.
//!
//! A client that asks for old tool results to be cleared is told how many went:
//! in `context_management.applied_edits`, at the top of a message or of the
//! `message_delta` that ends a streamed one. Where the clearing is done on this
//! side, this file says where in the answer that belongs. What upstream says
//! there of edits of its own is kept; an answer that is not understood is not
//! added to.

use std::ops::Range;

use super::scan::{Cursor, Span, Unclear, says};

/// The edit that clears old tool results.
pub const CLEAR_TOOL_USES: &str = "clear_tool_uses_20250919";

/// What was cleared for a client that asked for it. Nothing, too, is said: the
/// API then gives an empty list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Calls of tools whose results do not stand in the view.
    pub cleared_tool_uses: u64,
    /// Tokens by which the view is smaller.
    pub cleared_input_tokens: u64,
}

impl Report {
    /// The change by which an object says so: where, and what stands there then.
    /// `kind` is what the object must call itself.
    pub(super) fn addition(self, json: &[u8], kind: &str) -> Option<(Range<usize>, String)> {
        let object = Object::read(json, "context_management").ok()??;
        if !says(object.kind?.of(json), kind) {
            return None;
        }
        let list = format!("[{}]", self.element());
        let whole = format!(r#"{{"applied_edits":{list}}}"#);
        let Some(management) = object.member else {
            return Some(object.end(&format!(r#""context_management":{whole}"#)));
        };
        let value = management.of(json);
        if value == b"null" {
            return Some((management.range(), whole));
        }
        let (range, text) = self.inside(value, &list)?;
        let start = management.start();
        Some((start + range.start..start + range.end, text))
    }

    /// The same in the value of `context_management`.
    fn inside(self, value: &[u8], list: &str) -> Option<(Range<usize>, String)> {
        let object = Object::read(value, "applied_edits").ok()??;
        let Some(edits) = object.member else {
            return Some(object.end(&format!(r#""applied_edits":{list}"#)));
        };
        match edits.of(value) {
            b"null" => Some((edits.range(), list.to_owned())),
            [b'[', others @ .., b']'] => {
                let end = edits.end() - 1;
                let is_empty = others.iter().all(u8::is_ascii_whitespace);
                let element = self.element();
                let comma = if is_empty || element.is_empty() {
                    ""
                } else {
                    ","
                };
                Some((end..end, format!("{comma}{element}")))
            }
            _ => None,
        }
    }

    /// What stands in the list.
    fn element(self) -> String {
        let Self {
            cleared_tool_uses: uses,
            cleared_input_tokens: tokens,
        } = self;
        if uses == 0 {
            return String::new();
        }
        format!(
            r#"{{"type":"{CLEAR_TOOL_USES}","cleared_tool_uses":{uses},"cleared_input_tokens":{tokens}}}"#
        )
    }
}

/// An object with a member that is of interest.
struct Object {
    kind: Option<Span>,
    member: Option<Span>,
    is_empty: bool,
    brace: usize,
}

impl Object {
    /// Reads an object; `None` if something in it stands twice.
    fn read(json: &[u8], member: &str) -> Result<Option<Self>, Unclear> {
        let mut object = Self {
            kind: None,
            member: None,
            is_empty: true,
            brace: 0,
        };
        let mut cursor = Cursor::new(json);
        let mut first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.key(&mut first)? {
            let value = cursor.value()?;
            object.is_empty = false;
            let name = key.name(json);
            let place = match &*name {
                b"type" => &mut object.kind,
                name if name == member.as_bytes() => &mut object.member,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Ok(None);
            }
        }
        object.brace = cursor.position().saturating_sub(1);
        cursor.finish()?;
        Ok(Some(object))
    }

    /// Puts a member at its end.
    fn end(&self, member: &str) -> (Range<usize>, String) {
        let comma = if self.is_empty { "" } else { "," };
        (self.brace..self.brace, format!("{comma}{member}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const REPORT: Report = Report {
        cleared_tool_uses: 4,
        cleared_input_tokens: 900,
    };

    fn added(report: Report, source: &str) -> Option<String> {
        let (range, text) = report.addition(source.as_bytes(), "message")?;
        let mut result = source.to_owned();
        result.replace_range(range, &text);
        Some(result)
    }

    #[test]
    fn it_is_said_beside_whatever_upstream_says() {
        let ours =
            json!({"type": CLEAR_TOOL_USES, "cleared_tool_uses": 4, "cleared_input_tokens": 900});
        let theirs = json!({"type": "clear_thinking_20251015"});
        let rows = [
            ("", vec![]),
            (r#","context_management":null"#, vec![]),
            (r#", "context_management" : { } "#, vec![]),
            (r#","context_management":{"applied_edits":null}"#, vec![]),
            (r#","context_management":{"applied_edits":[ ]}"#, vec![]),
            (
                r#","context_management":{"x":"}]","applied_edits":[{"type":"clear_thinking_20251015"}] }"#,
                vec![theirs],
            ),
        ];
        for (members, theirs) in rows {
            let source = format!(r#" {{"type":"message","content":["}}"]{members} }} "#);
            let expected = [theirs.clone(), vec![ours.clone()]].concat();
            let value: Value = serde_json::from_str(&added(REPORT, &source).unwrap()).unwrap();
            let said = &value["context_management"]["applied_edits"];
            assert_eq!(*said, Value::from(expected), "{source}");
            // Nothing is an answer, too.
            let nothing = added(Report::default(), &source).unwrap();
            let value: Value = serde_json::from_str(&nothing).unwrap();
            let said = &value["context_management"]["applied_edits"];
            assert_eq!(*said, Value::from(theirs), "{nothing}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_added_to() {
        for source in [
            "",
            "[]",
            "{}",
            r#"{"type":"error","error":{}}"#,
            r#"{"type":"message"} x"#,
            r#"{"type":"message""#,
            r#"{"type":"message","type":"message"}"#,
            r#"{"type":"message","context_management":5}"#,
            r#"{"type":"message","context_management":[]}"#,
            r#"{"type":"message","context_management":{"applied_edits":{}}}"#,
            r#"{"type":"message","context_management":{},"context_management":{}}"#,
            r#"{"type":"message","context_management":{"applied_edits":[],"applied_edits":[]}}"#,
        ] {
            assert_eq!(added(REPORT, source), None, "{source}");
        }
    }
}
