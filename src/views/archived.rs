//! What this process has told the journal already.
//!
//! A pass puts a whole history away, but most of it was put away by the one
//! before; and of each turn only what is new is told. What is remembered here
//! only saves work: to tell the journal something twice changes nothing, so it
//! may be forgotten at any time. What is kept is kept in a branch of the journal,
//! and in another one of the same session, or in one that was forgotten and begins
//! anew, it is not. A message may change its bytes without changing
//! what it says, where a cache mark moves: one that has a mark, or had one, is
//! put away again.

use std::sync::Arc;

use super::recognise::Recognised;
use crate::bounded::Bounded;
use crate::engine::ids::{ChainHash, LineageId};
use crate::engine::swift::Swift;
use crate::store::Moment;

/// The most sessions that are remembered.
const SESSIONS: usize = 4_096;

/// What the journal has of each session.
pub struct Archived(Bounded<LineageId, Told>);

impl Default for Archived {
    fn default() -> Self {
        Self(Bounded::new(SESSIONS))
    }
}

#[derive(Default, Clone)]
struct Told {
    kept: Known,
    /// The place at which it was put away last, or was to be.
    place: Option<(usize, Swift, ChainHash)>,
    /// How many messages were told of, and the history up to there.
    fed: Option<(usize, Swift, ChainHash)>,
}

/// A branch of the journal, and when it began.
pub type Home = (LineageId, Moment);

/// The messages of a session that are kept as they are, and where.
#[derive(Debug, Default, Clone)]
pub struct Known {
    messages: Arc<Vec<Option<Swift>>>,
    home: Option<Home>,
}

impl Known {
    /// Whether a message is kept with these very bytes.
    pub fn has(&self, recognised: &Recognised, at: usize) -> bool {
        let held = self.messages.get(at).copied().flatten();
        held.is_some() && held == plain(recognised, at)
    }

    /// Whether it holds there: it is about this branch, or about nothing.
    pub fn holds_in(&self, home: Option<Home>) -> bool {
        self.messages.is_empty() || (home.is_some() && self.home == home)
    }
}

impl Archived {
    /// What is kept of a session.
    pub fn known(&self, lineage: LineageId) -> Known {
        let kept = self.0.read(&lineage, |told| told.kept.clone());
        kept.unwrap_or_default()
    }

    /// All of a history is kept now.
    pub fn note(&self, lineage: LineageId, recognised: &Recognised, home: Option<Home>) {
        let kept = (0..recognised.len()).map(|at| plain(recognised, at));
        let kept = Known {
            messages: Arc::new(kept.collect()),
            home,
        };
        self.with(lineage, |told| told.kept = kept);
    }

    /// A history is about to be put away.
    pub fn comes_to(&self, lineage: LineageId, recognised: &Recognised) {
        let end = recognised.swifts.last().zip(recognised.last());
        let place = end.map(|(swift, hash)| (recognised.len(), *swift, hash));
        self.with(lineage, |told| told.place = place);
    }

    /// The place at which a history was put away last, and its messages, whether
    /// or not anything came of it afterwards.
    pub fn place(&self, lineage: LineageId, swifts: &[Swift]) -> Option<(usize, ChainHash)> {
        let (messages, end, hash) = self.0.read(&lineage, |told| told.place)??;
        let there = swifts.get(messages.checked_sub(1)?);
        (there == Some(&end)).then_some((messages, hash))
    }

    /// The first message that was not told of; from now on all are.
    pub fn fed(&self, lineage: LineageId, recognised: &Recognised) -> usize {
        let before = self.fed_at(lineage, &recognised.swifts);
        let end = recognised.swifts.last().zip(recognised.last());
        let now = end.map(|(swift, hash)| (recognised.len(), *swift, hash));
        self.with(lineage, |told| told.fed = now);
        // Of another branch under the same name all is told.
        before.map_or(0, |(messages, _)| messages)
    }

    /// The place up to which a history was told of, and its messages.
    pub fn fed_at(&self, lineage: LineageId, swifts: &[Swift]) -> Option<(usize, ChainHash)> {
        let (messages, end, hash) = self.0.read(&lineage, |told| told.fed)??;
        let there = swifts.get(messages.checked_sub(1)?);
        (there == Some(&end)).then_some((messages, hash))
    }

    fn with<T>(&self, lineage: LineageId, act: impl FnOnce(&mut Told) -> T) -> T {
        // Whatever goes for it is told once more, and nothing is lost by that.
        self.0.update(lineage, act)
    }
}

/// A message that carries no cache mark.
fn plain(recognised: &Recognised, at: usize) -> Option<Swift> {
    let message = recognised.body.messages().get(at)?;
    let marked = !recognised.body.marks(message).is_empty();
    recognised.swifts.get(at).copied().filter(|_| !marked)
}
