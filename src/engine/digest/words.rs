//! What a line is worth for the words in it.
//!
//! A word counts for what it tells: names that are put together, paths, numbers,
//! addresses and hashes are hardly ever written by somebody who has not seen
//! them; words of a language tell little. It counts less where it stands
//! everywhere. The weights are chosen on recordings, by how many of the names
//! that later answers use, and only old results have, stand in lines that stay.
//!
//! Words are noted in a table of fixed size by a cheap hash. Two words that share
//! a place only share a count: that costs a line, never time.

use super::Kind;

/// The smallest and the largest table.
const PLACES: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 16;
/// The longest word that tells something.
const LONG: usize = 160;
/// Worth of a word that tells of a failure or of what came out.
const OUTCOME: u32 = 10;

/// How often each word stands in a text.
pub(super) struct Table {
    counts: Vec<u16>,
}

impl Table {
    /// For a text of this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let size = (bytes / 4).next_power_of_two();
        let size = size.clamp(*PLACES.start(), *PLACES.end());
        Self {
            counts: vec![0; size],
        }
    }

    /// Where a word is counted: the size is a power of two.
    fn place(&self, word: &[u8]) -> usize {
        hash(word) & (self.counts.len() - 1)
    }

    /// Notes the words of a line.
    pub(super) fn note(&mut self, line: &str) {
        each(line, |word| {
            let place = self.place(word);
            if let Some(count) = self.counts.get_mut(place) {
                *count = count.saturating_add(1);
            }
        });
    }

    /// What the words of a line are worth.
    pub(super) fn worth(&self, kind: Kind, line: &str) -> u32 {
        let mut sum = 0;
        let mut outcome = false;
        let is_output = matches!(kind, Kind::Output | Kind::Other);
        each(line, |word| {
            outcome = outcome || (is_output && tells_outcome(word));
            let count = self.counts.get(self.place(word)).copied();
            sum += telling(word) * commonness(count.unwrap_or(0)) / 4;
        });
        if outcome { sum + OUTCOME } else { sum }
    }
}

/// Every word of a line: runs of letters, digits and what joins them in names and
/// paths, and the parts of such a run.
fn each<'l>(line: &'l str, mut see: impl FnMut(&'l [u8])) {
    let joins = |byte: u8| matches!(byte, b'.' | b'/' | b'-' | b'@' | b':');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    for run in line
        .as_bytes()
        .split(|byte| !is_word(*byte) && !joins(*byte))
    {
        let run = trimmed(run);
        if run.is_empty() {
            continue;
        }
        let mut parts = 0;
        for part in run
            .split(|byte| joins(*byte))
            .filter(|part| !part.is_empty())
        {
            see(part);
            parts += 1;
        }
        if parts > 1 {
            see(run);
        }
    }
}

/// Without what joins at either end.
fn trimmed(mut run: &[u8]) -> &[u8] {
    while let [b'.' | b'-' | b'@' | b':', rest @ ..] = run {
        run = rest;
    }
    while let [rest @ .., b'.' | b'-' | b'@' | b':' | b'/'] = run {
        run = rest;
    }
    run
}

/// How much a word tells by itself.
fn telling(word: &[u8]) -> u32 {
    let length = word.len();
    if !(2..=LONG).contains(&length) {
        return 0;
    }
    let (mut digits, mut letters) = (0, 0);
    let (mut lower, mut humped, mut slash, mut joined, mut low_line) =
        (false, false, false, false, false);
    let mut before = 0;
    for byte in word.iter().copied() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'z' => {
                letters += 1;
                lower = true;
            }
            b'A'..=b'Z' => {
                letters += 1;
                humped |= u8::is_ascii_lowercase(&before);
            }
            b'/' => slash = true,
            b'.' | b'-' | b'@' | b':' => joined = true,
            b'_' => low_line = true,
            _ => {}
        }
        before = byte;
    }
    joined |= slash;
    match () {
        () if slash && length >= 6 => 14,
        () if joined && (digits >= 2 || humped || low_line) => 14,
        () if joined => 6,
        () if digits > 0 && letters > 0 && length >= 4 => 14,
        () if letters == 0 && digits >= 3 => 10,
        () if letters == 0 && digits > 0 => 3,
        () if low_line && length >= 5 => 18,
        () if humped && length >= 5 => 18,
        () if letters >= 3 && !lower => 5,
        () if length >= 7 => 3,
        () if length >= 4 => 1,
        () => 0,
    }
}

/// How much a text says that nobody could guess: ids, addresses, paths and numbers,
/// and that something failed.
pub(in crate::engine) fn specific(text: &str) -> u32 {
    let mut sum = 0;
    for line in text.lines() {
        each(line, |word| {
            let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
            let mixed = word.iter().any(u8::is_ascii_alphabetic) && word.len() >= 8;
            sum += match () {
                () if digits >= 3 && mixed => 8,
                () if digits >= 5 => 5,
                () if word.contains(&b'/') && digits >= 2 => 5,
                () if tells_outcome(word) => 3,
                () if telling(word) >= 14 => 1,
                () => 0,
            };
        });
    }
    sum
}

/// How much it counts that a word stands in a text so often, in quarters.
fn commonness(count: u16) -> u32 {
    match count {
        0..=8 => 4,
        9..=32 => 3,
        _ => 2,
    }
}

/// Whether a word tells of a failure or of what came out.
fn tells_outcome(word: &[u8]) -> bool {
    const WORDS: [&[u8]; 22] = [
        b"error",
        b"errors",
        b"failed",
        b"fail",
        b"failure",
        b"failures",
        b"panicked",
        b"fatal",
        b"exception",
        b"traceback",
        b"denied",
        b"warning",
        b"passed",
        b"expected",
        b"undefined",
        b"cannot",
        b"exit",
        b"exited",
        b"version",
        b"listening",
        b"aborted",
        b"assertion",
    ];
    (4..=24).contains(&word.len())
        && (WORDS.iter().any(|it| word.eq_ignore_ascii_case(it))
            || word.ends_with(b"Error")
            || word.ends_with(b"Exception"))
}

/// A cheap hash: a word more or less with the same one does no harm.
fn hash(word: &[u8]) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in word {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "only the lowest bits are used"
    )]
    let folded = (hash ^ (hash >> 32)) as usize;
    folded
}
