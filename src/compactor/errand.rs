//! What is to be summed up, for whom, and at whose expense.
//!
//! An errand holds everything a summary needs, so that it can be made while the
//! conversation goes on. It is a snapshot: the history it was made from is named
//! by its id, and whoever wants to use the summary must have that history.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::Spent;
use super::sender::Sender;
use super::windows::Claimed;
use crate::engine::conversation::Conversation;
use crate::engine::ids::{ChainHash, Reference, SegmentId};
use crate::engine::pinned;
use crate::engine::recall::telling::Telling;
use crate::wire::body::Body;

/// Something to be summed up.
#[derive(Debug, Clone)]
pub struct Errand {
    /// Names the span, the history before it, and the settings.
    pub id: SegmentId,
    /// Summaries that end a little earlier and would do as well, if somebody else
    /// is at one.
    pub as_good: Vec<SegmentId>,
    /// The request it was found in.
    pub bytes: Bytes,
    /// Where things stand in that.
    pub body: Arc<Body>,
    /// The messages to be summed up.
    pub span: Range<usize>,
    /// What summaries before the span say.
    pub earlier: String,
    /// The request as upstream has it in its cache, if the span stands in it as
    /// it is.
    pub cached: Option<Cached>,
    /// The conversation's model.
    pub model: String,
    /// What is wished of this one.
    pub instructions: Option<String>,
    /// Who pays.
    pub sender: Sender,
    /// What it takes of the memory for such things, given back with it.
    pub room: Option<Arc<OwnedSemaphorePermit>>,
    /// The API may be asked for a summary of its own: how many messages of the
    /// cached request stand before the tail.
    pub native: Option<usize>,
    /// What it has cost so far.
    pub spent: Spent,
    /// How much is pinned.
    pub pins: pinned::Settings,
    /// What is left out is kept, and may be promised.
    pub archives: Option<Telling>,
    /// The windows that refusals of these calls have claimed.
    pub claimed: Arc<Claimed>,
}

/// A request that upstream has in its cache.
#[derive(Debug, Clone)]
pub struct Cached {
    /// Its bytes, in pieces.
    pub pieces: Vec<Bytes>,
    /// The betas that it needs besides the client's.
    pub betas: Vec<&'static str>,
    /// Tokens of it.
    pub tokens: u64,
}

impl Errand {
    /// The history, to be asked about.
    pub fn conversation(&self) -> Conversation<'_> {
        Conversation::new(&self.bytes, &self.body)
    }
}

/// Names the summary of a span: the history up to its end, where it begins, and
/// the settings it is made with.
pub fn id(end: ChainHash, span: &Range<usize>, settings: &[u8; 32]) -> SegmentId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"longhaul segment 1\0");
    hasher.update(end.as_bytes());
    hasher.update(&(span.start as u64).to_le_bytes());
    hasher.update(&(span.end as u64).to_le_bytes());
    hasher.update(settings);
    SegmentId::from_bytes(hasher.finalize().into())
}

/// The version of the stored form that is written.
const VERSION: u32 = 1;

/// A summary that is finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    version: u32,
    /// The first message it stands for.
    pub from: u32,
    /// The message after the last.
    pub to: u32,
    /// The text block that shows it, as JSON.
    pub block: String,
    /// Tokens of the user's own words in it.
    pub pinned: u64,
    /// The API's own summary of everything before its end, as JSON; then the
    /// text block is what is pinned, and may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The reference that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl Finished {
    /// A summary of a span.
    pub fn new(span: &Range<usize>, block: String, pinned: u64) -> Self {
        let count = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Self {
            version: VERSION,
            from: count(span.start),
            to: count(span.end),
            block,
            pinned,
            native: None,
            reference: None,
        }
    }

    /// The same, showing a reference.
    #[must_use]
    pub fn showing(mut self, reference: Option<Reference>) -> Self {
        self.reference = reference.map(|reference| reference.to_string());
        self
    }

    /// The reference to the messages it stands for, if it shows one.
    pub fn reference(&self) -> Option<Reference> {
        Reference::from_text(self.reference.as_deref()?)
    }

    /// A summary of the API's own.
    #[must_use]
    pub fn by_the_api(mut self, block: String) -> Self {
        self.native = Some(block);
        self
    }

    /// What it says, as plain text.
    pub fn text(&self) -> String {
        let blocks = self.native.iter().chain([&self.block]);
        let texts = blocks.filter_map(|block| {
            let block: serde_json::Value = serde_json::from_str(block).ok()?;
            let text = block.get("text").or_else(|| block.get("content"))?;
            Some(text.as_str()?.to_owned())
        });
        texts.collect::<Vec<String>>().join("\n")
    }

    /// The stored form.
    pub fn store(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From the stored form; `None` if it is not one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let finished: Self = serde_json::from_slice(bytes).ok()?;
        let is_block = serde_json::from_str::<serde_json::Value>(&finished.block)
            .is_ok_and(|block| block.get("type").is_some_and(|kind| kind == "text"))
            || (finished.native.is_some() && finished.block.is_empty());
        (finished.version <= VERSION && finished.from < finished.to && is_block).then_some(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_histories_spans_and_settings_apart() {
        let end = |byte| ChainHash::from_bytes([byte; 32]);
        let name = id(end(1), &(2..9), &[0; 32]);
        assert_eq!(name, id(end(1), &(2..9), &[0; 32]));
        for other in [
            id(end(2), &(2..9), &[0; 32]),
            id(end(1), &(3..9), &[0; 32]),
            id(end(1), &(2..8), &[0; 32]),
            id(end(1), &(2..9), &[1; 32]),
        ] {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn what_is_stored_is_what_is_read_and_nothing_else_is() {
        let block = r#"{"type":"text","text":"x"}"#.to_owned();
        let finished = Finished::new(&(1..20), block, 7);
        assert_eq!(Finished::read(&finished.store()), Some(finished.clone()));
        let spoilt = [
            Finished {
                version: 9,
                ..finished.clone()
            },
            Finished {
                to: 1,
                ..finished.clone()
            },
            Finished {
                block: "{".to_owned(),
                ..finished
            },
        ];
        for finished in spoilt {
            assert_eq!(Finished::read(&finished.store()), None);
        }
        assert_eq!(Finished::read(b"{}"), None);
    }
}
