//! What can be found in the journal: an entry, whatever it tells of.

use crate::engine::facts::{Fact, FactKind};
use crate::engine::ids::{BlobId, Reference};

/// What kind of thing an entry tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// What a tool gave back.
    ToolResult,
    /// What a tool was asked.
    ToolCall,
    /// What the user said, as it stands in a message that a view leaves out.
    UserWords,
    /// What the model said.
    AssistantText,
    /// A summary.
    Summary,
    /// A pass was made here: the history before it can be rebuilt.
    Snapshot,
    /// What a turn did or said, taken from it by code.
    Fact(FactKind),
}

impl EntryKind {
    /// Those that are no facts.
    const CONTENT: [Self; 6] = [
        Self::ToolResult,
        Self::ToolCall,
        Self::UserWords,
        Self::AssistantText,
        Self::Summary,
        Self::Snapshot,
    ];

    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        let facts = FactKind::ALL.into_iter().map(Self::Fact);
        Self::CONTENT.into_iter().chain(facts)
    }

    /// Its name, as it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolResult => "tool_result",
            Self::ToolCall => "tool_call",
            Self::UserWords => "user",
            Self::AssistantText => "assistant",
            Self::Summary => "summary",
            Self::Snapshot => "snapshot",
            Self::Fact(kind) => kind.name(),
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }
}

/// Something that can be found. In a branch there is one of a kind at a message,
/// block and part: to append it again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it tells of.
    pub kind: EntryKind,
    /// The message it comes from.
    pub message: u32,
    /// The block of that message.
    pub block: u32,
    /// Which part of a long content it is, from 0.
    pub part: u32,
    /// The turn, counted from one.
    pub turn: u32,
    /// The tool, if there is one.
    pub tool: String,
    /// The file or whatever else it is about; may be empty.
    pub path: String,
    /// What it says.
    pub text: Text,
    /// Bytes of the whole content.
    pub bytes: u64,
    /// The reference by which it is asked for.
    pub reference: Reference,
    /// The words it is found by, each once, as `recall::terms` makes
    /// them. Not read back.
    pub terms: Vec<String>,
}

/// Where the text of an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Here.
    Inline(String),
    /// In a piece of content: these bytes of its text, as
    /// `recall::text` reads it.
    Content {
        /// The piece.
        blob: BlobId,
        /// The first byte.
        from: u32,
        /// The one behind the last.
        to: u32,
    },
}

impl Entry {
    /// The fact that it is, as it was taken from its turn; `None` if it is none.
    pub fn fact(&self) -> Option<Fact> {
        let (EntryKind::Fact(kind), Text::Inline(text)) = (self.kind, &self.text) else {
            return None;
        };
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        Some(Fact {
            kind,
            message: self.message,
            block: self.block,
            turn: self.turn,
            tool: filled(&self.tool),
            path: filled(&self.path),
            text: text.clone(),
        })
    }
}
