//! A request for the API's own summary of the beginning of a conversation.
//!
//! The messages up to some place, byte for byte, with system, tools and thinking
//! as they are: what the API signs must be what it has seen. What the client asks
//! for as context management does not go with it, because the API takes only one
//! of the two; nor do its `safeguards`, which are about its own agent.

use bytes::Bytes;
use serde_json::json;

use super::body::Body;
use super::scan::says;
use super::splice::{Splice, joined, splice};

/// The name under which the API offers it; it must be announced with every
/// request that carries such a summary.
pub const BETA: &str = "compact-2026-09-04";

/// Asks for a summary of the first messages; `None` if there are not that many
/// and more, or if the request is no ordinary one.
pub fn native(bytes: &Bytes, body: &Body, messages: usize, instructions: &str) -> Option<Bytes> {
    let all = body.messages();
    let last = all.get(messages.checked_sub(1)?)?;
    let end = all.get(messages..)?.last()?;
    let asked = json!({"type": "summarize", "instructions": instructions});
    let first = body.fields().first()?;
    let mut changes = vec![
        Splice::remove(last.span.end()..end.span.end()),
        Splice::insert(first.key.start(), format!(r#""compaction":{asked},"#)),
    ];
    for field in body.fields() {
        let key = field.key.of(bytes);
        if says(key, "context_management") || says(key, "safeguards") {
            changes.push(Splice::remove(field.cut.range()));
        } else if says(key, "stream") {
            changes.push(Splice::replace(field.value.range(), "false"));
        } else if says(key, "compaction") || says(key, "thread") {
            return None;
        }
    }
    splice(bytes, changes).ok().map(|pieces| joined(&pieces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_first_messages_go_as_they_are_and_what_does_not_agree_is_left_out() {
        let source = r#"{"model":"m","context_management":{"edits":[]},"messages":[ {"role":"user","content":"\u00e9"}, {"role":"assistant","content":"b"},{"role":"user","content":"c"} ],"stream":true,"tools":[],"safeguards":{"mode":"auto"}}"#;
        let bytes = Bytes::from(source);
        let body = Body::split(&bytes).unwrap();
        let asked = native(&bytes, &body, 2, "keep \"all\"").unwrap();
        let text = String::from_utf8(asked.to_vec()).unwrap();
        assert!(text.contains(
            r#"[ {"role":"user","content":"\u00e9"}, {"role":"assistant","content":"b"} ]"#
        ));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["compaction"]["instructions"], "keep \"all\"");
        assert_eq!(value["stream"], false);
        assert_eq!(value.get("context_management"), None);
        assert_eq!(value.get("safeguards"), None);
        assert_eq!(value["tools"], serde_json::json!([]));
    }

    #[test]
    fn something_must_come_and_something_must_stay() {
        let bytes = Bytes::from(r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#);
        let body = Body::split(&bytes).unwrap();
        for messages in [0, 1, 2] {
            assert_eq!(native(&bytes, &body, messages, ""), None);
        }
    }
}
