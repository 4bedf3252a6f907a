//! An answer that passes, with a report put into it.
//!
//! A stream goes on as it comes. Only an event that calls itself a
//! `message_delta` is held until it is whole, and goes on with the report in its
//! data; every other byte is upstream's. A message that is not streamed is held
//! to its end, which is when a client can begin to read it anyway. What grows
//! too large to be held, or ends before it is whole, goes on as it is.
//!
//! A compressed answer is unfolded and goes on so: whoever uses this must take
//! the content coding, and the length, out of the answer's headers.

use http::HeaderMap;

use super::encoding::{Coding, Decoder};
use super::observe::Kind;
use super::report::Report;
use super::sse;

/// The longest event that is held.
const EVENT: usize = 1 << 20;
/// The longest message that is held.
const MESSAGE: usize = 8 << 20;
/// The longest line that is looked at: no name of an event is longer.
const LINE: usize = 64;

/// Puts a report into one body.
pub struct Rewriter {
    decoder: Decoder,
    report: Report,
    shape: Shape,
}

enum Shape {
    Stream(Stream),
    /// What has come of a message.
    Message(Vec<u8>),
    /// Goes on as it is.
    Passing,
}

impl Rewriter {
    /// A rewriter for a body with these headers; `None` if it is of a kind, or
    /// packed in a way, that is not understood.
    pub fn new(report: Report, headers: &HeaderMap) -> Option<Self> {
        let shape = match Kind::declared(headers)? {
            Kind::Stream => Shape::Stream(Stream::default()),
            Kind::Message => Shape::Message(Vec::new()),
        };
        let decoder = Decoder::new(Coding::declared(headers)?);
        Some(Self {
            decoder,
            report,
            shape,
        })
    }

    /// Takes the next piece as it came; what goes on of it and what was held.
    /// `None` if it cannot be unfolded, so that nothing can follow.
    pub fn push(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let Self {
            decoder,
            report,
            shape,
        } = self;
        let mut out = Vec::new();
        decoder.push(piece, |readable| match shape {
            Shape::Stream(stream) => stream.push(readable, *report, &mut out),
            Shape::Message(held) => {
                // White space in front keeps a connection alive.
                let waits = held.is_empty() && readable.iter().all(u8::is_ascii_whitespace);
                if waits || held.len() + readable.len() > MESSAGE {
                    out.append(held);
                    out.extend_from_slice(readable);
                    if !waits {
                        *shape = Shape::Passing;
                    }
                } else {
                    held.extend_from_slice(readable);
                }
            }
            Shape::Passing => out.extend_from_slice(readable),
        });
        (!decoder.failed()).then_some(out)
    }

    /// The body has come to its proper end: what was held.
    pub fn finish(self) -> Vec<u8> {
        match self.shape {
            Shape::Message(held) => match self.report.addition(&held, "message") {
                Some((range, text)) => {
                    let mut held = held;
                    held.splice(range, text.into_bytes());
                    held
                }
                None => held,
            },
            _ => self.broken(),
        }
    }

    /// The body has broken off: what was held, as it is.
    pub fn broken(self) -> Vec<u8> {
        match self.shape {
            Shape::Stream(stream) => stream.held.unwrap_or_default(),
            Shape::Message(held) => held,
            Shape::Passing => Vec::new(),
        }
    }
}

/// A stream of events on its way.
#[derive(Default)]
struct Stream {
    /// The beginning of the current line.
    line: Vec<u8>,
    /// The last piece ended in a carriage return: a line feed may follow.
    after_return: bool,
    /// A line has been seen: a byte order mark is no longer one.
    begun: bool,
    /// Data of the current event has gone on already.
    is_spoken: bool,
    /// What has come of an event that will be changed, behind its name.
    held: Option<Vec<u8>>,
}

impl Stream {
    fn push(&mut self, mut piece: &[u8], report: Report, out: &mut Vec<u8>) {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            if let [feed @ b'\n', rest @ ..] = piece {
                // Of the line before, which may be the one with the name.
                match &mut self.held {
                    Some(held) if !held.is_empty() => held.push(*feed),
                    _ => out.push(*feed),
                }
                piece = rest;
            }
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', piece) {
            let ends_in = match piece.get(end..) {
                Some([b'\r', b'\n', ..]) => 2,
                _ => 1,
            };
            let (line, rest) = piece.split_at(end + ends_in);
            self.after_return = line.ends_with(b"\r") && rest.is_empty();
            self.note(line.get(..end).unwrap_or(line));
            self.hand_on(line, out);
            self.end_line(report, out);
            piece = rest;
        }
        self.note(piece);
        self.hand_on(piece, out);
    }

    /// Remembers the beginning of a line.
    fn note(&mut self, part: &[u8]) {
        let room = LINE.saturating_sub(self.line.len()).min(part.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or(&[]));
    }

    fn hand_on(&mut self, part: &[u8], out: &mut Vec<u8>) {
        match &mut self.held {
            Some(held) if held.len() + part.len() <= EVENT => held.extend_from_slice(part),
            held => {
                out.append(&mut held.take().unwrap_or_default());
                out.extend_from_slice(part);
            }
        }
    }

    fn end_line(&mut self, report: Report, out: &mut Vec<u8>) {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let line = match self.line.strip_prefix(b"\xef\xbb\xbf") {
            Some(line) if is_first => line,
            _ => &self.line,
        };
        match sse::field(line) {
            _ if line.is_empty() => {
                self.is_spoken = false;
                if let Some(event) = self.held.take() {
                    out.extend_from_slice(&reported(event, report));
                }
            }
            (b"event", b"message_delta") if !self.is_spoken => {
                self.held.get_or_insert_default();
            }
            (b"event", _) => out.append(&mut self.held.take().unwrap_or_default()),
            (b"data", _) => self.is_spoken |= self.held.is_none(),
            _ => {}
        }
        self.line.clear();
    }
}

/// An event, whole but for its name, with the report in its data.
fn reported(mut event: Vec<u8>, report: Report) -> Vec<u8> {
    let (data, lines) = data_of(&event);
    let Some((range, text)) = report.addition(&data, "message_delta") else {
        return event;
    };
    // The last line that begins before it holds it.
    let line = lines.iter().rfind(|line| line.at <= range.start);
    let place = line.and_then(|line| {
        let start = line.start + (range.start - line.at);
        let end = start + range.len();
        (end <= line.end).then_some(start..end)
    });
    if let Some(place) = place {
        event.splice(place, text.into_bytes());
    }
    event
}

/// A line of data.
struct Line {
    /// Where it begins in the data.
    at: usize,
    /// Where it stands in the event.
    start: usize,
    end: usize,
}

/// The data of an event, and where each line of it stands.
fn data_of(event: &[u8]) -> (Vec<u8>, Vec<Line>) {
    let (mut data, mut lines, mut done) = (Vec::new(), Vec::new(), 0);
    while let Some(rest) = event.get(done..).filter(|rest| !rest.is_empty()) {
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, rest) = rest.split_at(length);
        let end = done + length;
        if let (b"data", value) = sse::field(line) {
            if !lines.is_empty() {
                data.push(b'\n');
            }
            lines.push(Line {
                at: data.len(),
                start: end - value.len(),
                end,
            });
            data.extend_from_slice(value);
        }
        done = end + if rest.starts_with(b"\r\n") { 2 } else { 1 };
    }
    (data, lines)
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
