//! Whether one view of a file shows all that another did.
//!
//! Line numbers do not tell: whatever was inserted above moved everything below,
//! and what a command or a person did to the file is not known. So the text
//! decides. The beginning and the end of the earlier view must be in the later
//! one, at least as far apart as they were, with most of the lines between them;
//! then what differs in between is newer. Lines are compared without the numbers
//! that tools put before them, as they stand in JSON.

use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem;

/// Lines at either end that must be found again.
const ENDS: usize = 3;
/// And at most so many, if those few say too little.
const MOST: usize = 12;
/// Bytes besides white space that they must hold, to be told from others.
const TELLING: usize = 24;
/// Bytes that make a line worth counting.
const COUNTED: usize = 8;
/// How many in ten of the lines that count must be found again.
const TENTHS: usize = 8;
/// Longer than this, a view may have been cut by the tool without a word.
const UNCUT: usize = 28_000;

/// What tools write where they have cut.
const CUTS: [&str; 6] = [
    "truncated",
    "omitted",
    "clipped",
    "more lines",
    "Showing lines",
    "offset=",
];

static CUT: LazyLock<[memmem::Finder<'static>; 6]> =
    LazyLock::new(|| CUTS.map(memmem::Finder::new));

/// Whether a view of a whole file is sure to show all of it.
pub(super) fn is_complete(payload: &[u8]) -> bool {
    payload.len() < UNCUT && !CUT.iter().any(|cut| cut.find(payload).is_some())
}

/// A view of a file, ready to be looked for in others.
pub(super) struct View<'p> {
    payload: &'p [u8],
    lines: Vec<&'p [u8]>,
    /// How many lines at the beginning, and at the end, must be found again.
    ends: Option<(usize, usize)>,
    /// The longest of them, which are looked for before anything else.
    signs: [memmem::Finder<'p>; 2],
}

impl<'p> View<'p> {
    /// What a result shows.
    pub(super) fn of(payload: &'p [u8]) -> Self {
        let lines = lines(payload);
        let ends = start(&lines).zip(end(&lines));
        let sign = |lines: Option<&[&'p [u8]]>| {
            let longest = lines.and_then(|lines| lines.iter().copied().max_by_key(|l| l.len()));
            memmem::Finder::new(longest.unwrap_or_default())
        };
        let (first, last) = ends.unwrap_or_default();
        let signs = [
            sign(lines.get(..first)),
            sign(lines.get(lines.len().saturating_sub(last)..)),
        ];
        Self {
            payload,
            lines,
            ends,
            signs,
        }
    }

    /// Whether a later result shows what this one showed.
    pub(super) fn is_in(&self, later: &View<'_>) -> bool {
        if later.payload == self.payload {
            return true;
        }
        let Some((first, last)) = self.ends else {
            return false;
        };
        if self
            .signs
            .iter()
            .any(|sign| sign.find(later.payload).is_none())
        {
            return false;
        }
        let later = &later.lines;
        let first = self.lines.get(..first).unwrap_or_default();
        let from = self.lines.len().saturating_sub(last);
        let last = self.lines.get(from..).unwrap_or_default();
        let begins = later.windows(first.len()).position(|lines| lines == first);
        let ends = later.windows(last.len()).rposition(|lines| lines == last);
        let (Some(begins), Some(ends)) = (begins, ends) else {
            return false;
        };
        let apart = (ends + last.len()).saturating_sub(begins);
        apart >= self.lines.len() && shares(later, &self.lines)
    }
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

/// How many of the first lines it takes to tell them from others.
fn start(lines: &[&[u8]]) -> Option<usize> {
    let tells = |count: &usize| lines.get(..*count).is_some_and(tells);
    (ENDS.min(lines.len())..=lines.len().min(MOST)).find(tells)
}

/// How many of the last lines, likewise.
fn end(lines: &[&[u8]]) -> Option<usize> {
    let from = |count: usize| lines.len().saturating_sub(count);
    let tells = |count: &usize| lines.get(from(*count)..).is_some_and(tells);
    (ENDS.min(lines.len())..=lines.len().min(MOST)).find(tells)
}

fn tells(lines: &[&[u8]]) -> bool {
    lines.iter().map(|line| weight(line)).sum::<usize>() >= TELLING
}

/// The lines of a file in a view of it, without what the tool adds.
fn lines(payload: &[u8]) -> Vec<&[u8]> {
    let text = body(payload);
    let mut lines = Vec::new();
    let mut from = 0;
    let mut escaped = None;
    for at in memchr::memchr_iter(b'\\', text) {
        // What follows a backslash is escaped by it, be it another one.
        if escaped == Some(at) {
            continue;
        }
        escaped = Some(at + 1);
        if text.get(at + 1) == Some(&b'n') {
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

static OUTPUT: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(b"\\nOutput:\\n"));
static REMINDER: LazyLock<memmem::FinderRev<'static>> =
    LazyLock::new(|| memmem::FinderRev::new(b"<system-reminder>"));

/// The text of a result, between what clients put around it.
fn body(payload: &[u8]) -> &[u8] {
    let mut text = payload;
    if let Some(at) = OUTPUT.find(text.get(..300).unwrap_or(text)) {
        text = text.get(at + 11..).unwrap_or_default();
    }
    if let Some(at) = REMINDER.rfind(text) {
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
