//! The form of a message by which it is recognised.
//!
//! Real clients resend their history with small changes that mean nothing: a
//! cache mark moves to the newest message and disappears from the older one, and
//! content that was a list of one text block becomes a plain string or the other
//! way round. The canonical form leaves marks out wherever the API knows them,
//! and takes a string for what it is, one text block. Everything else counts as
//! it stands, to the byte: the order of keys and the spelling of numbers may
//! matter to the model's cache, so they matter here.

use std::borrow::Cow;

use super::body::{Body, Message, Role};
use super::scan::Span;

/// What follows the opening of a canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One text, as a JSON string.
    Text,
    /// An array of blocks without their marks, which is not one plain text.
    Blocks,
}

/// How the canonical form of a message of `role` and `content` alone begins. What
/// is not in a client's bytes can be given its canonical form with this. For a
/// role that is not known the whole message follows, whatever its shape.
pub fn opening(role: Role, shape: Shape) -> &'static [u8] {
    match (role, shape) {
        (Role::User, Shape::Text) => b"ut",
        (Role::User, Shape::Blocks) => b"ub",
        (Role::Assistant, Shape::Text) => b"at",
        (Role::Assistant, Shape::Blocks) => b"ab",
        (Role::System, Shape::Text) => b"st",
        (Role::System, Shape::Blocks) => b"sb",
        (Role::Other, _) => b"o",
    }
}

/// Hands the canonical form of a message to `sink`, piece by piece. Two messages
/// are the same if and only if their pieces, joined, are.
pub fn canonical(bytes: &[u8], body: &Body, message: &Message, mut sink: impl FnMut(&[u8])) {
    if !message.is_plain {
        // Keys besides role and content: the whole message counts.
        sink(b"m");
        return whole(bytes, body, message, sink);
    }
    if message.role == Role::Other {
        sink(opening(message.role, Shape::Blocks));
        return without_marks(bytes, body, message, message.span, sink);
    }
    if let Some(text) = only_text(body, message) {
        sink(opening(message.role, Shape::Text));
        sink(text.of(bytes));
    } else {
        sink(opening(message.role, Shape::Blocks));
        without_marks(bytes, body, message, message.content, sink);
    }
}

/// A message with all of its keys. One plain text block is written as the string
/// that it stands for: Claude Code sends such a message as a block when it is new
/// and as a string afterwards.
fn whole(bytes: &[u8], body: &Body, message: &Message, mut sink: impl FnMut(&[u8])) {
    let text = only_text(body, message).filter(|_| message.role != Role::Other);
    let Some(text) = text else {
        return without_marks(bytes, body, message, message.span, sink);
    };
    let (span, content) = (message.span, message.content);
    sink(bytes.get(span.start()..content.start()).unwrap_or(&[]));
    sink(text.of(bytes));
    sink(bytes.get(content.end()..span.end()).unwrap_or(&[]));
}

/// The text, if that is all there is.
fn only_text(body: &Body, message: &Message) -> Option<Span> {
    if message.is_string {
        return Some(message.content);
    }
    match body.blocks(message) {
        [block] if block.is_plain_text => block.payload,
        _ => None,
    }
}

/// A stretch of a message without the cache marks in it.
pub fn unmarked<'a>(bytes: &'a [u8], body: &Body, message: &Message, span: Span) -> Cow<'a, [u8]> {
    let within = |cut: Span| span.start() <= cut.start() && cut.end() <= span.end();
    let marks = body.marks(message).iter();
    let cuts: Vec<Span> = marks
        .map(|mark| mark.cut)
        .filter(|cut| within(*cut))
        .collect();
    if cuts.is_empty() {
        return Cow::Borrowed(span.of(bytes));
    }
    let mut rest = Vec::with_capacity(span.len());
    let mut from = span.start();
    for cut in cuts {
        rest.extend_from_slice(bytes.get(from..cut.start()).unwrap_or(&[]));
        from = cut.end();
    }
    rest.extend_from_slice(bytes.get(from..span.end()).unwrap_or(&[]));
    Cow::Owned(rest)
}

/// The content of a tool's result without the cache marks in it; `None` if there
/// are none.
pub fn unmarked_result(content: &str) -> Option<String> {
    if !content.starts_with('[') {
        return None;
    }
    let source = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","content":{content}}}]}}]}}"#
    );
    let bytes = source.as_bytes();
    let body = Body::split(bytes).ok()?;
    let message = body.messages().first()?;
    let payload = body.blocks(message).first()?.payload?;
    match unmarked(bytes, &body, message, payload) {
        Cow::Borrowed(_) => None,
        Cow::Owned(rest) => String::from_utf8(rest).ok(),
    }
}

fn without_marks(
    bytes: &[u8],
    body: &Body,
    message: &Message,
    span: Span,
    mut sink: impl FnMut(&[u8]),
) {
    let mut from = span.start();
    for mark in body.marks(message) {
        sink(bytes.get(from..mark.cut.start()).unwrap_or(&[]));
        from = mark.cut.end();
    }
    sink(bytes.get(from..span.end()).unwrap_or(&[]));
}
