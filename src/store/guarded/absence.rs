//! Whether the store is away, and how it is found again.
//!
//! The store is used again as soon as it answers and has what belongs to no
//! conversation. What was done for a conversation meanwhile may be a lot, and
//! nobody else's requests should wait for it: it is put there in the background,
//! and before anything is asked of the store for that very conversation.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::backlog::Backlog;
use super::deed::Deed;
use super::deed::Lane;
use super::recent::Recent;
use crate::engine::ids::ChainHash;
use crate::store::{Committed, Holder, Store, StoreError};

/// How soon it is looked whether it is back, at first and in the end.
const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(2);

/// How often it is looked whether files of this machine are still in their place:
/// without a write nothing else would tell.
const WATCH: Duration = Duration::from_secs(2);

/// How long a call waits until what was done for its conversation is in the
/// store.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long the end of the process waits for the same.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The lease that shows whether something can be written.
const LOOK: &str = "look";

/// How many conversations are put there at once.
const AT_ONCE: usize = 4;

/// How many calls in a row may be slow before the store counts as away.
const SLOW: u32 = 2;

/// Looks now and then whether files of this machine are still in their place,
/// until the guard is gone.
pub(super) async fn watch(watched: Weak<Absence>) {
    loop {
        tokio::time::sleep(WATCH).await;
        let Some(absence) = watched.upgrade() else {
            return;
        };
        if absence.closing.is_cancelled() {
            return;
        }
        if !absence.is_away()
            && let Err(StoreError::Away(why)) = absence.inner.check().await
            && absence.begins(&why)
        {
            absence.recover().await;
        }
    }
}

pub(super) struct Absence {
    pub(super) inner: Arc<dyn Store>,
    pub(super) backlog: Backlog,
    pub(super) closing: CancellationToken,
    recent: Recent,
    away: AtomicBool,
    slow: AtomicU32,
}

impl Absence {
    pub(super) fn of(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            backlog: Backlog::default(),
            closing: CancellationToken::new(),
            recent: Recent::default(),
            away: AtomicBool::new(false),
            slow: AtomicU32::new(0),
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    /// Where what is written is held in case the store comes back empty; none if
    /// it cannot.
    pub(super) fn recent(&self) -> Option<&Recent> {
        self.inner.is_local().then_some(&self.recent)
    }

    /// Takes note of how a call went; why the store has to count as away, if it
    /// has.
    pub(super) fn heard<T>(&self, answer: &Result<T, StoreError>) -> Option<String> {
        match answer {
            Ok(_) => {
                self.slow.store(0, Ordering::Relaxed);
                None
            }
            Err(StoreError::Away(why)) => Some(why.clone()),
            // Another process is writing, or the disk has much to do: neither
            // means that nothing can be written.
            Err(StoreError::Slow(_)) if self.inner.is_local() => None,
            Err(slow @ StoreError::Slow(_)) => {
                let many = self.slow.fetch_add(1, Ordering::Relaxed) + 1 >= SLOW;
                many.then(|| slow.to_string())
            }
            Err(StoreError::Failed(_) | StoreError::Full { .. }) => None,
        }
    }

    /// The store is away: from now on it is left alone. Whether that is news:
    /// whoever brings it has to recover the store.
    pub(super) fn begins(&self, why: &str) -> bool {
        let news = !self.away.swap(true, Ordering::SeqCst);
        self.backlog.open();
        if news {
            tracing::error!(
                "the store is away ({why}): requests are served from memory, and passes wait until there is no more room"
            );
        }
        news
    }

    /// Puts into the store what was done for conversations, unless the store is
    /// away or it takes too long. Whether the store has all of it now.
    pub(super) async fn are_settled(&self, lanes: &[Lane]) -> bool {
        if self.is_away() {
            return false;
        }
        let settled = async {
            for lane in lanes {
                self.backlog.settle(&*self.inner, *lane).await?;
            }
            Ok::<_, StoreError>(())
        };
        matches!(tokio::time::timeout(PATIENCE, settled).await, Ok(Ok(())))
    }

    /// What can still be done before the process ends.
    pub(super) async fn last_words(&self) {
        self.closing.cancel();
        if self.backlog.len() > 0 {
            let all = async {
                while self.is_there().await.is_err() {
                    tokio::time::sleep(FIRST).await;
                }
                self.away.store(false, Ordering::SeqCst);
                self.settle_all().await
            };
            let _ = tokio::time::timeout(LAST_WORDS, all).await;
        }
        let left = self.backlog.len();
        if left > 0 {
            tracing::error!(left, "what was done while the store was away is lost");
        }
    }

    /// Looks until the store is back and has everything that was done meanwhile.
    pub(super) async fn recover(&self) {
        let mut begun = Instant::now();
        let mut pause = FIRST;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => return,
            }
            pause = (pause * 2).min(LAST);
            if self.is_there().await.is_err() {
                continue;
            }
            self.slow.store(0, Ordering::Relaxed);
            self.away.store(false, Ordering::SeqCst);
            let left = self.backlog.len();
            let away = begun.elapsed();
            tracing::warn!(?away, left, "the store is back, and used again");
            let settled = tokio::select! {
                settled = self.settle_all() => settled,
                () = self.closing.cancelled() => return,
            };
            let Err(error) = settled else {
                return;
            };
            // Whoever noticed first recovers it.
            if !self.begins(&error.to_string()) {
                return;
            }
            begun = Instant::now();
            pause = FIRST;
        }
    }

    /// Whether it answers, can write, and has what belongs to no conversation.
    async fn is_there(&self) -> Result<(), StoreError> {
        if self.inner.reopen().await? {
            self.hold_recent().await;
        }
        let nowhere = [ChainHash::from_bytes([0; 32])];
        self.inner.marks(&nowhere).await?;
        let somebody = Holder::random();
        self.inner.lease(LOOK, somebody, FIRST).await?;
        self.inner.release(LOOK, somebody).await?;
        self.backlog.settle(&*self.inner, None).await?;
        if self.inner.is_local() {
            // Writing it all takes no time, and shows whether there is room.
            for lane in self.backlog.lanes() {
                match self.backlog.settle(&*self.inner, lane).await {
                    Err(away @ StoreError::Away(_)) => return Err(away),
                    Ok(())
                    | Err(StoreError::Slow(_) | StoreError::Failed(_) | StoreError::Full { .. }) => {
                    }
                }
            }
        }
        Ok(())
    }

    /// The store has begun anew: what was written lately is to be written again,
    /// before what waits already.
    async fn hold_recent(&self) {
        let memory = self.backlog.memory();
        let mut held = Vec::new();
        for deed in self.recent.to_write() {
            let holds = match &deed {
                Deed::Commit(commit) => matches!(memory.commit(commit).await, Ok(Committed::Done)),
                _ => true,
            };
            if holds {
                held.push(deed);
            }
        }
        self.backlog.put_first(held);
    }

    /// Puts everything there that was done meanwhile, several conversations at
    /// once; one that has to wait holds up no other.
    async fn settle_all(&self) -> Result<(), StoreError> {
        let (begun, mut pause) = (Instant::now(), FIRST);
        let done = loop {
            if let Some(done) = self.backlog.end() {
                break done;
            }
            let lanes = self.backlog.lanes();
            let some = |first| self.settle_some(lanes.iter().skip(first).step_by(AT_ONCE));
            let (a, b, c, d) = tokio::try_join!(some(0), some(1), some(2), some(3))?;
            if a && b && c && d {
                pause = FIRST;
                continue;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST);
        };
        let (took, kept, lost) = (begun.elapsed(), done.kept, done.lost);
        if kept + lost > 0 {
            tracing::warn!(?took, kept, lost, "what was done meanwhile is in the store");
        }
        Ok(())
    }

    /// Whether all of them could be settled.
    async fn settle_some(&self, lanes: impl Iterator<Item = &Lane>) -> Result<bool, StoreError> {
        let mut all = true;
        for lane in lanes {
            if self.is_away() {
                return Err(StoreError::Away("it is away again".to_owned()));
            }
            match self.backlog.settle(&*self.inner, *lane).await {
                Ok(()) => {}
                Err(StoreError::Slow(_)) => all = false,
                Err(error @ (StoreError::Failed(_) | StoreError::Full { .. })) => {
                    self.backlog.refused(*lane, &error);
                    all = false;
                }
                Err(away) => return Err(away),
            }
        }
        Ok(all)
    }
}
