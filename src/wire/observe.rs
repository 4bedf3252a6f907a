//! Reads a response while it passes.
//!
//! The observer is shown every byte after it was handed on and can hold nothing
//! up. It knows three kinds of body: an event stream, a JSON message, and the
//! rest, which it does not read. A JSON message is kept until its end, up to a
//! limit; a stream needs no more than its current event.

use http::{HeaderMap, header};

use super::encoding::{Coding, Decoder};
use super::reply::Reply;
use super::sse;

/// The largest JSON message that is read.
const MESSAGE_LIMIT: usize = 4 << 20;

/// What a body is, as far as it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A stream of events.
    Stream,
    /// A JSON message.
    Message,
}

impl Kind {
    /// What the headers say a body is; `None` for anything else.
    pub fn declared(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        match kind.split(';').next().unwrap_or("").trim() {
            kind if kind.eq_ignore_ascii_case("text/event-stream") => Some(Self::Stream),
            kind if kind.eq_ignore_ascii_case("application/json") => Some(Self::Message),
            _ => None,
        }
    }
}

/// Watches one response body.
pub struct Observer {
    decoder: Decoder,
    shape: Shape,
    reply: Reply,
}

enum Shape {
    Stream(sse::Decoder),
    Message(Vec<u8>),
    Unread,
}

impl Observer {
    /// An observer for a body with these headers.
    pub fn new(headers: &HeaderMap) -> Self {
        let coding = Coding::declared(headers);
        let shape = match Kind::declared(headers).filter(|_| coding.is_some()) {
            Some(Kind::Stream) => Shape::Stream(sse::Decoder::default()),
            Some(Kind::Message) => Shape::Message(Vec::new()),
            None => Shape::Unread,
        };
        Self {
            decoder: Decoder::new(coding.unwrap_or(Coding::Identity)),
            shape,
            reply: Reply::default(),
        }
    }

    /// Reads the next piece, as it came over the wire.
    pub fn push(&mut self, piece: &[u8]) {
        let Self {
            decoder,
            shape,
            reply,
        } = self;
        if matches!(shape, Shape::Unread) {
            return;
        }
        decoder.push(piece, |readable| match shape {
            Shape::Stream(events) => events.push(readable, reply),
            Shape::Message(body) if body.len() + readable.len() <= MESSAGE_LIMIT => {
                body.extend_from_slice(readable);
            }
            Shape::Message(_) => *shape = Shape::Unread,
            Shape::Unread => {}
        });
    }

    /// What is known of a stream so far.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// What is known in the end.
    pub fn finish(mut self) -> Reply {
        if let Shape::Message(body) = &self.shape {
            self.reply.read_message(body);
        }
        self.reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        rows.iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_compressed_stream_is_read_event_by_event_as_it_passes() {
        let mut observer = Observer::new(&headers(&[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("content-encoding", "gzip"),
        ]));
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let event = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n";
        writer.write_all(event.as_bytes()).unwrap();
        writer.flush().unwrap();
        observer.push(writer.get_ref());
        assert_eq!(observer.reply().id.as_deref(), Some("msg_1"));
    }

    #[test]
    fn a_message_in_pieces_is_read_at_its_end_and_other_types_are_not_read() {
        let body = br#"{"id":"msg_1","type":"message","usage":{"input_tokens":1}}"#;
        for (kind, expected) in [
            ("application/json", Some("msg_1")),
            ("Application/JSON; charset=utf-8", Some("msg_1")),
            ("text/html", None),
        ] {
            let mut observer = Observer::new(&headers(&[("content-type", kind)]));
            body.chunks(3).for_each(|piece| observer.push(piece));
            assert_eq!(observer.finish().id.as_deref(), expected, "{kind}");
        }
    }
}
