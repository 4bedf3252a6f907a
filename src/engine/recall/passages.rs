//! A long text in passages, so that what is found is near to what was asked.
//!
//! Passages follow each other without a gap and leave nothing out. They end
//! where a line does, if one does anywhere near, else between two words, else
//! between two characters. The same cutting makes the pages of what is shown.

use std::ops::Range;

/// How long a stretch of text may be, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Not shorter than this, as long as more text follows.
    pub least: usize,
    /// About this long.
    pub aim: usize,
    /// A line that ends later than that is still waited for, up to here.
    pub most: usize,
}

/// The size of a passage.
pub const PASSAGE: Size = Size {
    least: 1_000,
    aim: 2_000,
    most: 4_000,
};

/// A text in passages: where each stands, in bytes.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    stretches(text, PASSAGE)
}

/// A text in stretches of some size; none if there is no text.
pub fn stretches(text: &str, size: Size) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty()) {
        let to = from + first(rest, size);
        found.push(from..to);
        from = to;
    }
    found
}

/// Bytes of the first stretch of a text that is not empty.
fn first(text: &str, size: Size) -> usize {
    // The best places so far to end before the aim: behind a line, behind a word.
    let (mut line, mut word) = (None, None);
    let mut aim = None;
    for (count, (at, letter)) in text.char_indices().enumerate() {
        if count == size.aim {
            aim = Some(at);
            if line.is_some() {
                break;
            }
        }
        if count >= size.most {
            break;
        }
        let end = at + letter.len_utf8();
        if count + 1 >= size.least && letter == '\n' {
            line = Some(end);
            if aim.is_some() {
                break;
            }
        }
        if count + 1 >= size.least && aim.is_none() && letter.is_whitespace() {
            word = Some(end);
        }
    }
    // What fits is not parted.
    match aim {
        None => text.len(),
        Some(aim) => line.or(word).unwrap_or(aim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Size = Size {
        least: 4,
        aim: 8,
        most: 12,
    };

    #[test]
    fn a_text_is_parted_at_lines_then_words_then_anywhere() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("short", &["short"]),
            ("12345678", &["12345678"]),
            ("abc\ndef\nghi\n", &["abc\ndef\n", "ghi\n"]),
            ("abcdefghij\nk", &["abcdefghij\n", "k"]),
            ("ab cd ef gh ij", &["ab cd ", "ef gh ij"]),
            ("abcdefghijklmnopq", &["abcdefgh", "ijklmnop", "q"]),
            ("éééééééééé", &["éééééééé", "éé"]),
        ];
        for (text, expected) in rows {
            let ranges = stretches(text, SMALL);
            let parts: Vec<&str> = ranges.into_iter().map(|range| &text[range]).collect();
            assert_eq!(parts, expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn passages_are_whole_characters_in_order_and_leave_nothing_out(
            text in "[a é\n😀漢]{0,80}",
            least in 1usize..6,
            more in 0usize..8,
            most in 0usize..8,
        ) {
            let size = Size { least, aim: least + more, most: least + more + most };
            let mut joined = String::new();
            let ranges = stretches(&text, size);
            let count = ranges.len();
            for (at, range) in ranges.into_iter().enumerate() {
                prop_assert_eq!(range.start, joined.len());
                let part = text.get(range).unwrap();
                let length = part.chars().count();
                prop_assert!(length > 0 && length <= size.most);
                prop_assert!(at + 1 == count || length >= least);
                joined.push_str(part);
            }
            prop_assert_eq!(joined, text);
        }
    }
}
