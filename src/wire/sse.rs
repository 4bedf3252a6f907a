//! Server-sent events, decoded from pieces cut anywhere.
//!
//! The decoder only watches a stream that has already gone on to the client, so
//! it may forget but never fail: a line or an event over the limit is skipped
//! and the next one is read again. Most of a stream are small deltas nobody asks
//! for; an event whose name is of no interest is passed over without copying.

/// The longest line or event that is kept, in bytes.
const LIMIT: usize = 1 << 20;

/// Decodes one stream.
#[derive(Default)]
pub struct Decoder {
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// The partial line was longer than the limit and has been let go.
    overlong: bool,
    /// The last piece ended in a carriage return: a line feed may follow.
    after_return: bool,
    /// A line has been seen: a byte order mark is no longer one.
    begun: bool,
    event: Vec<u8>,
    data: Vec<u8>,
    state: State,
}

/// What is known of the current event's data.
#[derive(Default, PartialEq, Eq)]
enum State {
    /// There has been none.
    #[default]
    Empty,
    /// All of it so far has been kept.
    Kept,
    /// Some of it was over the limit, so the event is of no use.
    Spoiled,
}

/// Takes the events of a stream.
pub trait Sink {
    /// Whether events of this name are wanted at all.
    fn wants(&self, event: &[u8]) -> bool;
    /// One complete event.
    fn event(&mut self, event: &[u8], data: &[u8]);
}

impl Decoder {
    /// Reads the next piece of the stream.
    pub fn push(&mut self, mut piece: &[u8], sink: &mut impl Sink) {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', piece) {
            let (head, rest) = piece.split_at(end);
            self.end_line(head, sink);
            self.after_return = rest == b"\r";
            piece = match rest {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.keep(piece);
    }

    fn keep(&mut self, part: &[u8]) {
        if self.partial.len() + part.len() > LIMIT {
            self.overlong = true;
            self.partial.clear();
        }
        if !self.overlong {
            self.partial.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, tail: &[u8], sink: &mut impl Sink) {
        if self.partial.is_empty() && !self.overlong && tail.len() <= LIMIT {
            return self.line(tail, sink);
        }
        self.keep(tail);
        let mut line = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.overlong) {
            self.state = State::Spoiled;
        } else {
            self.line(&line, sink);
        }
        line.clear();
        self.partial = line;
    }

    fn line(&mut self, line: &[u8], sink: &mut impl Sink) {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let (field, value) = field(line);
        match field {
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"data" => self.add_data(value, sink),
            _ => {}
        }
    }

    fn add_data(&mut self, value: &[u8], sink: &impl Sink) {
        if !self.event.is_empty() && !sink.wants(&self.event) {
            return;
        }
        if self.data.len() + value.len() >= LIMIT {
            self.state = State::Spoiled;
            self.data.clear();
        }
        match self.state {
            State::Spoiled => return,
            State::Empty => self.state = State::Kept,
            State::Kept => self.data.push(b'\n'),
        }
        self.data.extend_from_slice(value);
    }

    fn dispatch(&mut self, sink: &mut impl Sink) {
        if std::mem::take(&mut self.state) == State::Kept {
            sink.event(&self.event, &self.data);
        }
        self.event.clear();
        self.data.clear();
    }
}

/// A line's field and its value.
pub(super) fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr::memchr(b':', line) else {
        return (line, &[]);
    };
    let (field, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (field, value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Seen(Vec<(String, String)>);

    impl Sink for Seen {
        fn wants(&self, event: &[u8]) -> bool {
            event != b"noise"
        }
        fn event(&mut self, event: &[u8], data: &[u8]) {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            self.0.push((text(event), text(data)));
        }
    }

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut seen = Seen::default();
        let mut decoder = Decoder::default();
        for piece in pieces {
            decoder.push(piece, &mut seen);
        }
        seen.0
    }

    #[test]
    fn lines_fields_comments_and_endings_are_read_as_the_format_says() {
        let rows: &[(&str, &[(&str, &str)])] = &[
            ("event: a\ndata: 1\n\n", &[("a", "1")]),
            ("event: a\r\ndata: 1\r\n\r\n", &[("a", "1")]),
            ("event: a\rdata: 1\r\r", &[("a", "1")]),
            ("\u{feff}data: 1\n\n", &[("", "1")]),
            ("data: 1\ndata: 2\n\n", &[("", "1\n2")]),
            ("data\n\n", &[("", "")]),
            ("data:1\n\ndata:  2\n\n", &[("", "1"), ("", " 2")]),
            (": a comment\n\nid: 7\nretry: 1\n\n", &[]),
            ("event: a\n\ndata: 1\n\n", &[("", "1")]),
            (
                "event: noise\ndata: 1\n\nevent: b\ndata: 2\n\n",
                &[("b", "2")],
            ),
            ("data: never ended\n", &[]),
        ];
        for (stream, expected) in rows {
            let expected: Vec<_> = expected
                .iter()
                .map(|(event, data)| ((*event).to_owned(), (*data).to_owned()))
                .collect();
            assert_eq!(read(&[stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_and_the_next_one_read() {
        let long = format!("data: {}\n\ndata: small\n\n", "x".repeat(LIMIT + 1));
        for size in [1000, LIMIT, 3 * LIMIT] {
            let pieces: Vec<_> = long.as_bytes().chunks(size).collect();
            assert_eq!(read(&pieces), [(String::new(), "small".to_owned())]);
        }
    }

    proptest! {
        #[test]
        fn decoding_does_not_depend_on_where_the_pieces_were_cut(
            lines in prop::collection::vec(
                prop_oneof!["(event|data|id):? ?[a-zé:]{0,5}", Just(String::new())], 0..20),
            endings in prop::collection::vec(prop_oneof!["\n", "\r", "\r\n"], 20),
            cuts in prop::collection::vec(0usize..200, 0..12),
        ) {
            let stream = lines.iter().zip(&endings).fold(String::new(), |text, (line, end)| text + line + end);
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }

        #[test]
        fn any_bytes_at_all_are_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16)) {
            let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
            read(&pieces);
        }
    }
}
