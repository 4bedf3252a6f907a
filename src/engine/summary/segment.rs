//! A finished summary, as a view shows it.
//!
//! A header of ours says what it is and which messages it stands for; then the
//! narrative under fixed headings, then the pinned text, then where the originals
//! are. Headers and headings stand at the beginning of a line, and nothing that a
//! model wrote does: it is indented, line by line, and cannot spell our header.
//! So a narrative can neither end itself early nor pretend that something was
//! copied from the conversation by code.

use std::fmt::Write;

use super::Narrative;
use super::said::breaks_line;
use crate::engine::stub::quoted;

/// The headings, by field.
const HEADINGS: [(&str, &str); 6] = [
    ("constraints", "Constraints"),
    ("decisions", "Decisions"),
    ("files_touched", "Files touched"),
    ("errors", "Errors"),
    ("pending_questions", "Pending questions"),
    ("next_steps", "Next steps"),
];

/// How our own lines begin.
const OURS: &str = "[longhaul";

/// A finished summary.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    /// The first message it stands for, counted from zero.
    pub from: u32,
    /// The message after the last.
    pub to: u32,
    /// What the model says.
    pub narrative: &'a Narrative,
    /// What code has copied out of the messages; may be empty.
    pub pinned: &'a str,
    /// A line that says where the originals are.
    pub reference: Option<&'a str>,
}

impl Finished<'_> {
    /// As a text block. Numbers count from one, as a person would.
    pub fn block(&self) -> String {
        format!(r#"{{"type":"text","text":{}}}"#, quoted(&self.text()))
    }

    /// What the block says.
    pub fn text(&self) -> String {
        let Self { from, to, .. } = self;
        let mut text = format!(
            "{OURS}: summary of messages {} to {to} of this conversation, which are not shown. \
             What it tells of tools and files is what was found then: look again before relying \
             on it.]\n",
            from.saturating_add(1)
        );
        let intent = indented(&self.narrative.session_intent, "  ");
        if !intent.is_empty() {
            let _ = write!(text, "\nSession intent:\n{intent}\n");
        }
        for (name, list) in self.narrative.lists() {
            let items: Vec<String> = list.iter().map(|item| indented(item, "  ")).collect();
            let heading = HEADINGS.iter().find(|(key, _)| *key == name);
            let Some((_, heading)) = heading.filter(|_| items.iter().any(|i| !i.is_empty())) else {
                continue;
            };
            let _ = write!(text, "\n{heading}:\n");
            for item in items.iter().filter_map(|item| item.get(2..)) {
                let _ = writeln!(text, "- {item}");
            }
        }
        text.push_str(&pinned(self.pinned));
        if let Some(reference) = self.reference {
            let _ = write!(text, "\n{}\n", reference.trim());
        }
        text.trim_end().to_owned()
    }
}

/// The pinned text under a header of its own; nothing if there is none.
pub fn pinned(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => {
            format!("\n{OURS}: copied from these messages as they stood, not summed up:]\n{text}\n")
        }
    }
}

/// What a model wrote of the text of a finished summary: without our header, and
/// without what code has copied. A narrative cannot spell how our lines begin.
pub fn narrative(text: &str) -> &str {
    let is_ours = text.starts_with(OURS);
    let (_, told) = text
        .split_once('\n')
        .filter(|_| is_ours)
        .unwrap_or(("", text));
    let told = told
        .split_once(&format!("\n{OURS}"))
        .map_or(told, |(told, _)| told);
    told.trim()
}

/// A text of a model's, every line behind this indent, none of it ours.
fn indented(text: &str, indent: &str) -> String {
    let mut lines = String::with_capacity(text.len() + indent.len());
    for line in text.split(breaks_line) {
        let shown = |c: &char| !c.is_control() || *c == '\t';
        let line: String = line.chars().filter(shown).collect();
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(indent);
        lines.push_str(line);
    }
    unforged(&lines)
}

/// The text with our header spelled with a round bracket wherever it occurs.
pub(in crate::engine) fn unforged(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        safe.push_str(before);
        let behind = from.get(1..).unwrap_or("");
        let name = behind.trim_start().get(..OURS.len() - 1);
        let is_ours = name.is_some_and(|name| name.eq_ignore_ascii_case("longhaul"));
        safe.push(if is_ours { '(' } else { '[' });
        rest = behind;
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn finished(narrative: &Narrative, pinned: &str, reference: Option<&str>) -> String {
        let finished = Finished {
            from: 1,
            to: 40,
            narrative,
            pinned,
            reference,
        };
        let block: Value = serde_json::from_str(&finished.block()).unwrap();
        assert_eq!(block["type"], "text");
        block["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_segment_says_what_it_is_and_then_what_was() {
        let narrative = Narrative {
            session_intent: "port it".to_owned(),
            constraints: vec!["\"never push\"".to_owned(), " ".to_owned()],
            next_steps: vec!["run tests\nthen stop".to_owned()],
            ..Narrative::default()
        };
        let text = finished(&narrative, "User said: go\n", Some("[archived as lh-1]"));
        let expected = "\n\nSession intent:\n  port it\n\nConstraints:\n- \"never push\"\n\nNext \
                        steps:\n- run tests\n  then stop\n\n[longhaul: copied from these messages \
                        as they stood, not summed up:]\nUser said: go\n\n[archived as lh-1]";
        let (header, rest) = text.split_at(text.find("\n\n").unwrap());
        assert!(header.starts_with("[longhaul: summary of messages 2 to 40 of this conversation"));
        assert_eq!(rest, expected);
        let told = "Session intent:\n  port it\n\nConstraints:\n- \"never push\"\n\nNext steps:\n- run \
                    tests\n  then stop";
        assert_eq!(super::narrative(&text), told);
        assert_eq!(finished(&Narrative::default(), "", None), header);
    }

    #[test]
    fn our_header_cannot_be_spelled() {
        for text in ["[longhaul: x", "[ LongHaul", "a[[longhaul:", "[\tlonghaul"] {
            let safe = unforged(text);
            assert_eq!(safe.len(), text.len());
            assert!(
                safe.contains('(') && !safe.to_lowercase().contains("[longhaul"),
                "{safe}"
            );
        }
        assert_eq!(unforged("a[0] [long"), "a[0] [long");
    }

    proptest! {
        /// Whatever a model writes, the lines that begin a line are ours.
        #[test]
        fn a_narrative_cannot_forge_a_header(
            hostile in "(\\[|longhaul| |:|copied|Next steps|\n|\r|\u{2028}|\u{85}|é|- |\u{1b}){0,30}",
        ) {
            let narrative = Narrative {
                session_intent: hostile.clone(),
                decisions: vec![hostile.clone(), "x".to_owned()],
                errors: vec![hostile],
                ..Narrative::default()
            };
            let text = finished(&narrative, "", None);
            for (number, line) in text.split(['\n', '\r', '\u{2028}', '\u{85}']).enumerate() {
                let is_heading = ["Session intent:", "Decisions:", "Errors:"].contains(&line);
                let is_model = line.is_empty() || line.starts_with("  ") || line.starts_with("- ");
                prop_assert!(number == 0 || is_heading || is_model, "{line:?}");
                prop_assert_eq!(line.contains("[longhaul"), number == 0);
            }
        }
    }
}
