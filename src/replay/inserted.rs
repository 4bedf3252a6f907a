//! What a pass has put into a view: stubs, segments, what stands around them.
//!
//! Names alone prove little: a bag of the rarest names of everything that went
//! recovers most names that are needed later, and no model could work with it.
//! So a name counts as recovered in its line only if the text that was put in
//! shows it with what stood beside it in the line it comes from, and says where
//! that is: in a stub, which stands behind the call that it belongs to, or in an
//! entry of a segment (lines without an empty one between them) that names a path
//! or a reference. Two bags of names as long as that text are filled beside it,
//! to see what word soup would score by names alone.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::assignments::{Assignment, assignments};
use super::index::{Index, Place, is_any_shown};
use super::lines::{LineKey, forms, is_weighty, key, readable, unnumbered};
use super::probes::{gather, is_path};
use super::tokens::tokens;
use crate::engine::overlay::{Change, Overlay};
use crate::engine::recall::reference::written;

/// How much of a line must stand around a name, unless it is the whole line.
const AROUND: usize = 20;
/// A name that stood alone on its line counts beside so many others at most: a
/// list of names says nothing of one of them.
const COMPANY: usize = 4;
/// The most lines, and occurrences in a view, that are looked at for one name.
const LOOKS: usize = 200;

/// What is put in.
#[derive(Default)]
pub struct Inserted {
    /// All of it.
    text: String,
    /// Entries that say where they come from, and where in the text each is.
    tokens: HashMap<String, Vec<Occurrence>>,
    lines: HashSet<LineKey>,
    assigned: HashSet<Assignment>,
    bags: (HashSet<String>, HashSet<String>),
}

/// A word in the text.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    at: usize,
    /// It says where it comes from.
    is_placed: bool,
    /// It stands among many others.
    is_crowded: bool,
}

/// Whether a bag of names of the same length would have had something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bags {
    /// The rarest names.
    pub rarest: bool,
    /// Any names.
    pub random: bool,
}

impl Inserted {
    /// What an overlay puts in, and what bags of names would be instead.
    pub fn new(overlay: &Overlay, index: &Index) -> Self {
        let mut inserted = Self::default();
        for (is_stub, json) in pieces(overlay) {
            inserted.add(is_stub, json);
        }
        inserted.bags = bags(index, overlay, inserted.text.len());
        inserted
    }

    fn add(&mut self, is_stub: bool, json: &str) {
        let value: Value = serde_json::from_str(json).unwrap_or_default();
        let mut words = Vec::new();
        gather(Some(&value), &mut words);
        for word in words {
            let text = readable(word);
            for entry in text.split("\n\n") {
                self.add_entry(is_stub, entry);
            }
        }
    }

    fn add_entry(&mut self, is_stub: bool, entry: &str) {
        let has_reference = is_stub || written(entry).next().is_some();
        let paths: HashSet<&str> = tokens(entry).filter(|it| is_path(it)).collect();
        for line in entry.lines() {
            let is_crowded = tokens(line).nth(COMPANY).is_some();
            for token in tokens(line) {
                // A path says where the others come from, not where it does.
                let others = paths.len() - usize::from(paths.contains(token));
                let is_placed = has_reference || others > 0;
                let at = offset(entry, token) + self.text.len();
                let known = self.tokens.entry(token.to_owned()).or_default();
                known.push(Occurrence {
                    at,
                    is_placed,
                    is_crowded,
                });
            }
            if is_weighty(line) {
                self.lines.extend(forms(line).map(key));
                self.assigned.extend(forms(line).flat_map(assignments));
            }
        }
        self.text.push_str(entry);
        self.text.push_str("\n\n");
    }

    /// Whether it has a text, word for word.
    pub fn has_text(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Whether it has a word.
    pub fn has(&self, token: &str) -> bool {
        self.tokens.contains_key(token)
    }

    /// Whether it has a line.
    pub fn has_line(&self, line: &str) -> bool {
        self.lines.contains(&key(line))
    }

    /// Whether it says that a name has a value.
    pub fn has_value(&self, assignment: &Assignment) -> bool {
        self.assigned.contains(assignment)
    }

    /// Whether it shows a word within its line, and says where that comes from.
    pub fn has_in_line(&self, token: &str, index: &Index, places: &[Place]) -> bool {
        let found = self.tokens.get(token).into_iter().flatten();
        let found: Vec<&Occurrence> = found.filter(|it| it.is_placed).take(LOOKS).collect();
        if found.is_empty() {
            return false;
        }
        let texts = places.iter().rev().map(|place| index.text(*place));
        let lines = texts.flat_map(str::lines).map(unnumbered);
        let mut lines = lines.filter(|line| line.contains(token)).take(LOOKS);
        lines.any(|line| {
            let line = line.trim();
            let ats = line.match_indices(token).take(LOOKS).map(|(at, _)| at);
            let mut pairs = ats.flat_map(|at| found.iter().map(move |in_view| (at, in_view)));
            pairs.any(|(at, in_view)| {
                let is_in_line = is_in_line(line, at, &self.text, in_view.at, token.len());
                is_in_line && (line.len() > token.len() || !in_view.is_crowded)
            })
        })
    }

    /// Whether bags of names as long as this would have a word.
    pub fn bags_have(&self, token: &str) -> Bags {
        Bags {
            rarest: self.bags.0.contains(token),
            random: self.bags.1.contains(token),
        }
    }
}

/// Where in a text a part of it begins.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

/// Whether a text shows enough of a line around a word that stands in both.
fn is_in_line(line: &str, at: usize, text: &str, in_view: usize, length: usize) -> bool {
    let (line, text) = (line.as_bytes(), text.as_bytes());
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let (line_before, line_behind) = around(line, at, length);
    let (before, behind) = around(text, in_view, length);
    let left = line_before.iter().rev().zip(before.iter().rev());
    let left = left.take_while(same).count();
    let right = line_behind.iter().zip(behind).take_while(same).count();
    let is_whole = left == at && at + length + right == line.len();
    is_whole || left + right >= AROUND
}

/// What stands before a word and behind it.
fn around(text: &[u8], at: usize, length: usize) -> (&[u8], &[u8]) {
    let before = text.get(..at).unwrap_or_default();
    (before, text.get(at + length..).unwrap_or_default())
}

/// What an overlay puts in, as JSON; the first says that it stands for a block.
fn pieces(overlay: &Overlay) -> impl Iterator<Item = (bool, &str)> {
    let segments = overlay.segments.iter().map(|segment| &segment.block);
    let around = overlay.native.iter().chain(&overlay.before);
    let around = around.chain(segments).chain(&overlay.after);
    let edits = overlay.edits.iter().filter_map(|edit| match &edit.change {
        Change::Payload(json) | Change::Block(json) => Some((true, json.as_str())),
        Change::Append(json) => Some((false, json.as_str())),
        Change::Gone => None,
    });
    around.map(|json| (false, json.as_str())).chain(edits)
}

/// The rarest names of what is not shown, and any of them: as many as there is
/// room for in a text of this length.
fn bags(index: &Index, overlay: &Overlay, room: usize) -> (HashSet<String>, HashSet<String>) {
    let hidden = index
        .all()
        .filter(|(_, places)| !is_any_shown(overlay, *places));
    let mut hidden: Vec<(usize, LineKey, &str)> = hidden
        .map(|(token, places)| (places.len(), key(token), token))
        .collect();
    hidden.sort_unstable();
    let rarest = filled(hidden.iter().map(|(.., token)| *token), room);
    hidden.sort_unstable_by_key(|(_, chance, _)| *chance);
    let random = filled(hidden.iter().map(|(.., token)| *token), room);
    (rarest, random)
}

fn filled<'a>(tokens: impl Iterator<Item = &'a str>, room: usize) -> HashSet<String> {
    let mut length = 0;
    let fitting = tokens.take_while(|token| {
        length += token.len() + 1;
        length <= room
    });
    fitting.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Edit, Origin, Segment};
    use serde_json::json;

    const LINE: &str = "pub fn open_store(path: &Path) -> Result<Store, StoreError> {";

    /// A history whose second message read a file.
    fn index() -> Index {
        let mut index = Index::default();
        let text = format!("   41→use x;\n   42→{LINE}\n   43→}}\nmax_wait = 4711\n8443");
        index.add((2, 0), &json!({"type": "tool_result", "content": text}));
        let more: Vec<String> = (0..200).map(|at| format!("other_name_{at:03}")).collect();
        let text = more.join("\n");
        for at in 3..6 {
            index.add((at, 0), &json!({"type": "tool_result", "content": text}));
        }
        index
    }

    fn stub(text: &str) -> Overlay {
        Overlay {
            made_at: 9,
            edits: (2..6)
                .map(|message| Edit {
                    message,
                    block: 0,
                    change: Change::Payload(
                        json!(if message == 2 { text } else { "" }).to_string(),
                    ),
                })
                .collect(),
            ..Overlay::default()
        }
    }

    fn segment(text: &str) -> Overlay {
        Overlay {
            made_at: 9,
            head: 1,
            cut: 7,
            segments: vec![Segment {
                block: json!({"type": "text", "text": text}).to_string(),
                from: 1,
                to: 7,
                origin: Origin::Summary,
                pinned: 0,
            }],
            ..Overlay::default()
        }
    }

    #[test]
    fn a_name_counts_in_its_line_and_with_its_origin_and_word_soup_does_not() {
        let soup = "open_store StoreError other_name_001 8443 max_wait 4711 /w/store.rs";
        let rows = [
            // In a stub the call above it says where it comes from.
            (stub(&format!("[cleared]\n| 42: {LINE}")), true, true),
            (
                stub("[cleared]\n| pub fn open_store(path: &Path) ->"),
                true,
                true,
            ),
            (stub("[cleared] fn open_store(path"), true, false),
            (stub(soup), true, false),
            (stub("[cleared]"), false, false),
            // In a segment the entry must say so.
            (segment(&format!("/w/store.rs:\n| 42: {LINE}")), true, true),
            (
                segment(&format!("/w/store.rs\n\n| 42: {LINE}")),
                true,
                false,
            ),
            (segment(&format!("Some lines:\n| {LINE}")), true, false),
            (segment(soup), true, false),
        ];
        for (overlay, named, in_line) in rows {
            let index = index();
            let inserted = Inserted::new(&overlay, &index);
            assert_eq!(inserted.has("open_store"), named, "{}", inserted.text);
            let found = inserted.has_in_line("open_store", &index, &[(2, 0)]);
            assert_eq!(found, in_line, "{}", inserted.text);
        }
    }

    #[test]
    fn a_whole_line_counts_however_short_it_is() {
        let index = index();
        for (text, token, expected) in [
            ("max_wait = 4711", "max_wait", true),
            ("max_wait = 9999", "max_wait", false),
            // Alone on its line, and then among many.
            ("[cleared: Read /w/store.rs]\n8443", "8443", true),
            ("a_name b_name c_name 8443 d_name", "8443", false),
        ] {
            let inserted = Inserted::new(&stub(text), &index);
            let found = inserted.has_in_line(token, &index, &[(2, 0)]);
            assert_eq!(found, expected, "{text}");
        }
    }

    /// The text has one needed name in its line; a bag of the same length has more
    /// of them by name, the rarest first.
    #[test]
    fn bags_as_long_as_the_text_have_more_names() {
        let (index, overlay) = (index(), stub(&format!("| 42: {LINE}")));
        let inserted = Inserted::new(&overlay, &index);
        let needed = ["open_store", "StoreError", "max_wait", "4711", "8443"];
        let count = |of: &dyn Fn(&str) -> bool| needed.iter().filter(|it| of(it)).count();
        let rarest = count(&|token| inserted.bags_have(token).rarest);
        assert_eq!(rarest, needed.len());
        assert!(count(&|token| inserted.bags_have(token).random) < rarest);
        assert_eq!(count(&|token| inserted.has(token)), 2);
        let lines = count(&|token| inserted.has_in_line(token, &index, &[(2, 0)]));
        assert_eq!(lines, 2);
    }
}
