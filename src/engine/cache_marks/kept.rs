//! Places that a mark of ours keeps in the cache with every request.
//!
//! An entry of the cache dies when no request has used it for its lifetime, even
//! while its session goes on. Two places are worth a mark: the end of what later
//! passes leave as it is, and the end of what the API is to sum up itself.

use serde::{Deserialize, Serialize};

use super::Place;
use crate::engine::overlay::{Change, Overlay};

/// The end of the part of a view that later passes leave as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stable {
    /// The last segment.
    Segments,
    /// A block of the client's history: the last one that a pass has changed.
    Block(usize, usize),
}

impl Stable {
    /// Where it ends after a pass that gave this overlay.
    pub fn of(overlay: &Overlay) -> Option<Self> {
        let mut edits = overlay.edits.iter().rev();
        let stub = edits.find(|edit| {
            let replaced = matches!(edit.change, Change::Payload(_)) && !edit.change.is_trim();
            replaced && edit.message >= overlay.cut
        });
        let block = stub.map(|edit| Self::Block(edit.message as usize, edit.block as usize));
        block.or(overlay.hides().then_some(Self::Segments))
    }
}

/// A place in the middle of the conversation that a mark of ours keeps in the
/// cache. The API's own summary is made from the messages up to some place; what
/// no entry of the cache ends at is paid for in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    message: usize,
    block: usize,
    /// Tokens of the view up to there.
    tokens: u64,
}

impl Held {
    /// The end of a view of this many tokens.
    pub fn new((message, block): Place, tokens: u64) -> Self {
        Self {
            message,
            block,
            tokens,
        }
    }

    /// The place to keep in a view of this many tokens: the same as before, until
    /// half as much again as stays verbatim has come behind it; else the first of
    /// those where the cache can still be read.
    pub fn next(held: Option<Self>, living: &[Self], view: u64, keep: u64) -> Option<Self> {
        let lasts = |held: &Self| held.tail(view) <= keep.saturating_add(keep / 2);
        held.filter(lasts)
            .or_else(|| living.iter().copied().find(lasts))
    }

    /// The message in which it is.
    pub fn message(&self) -> usize {
        self.message
    }

    /// Tokens behind it in a view of this size.
    fn tail(&self, view: u64) -> u64 {
        view.saturating_sub(self.tokens)
    }

    /// As a place that a mark keeps.
    pub fn place(self) -> Stable {
        Stable::Block(self.message, self.block)
    }

    /// Where the messages behind it begin.
    pub fn end(&self) -> usize {
        self.message + 1
    }

    /// Whether enough stands behind it in a view of this size to stay verbatim.
    pub fn is_far_enough(&self, view: u64, keep: u64) -> bool {
        self.tail(view) >= keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_until_too_much_stands_behind_it() {
        let (first, second) = (Held::new((10, 0), 40_000), Held::new((20, 0), 45_000));
        let next = |held, view| Held::next(held, &[first, second], view, 12_000);
        assert_eq!(next(None, 46_000), Some(first), "the first that lives");
        assert_eq!(next(Some(second), 63_000), Some(second));
        assert_eq!(next(Some(first), 59_000), Some(second), "too far behind");
        assert_eq!(next(Some(second), 90_000), None, "none is near");
    }

    #[test]
    fn it_is_used_once_enough_stands_behind_it() {
        let held = Held::new((10, 0), 40_000);
        assert!(!held.is_far_enough(51_999, 12_000));
        assert!(held.is_far_enough(52_000, 12_000));
        assert_eq!(held.end(), 11);
        assert_eq!(held.place(), Stable::Block(10, 0));
    }
}
