//! What was done while the store was away, in order and bounded.
//!
//! Beside the list stands a memory in which it has been done, so that it can be
//! asked about. Both end together, when all of it has been done again in the
//! store. Requests go on meanwhile and add to it, so it must be done faster than
//! it comes in: several conversations at once, each in its own order, and what
//! overlays leave out before the overlays.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::bound;
use crate::engine::ids::{BlobId, SegmentId};
use crate::store::journal::{Archive, Trace};
use crate::store::{Commit, Committed, Memory, Moment, Store, StoreError};

/// The most bytes that wait. Beyond it views stay as they are.
const ROOM: usize = 256 << 20;

/// How often something may be too slow, while the store answers, before it is
/// given up: the store is not used again before all is done.
const TRIES: u32 = 5;

/// Something to be done again.
#[derive(Clone)]
pub(super) enum Deed {
    Commit(Box<Commit>),
    Segment(SegmentId, Vec<u8>, Moment),
    Blobs(Vec<(BlobId, Vec<u8>)>, Moment),
    Learn(String, String),
    Archive(Box<(Trace, Archive, Moment)>),
}

/// A deed on the list.
struct Item {
    deed: Deed,
    /// How often it was too slow, or failed.
    tries: AtomicU32,
}

/// What came of doing it again.
#[derive(Debug, Default, Clone, Copy)]
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
    deeds: VecDeque<Arc<Item>>,
    bytes: usize,
    memory: Arc<Memory>,
}

impl Deed {
    /// What belongs together is done in order.
    fn lane(&self) -> u8 {
        let name: &[u8] = match self {
            Self::Commit(commit) => commit.mark.lineage.as_bytes(),
            Self::Archive(kept) => kept.0.lineage.as_bytes(),
            Self::Segment(id, ..) => id.as_bytes(),
            Self::Blobs(..) | Self::Learn(..) => &[],
        };
        name.first().map_or(0, |byte| byte % 4)
    }

    fn bytes(&self) -> usize {
        // Twice: it stands in the memory too.
        2 * match self {
            Self::Commit(commit) => {
                let overlay = commit.overlay.as_ref().map_or(0, |(_, body)| body.len());
                overlay + commit.mark.figures.len() + 1_000
            }
            Self::Segment(_, body, _) => body.len() + 100,
            Self::Blobs(blobs, _) => blobs.iter().map(|(_, body)| body.len() + 100).sum(),
            Self::Learn(key, value) => key.len() + value.len() + 100,
            Self::Archive(kept) => {
                let (_, archive, _) = kept.as_ref();
                let blobs = archive.blobs.iter().map(|(_, body)| body.len() + 100);
                let messages = archive.messages.iter().map(|kept| kept.parts.len() + 100);
                blobs.chain(messages).sum()
            }
        }
    }
}

impl Kept {
    fn remove(&mut self, at: usize) {
        if let Some(gone) = self.deeds.remove(at) {
            self.bytes = self.bytes.saturating_sub(gone.deed.bytes());
        }
    }
}

impl Backlog {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where what was done can be asked about.
    pub(super) fn memory(&self) -> Arc<Memory> {
        self.kept().memory.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.kept().deeds.len()
    }

    /// Takes something in, if there is room.
    pub(super) fn push(&self, deed: Deed) -> Result<(), StoreError> {
        let mut kept = self.kept();
        if let Deed::Learn(key, _) = &deed {
            // Only the last word counts.
            let same = |held: &Arc<Item>| matches!(&held.deed, Deed::Learn(name, _) if name == key);
            if let Some(at) = kept.deeds.iter().position(same) {
                kept.remove(at);
            }
        }
        let bytes = kept.bytes.saturating_add(deed.bytes());
        if bytes > ROOM {
            let why = "and there is no more room for what is done meanwhile";
            return Err(StoreError::Away(why.to_owned()));
        }
        kept.bytes = bytes;
        kept.deeds.push_back(Arc::new(Item {
            deed,
            tries: AtomicU32::new(0),
        }));
        Ok(())
    }

    /// Does everything again; what is done is forgotten.
    pub(super) async fn replay(&self, store: &dyn Store) -> Result<Replayed, StoreError> {
        let mut done = Replayed::default();
        loop {
            let deeds: Vec<Arc<Item>> = self.kept().deeds.iter().cloned().collect();
            if deeds.is_empty() {
                return Ok(done);
            }
            let is_commit = |item: &&Arc<Item>| matches!(item.deed, Deed::Commit(_));
            let (commits, first): (Vec<_>, Vec<_>) = deeds.iter().partition(is_commit);
            for part in [first, commits] {
                let lane = |number| self.lane(store, &part, number);
                let (a, b, c, d) = tokio::join!(lane(0), lane(1), lane(2), lane(3));
                for lane in [a, b, c, d] {
                    let Replayed { kept, lost } = lane?;
                    done.kept += kept;
                    done.lost += lost;
                }
            }
        }
    }

    /// Does again what belongs to a lane, the oldest first.
    async fn lane(
        &self,
        store: &dyn Store,
        deeds: &[&Arc<Item>],
        number: u8,
    ) -> Result<Replayed, StoreError> {
        let mut done = Replayed::default();
        for item in deeds.iter().filter(|item| item.deed.lane() == number) {
            match again(store, &item.deed).await {
                Ok(true) => done.kept += 1,
                Ok(false) => done.lost += 1,
                Err(error @ StoreError::Away(_)) => return Err(error),
                Err(error) => {
                    let tries = item.tries.fetch_add(1, Ordering::Relaxed) + 1;
                    match error {
                        StoreError::Slow(_) if tries < TRIES => return Err(error),
                        // It may need what is done in another lane.
                        StoreError::Failed(_) if tries == 1 => continue,
                        _ => {}
                    }
                    tracing::warn!(
                        "what was done while the store was away cannot be kept: {error}"
                    );
                    done.lost += 1;
                }
            }
            let mut kept = self.kept();
            let at = kept.deeds.iter().position(|held| Arc::ptr_eq(held, item));
            // Unless a newer word has taken its place meanwhile.
            if let Some(at) = at {
                kept.remove(at);
            }
        }
        Ok(done)
    }

    /// Ends, if nothing is left to be done; nothing comes in between.
    pub(super) fn ends(&self, end: impl FnOnce()) -> bool {
        let mut kept = self.kept();
        let over = kept.deeds.is_empty();
        if over {
            *kept = Kept::default();
            end();
        }
        over
    }
}

/// Whether it holds.
async fn again(store: &dyn Store, deed: &Deed) -> Result<bool, StoreError> {
    match deed {
        Deed::Commit(commit) => {
            let done = store.commit(commit).await? == Committed::Done;
            if let (false, Some((id, _))) = (done, &commit.overlay) {
                // Its view may have been sent, and have a reply: the overlay is
                // kept for the mark that will say so.
                let mut beside = Commit::clone(commit);
                beside.mark.chain = bound::place(commit.mark.chain, &id.to_string());
                beside.parent = None;
                store.commit(&beside).await?;
            }
            return Ok(done);
        }
        Deed::Segment(id, body, now) => drop(store.put_segment(*id, body, *now).await?),
        Deed::Blobs(blobs, now) => store.put_blobs(blobs, *now).await?,
        Deed::Learn(key, value) => store.learn(key, value).await?,
        Deed::Archive(kept) => {
            let (trace, archive, now) = kept.as_ref();
            store.journal().archive(trace, archive, *now).await?;
        }
    }
    Ok(true)
}
