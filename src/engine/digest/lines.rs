//! A text in pieces of a line each, with the numbers that its lines have.
//!
//! A long line, such as a whole JSON document, is several pieces, parted behind a
//! comma, a bracket or a space. Of a text that is longer than what may be looked
//! at, its beginning and its end are taken.

use super::Kind;
use crate::engine::pinned::quote::breaks;

/// Bytes of a piece, at the most.
const LONG: usize = 200;
/// How far back from there a place to part is looked for.
const BACK: usize = 100;
/// The longest number that a tool puts before a line, with its blanks.
const NUMBER: usize = 12;
/// Bytes of a number of ours before a line, at the most.
const OURS: usize = 9;

/// A line, or a part of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    /// As it stands, without the blanks around it.
    pub(super) text: &'t str,
    /// Lines before it; none where the count was lost.
    line: Option<u64>,
    /// It is shown with a number of ours.
    pub(super) numbered: bool,
}

impl Piece<'_> {
    /// Bytes that it takes, at the most; control characters take more in JSON.
    pub(super) fn takes(&self) -> usize {
        let controls = self.text.bytes().filter(u8::is_ascii_control).count();
        let number = if self.numbered { OURS } else { 0 };
        self.text.len() + controls * 5 + number
    }

    /// Adds it, behind its number if the text is counted from this one on.
    pub(super) fn write(&self, into: &mut String, first: Option<u64>) {
        if let Some((first, line)) = first.zip(self.line) {
            let number = format!("{}: ", first.saturating_add(line));
            if number.len() <= OURS {
                into.push_str(&number);
            }
        }
        into.push_str(self.text);
    }
}

/// The pieces of a text, or of as much as may be looked at.
pub(super) fn pieces(text: &str, look: usize) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    if text.len() <= look {
        split(text, Some(0), &mut pieces);
        return pieces;
    }
    let head = text.floor_char_boundary(look / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - look / 3);
    split(text.get(..head).unwrap_or_default(), Some(0), &mut pieces);
    split(text.get(tail..).unwrap_or_default(), None, &mut pieces);
    pieces
}

fn split<'t>(text: &'t str, first: Option<u64>, into: &mut Vec<Piece<'t>>) {
    let mut line = first;
    for whole in text.split('\n') {
        for part in whole.split(breaks) {
            let mut rest = part.trim();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(end(rest));
                into.push(Piece {
                    text: piece.trim_end(),
                    line,
                    numbered: false,
                });
                rest = behind.trim_start();
            }
        }
        line = line.map(|line| line + 1);
    }
}

/// Where the first piece of a line ends.
fn end(line: &str) -> usize {
    if line.len() <= LONG {
        return line.len();
    }
    let most = line.floor_char_boundary(LONG);
    let from = line.floor_char_boundary(LONG - BACK);
    let near = line.get(from..most).unwrap_or_default();
    let parts = |marks: &[char]| near.rfind(marks).map(|at| from + at + 1);
    parts(&[',', ';', '}', '>'])
        .or_else(|| parts(&[' ', '\t']))
        .unwrap_or(most)
}

/// A line without the number that a tool has put before it.
pub(super) fn unnumbered(line: &str) -> &str {
    let line = line.trim_start();
    let digits = line.bytes().take(NUMBER).take_while(u8::is_ascii_digit);
    let digits = digits.count();
    if digits == 0 {
        return line;
    }
    let rest = line.get(digits..).unwrap_or_default();
    let behind = ["→", "\t", "| ", ": ", " | "]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark));
    behind.unwrap_or(line)
}

/// From which number on the lines are counted; none: they have numbers, or none
/// is known.
pub(super) fn numbering(kind: Kind, pieces: &[Piece<'_>]) -> Option<u64> {
    let Kind::File { first } = kind else {
        return None;
    };
    let numbered = |piece: &&Piece<'_>| unnumbered(piece.text).len() < piece.text.len();
    let some = pieces.iter().take(20);
    let count = some.clone().filter(numbered).count();
    first.filter(|_| count * 2 < some.count())
}
