//! The texts that stand in a view for what it leaves out.
//!
//! Each is short, depends on nothing but what it stands for, and cannot be
//! mistaken for what it replaces: it names itself, says what was there and why
//! it went. Once an overlay holds one it is never written again, so the wording
//! here may change at any time without changing a view that exists.

use super::digest;
use super::ids::{BlobId, ChainHash, Reference};
use super::recall::telling::Telling;
use super::summary::segment;

/// How much of an error is kept: lines, and characters.
const ERROR: (usize, usize) = (3, 300);

/// How the text begins that stands for a result.
const CLEARED: &str = "[longhaul: the result of ";
/// What the notice says that stands where a part of a result was cut out.
const CUT_OUT: &str = " of this result were cut out here.";

/// Whether a JSON value that stands for a result is a part of it, and not a text
/// that says that it was cleared.
pub fn is_part(value: &str) -> bool {
    value.starts_with(['"', '[']) && !is_cleared(value) && value.contains(CUT_OUT)
}

/// Whether a JSON value is a text that says that a result was cleared.
pub fn is_cleared(value: &str) -> bool {
    let text = value.strip_prefix('"');
    text.is_some_and(|text| text.starts_with(CLEARED))
}

/// The name of a piece of content, within a tenant.
pub fn blob_id(tenant: ChainHash, content: &[u8]) -> BlobId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"longhaul blob 1\0");
    hasher.update(tenant.as_bytes());
    hasher.update(content);
    BlobId::from_bytes(hasher.finalize().into())
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The first lines of a result that tells of an error.
pub fn first_lines(payload: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    let blocks = value.as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block.get("text")?.as_str());
    let text = value.as_str().or_else(|| texts.next()).unwrap_or_default();
    let (lines, chars) = ERROR;
    let lines: Vec<&str> = text.trim().lines().take(lines).collect();
    lines.join("\n").chars().take(chars).collect()
}

/// Something that gave way.
#[derive(Debug, Clone, Copy)]
pub struct Cleared<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What it was asked for, in short; may be empty.
    pub subject: &'a str,
    /// Bytes that were there.
    pub bytes: usize,
    /// Why it went.
    pub why: &'a str,
    /// How it began, if that must not be lost.
    pub beginning: &'a str,
    /// Lines of it that stay; may be empty.
    pub digest: &'a str,
    /// The reference, if the content is kept, and how that is told.
    pub archived: Option<(Reference, &'a Telling)>,
}

impl Cleared<'_> {
    fn what(&self) -> String {
        let tool: String = self.tool.chars().take(64).collect();
        match self.subject {
            "" => tool,
            subject => format!("{tool} {subject}"),
        }
    }

    fn kept(&self) -> String {
        self.archived
            .map_or_else(String::new, |(reference, telling)| {
                format!("; {}", telling.of_one(reference))
            })
    }

    /// What stands for a result, as a JSON string.
    pub fn result(&self) -> String {
        let beginning = match self.beginning {
            "" => String::new(),
            text => format!("; it began: {text}"),
        };
        let (what, bytes, why, kept) = (self.what(), self.bytes, self.why, self.kept());
        let lines = lines("; s", self.digest);
        quoted(&format!(
            "{CLEARED}{what} ({bytes} bytes) was cleared: {why}{kept}{beginning}{lines}]"
        ))
    }

    /// What stands for the input of a call, as a JSON object.
    pub fn input(&self) -> String {
        let (what, bytes, kept) = (self.what(), self.bytes, self.kept());
        let lines = lines("; s", self.digest);
        let text = format!("[the input of {what} ({bytes} bytes) was cleared{kept}{lines}]");
        format!(r#"{{"longhaul":{}}}"#, quoted(&text))
    }
}

/// The lines that stay, quoted, with a few words before them.
fn lines(begin: &str, digest: &str) -> String {
    match digest {
        "" => String::new(),
        text => format!("{begin}{}{}", digest::LINES, digest::quoted(text)),
    }
}

/// What stands where the middle of a result was cut out, as plain text. `digest`
/// are lines of it that stay; may be empty.
pub fn trimmed(
    chars: usize,
    cut_lines: usize,
    digest: &str,
    archived: Option<(Reference, &Telling)>,
) -> String {
    let kept = archived.map_or_else(String::new, |(reference, telling)| {
        format!(" The whole is {}.", telling.of_one(reference))
    });
    let lines = lines(" S", digest);
    format!(
        "[longhaul: {chars} characters ({cut_lines} lines){CUT_OUT}{kept} Ask for a smaller part if \
         you need what is missing.{lines}]"
    )
}

/// What stands for messages that were left out, as a text block. Numbers count
/// from one, as a person would. `pinned` is what code has copied out of them; may
/// be empty.
pub fn truncated(
    from: u32,
    to: u32,
    archived: Option<(Reference, &Telling)>,
    pinned: &str,
) -> String {
    let kept = archived.map_or_else(String::new, |(reference, telling)| {
        format!(" {}", telling.of_messages(reference))
    });
    let text = format!(
        "[longhaul: messages {} to {to} of this conversation are left out here because it no \
         longer fits the context window, and no summary of them could be made.{kept} Do not \
         assume what they said: look again at files and state before relying on them, and ask the \
         user if something essential is missing.]",
        from + 1
    );
    with_pinned(text, pinned)
}

/// What stands for messages that only the journal shows, where that is the usual
/// way; as a text block, numbers and `pinned` as above.
pub fn journaled(
    from: u32,
    to: u32,
    (reference, telling): (Reference, &Telling),
    pinned: &str,
) -> String {
    let kept = telling.of_messages(reference);
    let text = format!(
        "[longhaul: messages {} to {to} of this conversation are not shown; its journal has them \
         word for word. {kept} Nothing of them is summed up here: before relying on what they \
         said, look again at files and state, or at the messages themselves.]",
        from + 1
    );
    with_pinned(text, pinned)
}

/// A notice and what was copied out of what it stands for, as a text block.
fn with_pinned(mut text: String, pinned: &str) -> String {
    let pinned = segment::pinned(pinned);
    if !pinned.is_empty() {
        text.push('\n');
        text.push_str(pinned.trim_end());
    }
    format!(r#"{{"type":"text","text":{}}}"#, quoted(&text))
}

/// What the assistant says between the head and the segments.
pub const BEFORE: &str = r#"{"role":"assistant","content":"Understood. What follows stands for the earlier part of this conversation."}"#;
/// What the assistant says between the segments and a tail that the user begins.
pub const AFTER: &str =
    r#"{"role":"assistant","content":"Noted. I continue from the messages that follow."}"#;
/// What stands in a message that held nothing but thinking.
pub const EMPTIED: &str = r#"{"type":"text","text":"[longhaul: thinking left out]"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> ChainHash {
        crate::engine::chain::start(name)
    }

    #[test]
    fn a_piece_of_content_has_one_name_in_a_tenant() {
        let of = |name: &str, content: &[u8]| blob_id(tenant(name), content);
        assert_eq!(of("a", b"x"), of("a", b"x"));
        assert_ne!(of("a", b"x"), of("b", b"x"));
        assert_ne!(of("a", b"x"), of("a", b"y"));
    }

    #[test]
    fn every_text_is_json_whatever_a_tool_is_called() {
        let kept = (Reference::from_bytes([7; 10]), &Telling::Archived);
        for tool in ["Bash", "a\"b\\c\n\u{1}é", ""] {
            let stub = Cleared {
                tool,
                subject: tool,
                bytes: 5,
                why: "x",
                beginning: tool,
                digest: tool,
                archived: Some(kept),
            };
            let text: String = serde_json::from_str(&stub.result()).unwrap();
            assert!(text.starts_with("[longhaul: ") && text.contains("5 bytes"));
            let input: serde_json::Value = serde_json::from_str(&stub.input()).unwrap();
            assert!(input.is_object());
        }
        let pinned = truncated(1, 9, Some(kept), "\"quoted\"\n");
        let journal = journaled(1, 9, kept, "\"quoted\"\n");
        for block in [&*pinned, &*journal, EMPTIED, BEFORE, AFTER] {
            assert!(serde_json::from_str::<serde_json::Value>(block).is_ok());
        }
        for notice in [pinned, journal] {
            assert!(notice.contains("messages 2 to 9"));
            assert!(notice.ends_with(r#"summed up:]\n\"quoted\""}"#));
        }
    }

    #[test]
    fn a_notice_without_pinned_text_says_nothing_of_it() {
        assert!(truncated(1, 9, None, " \n").ends_with("is missing.]\"}"));
    }
}
