//! A history beside its view, message by message, for a person who looks.
//!
//! The view is made by the very code that makes the views that are sent, so what
//! stands here is what the model gets and not an account of it. Only some of the
//! messages are needed at a time: what an overlay changes in a message depends on
//! that message alone, and what it hides it hides whole.

use std::collections::HashMap;

use bytes::Bytes;

use super::archive;
use super::conversation::Conversation;
use super::overlay::{Change, Edit, Origin, Overlay};
use super::pinned::decode;
use super::recall::text;
use super::render::render;
use crate::wire::body::{Body, Kind, Role};
use crate::wire::splice::{joined, splice};

/// A message of the history, and what the view has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which one, counted from zero.
    pub message: u32,
    /// Who speaks.
    pub speaker: &'static str,
    /// Bytes of it, as the client sent it.
    pub bytes: usize,
    /// Whether the view shows it, and what stands for it if not.
    pub place: Place,
    /// Its blocks, and those that the view has beyond them.
    pub parts: Vec<Part>,
}

/// Where a message stands in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is shown, with or without changes to its blocks.
    Shown,
    /// This segment stands for it, counted from zero.
    Segment(usize),
    /// The API's own summary stands for it.
    Native,
}

/// A block of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is, in a word or two.
    pub what: &'static str,
    /// The tool that is called, or gave this back; may be empty.
    pub tool: String,
    /// Bytes of it.
    pub bytes: usize,
    /// What it says.
    pub original: String,
    /// What the view says instead.
    pub now: Now,
}

/// What has become of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// It is sent as it is.
    Same,
    /// This short text stands for it.
    Stub(String),
    /// A part of it is left.
    Trimmed(String),
    /// Something else stands there.
    Replaced(String),
    /// It is left out.
    Gone,
    /// Its message is not shown.
    Hidden,
    /// Only the view has it.
    Added(String),
}

/// What stands in the view for messages that are not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The first message it stands for, and the one behind the last.
    pub messages: (u32, u32),
    /// How it came about: `summary`, `truncated` or `native`.
    pub origin: &'static str,
    /// What it says.
    pub text: String,
}

/// What stands for the messages that an overlay hides, oldest first.
pub fn standing(overlay: &Overlay) -> Vec<Standing> {
    let native = overlay.native.iter().map(|block| Standing {
        messages: (0, overlay.cut),
        origin: "native",
        text: text::text(block.as_bytes()),
    });
    let segments = overlay.segments.iter().map(|segment| Standing {
        messages: (segment.from, segment.to),
        origin: match segment.origin {
            Origin::Summary => "summary",
            Origin::Truncated => "truncated",
        },
        text: text::text(segment.block.as_bytes()),
    });
    native.chain(segments).collect()
}

/// Some messages of a history beside the view: of each its index and its JSON, in
/// order. None if they cannot be read.
pub fn beside(messages: &[(u32, Vec<u8>)], overlay: &Overlay) -> Option<Vec<Row>> {
    let array = archive::join(messages.iter().map(|(_, json)| json.as_slice()));
    let bytes = Bytes::from([&b"{\"messages\":"[..], &array, b"}"].concat());
    let body = Body::split(&bytes).ok()?;
    let history = Conversation::new(&bytes, &body);
    let changes = render(&history, &only(messages, overlay), "").ok()?;
    let view = joined(&splice(&bytes, changes).ok()?);
    let split = Body::split(&view).ok()?;
    let view = Conversation::new(&view, &split);
    let calls = history.calls().into_iter();
    let tools: HashMap<_, _> = calls
        .filter_map(|call| Some((call.result?, name(&history, call.used)?)))
        .collect();
    let rows = messages.iter().enumerate().map(|(at, (message, json))| {
        let place = place(*message, overlay);
        let parts = match place {
            Place::Shown => shown(&history, &view, at, overlay.edits_of(*message as usize)),
            Place::Segment(_) | Place::Native => blocks(&history, at).collect(),
        };
        let named = |(block, mut part): (usize, Part)| {
            if let Some(tool) = tools.get(&(at, block)) {
                part.tool.clone_from(tool);
            }
            part
        };
        Row {
            message: *message,
            speaker: match history.message(at).map(|message| message.role) {
                Some(Role::User) => "user",
                Some(Role::Assistant) => "assistant",
                Some(Role::System) => "system",
                Some(Role::Other) | None => "other",
            },
            bytes: json.len(),
            place,
            parts: parts.into_iter().enumerate().map(named).collect(),
        }
    });
    Some(rows.collect())
}

/// The overlay as far as it changes blocks of these messages, counted among them.
fn only(messages: &[(u32, Vec<u8>)], overlay: &Overlay) -> Overlay {
    let edits = (0_u32..).zip(messages).flat_map(|(at, (message, _))| {
        let edits = overlay.edits_of(*message as usize).iter().cloned();
        edits.map(move |edit| Edit {
            message: at,
            ..edit
        })
    });
    Overlay {
        made_at: u32::try_from(messages.len()).unwrap_or(u32::MAX),
        edits: edits.collect(),
        ..Overlay::default()
    }
}

fn place(message: u32, overlay: &Overlay) -> Place {
    if overlay.shows(message as usize) {
        return Place::Shown;
    }
    let segments = overlay.segments.iter();
    let has = |segment: &super::overlay::Segment| (segment.from..segment.to).contains(&message);
    match segments.clone().position(has) {
        Some(at) => Place::Segment(at),
        None if overlay.native.is_some() => Place::Native,
        // What no segment names is told by the last.
        None => Place::Segment(segments.len().saturating_sub(1)),
    }
}

/// The blocks of a message that is not shown; a text that is the whole content
/// counts as one.
fn blocks(history: &Conversation<'_>, at: usize) -> impl Iterator<Item = Part> {
    let count = history.blocks(at).len().max(1);
    (0..count).map(move |block| {
        let (bytes, original) = says(history, (at, block));
        Part {
            what: what(history, (at, block)),
            tool: name(history, (at, block)).unwrap_or_default(),
            bytes,
            original,
            now: Now::Hidden,
        }
    })
}

/// The blocks of a message that is shown, each with what the view has there.
fn shown(
    history: &Conversation<'_>,
    view: &Conversation<'_>,
    at: usize,
    edits: &[Edit],
) -> Vec<Part> {
    let mut next = 0;
    let mut parts: Vec<Part> = Vec::new();
    for (block, mut part) in blocks(history, at).enumerate() {
        let mut changes = edits.iter().filter(|edit| edit.block as usize == block);
        let change = changes.find(|edit| !matches!(edit.change, Change::Append(_)));
        let there = || says(view, (at, next)).1;
        part.now = match change.map(|edit| &edit.change) {
            None => Now::Same,
            Some(Change::Gone) => Now::Gone,
            Some(change) if change.is_stub() => Now::Stub(there()),
            Some(change) if change.is_trim() => Now::Trimmed(there()),
            Some(_) => Now::Replaced(there()),
        };
        next += usize::from(part.now != Now::Gone);
        parts.push(part);
    }
    for block in next..view.blocks(at).len() {
        let (bytes, text) = says(view, (at, block));
        parts.push(Part {
            what: what(view, (at, block)),
            tool: String::new(),
            bytes,
            original: String::new(),
            now: Now::Added(text),
        });
    }
    parts
}

/// The bytes of a block's content, and what it says.
fn says(conversation: &Conversation<'_>, place: (usize, usize)) -> (usize, String) {
    let Some(range) = archive::content(conversation, place) else {
        return (0, String::new());
    };
    let bytes = conversation.bytes();
    let content = bytes.get(range).unwrap_or_default();
    let block = conversation.block_at(place);
    let said = match block.filter(|block| block.kind == Kind::ToolUse) {
        // Its name stands above it.
        Some(call) => text::input(call.payload.map_or(&b"{}"[..], |input| input.of(bytes))),
        None => text::text(content),
    };
    (content.len(), said)
}

fn what(conversation: &Conversation<'_>, place: (usize, usize)) -> &'static str {
    match conversation.block_at(place) {
        None => "text",
        Some(block) => match block.kind {
            Kind::Text => "text",
            Kind::Image => "image",
            Kind::Document => "document",
            Kind::Thinking => "thinking",
            Kind::ToolUse => "call",
            Kind::ToolResult if block.is_error => "failure",
            Kind::ToolResult => "result",
            Kind::Compaction => "summary of the API's",
            Kind::Other => "other",
        },
    }
}

/// The tool that a block calls.
fn name(conversation: &Conversation<'_>, place: (usize, usize)) -> Option<String> {
    let name = conversation.block_at(place)?.name?;
    decode::string(name.of(conversation.bytes()))
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
