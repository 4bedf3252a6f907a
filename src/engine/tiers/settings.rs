//! What the tiers go by: which results may be cleared, and how much of an
//! oversized one is kept. Taken from the configuration, or from a client that
//! asks for its results to be cleared.

use std::collections::BTreeMap;

use crate::engine::digest::Size;
use crate::engine::native::Native;
use crate::engine::notice::Notice;
use crate::engine::overlay::Segment;
use crate::engine::pinned;
use crate::engine::recall::telling::Telling;
use crate::engine::span::Room;
use crate::engine::split::Split;
use crate::engine::trim::Keep;

/// What a pass goes by.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How results are cleared; none: not at all.
    pub clears: Option<Clears>,
    /// How oversized results are trimmed; none: not at all.
    pub trim: Option<Trims>,
    /// How much of the newest part stays when old messages are hidden.
    pub split: Split,
    /// A summary that lies ready.
    pub closing: Option<Segment>,
    /// The API's own.
    pub native: Option<Native>,
    /// How much is pinned in a notice; none: nothing.
    pub pins: Option<pinned::Settings>,
    /// Segments from which on notices are merged.
    pub max_segments: usize,
    /// The model binds thinking to what stands before it.
    pub binds_thinking: bool,
    /// Thinking is switched on the older way.
    pub manual_thinking: bool,
    /// What is left out is kept, and may be promised in these words.
    pub archives: Option<Telling>,
    /// Turns that the journal style keeps; none: it is not the style.
    pub live_turns: Option<usize>,
    /// How much a summary that is still to be written would hide; none: none can
    /// be written.
    pub closable: Option<Room>,
    /// Summaries are the API's own, which spoil no thinking.
    pub summaries_keep_thinking: bool,
    /// How long the digests of what goes are.
    pub digest: Size,
}

impl Settings {
    /// How notices are written. What is not kept is lost, whatever the style.
    pub(super) fn notice(&self) -> Notice {
        Notice {
            pins: self.pins.clone(),
            max_segments: self.max_segments,
            archives: self.archives.clone(),
            journal: self.live_turns.is_some(),
            digest: self.digest,
        }
    }
}

/// How results are cleared.
#[derive(Debug, Clone, Default)]
pub struct Clears {
    /// The newest results that are never cleared.
    pub keep_tool_uses: usize,
    /// Tokens of the newest messages in which none is cleared.
    pub keep_tokens: u64,
    /// Tokens of files in hand that are not cleared either.
    pub keep_files: u64,
    /// Results of fewer tokens are not worth clearing.
    pub small: u64,
    /// Tools whose results are never touched.
    pub exclude_tools: Vec<String>,
    /// Whether results that later ones replace go first.
    pub supersede: bool,
    /// Whose inputs go with their results.
    pub inputs: Inputs,
}

/// Whose inputs are cleared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Inputs {
    /// No tool's.
    #[default]
    None,
    /// Every tool's.
    All,
    /// Those of these tools.
    Of(Vec<String>),
}

impl Inputs {
    /// Whether a tool's are.
    pub fn of(&self, tool: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Of(tools) => tools.iter().any(|name| name == tool),
        }
    }
}

/// How oversized results are trimmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trims {
    /// Characters from which a result is oversized.
    pub max_chars: usize,
    /// What is kept, by tool: head and tail.
    pub tools: BTreeMap<String, (usize, usize)>,
}

impl Trims {
    /// Tokens that are shown at most of a result with so many bytes, at two
    /// letters each; none: it is not oversized.
    pub fn shown(&self, tool: &str, bytes: usize) -> Option<u64> {
        let Keep { head, tail, .. } = self.keep(tool);
        let shown = head.saturating_add(tail) as u64 / 2;
        (bytes > self.max_chars).then_some(shown)
    }

    /// What is kept of a tool's results. Of one that is not listed, a fifth of
    /// the limit at either end.
    pub(super) fn keep(&self, tool: &str) -> Keep {
        let each = self.max_chars / 5;
        let (head, tail) = self.tools.get(tool).copied().unwrap_or((each, each));
        Keep {
            max_chars: self.max_chars,
            head,
            tail,
        }
    }
}
