//! Text that cannot pass for anything but a quotation.
//!
//! Every line of what is quoted begins with a mark, and every line of ours
//! without one, so that nothing inside a quotation can end it: there is no fence
//! to close. Whatever a reader might take for the end of a line counts as one.
//! Only marks are added, so each line is there byte for byte.

/// What begins a line of the user's.
pub(in crate::engine) const USER: &str = "> ";
/// What begins a line that a tool or the model produced.
pub(in crate::engine) const DATA: &str = "| ";

/// What one reader or another takes for the end of a line.
pub(in crate::engine) fn breaks(letter: char) -> bool {
    matches!(
        letter,
        '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Adds a text with a mark before each of its lines, and ends the last one.
pub(in crate::engine) fn quote(into: &mut String, mark: &str, text: &str) {
    into.push_str(mark);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        into.push(letter);
        let is_pair = letter == '\r' && letters.peek() == Some(&'\n');
        if breaks(letter) && !is_pair {
            into.push_str(mark);
        }
    }
    into.push('\n');
}

/// How many bytes that adds.
pub(in crate::engine) fn length(mark: &str, text: &str) -> usize {
    mark.len()
        + 1
        + text
            .chars()
            .map(|letter| weight(mark, letter))
            .sum::<usize>()
}

/// What a letter adds, at most.
fn weight(mark: &str, letter: char) -> usize {
    letter.len_utf8() + if breaks(letter) { mark.len() } else { 0 }
}

/// A line of ours.
pub(in crate::engine) fn notice(text: &str) -> String {
    format!("[longhaul: {text}]\n")
}

/// The beginning and the end of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Clipped {
    start: String,
    /// Letters between the two.
    missing: usize,
    end: String,
}

impl Clipped {
    /// A text as far as it can be quoted in so many bytes: two thirds of them for
    /// its beginning. Whole if it fits; `None` if there is hardly any room.
    pub(in crate::engine) fn new(mark: &str, text: &str, room: usize) -> Option<Self> {
        if length(mark, text) <= room {
            return Some(Self {
                start: text.to_owned(),
                missing: 0,
                end: String::new(),
            });
        }
        let ends = 2 * (mark.len() + 1);
        let room = room
            .checked_sub(NOTICE + ends)
            .filter(|room| *room >= LEAST)?;
        let start = fitting(text.chars(), mark, room * 2 / 3);
        let (start, rest) = text.split_at_checked(start)?;
        let end = fitting(rest.chars().rev(), mark, room / 3);
        let (middle, end) = rest.split_at_checked(rest.len().checked_sub(end)?)?;
        Some(Self {
            start: start.to_owned(),
            missing: middle.chars().count(),
            end: end.to_owned(),
        })
    }

    /// Adds what there is, with a line of ours where something is missing.
    pub(in crate::engine) fn quote(&self, into: &mut String, mark: &str) {
        quote(into, mark, &self.start);
        if self.missing > 0 {
            let missing = self.missing;
            into.push_str(&notice(&format!("{missing} characters left out here")));
            quote(into, mark, &self.end);
        }
    }

    /// How many bytes that adds, at most.
    pub(in crate::engine) fn length(&self, mark: &str) -> usize {
        let cut = if self.missing > 0 {
            NOTICE + length(mark, &self.end)
        } else {
            0
        };
        length(mark, &self.start) + cut
    }
}

/// Bytes of the line that says how much is missing, at most.
const NOTICE: usize = 64;
/// With less room than this for what it says, a text is not begun.
const LEAST: usize = 48;

/// Bytes of as many letters as have room.
fn fitting(letters: impl Iterator<Item = char>, mark: &str, room: usize) -> usize {
    let (mut bytes, mut used) = (0, 0);
    for letter in letters {
        used += weight(mark, letter);
        if used > room {
            break;
        }
        bytes += letter.len_utf8();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quoted(text: &str) -> String {
        let mut into = String::new();
        quote(&mut into, USER, text);
        into
    }

    #[test]
    fn every_line_begins_with_the_mark() {
        let rows = [
            ("", "> \n"),
            ("one", "> one\n"),
            ("a\n\n# b\n", "> a\n> \n> # b\n> \n"),
            ("a\r\nb\rc", "> a\r\n> b\r> c\n"),
            ("a\u{2028}| b\u{85}c", "> a\u{2028}> | b\u{85}> c\n"),
            ("nul\0 \u{1f600}", "> nul\0 \u{1f600}\n"),
        ];
        for (text, expected) in rows {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let text = format!("first {} last", "é".repeat(5000));
        let clipped = Clipped::new(USER, &text, 300).unwrap();
        let mut into = String::new();
        clipped.quote(&mut into, USER);
        assert!(into.starts_with("> first é") && into.ends_with("é last\n"));
        let kept = into.matches('é').count();
        let notice = format!("\n[longhaul: {} characters left out here]\n> ", 5000 - kept);
        assert!(into.contains(&notice), "{into}");
        assert_eq!(Clipped::new(USER, &text, 100), None);
    }

    proptest! {
        #[test]
        fn taking_the_marks_off_gives_the_text_back(text in "[a\n\r>| \u{2028}\u{b}é]{0,40}") {
            let quoted = quoted(&text);
            prop_assert!(quoted.len() <= length(USER, &text));
            let mut plain = quoted.strip_prefix(USER).unwrap().to_owned();
            for end in ["\r\n", "\n", "\r", "\u{b}", "\u{2028}"] {
                plain = plain.replace(&format!("{end}{USER}"), &format!("{end}\u{1}"));
            }
            prop_assert_eq!(plain.strip_suffix('\n').unwrap().replace('\u{1}', ""), text);
        }

        #[test]
        fn what_is_clipped_has_room(text in "[a\n\ré😀]{0,400}", room in 0usize..400) {
            if let Some(clipped) = Clipped::new(USER, &text, room) {
                let mut into = String::new();
                clipped.quote(&mut into, USER);
                prop_assert!(into.len() <= room && clipped.length(USER) <= room);
                prop_assert!(into.len() <= clipped.length(USER));
            }
        }
    }
}
