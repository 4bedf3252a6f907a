//! Whether one view of a file shows all that another did.
//!
//! Line numbers do not tell: whatever was inserted above moved everything below,
//! and what a command or a person did to the file is not known. So the text
//! decides. The beginning and the end of the earlier view must be in the later
//! one, at least as far apart as they were, with most of the lines between them;
//! then what differs in between is newer. Lines are compared without the numbers
//! that tools put before them, as they stand in JSON.

use std::collections::HashSet;

use memchr::memmem;

/// Lines at either end that must be found again.
const ENDS: usize = 3;
/// Bytes besides white space that they must hold, to be told from others.
const TELLING: usize = 24;
/// Bytes that make a line worth counting.
const COUNTED: usize = 8;
/// How many in ten of the lines that count must be found again.
const TENTHS: usize = 8;
/// Longer than this, a view may have been cut by the tool without a word.
const UNCUT: usize = 28_000;

/// What tools write where they have cut.
const CUTS: [&[u8]; 6] = [
    b"truncated",
    b"omitted",
    b"clipped",
    b"more lines",
    b"Showing lines",
    b"offset=",
];

/// Whether a view of a whole file is sure to show all of it.
pub(super) fn is_complete(payload: &[u8]) -> bool {
    payload.len() < UNCUT && !CUTS.iter().any(|cut| memmem::find(payload, cut).is_some())
}

/// Whether the later view shows what the earlier showed.
pub(super) fn covers(later: &[u8], earlier: &[u8]) -> bool {
    if later == earlier {
        return true;
    }
    let (later, earlier) = (lines(later), lines(earlier));
    let (Some(first), Some(last)) = (start(&earlier), end(&earlier)) else {
        return false;
    };
    let begins = later.windows(first.len()).position(|lines| lines == first);
    let ends = later.windows(last.len()).rposition(|lines| lines == last);
    let (Some(begins), Some(ends)) = (begins, ends) else {
        return false;
    };
    (ends + last.len()).saturating_sub(begins) >= earlier.len() && shares(&later, &earlier)
}

fn shares(later: &[&[u8]], earlier: &[&[u8]]) -> bool {
    let shown: HashSet<&[u8]> = later.iter().copied().collect();
    let counted = || earlier.iter().filter(|line| weight(line) >= COUNTED);
    let found = counted().filter(|line| shown.contains(**line)).count();
    found * 10 >= counted().count() * TENTHS
}

fn weight(line: &[u8]) -> usize {
    line.iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .count()
}

/// The first lines, as many as it takes to be told from others.
fn start<'a, 'b>(lines: &'b [&'a [u8]]) -> Option<&'b [&'a [u8]]> {
    (ENDS.min(lines.len())..=lines.len())
        .filter_map(|count| lines.get(..count))
        .find(|lines| tells(lines))
}

/// The last lines, likewise.
fn end<'a, 'b>(lines: &'b [&'a [u8]]) -> Option<&'b [&'a [u8]]> {
    (0..=lines.len().saturating_sub(ENDS))
        .rev()
        .filter_map(|from| lines.get(from..))
        .find(|lines| tells(lines))
}

fn tells(lines: &[&[u8]]) -> bool {
    lines.iter().map(|line| weight(line)).sum::<usize>() >= TELLING
}

/// The lines of a file in a view of it, without what the tool adds.
fn lines(payload: &[u8]) -> Vec<&[u8]> {
    let text = body(payload);
    let mut lines = Vec::new();
    let mut from = 0;
    for at in memmem::find_iter(text, b"\\n") {
        // A backslash that is itself escaped escapes nothing.
        let before = text.get(..at).unwrap_or_default();
        let escapes = before
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        if escapes % 2 == 0 {
            lines.push(text.get(from..at).unwrap_or_default());
            from = at + 2;
        }
    }
    lines.push(text.get(from..).unwrap_or_default());
    let numbered: Vec<&[u8]> = lines.iter().filter_map(|line| unnumbered(line)).collect();
    let mut lines = if numbered.len() * 2 > lines.len() {
        numbered
    } else {
        lines
    };
    while lines.last().is_some_and(|line| weight(line) == 0) {
        lines.pop();
    }
    lines
}

/// The text of a result, between what clients put around it.
fn body(payload: &[u8]) -> &[u8] {
    let mut text = payload;
    if let Some(at) = memmem::find(text.get(..300).unwrap_or(text), b"\\nOutput:\\n") {
        text = text.get(at + 11..).unwrap_or_default();
    }
    if let Some(at) = memmem::rfind(text, b"<system-reminder>") {
        text = text.get(..at).unwrap_or_default();
    }
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    text.strip_suffix(b"\"").unwrap_or(text)
}

/// A line without the number before it; `None` if it has none.
fn unnumbered(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let behind = line.get(digits..).filter(|_| digits > 0)?;
    let marks: [&[u8]; 6] = ["→".as_bytes(), b"\\t", b". ", b": ", b"|", b"."];
    marks.iter().find_map(|mark| behind.strip_prefix(*mark))
}
