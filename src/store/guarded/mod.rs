//! A store that may go away, and what is done meanwhile.
//!
//! A database behind a network can be lost for a while. The first call that finds
//! out waits as long as any call may; from then on calls fail at once, and only
//! one look in the background, now and then, finds out when it is back. Meanwhile
//! what must hold at once (an overlay that a view cannot do without, and what it
//! leaves out) is kept in memory, in order. When the database is back it is put
//! there, before anything else is asked of it for the same conversation, by the
//! same rules as ever: of two views the one that was answered first wins, and of
//! two that were not the one that came first. Figures are not kept here: whoever
//! writes them tries again.

mod absence;
mod backlog;
mod deed;
mod looked_up;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use self::absence::Absence;
use self::backlog::{Lane, Pushed};
use self::deed::Deed;
use super::journal::Journal;
use super::rule;
use super::{
    Answer, Collected, Commit, Committed, Found, Holder, Keep, MarkRow, Memory, Moment, Sessions,
    Store, StoreError,
};
use crate::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, SegmentId};

/// The store.
pub struct Guarded {
    absence: Arc<Absence>,
    background: Handle,
}

impl Guarded {
    /// Stands before another store; it looks after it on the runtime this is
    /// called on. `trouble` says why it is away already.
    pub fn before(inner: Arc<dyn Store>, trouble: Option<&str>) -> Self {
        let guarded = Self {
            absence: Arc::new(Absence::of(inner)),
            background: Handle::current(),
        };
        if let Some(why) = trouble {
            guarded.lost(why);
        }
        guarded
    }

    fn inner(&self) -> &dyn Store {
        &*self.absence.inner
    }

    /// Asks the store, unless it is away.
    async fn ask<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        if self.absence.is_away() {
            return Err(away());
        }
        let answer = answer.await;
        if let Some(why) = self.absence.heard(&answer) {
            self.lost(&why);
        }
        answer
    }

    /// Whether the store is there and has what was done for a conversation.
    async fn is_settled(&self, lineage: LineageId) -> bool {
        self.absence.are_settled(&[Some(lineage)]).await
    }

    /// Asks the store to keep something; if it is away, or goes away over it, it
    /// is kept here.
    async fn keep<'a, T>(
        &self,
        lane: Lane,
        answer: Answer<'a, T>,
        stand_in: impl Fn(Arc<Memory>) -> Answer<'a, (T, Option<Deed>)>,
    ) -> Result<T, StoreError> {
        if self.absence.are_settled(&[lane]).await {
            let answer = self.ask(answer).await;
            match answer {
                Err(StoreError::Away(_) | StoreError::Slow(_)) if self.absence.is_away() => {}
                answer => return answer,
            }
        }
        self.stand_in(stand_in).await
    }

    /// Does something in memory, and later in the store.
    async fn stand_in<'a, T>(
        &self,
        stand_in: impl Fn(Arc<Memory>) -> Answer<'a, (T, Option<Deed>)>,
    ) -> Result<T, StoreError> {
        loop {
            if self.absence.backlog.is_full() {
                let why = "and there is no more room for what is done meanwhile";
                return Err(StoreError::Away(why.to_owned()));
            }
            let memory = self.absence.backlog.memory();
            let (said, deed) = stand_in(memory.clone()).await?;
            let Some(deed) = deed else {
                return Ok(said);
            };
            match self.absence.backlog.push(deed, &memory) {
                Pushed::Waits => return Ok(said),
                Pushed::Unseen => {
                    self.lost("it came back while it was needed");
                    return Ok(said);
                }
                Pushed::Late => {}
            }
        }
    }

    /// The store is away: only a look now and then finds out when it is back.
    fn lost(&self, why: &str) {
        if self.absence.begins(why) {
            let absence = self.absence.clone();
            self.background
                .spawn(async move { absence.recover().await });
        }
    }
}

fn away() -> StoreError {
    StoreError::Away("it was not there a moment ago".to_owned())
}

/// The conversations of these marks, which are mostly of one.
fn lanes(marks: &[MarkRow]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = marks.iter().map(|mark| Some(mark.lineage)).collect();
    lanes.dedup();
    lanes
}

/// What is stored as it will be with what is held.
fn together(mut stored: Vec<MarkRow>, held: Vec<MarkRow>) -> Vec<MarkRow> {
    for mark in held {
        let same = |stored: &&mut MarkRow| stored.chain == mark.chain && stored.model == mark.model;
        match stored.iter_mut().find(same) {
            Some(stored) => _ = rule::renew(stored, &mark),
            None => stored.push(mark),
        }
    }
    stored
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
            if let Some(memory) = self.absence.backlog.memory_if_open() {
                let held = memory.marks(places).await?;
                if !self.absence.are_settled(&lanes(&held)).await {
                    let stored = self.ask(self.inner().marks(places)).await;
                    return known(together(stored.unwrap_or_default(), held));
                }
            }
            self.ask(self.inner().marks(places)).await
        })
    }

    fn find<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<Found>> {
        Box::pin(async move {
            if self.is_settling() {
                let marks = self.marks(places).await?.into_iter();
                return Ok(marks.map(|mark| Found { mark, newest: None }).collect());
            }
            self.ask(self.inner().find(places)).await
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
            // That it is not here does not mean that it is lost.
            if let Some(memory) = self.absence.backlog.memory_if_open()
                && let Some(body) = memory.overlay(id).await?
            {
                return Ok(Some(body));
            }
            self.ask(self.inner().overlay(id)).await
        })
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        let lane = Some(commit.mark.lineage);
        Box::pin(self.keep(lane, self.inner().commit(commit), move |memory| {
            Box::pin(async move {
                let said = memory.commit(commit).await?;
                let done = said == Committed::Done;
                Ok((said, done.then(|| Deed::Commit(Box::new(commit.clone())))))
            })
        }))
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async move {
            if self.absence.is_away() || self.absence.backlog.memory_if_open().is_none() {
                return self.ask(self.inner().record(marks)).await;
            }
            // What belongs to a conversation that waits waits with it.
            let waits = |mark: &MarkRow| self.absence.backlog.has(Some(mark.lineage));
            let (waiting, rest): (Vec<_>, Vec<_>) = marks.iter().cloned().partition(waits);
            let lost = self.ask(self.inner().record(&rest)).await?;
            for mark in waiting {
                let row = [mark];
                let stand_in = |memory: Arc<Memory>| -> Answer<'_, _> {
                    let row = row.to_vec();
                    Box::pin(async move {
                        memory.record(&row).await?;
                        Ok(((), Some(Deed::Record(row))))
                    })
                };
                self.stand_in(stand_in).await?;
            }
            Ok(lost)
        })
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        Box::pin(async move {
            if self.absence.is_away() {
                let memory = self.absence.backlog.memory();
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
        Box::pin(self.keep(None, answer, move |memory| {
            Box::pin(async move {
                let held = memory.put_segment(id, body, now).await?;
                let deed = Deed::Segment(id, body.to_vec(), now);
                Ok((held, Some(deed)))
            })
        }))
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(self.ask(self.inner().learned()))
    }

    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        Box::pin(self.ask(self.inner().learned_of(keys)))
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        Box::pin(self.keep(None, self.inner().learn(key, value), move |_| {
            Box::pin(async move {
                let deed = Deed::Learn(key.to_owned(), value.to_owned());
                Ok(((), Some(deed)))
            })
        }))
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        let answer = self.inner().put_blobs(blobs, now);
        Box::pin(self.keep(None, answer, move |memory| {
            Box::pin(async move {
                memory.put_blobs(blobs, now).await?;
                Ok(((), Some(Deed::Blobs(blobs.to_vec(), now))))
            })
        }))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            if let Some(memory) = self.absence.backlog.memory_if_open()
                && let Some(body) = memory.blob(id).await?
            {
                return Ok(Some(body));
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
        self.absence.is_away()
    }

    fn is_settling(&self) -> bool {
        self.absence.backlog.memory_if_open().is_some()
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        Box::pin(async move {
            if self.absence.is_away() {
                return Err(away());
            }
            // A step of it may take its time, which says nothing of the store.
            self.inner().collect(keep).await
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.absence.last_words().await;
            self.inner().close().await
        })
    }
}
