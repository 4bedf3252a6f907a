//! Which words an entry can be found by.
//!
//! Words come ready made, but what is made from a conversation can be made
//! wrong: a word with a space in it would be two, one in capitals would be found
//! in one home and not in another. So every home keeps and looks for the same
//! words, and the rest are as if they were not there.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Match;

/// The most bytes of a word.
const BYTES: usize = 64;

/// The most words that are looked for at once.
pub const AT_ONCE: usize = 32;

/// The most entries that are found by one word: the newest.
pub const NEWEST: usize = 2_048;

/// Whether something is a word: of small letters, digits, `_` and anything
/// beyond ASCII, and not of the form that is reserved for a home's own use.
pub fn is_word(word: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || !byte.is_ascii()
    };
    !word.is_empty() && word.len() <= BYTES && word.bytes().all(plain) && !is_reserved(word)
}

/// The newest entries of each word, given by its bit, as entries with their words.
pub fn merged(of_word: HashMap<u32, Vec<i64>>) -> Vec<Match> {
    let mut found: HashMap<i64, u32> = HashMap::new();
    for (bit, mut numbers) in of_word {
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        for number in numbers.into_iter().take(NEWEST) {
            *found.entry(number).or_default() |= 1 << bit;
        }
    }
    let found = found.into_iter();
    let mut found: Vec<_> = found
        .map(|(number, terms)| Match { number, terms })
        .collect();
    found.sort_unstable_by_key(|found| Reverse(found.number));
    found
}

/// `zz` and 32 hexadecimal digits, whatever follows.
fn is_reserved(word: &str) -> bool {
    let digits = word.strip_prefix("zz").and_then(|rest| rest.get(..32));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_plain_and_not_reserved() {
        let digits = "0123456789abcdef0123456789abcdef";
        for word in [
            "a",
            "_",
            "x1_y",
            "\u{e9}t\u{e9}",
            "zz",
            &format!("zz{}", &digits[1..]),
        ] {
            assert!(is_word(word), "{word}");
        }
        let long = "a".repeat(65);
        let reserved = format!("zz{digits}");
        let longer = format!("zz{digits}0");
        for none in [
            "", "A", "a b", "a\"", "a\0", "a*", "a-b", &long, &reserved, &longer,
        ] {
            assert!(!is_word(none), "{none}");
        }
    }
}
