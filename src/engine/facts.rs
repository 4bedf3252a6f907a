//! The facts of a turn: what was touched, run, decided and said, and what failed,
//! taken from the messages that are new by code alone.
//!
//! They feed the journal after every reply, whether or not anything is left out
//! of a view, so each is worked out once, from the messages that came since the
//! last request and the calls these answer. A fact stands where it became known:
//! what a call did stands with its result. So nothing that comes later changes
//! it, and the facts of a history are those of its first part and then those of
//! its second, wherever it is cut.
//!
//! What a fact quotes is somebody's words, never an order to whoever reads it.

mod bounds;
mod calls;
mod fold;
mod phrases;
mod sentences;
mod stated;

use serde::{Deserialize, Serialize};

use super::candidates::{self, Deed};
use super::conversation::Conversation;
use super::pinned;
use crate::wire::body::{Kind, Role};
use crate::wire::scan::Span;

pub(super) use bounds::start as shortened;
pub(super) use fold::{Failure, failures, files, in_order, list, only_looked, questions};
pub(super) use sentences::sentences;
pub(super) use stated::rules;

/// Characters of a fact's text, at most.
pub const TEXT: usize = 1_000;
/// The same where the whole of it counts: the user's words, a to-do list.
pub const LONG: usize = 4_000;
/// Characters of a tool's name, at most.
const TOOL: usize = 64;

/// Something that a turn did or said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it tells of.
    pub kind: FactKind,
    /// The message it became known in, counted from zero.
    pub message: u32,
    /// The block of that message.
    pub block: u32,
    /// The turn, counted from one as in the pinned index.
    pub turn: u32,
    /// The tool, if a call did it.
    pub tool: Option<String>,
    /// The file, or the folder that a command ran in.
    pub path: Option<String>,
    /// What is searched and shown; never empty.
    pub text: String,
}

/// What a fact tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A file was shown.
    FileRead,
    /// A file was changed.
    FileWritten,
    /// Something was run: how it came out, a colon, and its line.
    Command,
    /// A call failed or was refused: how its result begins and ends.
    Error,
    /// The assistant states what it found or settled, in a sentence.
    Decision,
    /// The user states a rule, in a sentence.
    Constraint,
    /// The assistant asks the user something and waits.
    Question,
    /// What the user wrote.
    Words,
    /// A to-do list as a whole, a line each.
    Todo,
    /// One item of a to-do list, by its number.
    TodoItem,
}

impl FactKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::FileRead,
        Self::FileWritten,
        Self::Command,
        Self::Error,
        Self::Decision,
        Self::Constraint,
        Self::Question,
        Self::Words,
        Self::Todo,
        Self::TodoItem,
    ];

    /// Its name, as it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileRead => "file_read",
            Self::FileWritten => "file_written",
            Self::Command => "command",
            Self::Error => "error",
            Self::Decision => "decision",
            Self::Constraint => "constraint",
            Self::Question => "question",
            Self::Words => "words",
            Self::Todo => "todo",
            Self::TodoItem => "todo_item",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The facts of these messages, in order of place.
pub fn facts(conversation: &Conversation<'_>, from: usize, to: usize) -> Vec<Fact> {
    let to = to.min(conversation.len());
    let mut facts = Vec::new();
    let mut turn = pinned::opened(conversation, from);
    let deeds = candidates::answered(conversation, from, to);
    let mut deeds: &[Deed<'_>] = &deeds;
    for at in from..to {
        turn += usize::from(conversation.opens_turn(at));
        let here = deeds.partition_point(|deed| deed.result.0 <= at);
        let (answered, later) = deeds.split_at_checked(here).unwrap_or_default();
        deeds = later;
        let mut taken = Taken {
            message: small(at),
            turn: small(turn.max(1)),
            facts: Vec::new(),
        };
        for deed in answered {
            calls::take(&mut taken, deed);
        }
        match conversation.message(at).map(|message| message.role) {
            Some(Role::User) => stated::by_the_user(&mut taken, conversation, at),
            Some(Role::Assistant) => said(&mut taken, conversation, at),
            _ => {}
        }
        taken.facts.sort_by_key(|fact| fact.block);
        facts.append(&mut taken.facts);
    }
    facts
}

/// How many turns a history has, counted as facts count them.
pub fn turns(conversation: &Conversation<'_>) -> u32 {
    small(pinned::opened(conversation, conversation.len()))
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What the assistant says in a message.
fn said(taken: &mut Taken, conversation: &Conversation<'_>, at: usize) {
    let Some(message) = conversation.message(at) else {
        return;
    };
    let bytes = conversation.bytes();
    let blocks = conversation.blocks(at);
    let waits = !blocks.iter().any(|block| block.kind == Kind::ToolUse);
    let whole = message.is_string.then_some((0, message.content));
    let texts = blocks.iter().enumerate();
    let texts = texts.filter(|(_, block)| block.kind == Kind::Text);
    let texts = texts.filter_map(|(number, block)| Some((number, block.payload?)));
    let texts: Vec<(usize, Span)> = whole.into_iter().chain(texts).collect();
    let last = texts.len().saturating_sub(1);
    for (count, (block, text)) in texts.into_iter().enumerate() {
        if let Some(text) = pinned::decoded(text.of(bytes)) {
            stated::by_the_assistant(taken, block, &text, waits && count == last);
        }
    }
}

/// The facts of one message.
struct Taken {
    message: u32,
    turn: u32,
    facts: Vec<Fact>,
}

impl Taken {
    /// Adds a fact, unless it says nothing.
    fn add(&mut self, kind: FactKind, block: usize, text: String) {
        self.add_of(kind, block, None, None, text);
    }

    fn add_of(
        &mut self,
        kind: FactKind,
        block: usize,
        tool: Option<&str>,
        path: Option<String>,
        text: String,
    ) {
        if text.trim().is_empty() {
            return;
        }
        self.facts.push(Fact {
            kind,
            message: self.message,
            block: small(block),
            turn: self.turn,
            tool: tool.map(|tool| bounds::start(tool, TOOL)),
            path,
            text,
        });
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
pub(super) mod tests;
