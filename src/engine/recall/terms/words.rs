//! The words of a text, one after the other, with where they stand.
//!
//! A word is a run of letters, digits and `_`. An identifier comes as a whole and
//! in its parts, a version number as a whole too, a hash also by its first
//! digits, and writing that does not part its words by spaces in pairs of
//! characters. What comes out is lower case, without endings, short, and never
//! what the store keeps for itself.

use std::ops::Range;

use super::stem::stem;

/// Bytes of a term, at most.
pub(super) const LONGEST: usize = 64;
/// A longer run without an underscore is data; it is not taken apart.
const DATA: usize = 96;
/// Parts of an identifier, at most.
const PARTS: usize = 32;
/// Digits by which a hash is usually called.
const HASH: usize = 7;
/// How the store's own terms begin, and how many hexadecimal digits follow.
const RESERVED: (&str, usize) = ("zz", 32);

/// A term, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'w> {
    /// The term.
    pub term: &'w str,
    /// The word before its ending was taken off, in lower case.
    pub word: &'w str,
    /// Where the whole word stands that it is or belongs to, in bytes.
    pub at: Range<usize>,
    /// Which word of the text that is.
    pub ordinal: usize,
    /// Of an identifier, its parts are told from the whole.
    pub is_part: bool,
    /// There is more to it than letters.
    pub is_identifier: bool,
}

/// Hands over every term of a text, in order, as often as it stands there.
pub fn each(text: &str, mut take: impl FnMut(Found<'_>)) {
    let mut walk = Walk {
        take: &mut take,
        ordinal: 0,
        lower: String::new(),
        term: String::new(),
    };
    let mut at = 0;
    while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if !is_word(letter) {
            at += letter.len_utf8();
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let dense = is_dense(letter);
        let same = |letter: char| is_word(letter) && is_dense(letter) == dense;
        let length = rest.find(|letter| !same(letter)).unwrap_or(rest.len());
        let run = rest.get(..length).unwrap_or_default();
        if dense {
            walk.pairs(run, at);
        } else {
            let begins = !text.get(..at).is_some_and(|before| before.ends_with('.'));
            if let Some(length) = version(rest).filter(|_| begins) {
                walk.version(rest.get(..length).unwrap_or_default(), at);
            }
            walk.word(run, at);
        }
        at += length;
    }
}

/// Whether this is part of a word.
pub(super) fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter == '_' || letter.is_ascii_alphanumeric();
    }
    letter.is_alphanumeric() || is_dense(letter)
}

/// Whether words of this writing are not parted by spaces.
fn is_dense(letter: char) -> bool {
    match u32::from(letter) {
        // A sign of money and marks of punctuation among the Thai letters.
        0x0e3f | 0x0e4f | 0x0e5a | 0x0e5b => false,
        // Thai and Lao, Burmese, Khmer.
        0x0e01..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17d3
        // Japanese syllables, but for the dot between names.
        | 0x3041..=0x3096 | 0x309d..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff
        | 0x31f0..=0x31ff | 0xff66..=0xff9d
        // Chinese characters in all their planes.
        | 0x3005..=0x3007 | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0x20000..=0x3ffff => true,
        _ => false,
    }
}

/// Bytes of the version number that a text begins with: numbers with dots
/// between them, perhaps behind a `v`.
fn version(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = usize::from(text.starts_with(['v', 'V']));
    let first = digits(text.get(length..)?);
    length += first;
    let mut numbers = 1;
    while let Some(rest) = text.get(length..).and_then(|rest| rest.strip_prefix('.')) {
        match digits(rest) {
            0 => break,
            more => length += 1 + more,
        }
        numbers += 1;
    }
    let ends = !text.get(length..)?.starts_with(is_word);
    (first > 0 && numbers > 1 && ends && length <= LONGEST).then_some(length)
}

struct Walk<'t, T> {
    take: &'t mut T,
    ordinal: usize,
    lower: String,
    term: String,
}

impl<T: FnMut(Found<'_>)> Walk<'_, T> {
    /// A word that is parted from others.
    fn word(&mut self, run: &str, at: usize) {
        if !run.contains(|letter| letter != '_') {
            return;
        }
        self.ordinal += 1;
        let place = at..at + run.len();
        // Most words are this plain.
        if run.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return self.emit(run, &place, false, false);
        }
        let is_hash = is_hash(run);
        let parts = if is_hash { Vec::new() } else { parts(run) };
        let is_plain = run.chars().all(char::is_alphabetic) && parts.is_empty();
        self.emit(run, &place, false, !is_plain);
        if is_hash && run.len() > HASH {
            self.emit(run.get(..HASH).unwrap_or_default(), &place, true, true);
        }
        for part in parts.into_iter().take(PARTS) {
            self.emit(part, &place, true, false);
        }
    }

    fn version(&mut self, number: &str, at: usize) {
        let place = at..at + number.len();
        let joined = number.trim_start_matches(['v', 'V']).replace('.', "_");
        // It belongs to the word that follows, which is its first number.
        self.ordinal += 1;
        self.emit(&joined, &place, false, true);
        self.ordinal -= 1;
    }

    /// Writing without spaces.
    fn pairs(&mut self, run: &str, at: usize) {
        let starts: Vec<usize> = run.char_indices().map(|(start, _)| start).collect();
        if starts.len() == 1 {
            self.ordinal += 1;
            self.emit(run, &(at..at + run.len()), false, false);
        }
        for index in 1..starts.len() {
            let from = starts.get(index - 1).copied().unwrap_or_default();
            let to = starts.get(index + 1).copied().unwrap_or(run.len());
            self.ordinal += 1;
            let pair = run.get(from..to).unwrap_or_default();
            self.emit(pair, &(at + from..at + to), false, false);
        }
    }

    fn emit(&mut self, word: &str, at: &Range<usize>, is_part: bool, is_identifier: bool) {
        self.lower.clear();
        // Whoever writes more than this into one word has not written a word.
        let word = word
            .get(..word.floor_char_boundary(LONGEST))
            .unwrap_or_default();
        if word.is_ascii() {
            self.lower.push_str(word);
            self.lower.make_ascii_lowercase();
        } else {
            self.lower.extend(word.chars().flat_map(char::to_lowercase));
            let end = self.lower.floor_char_boundary(LONGEST);
            self.lower.truncate(end);
        }
        self.term.clear();
        self.term.push_str(&self.lower);
        if self.term.bytes().all(|byte| byte.is_ascii_lowercase()) {
            stem(&mut self.term);
        }
        if self.term.is_empty() || is_reserved(&self.term) {
            return;
        }
        (self.take)(Found {
            term: &self.term,
            word: &self.lower,
            at: at.clone(),
            ordinal: self.ordinal,
            is_part,
            is_identifier,
        });
    }
}

/// Whether the store keeps such terms for itself.
pub(super) fn is_reserved(term: &str) -> bool {
    let (start, digits) = RESERVED;
    let rest = term.strip_prefix(start).map(str::as_bytes);
    rest.and_then(|rest| rest.get(..digits))
        .is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a run is a number written with letters too.
fn is_hash(run: &str) -> bool {
    run.len() >= HASH
        && run.bytes().all(|byte| byte.is_ascii_hexdigit())
        && run.bytes().any(|byte| byte.is_ascii_digit())
        && run.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The parts of an identifier; none if it has only one.
fn parts(run: &str) -> Vec<&str> {
    let mut found = Vec::new();
    if run.len() > DATA && !run.contains('_') {
        return found;
    }
    for piece in run.split('_').filter(|piece| !piece.is_empty()) {
        for part in humps(piece) {
            if part.len() < run.len() && is_telling(part) {
                found.push(part);
            }
            let sorts = sorts(part);
            if sorts.len() > 1 && !is_hash(part) {
                found.extend(sorts.into_iter().filter(|part| is_telling(part)));
            }
        }
    }
    found
}

/// A letter alone says nothing.
fn is_telling(part: &str) -> bool {
    part.len() > 1 || part.bytes().all(|byte| byte.is_ascii_digit())
}

/// `getUserById` and `HTTPServer2` in their words.
fn humps(piece: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = piece.char_indices().collect();
    let begins = |window: &[(usize, char)]| match window {
        [(_, before), (at, letter), behind @ ..] => {
            let rises = !before.is_uppercase() && letter.is_uppercase();
            let next = behind.first().is_some_and(|(_, next)| next.is_lowercase());
            (rises || (before.is_uppercase() && letter.is_uppercase() && next)).then_some(*at)
        }
        _ => None,
    };
    let windows = (0..letters.len()).filter_map(|from| letters.get(from..));
    cut(piece, windows.filter_map(begins))
}

/// Letters and digits apart.
fn sorts(part: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = part.char_indices().collect();
    let borders = letters.windows(2).filter_map(|pair| match pair {
        [(_, before), (at, letter)] => (before.is_numeric() != letter.is_numeric()).then_some(*at),
        _ => None,
    });
    cut(part, borders)
}

fn cut(text: &str, borders: impl Iterator<Item = usize>) -> Vec<&str> {
    let mut from = 0;
    let mut pieces = Vec::new();
    for border in borders.chain([text.len()]) {
        pieces.extend(text.get(from..border).filter(|piece| !piece.is_empty()));
        from = border;
    }
    pieces
}
