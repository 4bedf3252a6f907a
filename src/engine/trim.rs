//! Head and tail of an oversized tool result.
//!
//! What is kept are the client's own bytes; only the notice in the middle is
//! written here. Lengths are in letters, because that is what settings speak of,
//! and a cut falls between two letters, at the start of a line where one is
//! near. A result may hold several blocks: its text is cut as if it were one,
//! pictures and the like stay as they are, and a block that says more than its
//! text stays with its text shortened. What is not understood is not trimmed.
//! Cache marks have been taken out before: they are no part of a result.

use std::ops::Range;

use super::pinned::decode;
use super::stub::quoted;
use crate::wire::letters::Letters;
use crate::wire::scan::{Cursor, Span, says};

/// What stands in a block that lost its text and must stay.
const LOST: &str = "[...]";

/// How much of a result is kept, in letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// A result with no more than so many stays as it is.
    pub max_chars: usize,
    /// Kept of its beginning, at most.
    pub head: usize,
    /// Kept of its end, at most.
    pub tail: usize,
}

/// What a notice may tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut<'a> {
    /// Letters of the whole result.
    pub chars: usize,
    /// Letters that are left out.
    pub cut_chars: usize,
    /// Line ends that are left out.
    pub cut_lines: usize,
    /// What is left out, as it stands inside JSON strings.
    removed: Vec<&'a [u8]>,
}

impl Cut<'_> {
    /// The text that is left out.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.removed {
            let string = [b"\"", *part, b"\""].concat();
            text.push_str(&decode::string(&string).unwrap_or_default());
            text.push('\n');
        }
        text
    }
}

/// A smaller result of the same kind, as JSON; `None` if it need not or cannot
/// be smaller. `payload` is the value of a result's `content`; `notice` writes
/// the plain text that stands where something is left out.
pub fn trim(payload: &[u8], keep: Keep, notice: impl FnOnce(Cut<'_>) -> String) -> Option<String> {
    // A letter takes a byte or more.
    if payload.len() <= keep.max_chars {
        return None;
    }
    let content = Content::read(payload)?;
    let chars: usize = content.texts.iter().map(|text| text.chars).sum();
    if chars <= keep.max_chars || keep.head.checked_add(keep.tail)? >= chars {
        return None;
    }
    let (head, tail) = content.places(keep, chars)?;
    let notice = notice(Cut {
        chars,
        cut_chars: tail.index - head.index,
        cut_lines: tail.lines - head.lines,
        removed: content.between(head, tail),
    });
    let trimmed = content.spliced(&content.changes(head, tail, &notice)?)?;
    (trimmed.len() < payload.len()).then_some(trimmed)
}

/// A text of a result.
struct Text {
    /// Which block holds it.
    block: usize,
    /// Where it stands, without its quotes.
    inside: Range<usize>,
    /// Its letters.
    chars: usize,
    /// Its block says nothing else.
    is_plain: bool,
}

/// A place between two letters.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Letters before it, of the whole result.
    index: usize,
    /// Line ends before it.
    lines: usize,
    /// Which text it is in.
    text: usize,
    /// Which byte it stands before.
    byte: usize,
    /// A line starts here.
    starts_line: bool,
}

/// A result, taken apart.
struct Content<'a> {
    payload: &'a [u8],
    /// All blocks of an array.
    blocks: Vec<Span>,
    texts: Vec<Text>,
}

impl<'a> Content<'a> {
    fn read(payload: &'a [u8]) -> Option<Self> {
        let mut content = Self {
            payload,
            blocks: Vec::new(),
            texts: Vec::new(),
        };
        let mut cursor = Cursor::new(payload);
        if cursor.peek()? == b'"' {
            let text = cursor.string().ok()?;
            content.add(text, true)?;
        } else {
            cursor.expect(b'[').ok()?;
            let mut first = true;
            while cursor.element(&mut first).ok()? {
                content.block(&mut cursor)?;
            }
        }
        cursor.finish().ok()?;
        Some(content)
    }

    fn block(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.peek();
        let begin = *cursor;
        cursor.expect(b'{').ok()?;
        let (mut kind, mut text, mut is_plain, mut first) = (None, None, true, true);
        while let Some(key) = cursor.key(&mut first).ok()? {
            let value = cursor.value().ok()?;
            let place = match &*key.name(self.payload) {
                b"type" => &mut kind,
                b"text" => &mut text,
                _ => {
                    is_plain = false;
                    continue;
                }
            };
            if place.replace(value).is_some() {
                return None;
            }
        }
        if says(kind?.of(self.payload), "text") {
            self.add(text?, is_plain)?;
        }
        self.blocks.push(begin.up_to(cursor));
        Some(())
    }

    fn add(&mut self, string: Span, is_plain: bool) -> Option<()> {
        let range = string.range();
        let [b'"', .., b'"'] = self.payload.get(range.clone())? else {
            return None;
        };
        let inside = range.start + 1..range.end - 1;
        let letters = Letters::new(self.payload.get(inside.clone())?)?;
        let mut chars = 0;
        for letter in letters {
            letter.ok()?;
            chars += 1;
        }
        self.texts.push(Text {
            block: self.blocks.len(),
            inside,
            chars,
            is_plain,
        });
        Some(())
    }

    /// The letters of a text from a byte on, each with the byte it begins at.
    fn letters(&self, from: usize, text: &Text) -> Option<impl Iterator<Item = (usize, char)>> {
        let letters = Letters::new(self.payload.get(from..text.inside.end)?)?;
        Some(
            letters
                .flatten()
                .map(move |(at, letter)| (from + at, letter)),
        )
    }

    /// Where the kept head ends, and where the kept tail begins.
    fn places(&self, keep: Keep, chars: usize) -> Option<(Place, Place)> {
        let from = chars - keep.tail;
        let near_head = keep.head - keep.head / 4..=keep.head;
        let near_tail = from..=from + keep.tail / 4;
        let (mut head, mut tail, mut tail_line) = (None, None, None);
        let (mut index, mut lines) = (0, 0);
        for (at, text) in self.texts.iter().enumerate() {
            let mut starts_line = true;
            for (byte, letter) in self.letters(text.inside.start, text)? {
                let place = Place {
                    index,
                    lines,
                    text: at,
                    byte,
                    starts_line,
                };
                if index == keep.head && head.is_none() || starts_line && near_head.contains(&index)
                {
                    head = Some(place);
                }
                if starts_line && near_tail.contains(&index) {
                    tail_line.get_or_insert(place);
                }
                if index == from {
                    tail = Some(place);
                }
                index += 1;
                starts_line = letter == '\n';
                lines += usize::from(starts_line);
            }
        }
        let end = Place {
            index,
            lines,
            text: self.texts.len(),
            byte: self.payload.len(),
            starts_line: true,
        };
        let (head, tail) = (head?, tail_line.or(tail).unwrap_or(end));
        Some((head, self.past_blanks(head, tail, end)?))
    }

    /// The API takes no text of nothing but white space: where no more than that
    /// would be kept of a text, none of it is.
    fn past_blanks(&self, head: Place, tail: Place, end: Place) -> Option<Place> {
        let Some(text) = self.texts.get(tail.text) else {
            return Some(tail);
        };
        if tail.text == head.text || tail.byte == text.inside.start {
            return Some(tail);
        }
        let mut place = tail;
        for (_, letter) in self.letters(tail.byte, text)? {
            if !letter.is_whitespace() {
                return Some(tail);
            }
            place.index += 1;
            place.lines += usize::from(letter == '\n');
        }
        let next = self.texts.get(tail.text + 1);
        Some(Place {
            text: tail.text + 1,
            byte: next.map_or(end.byte, |next| next.inside.start),
            starts_line: true,
            ..place
        })
    }

    /// The text between two places.
    fn between(&self, head: Place, tail: Place) -> Vec<&'a [u8]> {
        let texts = self.texts.iter().enumerate();
        let within = texts.filter(|(at, _)| (head.text..=tail.text).contains(at));
        within
            .filter_map(|(at, text)| {
                let Range { mut start, mut end } = text.inside;
                if at == head.text {
                    start = head.byte;
                }
                if at == tail.text {
                    end = tail.byte;
                }
                self.payload.get(start..end)
            })
            .collect()
    }

    /// What stands where, in order.
    fn changes(
        &self,
        head: Place,
        tail: Place,
        notice: &str,
    ) -> Option<Vec<(Range<usize>, String)>> {
        let before = if head.starts_line { "" } else { "\n" };
        let first = self.texts.get(head.text)?;
        if head.text == tail.text {
            let next = self.letters(tail.byte, first)?.next();
            let after = match next {
                Some((_, '\n')) | None => "",
                Some(_) => "\n",
            };
            let notice = inside(&format!("{before}{notice}{after}"));
            return Some(vec![(head.byte..tail.byte, notice)]);
        }
        let notice = inside(&format!("{before}{notice}"));
        let mut changes = vec![(head.byte..first.inside.end, notice)];
        for text in self.texts.get(head.text + 1..tail.text)? {
            if text.is_plain {
                // The block before it stays or has gone with its own comma.
                let before = self.blocks.get(text.block.checked_sub(1)?)?;
                let own = self.blocks.get(text.block)?;
                changes.push((before.end()..own.end(), String::new()));
            } else if text.chars > LOST.len() {
                changes.push((text.inside.clone(), LOST.to_owned()));
            }
        }
        if let Some(last) = self.texts.get(tail.text) {
            changes.push((last.inside.start..tail.byte, String::new()));
        }
        Some(changes)
    }

    fn spliced(&self, changes: &[(Range<usize>, String)]) -> Option<String> {
        let mut trimmed = Vec::new();
        let mut done = 0;
        for (range, with) in changes {
            trimmed.extend_from_slice(self.payload.get(done..range.start)?);
            trimmed.extend_from_slice(with.as_bytes());
            done = range.end;
        }
        trimmed.extend_from_slice(self.payload.get(done..)?);
        String::from_utf8(trimmed).ok()
    }
}

/// A text as it stands in a JSON string, without the quotes.
fn inside(text: &str) -> String {
    let mut string = quoted(text);
    string.pop();
    string.split_off(1.min(string.len()))
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
