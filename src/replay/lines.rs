//! Lines as the same line, whoever shows them.
//!
//! A file's line may come with its number before it (`   12→`), from a search with
//! its file and number (`src/a.rs:12:`), from a patch with a sign, from a segment
//! with a quotation mark, or inside JSON with its end written as `\n`. To find out
//! whether a view still has a line, all of them must be the same. So each line has
//! several forms, and two lines are the same if they share one. Space at both ends
//! never counts.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// A line with fewer letters and digits says nothing by itself.
const LEAST: usize = 3;

/// A line in short: two lines with the same key are taken for the same.
pub type LineKey = u64;

/// The key of a line as it is, without space at its ends.
pub fn key(line: &str) -> LineKey {
    let mut hasher = DefaultHasher::new();
    line.trim().hash(&mut hasher);
    hasher.finish()
}

/// Whether a line says something: a lone bracket stands everywhere.
pub fn is_weighty(line: &str) -> bool {
    let signs = line.chars().filter(|letter| letter.is_alphanumeric());
    signs.take(LEAST).count() == LEAST
}

/// A line without the number that a tool has put before it.
pub fn unnumbered(line: &str) -> &str {
    let start = line.trim_start();
    let rest = start.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let cut = rest
        .strip_prefix('→')
        .or_else(|| rest.strip_prefix('\t'))
        .filter(|_| rest.len() < start.len());
    cut.unwrap_or(line)
}

/// The forms of a line, from the line as it is to what is left without all that
/// tools and quotations put before one.
pub fn forms(line: &str) -> impl Iterator<Item = &str> {
    let peels: [fn(&str) -> &str; 4] = [unquoted, unnumbered, unplaced, unsigned];
    let whole = line.trim();
    let peeled = peels.into_iter().scan(whole, |last, peel| {
        let next = peel(last).trim();
        let is_new = next.len() < last.len();
        *last = next;
        Some(is_new.then_some(next))
    });
    std::iter::once(whole).chain(peeled.flatten())
}

/// Without the mark of a quotation.
fn unquoted(line: &str) -> &str {
    let cut = line.strip_prefix("> ").or_else(|| line.strip_prefix("| "));
    cut.unwrap_or(line)
}

/// Without the file and number that a search has put before it.
fn unplaced(line: &str) -> &str {
    let number = |text: &'_ str| -> Option<usize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let ends = text.get(digits..)?.starts_with([':', '-']);
        (digits > 0 && ends).then_some(digits + 1)
    };
    if let Some(cut) = number(line) {
        return line.get(cut..).unwrap_or(line);
    }
    let place = line.find([':', ' ']).filter(|at| *at > 0);
    let behind = place.and_then(|at| line.get(at..)?.strip_prefix(':'));
    let cut = behind.and_then(|rest| rest.get(number(rest)?..));
    cut.unwrap_or(line)
}

/// Without the sign of a patch.
fn unsigned(line: &str) -> &str {
    line.strip_prefix(['+', '-']).unwrap_or(line)
}

/// A text with what is written in it as JSON once more, decoded, behind it.
pub fn readable(text: &str) -> Cow<'_, str> {
    let is_wrapped = text.trim_start().starts_with(['{', '[']) && text.contains("\\n");
    if !is_wrapped {
        return Cow::Borrowed(text);
    }
    let mut both = String::with_capacity(text.len() * 2 + 1);
    both.push_str(text);
    both.push('\n');
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n' | 'r') => both.push('\n'),
                Some('t') => both.push('\t'),
                Some(other) => both.push(other),
                None => both.push('\\'),
            },
            (letter, false) => both.push(letter),
        }
    }
    Cow::Owned(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_same_whoever_shows_it() {
        let line = "let port = 8443;";
        for shown in [
            "    let port = 8443;",
            "   12→    let port = 8443;",
            "12\tlet port = 8443;",
            "12:    let port = 8443;",
            "src/a.rs:12:    let port = 8443;",
            "src/a.rs:12-let port = 8443;",
            "+    let port = 8443;",
            "-let port = 8443;",
            "| let port = 8443;",
            "| 12: let port = 8443;",
            ">    12→let port = 8443;",
        ] {
            assert!(forms(shown).any(|form| form == line), "{shown}");
        }
        for other in ["let port = 84;", "port let 8443", "x let port = 8443;"] {
            assert!(forms(other).all(|form| form != line), "{other}");
        }
        assert_eq!(key("  a b "), key("a b"));
    }

    #[test]
    fn a_bracket_says_nothing() {
        for (line, expected) in [("});", false), ("  a1 ", false), ("end", true), ("", false)] {
            assert_eq!(is_weighty(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_written_as_json_is_decoded() {
        let text = r#"{"output":"one = \"1\"\n\ttwo_b\\c"}"#;
        let lines: Vec<String> = readable(text).lines().map(str::to_owned).collect();
        assert_eq!(lines[1..], ["{\"output\":\"one = \"1\"", "\ttwo_b\\c\"}"]);
        assert!(matches!(readable("let x = '\\n';"), Cow::Borrowed(_)));
    }
}
