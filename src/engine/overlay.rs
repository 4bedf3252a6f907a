//! The overlay: what a view shows in place of what the client sent.
//!
//! An overlay is a value that never changes once it is committed. It carries
//! every byte that it inserts, escaped and ready, and where it stands, so that
//! rendering only splices: neither a new version of this program nor a changed
//! setting can alter what an old overlay renders to. Places are counted in the
//! client's own history, message and block, from zero; all of them lie before
//! `made_at`, and everything from there on is shown as it came. None of its bytes
//! is a cache mark: marks move from request to request, and what stays behind
//! would add up until the API refuses the view.
//!
//! The stored form is JSON with a version. A form that was ever written must be
//! readable for ever; `tests/overlays` keeps one of each.

use serde::{Deserialize, Serialize};

use super::ids::{ChainHash, OverlayId};
use super::stub;
use crate::wire::canonical::unmarked_result;

/// The newest version, and the one that is written where nothing needs a newer.
const VERSION: u32 = 2;
const PLAIN: u32 = 1;

/// What a view shows in place of what the client sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overlay {
    /// How many messages the history had when this was made.
    pub made_at: u32,
    /// How many messages at the start are kept.
    pub head: u32,
    /// The first message of the tail. What lies between head and tail is hidden.
    pub cut: u32,
    /// The API's own summary of everything before the tail, as a block in JSON. It
    /// stands first, and there is neither head nor segments.
    pub native: Option<String>,
    /// The messages that stand between head and segments, as JSON, in order.
    pub before: Vec<String>,
    /// What stands for the hidden messages, oldest first.
    pub segments: Vec<Segment>,
    /// The messages that stand between segments and tail, as JSON, in order.
    pub after: Vec<String>,
    /// Changes to blocks that are shown, ordered by place, one a block.
    pub edits: Vec<Edit>,
}

/// A finished account of a closed span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The text block that shows it, as JSON.
    pub block: String,
    /// The first message it stands for.
    pub from: u32,
    /// The message after the last it stands for.
    pub to: u32,
    /// How it came about.
    pub origin: Origin,
    /// Tokens of the user's own words in it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pinned: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that is asked for"
)]
fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

/// How a segment came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The span was left out without an account of it.
    Truncated,
    /// A model summed it up.
    Summary,
}

/// A change to one block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The message.
    pub message: u32,
    /// The block in it.
    pub block: u32,
    /// What happens to it.
    pub change: Change,
}

/// What happens to a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// What it holds is replaced by this JSON value: a stub.
    Payload(String),
    /// The block is replaced by this one.
    Block(String),
    /// The block is left out.
    Gone,
    /// This block stands behind the message's own.
    Append(String),
}

/// The longest text that only stands for what was there and does not say so.
const STUB: usize = 2048;

impl Change {
    /// Whether a text only stands for a result. A longer one that does not say so
    /// is a part of it, one with a cut in it too, and an object stands for the
    /// input of a call.
    pub fn is_stub(&self) -> bool {
        matches!(self, Self::Payload(with) if with.starts_with('"')) && !self.is_trim()
    }

    /// Whether a part of a result is still shown.
    pub fn is_trim(&self) -> bool {
        let Self::Payload(with) = self else {
            return false;
        };
        let is_long = with.len() > STUB && with.starts_with(['"', '[']);
        stub::is_part(with) || (is_long && !stub::is_cleared(with))
    }

    /// The same without a client's cache marks. Earlier versions kept those that
    /// stood inside a trimmed result; they are no part of what a view shows.
    fn unmarked(self) -> Self {
        match self {
            Self::Payload(with) => Self::Payload(unmarked_result(&with).unwrap_or(with)),
            other => other,
        }
    }
}

/// Why stored bytes are not an overlay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They are not of any known form.
    #[error("not an overlay: {0}")]
    Damaged(String),
    /// They come from a later version of this program.
    #[error(
        "an overlay of version {0}, and this program reads up to {VERSION}: run the newer program"
    )]
    Newer(u32),
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    made_at: u32,
    head: u32,
    cut: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    native: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<Segment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edits: Vec<Edit>,
    /// Ties the bytes to one history, so that equal overlays of two tenants
    /// have two names.
    anchor: String,
}

impl Overlay {
    /// The stored form and its name. `anchor` is the history it was made from.
    pub fn store(&self, anchor: ChainHash) -> Option<(OverlayId, Vec<u8>)> {
        let appends = |edit: &Edit| matches!(edit.change, Change::Append(_));
        let newer = self.native.is_some() || self.edits.iter().any(appends);
        let stored = Stored {
            version: if newer { VERSION } else { PLAIN },
            made_at: self.made_at,
            head: self.head,
            cut: self.cut,
            native: self.native.clone(),
            before: self.before.clone(),
            segments: self.segments.clone(),
            after: self.after.clone(),
            edits: self.edits.clone(),
            anchor: anchor.to_string(),
        };
        let bytes = serde_json::to_vec(&stored).ok()?;
        let id = OverlayId::from_bytes(blake3::hash(&bytes).into());
        Some((id, bytes))
    }

    /// From the stored form. What is read must hold together: a later reader
    /// relies on it.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
        let Version { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        if version > VERSION {
            return Err(Unreadable::Newer(version));
        }
        let stored: Stored = serde_json::from_slice(bytes).map_err(damaged)?;
        let overlay = Self {
            made_at: stored.made_at,
            head: stored.head,
            cut: stored.cut,
            native: stored.native,
            before: stored.before,
            segments: stored.segments,
            after: stored.after,
            edits: stored
                .edits
                .into_iter()
                .map(|edit| Edit {
                    change: edit.change.unmarked(),
                    ..edit
                })
                .collect(),
        };
        if overlay.holds_together() {
            Ok(overlay)
        } else {
            Err(Unreadable::Damaged("its places contradict".to_owned()))
        }
    }

    /// Whether something is hidden between head and tail.
    pub fn hides(&self) -> bool {
        self.cut > self.head
    }

    /// Whether a message is shown, changed or not.
    pub fn shows(&self, message: usize) -> bool {
        message < self.head as usize || message >= self.cut as usize
    }

    /// The opening of a turn that is carried over to the tail. Where no more than
    /// a bridge stands before it, nothing is.
    pub fn carried(&self) -> &[String] {
        if self.after.len() > 1 {
            &self.after
        } else {
            &[]
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        !self.hides() && self.edits.is_empty()
    }

    /// The changes to one message, in order.
    pub fn edits_of(&self, message: usize) -> &[Edit] {
        let place = |edit: &Edit| (edit.message as usize).cmp(&message);
        let from = self.edits.partition_point(|edit| place(edit).is_lt());
        let to = self.edits.partition_point(|edit| place(edit).is_le());
        self.edits.get(from..to).unwrap_or(&[])
    }

    /// The change to one block.
    pub fn change_at(&self, message: usize, block: usize) -> Option<&Change> {
        let place = |edit: &Edit| (edit.message as usize, edit.block as usize);
        let at = self.edits.binary_search_by_key(&(message, block), place);
        at.ok()
            .and_then(|at| self.edits.get(at))
            .map(|edit| &edit.change)
    }

    /// How many stubs a view shows.
    pub fn stubs(&self) -> usize {
        let stubs = self.edits.iter().filter(|edit| edit.change.is_stub());
        stubs.count()
    }

    fn holds_together(&self) -> bool {
        let order = |pair: &[Edit]| match pair {
            [a, b] => (a.message, a.block) < (b.message, b.block),
            _ => true,
        };
        self.head <= self.cut
            && self.cut <= self.made_at
            && self.hides() == (self.native.is_some() || !self.segments.is_empty())
            && (self.native.is_none() || (self.head == 0 && self.segments.is_empty()))
            && self.edits.windows(2).all(order)
            && self
                .edits
                .iter()
                .all(|edit| edit.message < self.made_at && self.shows(edit.message as usize))
    }
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
