//! The public vocabulary, behind a guard.
//!
//! The tokenizer panics on a very long run of white space, and is slow on long
//! runs of one character. It is fed pieces of a bounded size, long runs never
//! reach it whole, and a panic is survived with a count by bytes. The text is
//! anybody's, so none of this may depend on it being sensible. The vocabulary
//! takes some hundred milliseconds to load and is loaded once: by [`warm`], off
//! any request's path, or else by whoever counts first.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most bytes that the tokenizer gets at once.
pub(super) const PIECE: usize = 64 * 1024;

/// The longest run of one character, or of white space, that is tokenised.
/// What is longer is as many times its beginning.
const RUN: usize = 256;

/// Bytes of a token where the tokenizer failed: fewer than real texts have.
const FALLBACK_BYTES: u64 = 3;

/// Loads the vocabulary, if it is not loaded yet.
pub fn warm() {
    tokenise("warm");
}

/// What was counted, and how many bytes of it the tokenizer saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub tokens: u64,
    pub bytes: u64,
}

/// Counts a text.
pub(super) fn count(text: &str) -> Counted {
    let mut counted = Counted::default();
    for stretch in stretches(text) {
        let begin = match stretch {
            Stretch::Plain(text) => text,
            Stretch::Run { begin, .. } => begin,
        };
        let mut tokens: u64 = pieces(begin).map(tokenise).sum();
        counted.bytes += length(begin);
        if let Stretch::Run { begin, whole } = stretch {
            tokens = (tokens * length(whole)).div_ceil(length(begin).max(1));
        }
        counted.tokens += tokens;
    }
    counted
}

pub(super) fn length(text: &str) -> u64 {
    text.len() as u64
}

fn tokenise(text: &str) -> u64 {
    let count = || tiktoken_rs::o200k_base_singleton().count_ordinary(text);
    // The vocabulary is only read, so a panic leaves nothing half done.
    catch_unwind(AssertUnwindSafe(count)).map_or_else(
        |_| length(text).div_ceil(FALLBACK_BYTES),
        |count| count as u64,
    )
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch<'a> {
    Plain(&'a str),
    /// The same character, or white space, again and again.
    Run {
        begin: &'a str,
        whole: &'a str,
    },
}

/// Cuts long runs out of a text.
fn stretches(text: &str) -> impl Iterator<Item = Stretch<'_>> {
    let mut rest = text;
    let mut waiting = None;
    std::iter::from_fn(move || {
        if let Some(run) = waiting.take() {
            return Some(run);
        }
        let (plain, run, begin) = next_run(rest)?;
        let (before, from) = rest.split_at(plain);
        let (whole, after) = from.split_at(run);
        rest = after;
        if !whole.is_empty() {
            let begin = whole.get(..begin).unwrap_or(whole);
            waiting = Some(Stretch::Run { begin, whole });
        }
        if before.is_empty() {
            waiting.take()
        } else {
            Some(Stretch::Plain(before))
        }
    })
}

/// Bytes before the first long run, of the run, and of its beginning; `None` if
/// there is no text.
fn next_run(text: &str) -> Option<(usize, usize, usize)> {
    if text.is_empty() {
        return None;
    }
    let (mut start, mut count, mut begin) = (0, 0, 0);
    let mut last = None;
    for (at, character) in text.char_indices() {
        let again = last.is_some_and(|last: char| last == character || both_white(last, character));
        if again {
            count += 1;
        } else if count > RUN {
            return Some((start, at - start, begin - start));
        } else {
            (start, count) = (at, 1);
        }
        if count == RUN {
            begin = at + character.len_utf8();
        }
        last = Some(character);
    }
    if count > RUN {
        Some((start, text.len() - start, begin - start))
    } else {
        Some((text.len(), 0, 0))
    }
}

fn both_white(one: char, other: char) -> bool {
    one.is_whitespace() && other.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_counted_as_the_vocabulary_does() {
        for text in [
            "",
            "hello",
            "the quick brown fox\n\tjumps",
            "é😀漢字",
            &"ab ".repeat(300),
        ] {
            let exact = tiktoken_rs::o200k_base_singleton().count_ordinary(text) as u64;
            let bytes = length(text);
            assert_eq!(
                count(text),
                Counted {
                    tokens: exact,
                    bytes
                },
                "{text}"
            );
        }
    }

    #[test]
    fn a_long_run_is_counted_by_its_beginning() {
        for text in [" ", "\t", "a", "=", "😀", "\0", " \t", "\n"] {
            let counted = count(&text.repeat(1_000_000));
            assert!(counted.bytes <= 4 * 256, "{text:?}: {counted:?}");
            assert!(counted.tokens > 0, "{text:?}");
        }
        let run = "-".repeat(4_000);
        let exact = tiktoken_rs::o200k_base_singleton().count_ordinary(&run) as u64;
        let counted = count(&format!("before{run}after")).tokens;
        assert!(
            (exact..=exact * 2 + 4).contains(&counted),
            "{counted} {exact}"
        );
    }

    proptest! {
        #[test]
        fn stretches_joined_are_the_text(text in "(a{0,400}|[ \t]{0,400}|b|é{0,300}){0,6}") {
            let joined: String = stretches(&text)
                .map(|stretch| match stretch {
                    Stretch::Plain(text) => text,
                    Stretch::Run { whole, .. } => whole,
                })
                .collect();
            prop_assert_eq!(joined, text);
        }
    }
}
