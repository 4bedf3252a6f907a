//! What was done while the store was away, in order and bounded.
//!
//! It waits in lanes: one for each conversation, and one for what belongs to
//! none. A lane is done again in its own order, by one at a time; lanes have
//! nothing to do with each other. Beside them stands a memory in which all of it
//! has been done, so that it can be asked about. Both end together, when nothing
//! waits any more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::deed::{Deed, Lane};
use crate::store::{Memory, Store, StoreError};

/// The most bytes that wait. Beyond it views stay as they are.
const ROOM: usize = 256 << 20;

/// How often a lane is looked through and the store refuses its first deed,
/// although it takes others: some minutes. What follows needs it (an overlay what
/// it leaves out), so the whole lane is given up then.
const TRIES: u32 = 150;

/// What came of doing it again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replayed {
    /// What the store has now.
    pub kept: u64,
    /// Overlays at places where somebody else was first, and what the store
    /// would not take.
    pub lost: u64,
}

#[derive(Default)]
pub(super) struct Backlog {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lanes: HashMap<Lane, Waiting>,
    bytes: usize,
    memory: Arc<Memory>,
    done: Replayed,
    /// Somebody sees to it that what comes in is done again.
    open: bool,
}

#[derive(Default)]
struct Waiting {
    deeds: VecDeque<Arc<Deed>>,
    /// How often in a row the store refused the first.
    refused: u32,
    /// Whoever does them again holds it.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What became of something that was to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits, and is seen to.
    Waits,
    /// It waits, and nobody sees to it.
    Unseen,
    /// The memory in which it was done has ended meanwhile.
    Late,
}

impl Kept {
    /// A deed is done; it may not be there any more, because a newer word has
    /// taken its place meanwhile.
    fn done(&mut self, lane: Lane, deed: &Arc<Deed>, holds: bool) {
        self.done.kept += u64::from(holds);
        self.done.lost += u64::from(!holds);
        let Some(waiting) = self.lanes.get_mut(&lane) else {
            return;
        };
        waiting.refused = 0;
        let mut deeds = waiting.deeds.iter();
        if let Some(at) = deeds.position(|held| Arc::ptr_eq(held, deed)) {
            waiting.deeds.remove(at);
            self.bytes = self.bytes.saturating_sub(deed.bytes());
        }
        if waiting.deeds.is_empty() {
            self.lanes.remove(&lane);
        }
    }

    fn give_up(&mut self, lane: Lane) {
        let lane = self.lanes.remove(&lane);
        for deed in lane.iter().flat_map(|lane| &lane.deeds) {
            self.bytes = self.bytes.saturating_sub(deed.bytes());
            self.done.lost += 1;
        }
    }
}

impl Backlog {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody sees to it from now on.
    pub(super) fn open(&self) {
        self.kept().open = true;
    }

    /// Where what was done can be asked about; none if nothing waits and nothing
    /// is about to.
    pub(super) fn memory_if_open(&self) -> Option<Arc<Memory>> {
        let kept = self.kept();
        kept.open.then(|| kept.memory.clone())
    }

    pub(super) fn memory(&self) -> Arc<Memory> {
        self.kept().memory.clone()
    }

    /// How many deeds wait.
    pub(super) fn len(&self) -> usize {
        let kept = self.kept();
        kept.lanes.values().map(|waiting| waiting.deeds.len()).sum()
    }

    /// Whether something waits for a conversation.
    pub(super) fn has(&self, lane: Lane) -> bool {
        self.kept().lanes.contains_key(&lane)
    }

    /// Whether there is no more room.
    pub(super) fn is_full(&self) -> bool {
        self.kept().bytes >= ROOM
    }

    /// The conversations for which something waits.
    pub(super) fn lanes(&self) -> Vec<Lane> {
        self.kept().lanes.keys().copied().collect()
    }

    /// Takes in what has been done in a memory.
    pub(super) fn push(&self, deed: Deed, memory: &Arc<Memory>) -> Pushed {
        let mut kept = self.kept();
        if !Arc::ptr_eq(&kept.memory, memory) {
            return Pushed::Late;
        }
        let mut freed = 0;
        let bytes = deed.bytes();
        let waiting = kept.lanes.entry(deed.lane()).or_default();
        if let Deed::Learn(key, _) = &deed {
            // Only the last word counts.
            let same = |held: &Deed| matches!(held, Deed::Learn(name, _) if name == key);
            if let Some(at) = waiting.deeds.iter().position(|held| same(held)) {
                freed = waiting.deeds.remove(at).map_or(0, |held| held.bytes());
            }
        }
        waiting.deeds.push_back(Arc::new(deed));
        kept.bytes = kept.bytes.saturating_add(bytes).saturating_sub(freed);
        if kept.open {
            Pushed::Waits
        } else {
            Pushed::Unseen
        }
    }

    /// Takes in what has to be done before anything that waits, in this order.
    pub(super) fn put_first(&self, deeds: Vec<Deed>) {
        let mut kept = self.kept();
        for deed in deeds.into_iter().rev() {
            kept.bytes = kept.bytes.saturating_add(deed.bytes());
            let waiting = kept.lanes.entry(deed.lane()).or_default();
            waiting.deeds.push_front(Arc::new(deed));
        }
    }

    /// Notes that the store refused the first deed of a lane. It may need what
    /// waits in another lane, or room on a disk, so it is tried for a while.
    pub(super) fn refused(&self, lane: Lane, error: &StoreError) {
        let mut kept = self.kept();
        let Some(waiting) = kept.lanes.get_mut(&lane) else {
            return;
        };
        waiting.refused += 1;
        if waiting.refused == 1 {
            tracing::warn!("what was done while the store was away is refused: {error}");
        }
        if waiting.refused >= TRIES {
            tracing::error!("what was done while the store was away is given up: {error}");
            kept.give_up(lane);
        }
    }

    /// Does again what waits in a lane, the oldest first, and stops where that
    /// does not work.
    pub(super) async fn settle(&self, store: &dyn Store, lane: Lane) -> Result<(), StoreError> {
        let Some(turn) = self.kept().lanes.get(&lane).map(|lane| lane.turn.clone()) else {
            return Ok(());
        };
        let _turn = turn.lock().await;
        // Whoever had the turn may have done it all.
        let waiting = self.kept().lanes.get(&lane).map(|lane| lane.deeds.clone());
        for deed in waiting.into_iter().flatten() {
            let holds = deed.again(store).await?;
            self.kept().done(lane, &deed, holds);
        }
        Ok(())
    }

    /// Ends, if nothing waits any more, and says what came of it all.
    pub(super) fn end(&self) -> Option<Replayed> {
        let mut kept = self.kept();
        kept.lanes
            .is_empty()
            .then(|| std::mem::take(&mut *kept).done)
    }
}
