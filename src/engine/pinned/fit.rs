//! Parts of a text, made to fit.
//!
//! First each part gets up to its share, its most important pieces first; then
//! what is left over goes round in the order of the parts. A piece that is longer
//! than what a part has keeps its beginning and its end, but only where the part
//! would say nothing otherwise: else it is left out, and counted.

use std::fmt::Write;

use super::quote::{self, Clipped};

/// Bytes of the line that says how much had no room, at most.
const NOTICE: usize = 80;

/// Something that is quoted.
pub(in crate::engine) struct Piece {
    /// Where it stands among the others of its part.
    pub(in crate::engine) place: usize,
    /// A line of ours above it; may be empty.
    pub(in crate::engine) heading: String,
    /// What begins each of its lines.
    pub(in crate::engine) mark: &'static str,
    /// What is quoted.
    pub(in crate::engine) text: String,
}

/// A part of the text.
pub(in crate::engine) struct Part {
    heading: &'static str,
    /// What its pieces are called.
    pieces_are: &'static str,
    /// Its share, in percent.
    share: usize,
    /// Its pieces, the most important first, and what is shown of each.
    pieces: Vec<(Piece, Option<Clipped>)>,
}

impl Piece {
    /// As much as has room.
    fn clipped(&self, room: usize) -> Option<Clipped> {
        Clipped::new(self.mark, &self.text, room.checked_sub(self.heading.len())?)
    }

    /// Bytes to show all of it.
    fn length(&self) -> usize {
        self.heading.len() + quote::length(self.mark, &self.text)
    }

    /// Bytes to show this of it.
    fn taken(&self, shown: Option<&Clipped>) -> usize {
        shown.map_or(0, |shown| self.heading.len() + shown.length(self.mark))
    }
}

impl Part {
    pub(in crate::engine) fn new(
        heading: &'static str,
        pieces_are: &'static str,
        share: usize,
        pieces: Vec<Piece>,
    ) -> Self {
        Self {
            heading,
            pieces_are,
            share,
            pieces: pieces.into_iter().map(|piece| (piece, None)).collect(),
        }
    }

    /// Shows as much as has room, and says how much room that took.
    fn fill(&mut self, room: usize) -> usize {
        let mut left = room;
        let mut says_something = self.pieces.iter().any(|(_, shown)| shown.is_some());
        for (piece, shown) in &mut self.pieces {
            let before = piece.taken(shown.as_ref());
            let has = left + before;
            // What was cut short may now have more.
            if before == piece.length() || (before == 0 && says_something && piece.length() > has) {
                continue;
            }
            if let Some(more) = piece.clipped(has) {
                left = has.saturating_sub(piece.taken(Some(&more)));
                *shown = Some(more);
                says_something = true;
            }
        }
        room.saturating_sub(left)
    }

    fn add_to(mut self, level: &str, text: &mut String) {
        let left_out = self
            .pieces
            .iter()
            .filter(|(_, shown)| shown.is_none())
            .count();
        self.pieces.sort_by_key(|(piece, _)| piece.place);
        text.extend(["\n", level, " ", self.heading, "\n"]);
        for (piece, shown) in &self.pieces {
            if let Some(shown) = shown {
                text.push_str(&piece.heading);
                shown.quote(text, piece.mark);
            }
        }
        if left_out > 0 {
            let what = self.pieces_are;
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{}",
                quote::notice(&format!("{left_out} more {what} had no room"))
            );
        }
    }
}

/// The text of these parts, the most important first, in so many bytes. Each has
/// a heading of this level, as many `#` as that is.
pub(in crate::engine) fn text<const COUNT: usize>(
    preface: &str,
    level: &str,
    parts: [Part; COUNT],
    room: usize,
) -> String {
    let mut parts: Vec<Part> = parts
        .into_iter()
        .filter(|part| !part.pieces.is_empty())
        .collect();
    let ours = |part: &Part| part.heading.len() + level.len() + NOTICE;
    let fixed = preface.len() + parts.iter().map(ours).sum::<usize>();
    let room = room.saturating_sub(fixed);
    let mut left = room;
    for part in &mut parts {
        left -= part.fill((room * part.share / 100).min(left));
    }
    for part in &mut parts {
        left -= part.fill(left);
    }
    let mut text = preface.to_owned();
    for part in parts {
        part.add_to(level, &mut text);
    }
    text
}
