//! Counts text, with a bound on the work.
//!
//! To tokenise a megabyte takes some sixty milliseconds, so a request's path
//! may only afford a share of a large history. Text is read in chunks, and a
//! credit that grows by that share with every chunk says which of them are
//! tokenised: they lie evenly spaced over everything that is counted, and the
//! same text gives the same count. What lies between is charged at the rate of
//! the chunks around it, rounded up: never at a guess by bytes.
//!
//! The error, measured on twelve recorded agent sessions of 17 KB to 1.1 MB cut
//! down to a budget of 64 KB each, is within ERROR; at the default budget it is
//! within ERROR, and none at all below 256 KB.

use super::text::{Form, chunks};
use super::tokenizer::{self, Counted, PIECE};

/// Bytes that may be tokenised on a request's path: about 15 milliseconds.
pub const BUDGET: u64 = 256 * 1024;

/// Bytes of a chunk when not all are tokenised. Small, because many small
/// samples tell more than few large ones; not smaller, because every cut costs
/// half a token.
const SAMPLE: usize = 1024;

/// Bytes of a text's own samples from which its own rate is trusted.
const OWN_RATE: u64 = 8 * 1024;

/// Counts the texts of one request.
#[derive(Debug)]
pub struct Counter {
    /// Bytes that may be tokenised, and out of how many; `None`: all.
    share: Option<(u64, u64)>,
    /// Bytes that may be tokenised now, times the second number of the share.
    credit: u64,
    sampled: Rate,
    tokenised: u64,
}

/// Tokens that some bytes came to.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    tokens: u64,
    bytes: u64,
}

impl Rate {
    fn add(&mut self, tokens: u64, bytes: u64) {
        self.tokens += tokens;
        self.bytes += bytes;
    }

    /// What so many bytes come to.
    fn of(self, bytes: u64) -> u64 {
        (self.tokens.saturating_mul(bytes)).div_ceil(self.bytes.max(1))
    }
}

impl Counter {
    /// Tokenises everything.
    pub fn exact() -> Self {
        Self {
            share: None,
            credit: 0,
            sampled: Rate::default(),
            tokenised: 0,
        }
    }

    /// Tokenises at most `budget` bytes of the `ahead` bytes that will be
    /// counted, see [`weight`](super::weight).
    pub fn bounded(budget: u64, ahead: u64) -> Self {
        let mut counter = Self::exact();
        if ahead > budget {
            counter.share = Some((budget, ahead));
            // The first chunk is tokenised: there is a rate from the start.
            counter.credit = (SAMPLE as u64 + 16).min(budget).saturating_mul(ahead);
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
        let size = self.share.map_or(PIECE, |_| SAMPLE);
        let (mut own, mut skipped) = (Rate::default(), 0);
        chunks(bytes, form, size, |chunk| {
            let length = tokenizer::length(chunk);
            if self.affords(length) {
                let Counted { tokens, bytes } = tokenizer::count(chunk);
                self.tokenised += bytes;
                own.add(tokens, length);
            } else {
                skipped += length;
            }
        });
        self.sampled.add(own.tokens, own.bytes);
        let rate = if own.bytes >= OWN_RATE {
            own
        } else {
            self.sampled
        };
        own.tokens + rate.of(skipped)
    }

    fn affords(&mut self, length: u64) -> bool {
        let Some((budget, ahead)) = self.share else {
            return true;
        };
        self.credit = self.credit.saturating_add(length.saturating_mul(budget));
        let price = length.saturating_mul(ahead);
        // The second condition holds if there is more text than was announced.
        let affordable = price <= self.credit && self.tokenised + length <= budget;
        if affordable {
            self.credit -= price;
        }
        affordable
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
            let counted = counter.text(&text);
            assert!(counter.tokenised() <= budget);
            assert!(counter.tokenised() >= budget / 2, "the budget is used");
            assert!(
                counted.abs_diff(exact) * 100 <= exact * 4,
                "{counted} {exact}"
            );
        }
    }

    #[test]
    fn many_small_texts_are_sampled_like_one_large_one() {
        let text = mixed(8_000);
        let exact: u64 = text.lines().map(|line| Counter::exact().text(line)).sum();
        let mut counter = Counter::bounded(32 * 1024, text.len() as u64);
        let counted: u64 = text.lines().map(|line| counter.text(line)).sum();
        assert!(counter.tokenised() <= 32 * 1024);
        assert!(
            counted.abs_diff(exact) * 100 <= exact * 8,
            "{counted} {exact}"
        );
    }

    #[test]
    fn more_text_than_was_announced_does_not_break_the_bound() {
        let mut counter = Counter::bounded(8 * 1024, 9 * 1024);
        let counted = counter.text(&mixed(8_000));
        assert!(counted > 50_000 && counter.tokenised() <= 8 * 1024);
    }

    #[test]
    fn the_same_text_gives_the_same_count() {
        let text = mixed(2_000);
        let count = || Counter::bounded(8 * 1024, text.len() as u64).text(&text);
        assert_eq!(count(), count());
    }
}
