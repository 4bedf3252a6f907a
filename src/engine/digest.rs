//! Digests: the lines of a tool result that are most likely to be needed again,
//! word for word, chosen by code.
//!
//! A view that shows nothing of what it leaves out makes the agent fetch it again
//! or guess. Names alone are not enough: what helps is the line that they stand
//! in. So a digest is a choice of lines in their order, each a piece of the
//! result as it stood, found without a parser and without a model: lines that
//! define something, that tell of a failure, that hold rare names, paths, numbers
//! and addresses (`digest/marks.rs`, `digest/words.rs`).
//!
//! The same bytes give the same digest, it never takes more room than it is
//! given nor more than what it stands for, and the work grows with the room and
//! at most linearly with the text. It is quoted where it is shown, every line
//! behind a mark, so nothing in it can end the quotation (`pinned/quote.rs`).

mod lines;
mod listing;
mod marks;
mod room;
mod words;
mod written;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::acts::{Act, Part};
use super::pinned::quote::{DATA, quote};
use lines::Piece;
use words::Table;

#[cfg(test)]
pub(in crate::engine) use room::held_by_stubs;
pub use room::{BOUND, Size, TOKEN, Want, in_segment, share};
pub(in crate::engine) use room::{
    HEADING, LINES, all_in_segment, held_by_segments, without_digest,
};
pub(in crate::engine) use words::specific;
pub use written::written;

/// With less room than this nothing is said.
const LEAST: usize = 24;
/// Bytes that are looked at for each byte of room, at the most.
const LOOK: usize = 48;
/// Bytes that are looked at in any case.
const LOOK_AT_LEAST: usize = 16 * 1024;
/// What a line takes besides its text: its mark and its end, as JSON.
const LINE: usize = DATA.len() + 2;
/// Steps of worth by which lines are told apart.
const STEPS: usize = 512;
/// Steps for a worth of one for each byte.
const FINE: usize = 24;
/// Bytes that every line costs besides its own: its mark and its end, and that a
/// line says more than the words in it.
const SHORT: usize = 24;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What a file holds, from a line on where that is known.
    File {
        /// The number of its first line.
        first: Option<u64>,
    },
    /// What was written into a file.
    Written,
    /// What was found.
    Found,
    /// What a command printed.
    Output,
    /// Anything else.
    Other,
}

impl Kind {
    /// What the result of a call is.
    pub fn of_result(act: &Act) -> Self {
        if let Some(reading) = act.reading() {
            let first = match reading.part {
                Part::Whole => Some(1),
                Part::Lines(from, _) => Some(from.max(1)),
                Part::Tail(_) | Part::Other(_) => None,
            };
            return Self::File { first };
        }
        match act {
            Act::Asks(_) => Self::Found,
            Act::Runs(_) => Self::Output,
            _ => Self::Other,
        }
    }
}

/// Lines that are shown already, and need not be shown again.
#[derive(Debug, Clone, Default)]
pub struct Shown(HashSet<u64>);

impl Shown {
    /// Short lines may stand anywhere and mean something else each time.
    const SHORT: usize = 12;

    /// The lines of digests that stand in these texts of ours, each as JSON.
    pub(in crate::engine) fn in_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut shown = Self::default();
        for text in texts.filter(|text| text.contains(DATA)) {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let text = value.as_str().or_else(|| value.get("text")?.as_str());
            let lines = text.unwrap_or_default().lines();
            for line in lines.filter_map(|line| line.strip_prefix(DATA)) {
                shown.add(line);
            }
        }
        shown
    }

    /// Notes a line; whether it is new.
    fn add(&mut self, line: &str) -> bool {
        let line = lines::unnumbered(line).trim();
        if line.len() < Self::SHORT {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        self.0.insert(hasher.finish())
    }
}

/// The lines of a text that are kept of it, one below the other, such that they
/// can be quoted in `room` bytes; empty if there is no room, or nothing to keep.
pub fn digest(kind: Kind, text: &str, room: usize, shown: &mut Shown) -> String {
    let room = room.min(text.len());
    if room < LEAST {
        return String::new();
    }
    let look = room.saturating_mul(LOOK).max(LOOK_AT_LEAST);
    let folded = folded(kind, text, look);
    let mut pieces = lines::pieces(folded.as_deref().unwrap_or(text), look);
    let numbers = lines::numbering(kind, &pieces);
    for piece in &mut pieces {
        piece.numbered = numbers.is_some();
    }
    let worths = worths(kind, &pieces);
    let order = best_first(&worths);
    let chosen = choose(&pieces, &order, room, shown);
    let mut digest = String::with_capacity(room);
    for piece in chosen.into_iter().filter_map(|at| pieces.get(at)) {
        if !digest.is_empty() {
            digest.push('\n');
        }
        piece.write(&mut digest, numbers);
    }
    digest
}

/// A list of paths as it is shown, if it is one.
fn folded(kind: Kind, text: &str, look: usize) -> Option<String> {
    let lists = matches!(kind, Kind::Found | Kind::Output | Kind::Other);
    let folded = || listing::folded(text, look);
    lists.then(folded).flatten()
}

/// A digest as it is shown: every line behind the mark of quoted data.
pub(in crate::engine) fn quoted(digest: &str) -> String {
    let mut text = String::with_capacity(digest.len() + digest.len() / 8);
    for line in digest.lines() {
        quote(&mut text, DATA, line);
    }
    text
}

/// What each piece is worth for each byte, in steps.
fn worths(kind: Kind, pieces: &[Piece<'_>]) -> Vec<usize> {
    let bytes = pieces.iter().map(|piece| piece.text.len()).sum();
    let mut table = Table::new(bytes);
    for piece in pieces {
        table.note(lines::unnumbered(piece.text));
    }
    let worth = |piece: &Piece<'_>| {
        let words = table.worth(kind, lines::unnumbered(piece.text));
        let worth = words + marks::worth(kind, piece.text);
        let steps = worth as usize * FINE / (piece.text.len() + SHORT);
        steps.min(STEPS - 1)
    };
    pieces.iter().map(worth).collect()
}

/// The pieces that are worth something, best first, else in order of place: a
/// count for each step, because there are few of them.
fn best_first(worths: &[usize]) -> Vec<usize> {
    let mut steps: Vec<Vec<usize>> = vec![Vec::new(); STEPS];
    for (at, worth) in worths.iter().enumerate().filter(|(_, worth)| **worth > 0) {
        if let Some(step) = steps.get_mut(*worth) {
            step.push(at);
        }
    }
    steps.into_iter().rev().flatten().collect()
}

/// The pieces that have room, in order of place.
fn choose(pieces: &[Piece<'_>], order: &[usize], room: usize, shown: &mut Shown) -> Vec<usize> {
    let mut left = room;
    let mut chosen = Vec::new();
    for at in order {
        if left < LEAST {
            break;
        }
        let Some(piece) = pieces.get(*at) else {
            continue;
        };
        let takes = piece.takes() + LINE;
        if takes > left || !shown.add(piece.text) {
            continue;
        }
        left -= takes;
        chosen.push(*at);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
