//! What a line is worth for the words in it.
//!
//! A word counts for what it tells: names that are put together, paths, numbers,
//! addresses and hashes are hardly ever written by somebody who has not seen
//! them; words of a language tell little. It counts in one line only, the one
//! that defines it or else the first, and less where it stands everywhere.
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

/// A place in the table.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    count: u16,
    /// The line that the word counts in, from one on.
    line: u32,
    /// That line defines something.
    defines: bool,
}

/// The words of a text.
pub(super) struct Table {
    places: Vec<Place>,
}

impl Table {
    /// For a text of this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let size = (bytes / 4).next_power_of_two();
        let size = size.clamp(*PLACES.start(), *PLACES.end());
        Self {
            places: vec![Place::default(); size],
        }
    }

    /// Notes the words of a line.
    pub(super) fn note(&mut self, line: &str, at: usize, defines: bool) {
        let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        each(line, |word| {
            let mask = self.places.len() - 1;
            let Some(place) = self.places.get_mut(hash(word) & mask) else {
                return;
            };
            place.count = place.count.saturating_add(1);
            if place.line == 0 || (defines && !place.defines) {
                place.line = line_number;
                place.defines = defines;
            }
        });
    }

    /// What the words of a line are worth in it.
    pub(super) fn worth(&self, kind: Kind, line: &str, at: usize) -> u32 {
        let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let mask = self.places.len() - 1;
        let mut sum = 0;
        let mut outcome = false;
        each(line, |word| {
            outcome |= tells_outcome(word);
            let place = self.places.get(hash(word) & mask).copied();
            let Place { count, line, .. } = place.unwrap_or_default();
            let worth = telling(word) * commonness(count) / 4;
            sum += if line == line_number {
                worth
            } else {
                worth / 8
            };
        });
        let is_output = matches!(kind, Kind::Output | Kind::Other);
        if outcome && is_output {
            sum + OUTCOME
        } else {
            sum
        }
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
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = word
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let has = |byte: u8| word.contains(&byte);
    let humped = word
        .array_windows::<2>()
        .any(|[a, b]| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let joined = has(b'/') || has(b'.') || has(b'-') || has(b'@') || has(b':');
    match () {
        () if has(b'/') && length >= 6 => 14,
        () if joined && digits >= 2 => 14,
        () if joined => 3,
        () if digits > 0 && letters > 0 && length >= 4 => 14,
        () if letters == 0 && digits >= 3 => 10,
        () if letters == 0 && digits > 0 => 3,
        () if has(b'_') && length >= 5 => 16,
        () if humped && length >= 5 => 16,
        () if letters >= 3 && !word.iter().any(u8::is_ascii_lowercase) => 5,
        () if length >= 7 => 3,
        () if length >= 4 => 1,
        () => 0,
    }
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
