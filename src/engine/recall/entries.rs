//! What a pass leaves out, as entries that can be found.
//!
//! What tools gave back, what they were asked where that is much, what was said
//! by either side: a passage each, with the words it is found by. Among the words
//! are those that stand elsewhere: the tool, the file, what the call was given.
//! Large content is not written down a second time: its entries point into the
//! text of the piece that `archive` stores.
//!
//! Only what is in the user's own words counts as the user's. What clients write
//! into the user's messages, and what the operator says in between, is told like
//! the result of a tool that is called `client` or `system`.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::entry::{Entry, EntryKind, Text};
use super::passages::passages;
use super::reference::reference_at;
use super::terms::terms_of;
use super::text;
use crate::engine::acts::{self, Act};
use crate::engine::archive;
use crate::engine::conversation::Conversation;
use crate::engine::ids::ChainHash;
use crate::engine::pinned::{decode, injected, turns::Turns};
use crate::engine::stub;
use crate::wire::body::{Block, Kind, Role};

/// Letters of a tool's name, and of what it is about, that are kept.
const TOOL: usize = 64;
const PATH: usize = 300;
/// How much of what a call was given its result is found by.
const ARGUMENTS: usize = 1_000;

/// What is left out.
#[derive(Clone)]
pub struct LeftOut<'a> {
    /// The history.
    pub conversation: &'a Conversation<'a>,
    /// Whose it is.
    pub tenant: ChainHash,
    /// What references are derived from.
    pub seed: ChainHash,
    /// Messages that are hidden.
    pub hidden: Range<usize>,
    /// Blocks elsewhere: message and block.
    pub blocks: &'a [(usize, usize)],
}

/// The entries for what is left out, in order of place.
pub fn entries(left: &LeftOut<'_>) -> Vec<Entry> {
    let conversation = left.conversation;
    let calls = conversation.calls();
    let results: HashMap<_, _> = calls
        .iter()
        .filter_map(|call| Some((call.result?, call.used)))
        .collect();
    let answered: BTreeSet<_> = results.values().copied().collect();
    let single: BTreeSet<_> = left.blocks.iter().copied().collect();
    let hidden = left.hidden.start..left.hidden.end.min(conversation.len());
    let places = hidden.flat_map(|at| {
        let blocks = conversation.blocks(at).len().max(1);
        (0..blocks).map(move |block| (at, block))
    });
    let places: BTreeSet<_> = places.chain(single.iter().copied()).collect();
    let turns = Turns::new(conversation);
    let mut found = Vec::new();
    for place in places {
        let Some(range) = archive::content(conversation, place) else {
            continue;
        };
        let content = conversation.bytes().get(range.clone()).unwrap_or_default();
        let block = conversation.block_at(place);
        let is_large = archive::is_piece(&range);
        // What a small call was given is found with its result.
        let is_call = block.is_some_and(|block| block.kind == Kind::ToolUse);
        if is_call && !is_large && answered.contains(&place) && !single.contains(&place) {
            continue;
        }
        let text = text::text(content);
        if text.trim().is_empty() {
            continue;
        }
        let used = results.get(&place).copied();
        let piece = Piece {
            about: about(conversation, place, used, &text),
            place: (number(place.0), number(place.1)),
            turn: number(turns.of(place.0)),
            bytes: range.len() as u64,
            seed: left.seed,
        };
        if is_large {
            let blob = stub::blob_id(left.tenant, content);
            for (part, passage) in passages(&text).into_iter().enumerate() {
                let words = text.get(passage.clone()).unwrap_or_default();
                let (from, to) = (number(passage.start), number(passage.end));
                found.push(piece.entry(number(part), words, Text::Content { blob, from, to }));
            }
        } else {
            found.push(piece.entry(0, &text, Text::Inline(text.clone())));
        }
    }
    found
}

/// Something that was noted about a turn: a file, a decision, an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    /// What it tells of.
    pub kind: EntryKind,
    /// The message it comes from.
    pub message: u32,
    /// The block of that message.
    pub block: u32,
    /// The turn, counted from one.
    pub turn: u32,
    /// The tool, if there is one.
    pub tool: &'a str,
    /// The file or whatever else it is about; may be empty.
    pub path: &'a str,
    /// What it says.
    pub text: &'a str,
}

/// Notes as entries. Those of one kind at one block count as parts of it, in
/// order, so all notes of a message must come together.
pub fn noted(seed: ChainHash, notes: &[Note<'_>]) -> Vec<Entry> {
    let mut parts: HashMap<(u32, u32, EntryKind), u32> = HashMap::new();
    let entry = |note: &Note<'_>| {
        let part = parts
            .entry((note.message, note.block, note.kind))
            .or_default();
        let piece = Piece {
            about: About {
                kind: note.kind,
                tool: first(note.tool, TOOL),
                path: first(note.path, PATH),
                ..About::default()
            },
            place: (note.message, note.block),
            turn: note.turn,
            bytes: note.text.len() as u64,
            seed,
        };
        *part += 1;
        piece.entry(*part - 1, note.text, Text::Inline(note.text.to_owned()))
    };
    notes.iter().map(entry).collect()
}

/// What there is to know of some content besides its text.
#[derive(Debug)]
struct About {
    kind: EntryKind,
    tool: String,
    path: String,
    /// What else it is found by.
    arguments: String,
    is_error: bool,
}

impl Default for About {
    fn default() -> Self {
        Self {
            kind: EntryKind::ToolResult,
            tool: String::new(),
            path: String::new(),
            arguments: String::new(),
            is_error: false,
        }
    }
}

struct Piece {
    about: About,
    place: (u32, u32),
    turn: u32,
    bytes: u64,
    seed: ChainHash,
}

impl Piece {
    fn entry(&self, part: u32, words: &str, text: Text) -> Entry {
        let About {
            kind,
            tool,
            path,
            arguments,
            is_error,
        } = &self.about;
        // Once is enough: else a question about them finds every part alike.
        let arguments = if part == 0 { arguments.as_str() } else { "" };
        let failed = if *is_error { "error failed" } else { "" };
        Entry {
            kind: *kind,
            message: self.place.0,
            block: self.place.1,
            part,
            turn: self.turn,
            tool: tool.clone(),
            path: path.clone(),
            text,
            bytes: self.bytes,
            reference: reference_at(self.seed, self.place.0, self.place.1),
            terms: terms_of(&[kind.name(), tool, path, failed, words, arguments]),
        }
    }
}

fn about(
    conversation: &Conversation<'_>,
    place: (usize, usize),
    used: Option<(usize, usize)>,
    text: &str,
) -> About {
    let role = conversation.message(place.0).map(|message| message.role);
    let Some(block) = conversation.block_at(place) else {
        return said(role, text);
    };
    match block.kind {
        Kind::ToolResult => {
            let call = used.and_then(|used| conversation.block_at(used));
            About {
                is_error: block.is_error,
                ..call.map_or_else(About::default, |call| of_call(conversation, call))
            }
        }
        Kind::ToolUse => About {
            kind: EntryKind::ToolCall,
            arguments: String::new(),
            ..of_call(conversation, block)
        },
        Kind::Compaction => About {
            kind: EntryKind::Summary,
            ..About::default()
        },
        Kind::Text | Kind::Image | Kind::Document | Kind::Thinking => said(role, text),
        Kind::Other => other(conversation, block),
    }
}

/// What was said by whoever speaks.
fn said(role: Option<Role>, text: &str) -> About {
    let (kind, tool) = match role {
        Some(Role::Assistant) => (EntryKind::AssistantText, ""),
        Some(Role::User) if is_users(text) => (EntryKind::UserWords, ""),
        Some(Role::User) => (EntryKind::ToolResult, "client"),
        Some(Role::System) => (EntryKind::ToolResult, "system"),
        Some(Role::Other) | None => (EntryKind::ToolResult, "other"),
    };
    About {
        kind,
        tool: tool.to_owned(),
        ..About::default()
    }
}

/// Whether the user wrote some of a text, and nobody else can have written any of
/// what stands outside the client's own sections.
fn is_users(text: &str) -> bool {
    let spoken = injected::spoken(text);
    spoken.own.is_some() && spoken.doubtful.is_none()
}

/// What a call tells of itself and of its result.
fn of_call(conversation: &Conversation<'_>, call: &Block) -> About {
    let bytes = conversation.bytes();
    let tool = call.name.and_then(|name| decode::string(name.of(bytes)));
    let tool = tool.unwrap_or_default();
    let input = call.payload.map_or(&b"{}"[..], |input| input.of(bytes));
    let act = acts::act(&tool, input);
    About {
        path: first(&subject(&act), PATH),
        arguments: first(&text::input(input), ARGUMENTS),
        tool: first(&tool, TOOL),
        ..About::default()
    }
}

/// What a call is about, in a line: the file if it is one.
fn subject(act: &Act) -> String {
    let subject = match act.reading() {
        Some(reading) => reading.file.path.clone(),
        None => act.subject(),
    };
    let words: Vec<&str> = subject.split_whitespace().collect();
    words.join(" ")
}

/// A block of a kind that is not known: mostly a tool of the server's, which asks
/// and answers in one message.
fn other(conversation: &Conversation<'_>, block: &Block) -> About {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Named {
        r#type: String,
        name: String,
    }
    let json = block.span.of(conversation.bytes());
    let named: Named = serde_json::from_slice(json).unwrap_or_default();
    let is_call = named.r#type.ends_with("tool_use");
    let name = if named.name.is_empty() {
        &named.r#type
    } else {
        &named.name
    };
    About {
        kind: if is_call {
            EntryKind::ToolCall
        } else {
            EntryKind::ToolResult
        },
        tool: first(name, TOOL),
        ..About::default()
    }
}

/// The first letters of a text, none of them a control character.
fn first(text: &str, letters: usize) -> String {
    let shown = |letter: &char| !letter.is_control() || letter.is_whitespace();
    text.chars().filter(shown).take(letters).collect()
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
