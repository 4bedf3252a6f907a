//! What can be found in the journal: an entry, whatever it tells of.

use crate::engine::ids::{BlobId, Reference};

/// What kind of thing an entry tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// What a tool gave back.
    ToolResult,
    /// What a tool was asked.
    ToolCall,
    /// What the user said.
    UserWords,
    /// What the model said.
    AssistantText,
    /// What was decided.
    Decision,
    /// A file was read or written.
    File,
    /// A command was run.
    Command,
    /// Something failed.
    Error,
    /// A to-do list.
    Todo,
    /// A question that was put to the user.
    Question,
    /// A summary.
    Summary,
    /// A pass was made here: the history before it can be rebuilt.
    Snapshot,
}

impl EntryKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ToolResult,
        Self::ToolCall,
        Self::UserWords,
        Self::AssistantText,
        Self::Decision,
        Self::File,
        Self::Command,
        Self::Error,
        Self::Todo,
        Self::Question,
        Self::Summary,
        Self::Snapshot,
    ];

    /// Its name, as it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolResult => "tool_result",
            Self::ToolCall => "tool_call",
            Self::UserWords => "user",
            Self::AssistantText => "assistant",
            Self::Decision => "decision",
            Self::File => "file",
            Self::Command => "command",
            Self::Error => "error",
            Self::Todo => "todo",
            Self::Question => "question",
            Self::Summary => "summary",
            Self::Snapshot => "snapshot",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
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
