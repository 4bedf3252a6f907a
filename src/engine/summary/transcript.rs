//! A span as plain text, for a model that has not seen it.
//!
//! Headers stand at the beginning of a line and everything that was said is
//! indented by a space, so that nothing said can pass for a header. Thinking is
//! left out: what came of it was said or done. If the room is too small, the
//! record is made shorter where that hurts least, oldest first: long results keep
//! head and tail, then less of them, then calls, then the assistant's words; the
//! user's own words come last. What is left out is told where it stood.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use super::said::{Said, breaks_line, said, shown, strings};
use crate::engine::conversation::Conversation;
use crate::wire::body::Role;

/// Bytes of a token, where nothing better is known.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Letters of a tool's name that are shown.
const TOOL: usize = 64;
/// Bytes that a notice about something left out may take.
const NOTICE: usize = 64;

/// How long a record may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    bytes: usize,
}

impl Room {
    /// So many tokens, by the usual ratio.
    pub fn of_tokens(tokens: u64) -> Self {
        Self::at(tokens, BYTES_PER_TOKEN)
    }

    /// So many tokens of so many bytes each.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, and a cast of a float saturates"
    )]
    pub fn at(tokens: u64, bytes_per_token: f64) -> Self {
        Self {
            bytes: (tokens as f64 * bytes_per_token.max(0.0)) as usize,
        }
    }

    /// So many bytes.
    pub fn of_bytes(bytes: usize) -> Self {
        Self { bytes }
    }
}

/// A record of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The record.
    pub text: String,
    /// Bytes of it that had to be left out.
    pub left_out: usize,
}

/// The record of these messages, within a room.
pub fn transcript(conversation: &Conversation<'_>, span: Range<usize>, room: Room) -> Transcript {
    let mut pieces = pieces(conversation, span);
    let mut total: usize = pieces.iter().map(Piece::len).sum();
    for (sort, most) in STAGES {
        let alike = pieces.iter_mut().filter(|piece| piece.sort == sort);
        for piece in alike {
            if total <= room.bytes {
                break;
            }
            total -= piece.len();
            piece.shorten(most);
            total += piece.len();
        }
    }
    let mut left_out = pieces.iter().map(|piece| piece.left_out).sum();
    let mut text = String::with_capacity(total);
    for piece in &pieces {
        text.push_str(&piece.header);
        text.push_str(&piece.body);
    }
    if text.len() > room.bytes {
        let cut = Cut::of(&text, room.bytes.saturating_sub(NOTICE));
        left_out += cut.left_out();
        text = cut.joined();
    }
    Transcript { text, left_out }
}

/// What is made shorter, in order, and to how many bytes.
const STAGES: [(Sort, usize); 9] = [
    (Sort::Result, 4_000),
    (Sort::Call, 2_000),
    (Sort::Result, 800),
    (Sort::Call, 400),
    (Sort::Result, 0),
    (Sort::Assistant, 1_000),
    (Sort::Call, 100),
    (Sort::Assistant, 200),
    (Sort::User, 1_000),
];

/// What a piece is, as far as it matters for making it shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    User,
    Assistant,
    Call,
    Result,
}

/// A header, and what was said under it.
#[derive(Debug)]
struct Piece {
    sort: Sort,
    header: String,
    /// Indented, each line ended.
    body: String,
    left_out: usize,
}

impl Piece {
    fn new(sort: Sort, header: String, text: &str) -> Self {
        Self {
            sort,
            header,
            body: indented(text),
            left_out: 0,
        }
    }

    fn len(&self) -> usize {
        self.header.len() + self.body.len()
    }

    fn shorten(&mut self, most: usize) {
        if self.body.len() <= most + NOTICE {
            return;
        }
        // One notice stands for all that was ever left out of a piece.
        let cut = Cut::of(&self.body, most);
        let more = cut.left_out();
        let notice = format!("[{} bytes left out here]\n", self.left_out + more);
        self.body = cut.around(&notice);
        self.left_out += more;
    }
}

/// The head and the tail of a text, at whole lines where there are some near.
struct Cut<'a> {
    text: &'a str,
    head: usize,
    tail: usize,
}

impl<'a> Cut<'a> {
    /// Keeps so many bytes, two thirds of them at the start.
    fn of(text: &'a str, most: usize) -> Self {
        let head = text.floor_char_boundary(most - most / 3);
        let tail = text
            .ceil_char_boundary(text.len().saturating_sub(most / 3))
            .max(head);
        let line = |part: Option<&str>| part.and_then(|part| part.rfind('\n'));
        let near = head - head / 4;
        let head = line(text.get(near..head)).map_or(head, |at| near + at + 1);
        // Half a header would be no header.
        let start = line(text.get(..head)).map_or(0, |at| at + 1);
        let is_header = text
            .get(start..head)
            .is_some_and(|line| line.starts_with('['));
        let head = if is_header { start } else { head };
        let near = text.ceil_char_boundary(tail + (text.len() - tail) / 4);
        let tail_line = text.get(tail..near).and_then(|part| part.find('\n'));
        let tail = tail_line.map_or(tail, |at| tail + at + 1);
        Self { text, head, tail }
    }

    fn left_out(&self) -> usize {
        self.tail - self.head
    }

    fn joined(&self) -> String {
        self.around(&format!(
            "[{} bytes of the record left out here]\n",
            self.left_out()
        ))
    }

    fn around(&self, notice: &str) -> String {
        let head = self.text.get(..self.head).unwrap_or("");
        let tail = self.text.get(self.tail..).unwrap_or("");
        let end = if head.is_empty() || head.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        // What began in the middle of a line must not come to begin one.
        let starts_line = self.text.get(..self.tail).is_none_or(|t| t.ends_with('\n'));
        let indent = if starts_line { "" } else { " " };
        format!("{head}{end}{notice}{indent}{tail}")
    }
}

fn pieces(conversation: &Conversation<'_>, span: Range<usize>) -> Vec<Piece> {
    let tools = tools(conversation);
    let mut pieces = Vec::new();
    for at in span {
        let role = conversation.message(at).map(|message| message.role);
        let (speaker, sort) = match role {
            Some(Role::User) => ("user", Sort::User),
            Some(Role::Assistant) => ("assistant", Sort::Assistant),
            Some(Role::System) => ("system", Sort::User),
            Some(Role::Other) | None => ("other", Sort::Assistant),
        };
        for (index, said) in said(conversation, at).into_iter().enumerate() {
            let number = at + 1;
            let piece = match said {
                Said::Thought(_) => continue,
                Said::Text(text) if text.trim().is_empty() => continue,
                Said::Text(text) => {
                    Piece::new(sort, format!("[message {number}, {speaker}]\n"), &text)
                }
                Said::Call { tool, input } => {
                    let header = format!("[message {number}, {speaker} calls {}]\n", plain(&tool));
                    Piece::new(Sort::Call, header, &shown(&input))
                }
                Said::Result { text, is_error } => {
                    let what = if is_error { "failure" } else { "result" };
                    let tool = tools.get(&(at, index)).map_or("a tool", String::as_str);
                    let header = format!("[message {number}, {what} of {tool}]\n");
                    Piece::new(Sort::Result, header, &text)
                }
                Said::Other(value) => {
                    let mut text = String::new();
                    strings(&value, &mut |word| {
                        let _ = writeln!(text, "{word}");
                    });
                    Piece::new(
                        Sort::Result,
                        format!("[message {number}, {speaker}, other]\n"),
                        &text,
                    )
                }
            };
            pieces.push(piece);
        }
    }
    pieces
}

/// Which tool each result is of.
fn tools(conversation: &Conversation<'_>) -> HashMap<(usize, usize), String> {
    let bytes = conversation.bytes();
    let named = |call: crate::engine::conversation::Call| {
        let name = conversation.block_at(call.used)?.name?;
        Some((
            call.result?,
            plain(&String::from_utf8_lossy(name.of(bytes))),
        ))
    };
    conversation.calls().into_iter().filter_map(named).collect()
}

/// The name of a tool, which is anybody's, as a word in a header.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
    let name: String = name.chars().filter(is_plain).take(TOOL).collect();
    if name.is_empty() {
        "a tool".to_owned()
    } else {
        name
    }
}

/// A text with every line behind a space.
fn indented(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + text.len() / 16 + 2);
    for line in text.trim_end().split(breaks_line) {
        if !line.is_empty() {
            lines.push(' ');
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
