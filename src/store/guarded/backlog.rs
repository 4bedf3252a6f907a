//! What was done while the store was away, in order and bounded.
//!
//! It waits in lanes: one for each conversation, and one for what belongs to
//! none. A lane is done again in its own order, by one at a time; lanes have
//! nothing to do with each other. Beside them stands a memory in which all of it
//! has been done, so that it can be asked about. Both end together, when nothing
//! waits any more.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::deed::Deed;
use crate::engine::ids::LineageId;
use crate::store::{Memory, Store, StoreError};

/// The most bytes that wait. Beyond it views stay as they are.
const ROOM: usize = 256 << 20;

/// How often something may be too slow, while the store answers, before it is
/// given up: its conversation cannot go on without it.
const TRIES: u32 = 20;

/// A conversation; none: what belongs to no conversation.
pub(super) type Lane = Option<LineageId>;

/// A deed that waits.
struct Item {
    deed: Deed,
    /// How often it was too slow, or failed.
    tries: AtomicU32,
}

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
    deeds: VecDeque<Arc<Item>>,
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
    /// Removes a deed, unless a newer word has taken its place meanwhile.
    fn remove(&mut self, lane: Lane, item: &Arc<Item>) {
        let Some(waiting) = self.lanes.get_mut(&lane) else {
            return;
        };
        let mut deeds = waiting.deeds.iter();
        if let Some(at) = deeds.position(|held| Arc::ptr_eq(held, item)) {
            waiting.deeds.remove(at);
            self.bytes = self.bytes.saturating_sub(item.deed.bytes());
        }
        if waiting.deeds.is_empty() {
            self.lanes.remove(&lane);
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

    /// The conversations for which something waits.
    pub(super) fn lanes(&self) -> Vec<Lane> {
        self.kept().lanes.keys().copied().collect()
    }

    /// Takes in what has been done in a memory, if there is room.
    pub(super) fn push(&self, deed: Deed, memory: &Arc<Memory>) -> Result<Pushed, StoreError> {
        let mut kept = self.kept();
        if !Arc::ptr_eq(&kept.memory, memory) {
            return Ok(Pushed::Late);
        }
        let lane = deed.lane();
        if let (Deed::Learn(key, _), Some(waiting)) = (&deed, kept.lanes.get(&lane)) {
            // Only the last word counts.
            let mut held = waiting.deeds.iter();
            let same = held.find(|held| matches!(&held.deed, Deed::Learn(name, _) if name == key));
            if let Some(same) = same.cloned() {
                kept.remove(lane, &same);
            }
        }
        let bytes = kept.bytes.saturating_add(deed.bytes());
        if bytes > ROOM {
            let why = "and there is no more room for what is done meanwhile";
            return Err(StoreError::Away(why.to_owned()));
        }
        kept.bytes = bytes;
        let tries = AtomicU32::new(0);
        let waiting = kept.lanes.entry(lane).or_default();
        waiting.deeds.push_back(Arc::new(Item { deed, tries }));
        Ok(if kept.open {
            Pushed::Waits
        } else {
            Pushed::Unseen
        })
    }

    /// Does again what waits in a lane, the oldest first. What failed for the
    /// first time still waits afterwards: it may need what is in another lane.
    pub(super) async fn settle(&self, store: &dyn Store, lane: Lane) -> Result<(), StoreError> {
        let Some(turn) = self.kept().lanes.get(&lane).map(|lane| lane.turn.clone()) else {
            return Ok(());
        };
        let _turn = turn.lock().await;
        // Whoever had the turn may have done it all.
        let waiting = self.kept().lanes.get(&lane).map(|lane| lane.deeds.clone());
        for item in waiting.into_iter().flatten() {
            let holds = match item.deed.again(store).await {
                Ok(holds) => holds,
                Err(error) => {
                    let tries = item.tries.fetch_add(1, Ordering::Relaxed) + 1;
                    match error {
                        StoreError::Away(_) => return Err(error),
                        StoreError::Slow(_) if tries < TRIES => return Err(error),
                        StoreError::Failed(_) if tries == 1 => continue,
                        StoreError::Slow(_) | StoreError::Failed(_) => {}
                    }
                    tracing::warn!(
                        "what was done while the store was away cannot be kept: {error}"
                    );
                    false
                }
            };
            let mut kept = self.kept();
            kept.remove(lane, &item);
            kept.done.kept += u64::from(holds);
            kept.done.lost += u64::from(!holds);
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
