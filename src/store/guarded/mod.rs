//! A store that may go away, and what is done meanwhile.
//!
//! A database behind a network can be lost for a while. The first call that finds
//! out waits as long as any call may; from then on calls fail at once, and only
//! one look in the background, now and then, finds out when it is back. Meanwhile
//! what must hold at once (an overlay that a view cannot do without, and what it
//! leaves out) is kept in memory, in order. When the database is back it is put
//! there before anything else is asked of it, by the same rule as ever: whoever
//! was first wins. Figures are not kept here: whoever writes them tries again.

mod backlog;
mod looked_up;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use self::backlog::{Backlog, Deed};
use super::journal::Journal;
use super::{
    Answer, Collected, Commit, Committed, Holder, Keep, MarkRow, Memory, Moment, Sessions, Store,
    StoreError,
};
use crate::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};

/// How many calls in a row may be slow before the store counts as away.
const SLOW: u32 = 2;

/// How soon it is looked whether it is back, at first and in the end.
const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(2);

/// The store.
pub struct Guarded {
    shared: Arc<Shared>,
    background: Handle,
}

struct Shared {
    inner: Arc<dyn Store>,
    away: AtomicBool,
    slow: AtomicU32,
    backlog: Backlog,
    closing: CancellationToken,
}

impl Guarded {
    /// Stands before another store; it looks after it on the runtime this is
    /// called on. `trouble` says why it is away already.
    pub fn before(inner: Arc<dyn Store>, trouble: Option<&str>) -> Self {
        let guarded = Self {
            shared: Arc::new(Shared {
                inner,
                away: AtomicBool::new(false),
                slow: AtomicU32::new(0),
                backlog: Backlog::default(),
                closing: CancellationToken::new(),
            }),
            background: Handle::current(),
        };
        if let Some(why) = trouble {
            guarded.lost(why);
        }
        guarded
    }

    fn inner(&self) -> &dyn Store {
        &*self.shared.inner
    }

    /// Asks the store, unless it is away.
    async fn ask<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        if self.shared.is_away() {
            return Err(away());
        }
        let answer = answer.await;
        match &answer {
            Ok(_) => self.shared.slow.store(0, Ordering::Relaxed),
            Err(StoreError::Away(why)) => self.lost(why),
            Err(slow @ StoreError::Slow(_)) => {
                if self.shared.slow.fetch_add(1, Ordering::Relaxed) + 1 >= SLOW {
                    self.lost(&slow.to_string());
                }
            }
            Err(StoreError::Failed(_)) => {}
        }
        answer
    }

    /// Asks the store to keep something; if it is away, or goes away over it, it
    /// is kept here.
    async fn keep<T>(
        &self,
        answer: Answer<'_, T>,
        stand_in: impl AsyncFnOnce(&Memory) -> Result<(T, Option<Deed>), StoreError>,
    ) -> Result<T, StoreError> {
        let answer = self.ask(answer).await;
        match answer {
            Err(StoreError::Away(_) | StoreError::Slow(_)) if self.shared.is_away() => {}
            answer => return answer,
        }
        let memory = self.shared.backlog.memory();
        let (said, deed) = stand_in(&memory).await?;
        if let Some(deed) = deed {
            // If it has come back this very moment, the backlog is still open:
            // what is there is done before the store is used again.
            self.shared.backlog.push(deed)?;
            if !self.shared.is_away() {
                self.lost("it came back while it was needed");
            }
        }
        Ok(said)
    }

    /// The store is away: from now on it is left alone but for a look now and
    /// then.
    fn lost(&self, why: &str) {
        if !self.shared.away.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "the store is away ({why}): requests are served from memory, and passes wait until there is no more room"
            );
            let shared = self.shared.clone();
            self.background.spawn(async move { shared.recover().await });
        }
    }
}

impl Shared {
    fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    /// Looks until the store is back and has everything that was done meanwhile.
    async fn recover(&self) {
        let begun = Instant::now();
        let mut pause = FIRST;
        let (mut kept, mut lost) = (0, 0);
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => return,
            }
            pause = (pause * 2).min(LAST);
            let nowhere = [ChainHash::from_bytes([0; 32])];
            if self.inner.marks(&nowhere).await.is_err() {
                continue;
            }
            // What comes in meanwhile follows without a pause: else requests that
            // go on could always be ahead.
            while let Ok(done) = self.backlog.replay(&*self.inner).await {
                kept += done.kept;
                lost += done.lost;
                let back = || {
                    self.slow.store(0, Ordering::Relaxed);
                    self.away.store(false, Ordering::SeqCst);
                };
                if self.backlog.ends(back) {
                    let away = begun.elapsed();
                    tracing::warn!(
                        ?away,
                        kept,
                        lost,
                        "the store is back, and has what was done meanwhile"
                    );
                    return;
                }
            }
        }
    }
}

fn away() -> StoreError {
    StoreError::Away("it was not there a moment ago".to_owned())
}

/// What was found, if anything was; else nobody knows.
fn known<T>(found: Vec<T>) -> Result<Vec<T>, StoreError> {
    if found.is_empty() {
        return Err(away());
    }
    Ok(found)
}

impl Store for Guarded {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async move {
            if self.shared.is_away() {
                let memory = self.shared.backlog.memory();
                return known(memory.marks(places).await?);
            }
            self.ask(self.inner().marks(places)).await
        })
    }

    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(self.ask(self.inner().marks_by_view(hint, views)))
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        Box::pin(self.ask(self.inner().overlays_of(hint, limit)))
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            if self.shared.is_away() {
                let memory = self.shared.backlog.memory();
                // That it is not here does not mean that it is lost.
                return memory.overlay(id).await?.map(Some).ok_or_else(away);
            }
            self.ask(self.inner().overlay(id)).await
        })
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        Box::pin(self.keep(self.inner().commit(commit), async |memory| {
            let said = memory.commit(commit).await?;
            let done = said == Committed::Done;
            Ok((said, done.then(|| Deed::Commit(Box::new(commit.clone())))))
        }))
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(self.ask(self.inner().record(marks)))
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        Box::pin(async move {
            if self.shared.is_away() {
                let memory = self.shared.backlog.memory();
                return known(memory.segments(ids).await?);
            }
            self.ask(self.inner().segments(ids)).await
        })
    }

    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        let answer = self.inner().put_segment(id, body, now);
        Box::pin(self.keep(answer, async move |memory| {
            let held = memory.put_segment(id, body, now).await?;
            let deed = Deed::Segment(id, body.to_vec(), now);
            Ok((held, Some(deed)))
        }))
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(self.ask(self.inner().learned()))
    }

    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        Box::pin(self.ask(self.inner().learned_of(keys)))
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        Box::pin(self.keep(self.inner().learn(key, value), async |_| {
            let deed = Deed::Learn(key.to_owned(), value.to_owned());
            Ok(((), Some(deed)))
        }))
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        let answer = self.inner().put_blobs(blobs, now);
        Box::pin(self.keep(answer, async move |memory| {
            memory.put_blobs(blobs, now).await?;
            Ok(((), Some(Deed::Blobs(blobs.to_vec(), now))))
        }))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            if self.shared.is_away() {
                let memory = self.shared.backlog.memory();
                return memory.blob(id).await?.map(Some).ok_or_else(away);
            }
            self.ask(self.inner().blob(id)).await
        })
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        Box::pin(self.ask(self.inner().lease(name, holder, time)))
    }

    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        Box::pin(self.ask(self.inner().is_leased(names)))
    }

    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        Box::pin(self.ask(self.inner().release(name, holder)))
    }

    fn is_shared(&self) -> bool {
        self.inner().is_shared()
    }

    fn is_away(&self) -> bool {
        self.shared.is_away()
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        Box::pin(async move {
            if self.shared.is_away() {
                return Err(away());
            }
            // A step of it may take its time, which says nothing of the store.
            self.inner().collect(keep).await
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.shared.closing.cancel();
            let left = self.shared.backlog.len();
            if left > 0 {
                tracing::error!(left, "what was done while the store was away is lost");
            }
            self.inner().close().await
        })
    }
}
