//! Counts text, with a bound on the work.
//!
//! To tokenise a megabyte takes some sixty milliseconds, so a request's path
//! may only afford a share of a large history. Text is read in chunks, and a
//! credit that grows by that share with every chunk says which of them are
//! tokenised: they lie evenly spaced over everything that is counted, and the
//! same text gives the same count. What lies between is charged, rounded up, by
//! its words, numbers and signs, which are cheap to count, at the rate that
//! these had in the samples: never at a guess by bytes.
//!
//! The error, measured on twelve recorded agent sessions of 17 KB to 1.1 MB: at
//! the default budget from exact to 2.4% above, at a quarter of it from 0.4% below
//! to 3.9% above. Samples lean upwards because each cut costs a
//! little.

use super::text::{Form, chunks};
use super::tokenizer::{self, Counted, PIECE};

/// Bytes that may be tokenised on a request's path: about 15 milliseconds.
pub const BUDGET: u64 = 256 * 1024;

/// Bytes of a chunk when not all are tokenised. Small, because many small
/// samples tell more than few large ones; not smaller, because every cut costs
/// half a token.
const SAMPLE: usize = 512;

/// Units of a text's own samples from which its own rate is trusted.
const OWN_RATE: u64 = 1024;

/// Counts the texts of one request.
#[derive(Debug)]
pub struct Counter {
    /// Bytes that may be tokenised, and out of how many; `None`: all.
    share: Option<(u64, u64)>,
    /// Bytes that may be tokenised now, times the second number of the share.
    credit: u64,
    /// The rate of texts too short to have one of their own.
    pool: Rate,
    tokenised: u64,
}

/// Tokens that some units came to.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    tokens: u64,
    units: u64,
}

impl Rate {
    fn add(&mut self, tokens: u64, units: u64) {
        self.tokens += tokens;
        self.units += units;
    }

    /// What so many units come to.
    fn of(self, units: u64) -> u64 {
        (self.tokens.saturating_mul(units)).div_ceil(self.units.max(1))
    }
}

impl Counter {
    /// Tokenises everything.
    pub fn exact() -> Self {
        Self {
            share: None,
            credit: 0,
            // A unit is about a token, until samples say otherwise.
            pool: Rate {
                tokens: 64,
                units: 64,
            },
            tokenised: 0,
        }
    }

    /// Tokenises at most `budget` bytes of the `ahead` bytes that will be
    /// counted, see [`weight`](super::weight).
    pub fn bounded(budget: u64, ahead: u64) -> Self {
        let mut counter = Self::exact();
        if ahead > budget {
            counter.share = Some((budget, ahead));
            // The first chunk is tokenised.
            counter.credit = (SAMPLE as u64).saturating_mul(ahead);
        }
        counter
    }

    /// Bytes that the tokenizer has seen.
    pub fn tokenised(&self) -> u64 {
        self.tokenised
    }

    /// Raw tokens of a text.
    pub fn text(&mut self, text: &str) -> u64 {
        self.count(text.as_bytes(), Form::Plain)
    }

    /// Raw tokens of a JSON string, with or without its quotes.
    pub fn json_string(&mut self, string: &[u8]) -> u64 {
        self.count(inner(string), Form::Escaped)
    }

    /// Raw tokens of a JSON value that is shown as JSON.
    pub fn json(&mut self, value: &[u8]) -> u64 {
        self.count(value, Form::Json)
    }

    fn count(&mut self, bytes: &[u8], form: Form) -> u64 {
        if self.share.is_none() {
            let mut tokens = 0;
            chunks(bytes, form, PIECE, |chunk| tokens += self.tokenise(chunk));
            return tokens;
        }
        let (mut own, mut exact, mut skipped) = (Rate::default(), 0, 0);
        chunks(bytes, form, SAMPLE, |chunk| {
            let length = tokenizer::length(chunk);
            if self.affords(length) {
                let tokens = self.tokenise(chunk);
                exact += tokens;
                // A short chunk is met as seldom as it is short, and then stands
                // for as much text as a whole one.
                let weight = |count: u64| count * SAMPLE as u64 / length.max(1);
                own.add(weight(tokens), weight(units(chunk)));
            } else {
                skipped += units(chunk);
            }
        });
        // A text with samples enough speaks for itself, and for itself only.
        if own.units >= OWN_RATE {
            return exact + own.of(skipped);
        }
        self.pool.add(own.tokens, own.units);
        exact + self.pool.of(skipped)
    }

    fn tokenise(&mut self, chunk: &str) -> u64 {
        let Counted { tokens, bytes } = tokenizer::count(chunk);
        self.tokenised += bytes;
        tokens
    }

    fn affords(&mut self, length: u64) -> bool {
        let Some((budget, ahead)) = self.share else {
            return true;
        };
        self.credit = self.credit.saturating_add(length.saturating_mul(budget));
        let price = (SAMPLE as u64).saturating_mul(ahead);
        // There may be more text than was announced.
        let affordable = price <= self.credit && self.tokenised + length <= budget;
        if affordable {
            self.credit -= price;
        }
        affordable
    }
}

/// About how many tokens a text has, as one can see without a vocabulary: its
/// words, cut where their case changes, its numbers and its signs.
fn units(text: &str) -> u64 {
    let (mut units, mut last, mut length) = (0, Class::White, 0);
    for byte in text.bytes() {
        let class = Class::of(byte);
        let goes_on = class == last || (last == Class::Upper && class == Class::Lower);
        length = if goes_on { length + 1 } else { 1 };
        let longest = match class {
            // White space goes with the word after it.
            Class::White => 16,
            Class::Lower | Class::Upper => 8,
            Class::Digit | Class::Sign => 3,
            Class::Foreign => 4,
        };
        if length % longest == 1 && (class != Class::White || length > 1 || byte == b'\n') {
            units += 1;
        }
        last = class;
    }
    units.max(1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    White,
    Lower,
    Upper,
    Digit,
    Sign,
    Foreign,
}

impl Class {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            0..=b' ' => Self::White,
            0x80.. => Self::Foreign,
            _ => Self::Sign,
        }
    }
}

/// A string without its quotes.
pub(super) fn inner(string: &[u8]) -> &[u8] {
    let opened = string.strip_prefix(b"\"");
    opened
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Text whose rate changes as it goes on: prose, numbers, code.
    fn mixed(lines: usize) -> String {
        let mut text = String::new();
        for line in 0..lines {
            let written = match line * 5 / lines {
                0 | 3 => writeln!(text, "the quick brown fox jumps over the lazy dog again"),
                1 => writeln!(
                    text,
                    "{:x} {:x} {}",
                    line * 7_919,
                    line * 104_729,
                    line * 31
                ),
                _ => writeln!(
                    text,
                    "    if self.counter_{line} > 0 {{ return Err({line}); }}"
                ),
            };
            written.unwrap();
        }
        text
    }

    #[test]
    fn escaped_and_plain_text_count_the_same() {
        let text = "a \"quoted\" line\nand \u{e9} another\t😀".repeat(40);
        let escaped = serde_json::to_string(&text).unwrap();
        let plain = Counter::exact().text(&text);
        assert_eq!(Counter::exact().json_string(escaped.as_bytes()), plain);
    }

    #[test]
    fn below_the_budget_the_count_is_exact() {
        let text = mixed(1_000);
        let exact = Counter::exact().text(&text);
        let mut counter = Counter::bounded(BUDGET, text.len() as u64);
        assert_eq!(counter.text(&text), exact);
    }

    #[test]
    fn samples_tell_the_size_within_a_few_percent_and_stay_within_the_budget() {
        let text = mixed(8_000);
        let exact = Counter::exact().text(&text);
        for budget in [16 * 1024, 64 * 1024] {
            let mut counter = Counter::bounded(budget, text.len() as u64);
            let sampled = counter.text(&text);
            assert!(counter.tokenised() <= budget);
            assert!(counter.tokenised() >= budget / 2, "the budget is used");
            assert!(
                sampled.abs_diff(exact) * 100 <= exact * 4,
                "{sampled} {exact}"
            );
        }
    }

    #[test]
    fn many_small_texts_are_sampled_like_one_large_one() {
        let text = mixed(8_000);
        let exact: u64 = text.lines().map(|line| Counter::exact().text(line)).sum();
        let mut counter = Counter::bounded(32 * 1024, text.len() as u64);
        let sampled: u64 = text.lines().map(|line| counter.text(line)).sum();
        assert!(counter.tokenised() <= 32 * 1024);
        assert!(
            sampled.abs_diff(exact) * 100 <= exact * 8,
            "{sampled} {exact}"
        );
    }

    #[test]
    fn more_text_than_was_announced_does_not_break_the_bound() {
        let mut counter = Counter::bounded(8 * 1024, 9 * 1024);
        let sampled = counter.text(&mixed(8_000));
        assert!(sampled > 50_000 && counter.tokenised() <= 8 * 1024);
    }

    #[test]
    fn the_same_text_gives_the_same_count() {
        let text = mixed(2_000);
        let count = || Counter::bounded(8 * 1024, text.len() as u64).text(&text);
        assert_eq!(count(), count());
    }
}
