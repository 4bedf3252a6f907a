//! A message taken apart, so that every large content is stored once.
//!
//! A history comes again with every request, and much of it comes more than
//! once. What is large in a message is therefore stored as a piece of its own,
//! under the hash of its bytes: what a tool gave back, any other block, a text
//! that is the whole content. The rest of the message is kept literally, with
//! the names of the pieces in between, and put together again it is the message
//! byte for byte.
//!
//! The stored form begins with its version, and one that was cut off or changed
//! is noticed where it no longer adds up.

use std::ops::Range;

use super::conversation::Conversation;
use super::ids::BlobId;
use crate::wire::body::Kind;
use crate::wire::scan::Span;

/// Content from this many bytes on is a piece of its own.
pub const PIECE: usize = 512;

/// The stored form that is written.
const VERSION: u8 = 1;
/// What marks a part.
const LITERAL: u8 = 0;
const CONTENT: u8 = 1;

/// A message: literal bytes, with content in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    bytes: &'a [u8],
    span: Range<usize>,
    /// Where the pieces stand, in order.
    contents: Vec<Range<usize>>,
}

impl Parts<'_> {
    /// Where the pieces stand in the body, in order.
    pub fn contents(&self) -> &[Range<usize>] {
        &self.contents
    }
}

/// A part of a message that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Literal(Vec<u8>),
    /// The bytes of a piece.
    Content(BlobId),
}

/// A stored message that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    /// It was written by a version that is not known here.
    #[error("a kept message of the unknown version {0}")]
    Version(u8),
    /// It does not add up.
    #[error("a kept message is damaged at byte {0}")]
    At(usize),
}

/// What a block holds that is worth finding again, and where it stands: what a
/// tool gave back, else the block as a whole. A text that is the whole content
/// counts as block 0.
pub fn content(conversation: &Conversation<'_>, place: (usize, usize)) -> Option<Range<usize>> {
    let message = conversation.message(place.0)?;
    if message.is_string {
        return (place.1 == 0).then(|| message.content.range());
    }
    let block = conversation.block_at(place)?;
    match block.kind {
        Kind::ToolResult => block.payload.map(Span::range),
        _ => Some(block.span.range()),
    }
}

/// Whether content is stored as a piece of its own.
pub fn is_piece(content: &Range<usize>) -> bool {
    content.len() >= PIECE
}

/// Takes a message apart; one that is not there has no parts.
pub fn parts<'a>(conversation: &Conversation<'a>, at: usize) -> Parts<'a> {
    let span = conversation.message(at).map(|message| message.span.range());
    let blocks = conversation.blocks(at).len().max(1);
    let contents = (0..blocks).filter_map(|block| content(conversation, (at, block)));
    Parts {
        bytes: conversation.bytes(),
        span: span.unwrap_or_default(),
        contents: contents.filter(is_piece).collect(),
    }
}

/// The stored form, and the pieces it needs, each once. `id` names the content
/// at a place in the body.
pub fn encode(parts: &Parts<'_>, id: &dyn Fn(Range<usize>) -> BlobId) -> (Vec<u8>, Vec<BlobId>) {
    let mut form = vec![VERSION];
    let mut needed = Vec::new();
    let mut rest = parts.span.start;
    let mut count: u32 = 0;
    let mut body = Vec::new();
    let literal = |range: Range<usize>, body: &mut Vec<u8>| {
        let bytes = parts.bytes.get(range).unwrap_or(&[]);
        // Whoever split the body has made sure that it can be measured so.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if length > 0 {
            body.push(LITERAL);
            body.extend(length.to_le_bytes());
            body.extend(bytes);
        }
        u32::from(length > 0)
    };
    for content in &parts.contents {
        count += literal(rest..content.start, &mut body);
        let name = id(content.clone());
        body.push(CONTENT);
        body.extend(name.as_bytes());
        count += 1;
        if !needed.contains(&name) {
            needed.push(name);
        }
        rest = content.end;
    }
    count += literal(rest..parts.span.end, &mut body);
    form.extend(count.to_le_bytes());
    form.append(&mut body);
    (form, needed)
}

/// The parts of a stored message.
pub fn decode(form: &[u8]) -> Result<Vec<Part>, Damaged> {
    let (&version, rest) = form.split_first().ok_or(Damaged::At(0))?;
    if version != VERSION {
        return Err(Damaged::Version(version));
    }
    let mut reader = Reader {
        rest,
        whole: form.len(),
    };
    let count = reader.number()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let [mark] = *reader.array::<1>()?;
        parts.push(match mark {
            LITERAL => {
                let length = reader.number()? as usize;
                Part::Literal(reader.bytes(length)?.to_vec())
            }
            CONTENT => Part::Content(BlobId::from_bytes(*reader.array::<32>()?)),
            _ => return Err(reader.damaged()),
        });
    }
    if reader.rest.is_empty() {
        Ok(parts)
    } else {
        Err(reader.damaged())
    }
}

/// The bytes of a message; the first piece that is missing if one is.
pub fn rebuilt<'p>(
    parts: &'p [Part],
    piece: impl Fn(BlobId) -> Option<&'p [u8]>,
) -> Result<Vec<u8>, BlobId> {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Literal(literal) => bytes.extend(literal),
            Part::Content(id) => bytes.extend(piece(*id).ok_or(*id)?),
        }
    }
    Ok(bytes)
}

/// Messages as a JSON array, each as it was.
pub fn join<'m>(messages: impl IntoIterator<Item = &'m [u8]>) -> Vec<u8> {
    let mut array = vec![b'['];
    for (at, message) in messages.into_iter().enumerate() {
        if at > 0 {
            array.push(b',');
        }
        array.extend(message);
    }
    array.push(b']');
    array
}

struct Reader<'f> {
    rest: &'f [u8],
    whole: usize,
}

impl<'f> Reader<'f> {
    fn damaged(&self) -> Damaged {
        Damaged::At(self.whole - self.rest.len())
    }

    fn bytes(&mut self, count: usize) -> Result<&'f [u8], Damaged> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<&'f [u8; N], Damaged> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, Damaged> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::properties::history;
    use crate::engine::{chain, stub};
    use crate::wire::body::Body;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::HashMap;

    type Pieces = HashMap<BlobId, Vec<u8>>;

    /// Stores a message and reads it again.
    fn stored(bytes: &[u8], conversation: &Conversation<'_>, at: usize) -> (Vec<Part>, Pieces) {
        let tenant = chain::start("t");
        let parts = parts(conversation, at);
        let id = |range: Range<usize>| stub::blob_id(tenant, &bytes[range]);
        let (form, needed) = encode(&parts, &id);
        let kept = parts.contents().iter().cloned();
        let pieces: Pieces = kept
            .map(|range| (id(range.clone()), bytes[range].to_vec()))
            .collect();
        assert_eq!(needed.len(), pieces.len());
        assert!(needed.iter().all(|id| pieces.contains_key(id)));
        let step = form.len() / 8 + 1;
        for end in (0..form.len()).step_by(step) {
            assert!(decode(&form[..end]).is_err(), "cut off at {end}");
        }
        assert!(decode(&[&form[..], b"\0"].concat()).is_err());
        (decode(&form).unwrap(), pieces)
    }

    fn table(content: &Value) -> (String, usize) {
        let bytes = json!({"messages": [{"role": "user", "content": content}]}).to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        let conversation = Conversation::new(bytes.as_bytes(), &body);
        let (parts, pieces) = stored(bytes.as_bytes(), &conversation, 0);
        let shown = |part: &Part| match part {
            Part::Literal(_) => '.',
            Part::Content(_) => 'c',
        };
        (parts.iter().map(shown).collect(), pieces.len())
    }

    #[test]
    fn what_is_large_is_a_piece_and_the_rest_is_literal() {
        let long = "x".repeat(510);
        let result = |content: &str| json!({"type": "tool_result", "content": content});
        let rows = [
            (json!("short"), ".", 0),
            (json!(long), ".c.", 1),
            (json!(long[1..]), ".", 0),
            (json!([{"type": "text", "text": long}]), ".c.", 1),
            (json!([result(&long), result("short")]), ".c.", 1),
            (json!([result(&long), result(&long)]), ".c.c.", 1),
            (
                json!([{"type": "tool_use", "input": {"x": long}}]),
                ".c.",
                1,
            ),
            (
                json!([{"type": "hologram", "x": long}, {"type": "text", "text": "y"}]),
                ".c.",
                1,
            ),
            (json!([]), ".", 0),
        ];
        for (content, shape, pieces) in rows {
            assert_eq!(table(&content), (shape.to_owned(), pieces), "{content}");
        }
    }

    #[test]
    fn of_a_result_the_payload_is_the_piece_and_of_others_the_block() {
        let long = "x".repeat(600);
        let bytes = json!({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": long},
            {"type": "text", "text": long}]}]})
        .to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        let conversation = Conversation::new(bytes.as_bytes(), &body);
        let contents = parts(&conversation, 0).contents;
        assert_eq!(&bytes[contents[0].clone()], format!("\"{long}\""));
        assert!(bytes[contents[1].clone()].starts_with("{\""));
    }

    #[test]
    fn messages_are_joined_as_they_are() {
        assert_eq!(join([]), b"[]");
        let both: [&[u8]; 2] = [b"{ \"a\":1}", b"{}"];
        assert_eq!(join(both), b"[{ \"a\":1},{}]");
    }

    #[test]
    fn a_piece_that_is_missing_is_named() {
        let id = BlobId::from_bytes([7; 32]);
        let parts = [Part::Literal(b"x".to_vec()), Part::Content(id)];
        assert_eq!(rebuilt(&parts, |_| None), Err(id));
    }

    proptest! {
        #[test]
        fn every_message_comes_back_to_the_byte(messages in history(4), pretty in any::<bool>()) {
            let request = json!({"model": "m", "messages": messages});
            let bytes = if pretty { serde_json::to_vec_pretty(&request) } else { serde_json::to_vec(&request) }.unwrap();
            let body = Body::split(&bytes).unwrap();
            let conversation = Conversation::new(&bytes, &body);
            for at in 0..conversation.len() {
                let (parts, pieces) = stored(&bytes, &conversation, at);
                let piece = |id| pieces.get(&id).map(Vec::as_slice);
                prop_assert_eq!(rebuilt(&parts, piece).unwrap(), body.messages()[at].span.of(&bytes));
            }
            prop_assert_eq!(parts(&conversation, conversation.len()).contents.len(), 0);
        }

        #[test]
        fn any_bytes_at_all_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            let _ = decode(&bytes);
        }
    }
}
