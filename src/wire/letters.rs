//! The letters of a JSON string, and where each stands in its bytes.
//!
//! A letter may be written in up to twelve bytes: as itself, as an escape, or as
//! a pair of escapes for one letter outside the basic plane. Whoever cuts a
//! string between two letters found here cuts no sequence and no escape in two.
//! What a strict reader would refuse ends the reading.

/// A stretch that is no letter: a broken escape, half of a pair, a bare control
/// character, or the end of the string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odd;

/// Reads the inside of a string, letter by letter.
#[derive(Debug, Clone)]
pub struct Letters<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Letters<'a> {
    /// The letters of a string's inside, the quotes left off; `None` if it is
    /// not UTF-8.
    pub fn new(inside: &'a [u8]) -> Option<Self> {
        let text = simdutf8::basic::from_utf8(inside).ok()?;
        Some(Self { text, at: 0 })
    }
}

impl Iterator for Letters<'_> {
    /// Where a letter begins, and which it is.
    type Item = Result<(usize, char), Odd>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let begins = self.at;
        let Some((letter, length)) = letter(rest) else {
            // Nothing that follows can be relied on.
            self.at = self.text.len();
            return Some(Err(Odd));
        };
        self.at += length;
        Some(Ok((begins, letter)))
    }
}

/// The first letter, and in how many bytes it is written.
fn letter(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    match first {
        '\\' => escaped(text),
        '"' | '\0'..'\u{20}' => None,
        _ => Some((first, first.len_utf8())),
    }
}

fn escaped(text: &str) -> Option<(char, usize)> {
    let letter = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return by_number(text),
        _ => return None,
    };
    Some((letter, 2))
}

fn by_number(text: &str) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let Some(letter) = char::from_u32(u32::from(first)) {
        return Some((letter, 6));
    }
    let second = unit(text.get(6..)?)?;
    let mut pair = char::decode_utf16([first, second]);
    pair.next()?.ok().map(|letter| (letter, 12))
}

/// The number of an escape such as `\u00e9`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(inside: &[u8]) -> Option<Vec<(usize, char)>> {
        Letters::new(inside)?.collect::<Result<_, _>>().ok()
    }

    #[test]
    fn every_way_to_write_a_letter_is_one_letter() {
        let inside = r#"a\né\u00e9😀\ud83d\uDE00\"\\\/\b\f\r\t"#;
        let letters: String = read(inside.as_bytes())
            .unwrap()
            .iter()
            .map(|l| l.1)
            .collect();
        assert_eq!(letters, "a\néé😀😀\"\\/\u{8}\u{c}\r\t");
        assert_eq!(
            letters,
            serde_json::from_str::<String>(&format!("\"{inside}\"")).unwrap()
        );
    }

    #[test]
    fn what_is_no_letter_ends_the_reading() {
        for inside in [
            r"\q",
            r"\",
            r"\u12",
            r"\u+123",
            r"\ud83d",
            r"\ude00",
            r"\ud83dx",
            r"\ud83d\u0041",
            r"\ud83d\n",
            r"\u00é9",
            "a\nb",
            "\u{1}",
            "\"",
        ] {
            assert_eq!(read(inside.as_bytes()), None, "{inside}");
            let mut letters = Letters::new(inside.as_bytes()).unwrap();
            assert!(letters.by_ref().any(|letter| letter.is_err()));
            assert_eq!(letters.next(), None);
        }
        assert_eq!(read(b"\xff"), None);
        assert_eq!(read(b""), Some(vec![]));
    }

    proptest! {
        /// As strict as the reader everybody else uses, and of the same opinion.
        #[test]
        fn it_reads_what_a_parser_reads(inside in r#"([a-zé😀]|\\[nrt"/\\bfq]|\\u[0-9d][089a-e][0-9a-f]{2}|\\ud83d\\ude0[0-9]){0,12}"#) {
            let parsed = serde_json::from_str::<String>(&format!("\"{inside}\"")).ok();
            let ours = read(inside.as_bytes());
            prop_assert_eq!(ours.as_ref().map(|all| all.iter().map(|l| l.1).collect::<String>()), parsed);
            for (at, letter) in ours.unwrap_or_default() {
                prop_assert!(inside.is_char_boundary(at));
                prop_assert!(inside[at..].starts_with(letter) || inside[at..].starts_with('\\'));
            }
        }

        #[test]
        fn any_bytes_at_all_are_survived(inside in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&inside);
        }
    }
}
