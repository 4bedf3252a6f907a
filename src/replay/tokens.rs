//! The words of a text that are specific: paths, symbols, ids and numbers.
//!
//! An agent that acts on such a word has read it somewhere; a word of the
//! language it could have written anyway. A word is a run of ASCII letters,
//! digits and `_./-@`, without signs at its ends, of 4 to 160 bytes. It counts if
//!
//! - it is put together: it has `_`, a capital behind a small letter, letters
//!   and digits, or is a path (`max_bytes`, `parseHeader`, `v2`, `src/a.rs`);
//! - it is a dotted name (`Cargo.toml`, `config.load`);
//! - it is a number, version or address of at least four digits that is not
//!   round (`8443`, `10.0.3.17`, not `2000`: round numbers are made up anew).
//!
//! Line numbers that a tool puts before each line are no words of that line.

use super::lines::unnumbered;
use super::probes::{bare_words, is_telling};

/// The shortest and longest word that counts.
const LENGTH: std::ops::RangeInclusive<usize> = 4..=160;
/// The fewest digits of a number that counts.
const DIGITS: usize = 4;
/// The longest ending of a dotted name.
const ENDING: usize = 12;

/// The specific words of a text, in order.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let words = text.lines().map(unnumbered).flat_map(bare_words);
    words.filter(|word| is_specific(word))
}

/// Whether a word is specific.
fn is_specific(word: &str) -> bool {
    LENGTH.contains(&word.len()) && (is_telling(word) || is_dotted(word) || is_number(word))
}

/// Whether a word is a number, version or address that nobody would make up.
pub fn is_number(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let only = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    only && digits >= DIGITS && !word.ends_with("00")
}

/// Whether a word is a name with an ending.
fn is_dotted(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(stem, ending)| {
        let letters = |part: &str| part.bytes().any(|byte| byte.is_ascii_alphabetic());
        let plain = ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        stem.len() > 1 && letters(stem) && letters(ending) && plain && ending.len() <= ENDING
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_symbols_ids_and_numbers_count_and_words_of_a_language_do_not() {
        let rows: [(&str, &[&str]); 8] = [
            ("Please look at the either/or of it.", &[]),
            ("open src/a.rs and Cargo.toml", &["src/a.rs", "Cargo.toml"]),
            (
                "parseHeader(max_bytes, b_id)",
                &["parseHeader", "max_bytes", "b_id"],
            ),
            ("port 8443, limit 2000, 12", &["8443"]),
            (
                "10.0.3.17:5432 with 1.24.7",
                &["10.0.3.17", "5432", "1.24.7"],
            ),
            ("ids OPS-4711 and deadbeef1", &["OPS-4711", "deadbeef1"]),
            ("  1201→let x = y\n1202\tcall(some_z)", &["some_z"]),
            ("on 2026-11-18", &[]),
        ];
        for (text, expected) in rows {
            let found: Vec<&str> = tokens(text).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
