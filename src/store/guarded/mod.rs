//! A store that may go away, and what is done meanwhile.
//!
//! A database behind a network can be lost for a while, and so can the disk under
//! a file: it is full, or the data folder was deleted or made read-only. The first call that finds
//! out waits as long as any call may; from then on calls fail at once, and only
//! one look in the background, now and then, finds out when it is back. Meanwhile
//! what must hold at once (an overlay that a view cannot do without, and what it
//! leaves out) is kept in memory, in order. When the database is back it is put
//! there, before anything else is asked of it for the same conversation, by the
//! same rules as ever: of two views the one that was answered first wins, and of
//! two that were not the one that came first. Figures are not kept here: whoever
//! writes them tries again.
//!
//! Of files on this machine what is stored can mostly still be read while nothing
//! can be written, so reading goes on. They may also come back empty: then they
//! are given what was written lately.

mod absence;
mod backlog;
mod deed;
mod looked_up;
mod merge;
mod recent;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use self::absence::Absence;
use self::backlog::Pushed;
use self::deed::Deed;
use self::deed::Lane;
use self::merge::{known, lanes, together};
use super::copy::Tables;
use super::journal::Journal;
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
        if guarded.inner().is_local() {
            let watched = Arc::downgrade(&guarded.absence);
            guarded.background.spawn(absence::watch(watched));
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

    /// Asks the store for something that is stored. Files of this machine are
    /// read even while they cannot be written.
    async fn read<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        if self.absence.is_away() && self.inner().is_local() {
            return answer.await.map_err(|_| away());
        }
        self.ask(answer).await
    }

    /// What was done while files of this machine could not be written, if
    /// anything was.
    fn held(&self) -> Option<Arc<Memory>> {
        let memory = self.absence.backlog.memory_if_open();
        memory.filter(|_| self.inner().is_local())
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

impl Store for Guarded {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async move {
            if let Some(memory) = self.absence.backlog.memory_if_open() {
                let held = memory.marks(places).await?;
                if !self.absence.are_settled(&lanes(&held)).await {
                    let local = self.inner().is_local();
                    return match self.read(self.inner().marks(places)).await {
                        Ok(stored) => Ok(together(stored, held, local)),
                        Err(_) => known(held),
                    };
                }
            }
            self.read(self.inner().marks(places)).await
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
        Box::pin(async move {
            let stored = self.read(self.inner().marks_by_view(hint, views)).await?;
            match self.held() {
                None => Ok(stored),
                Some(memory) => {
                    let held = memory.marks_by_view(hint, views).await?;
                    Ok(together(stored, held, true))
                }
            }
        })
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        Box::pin(async move {
            let stored = self.read(self.inner().overlays_of(hint, limit)).await?;
            let Some(memory) = self.held() else {
                return Ok(stored);
            };
            let mut found = memory.overlays_of(hint, limit).await?;
            let new = stored.into_iter().filter(|id| !found.contains(id));
            let new: Vec<OverlayId> = new.collect();
            found.extend(new);
            found.truncate(limit as usize);
            Ok(found)
        })
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            // That it is not here does not mean that it is lost.
            if let Some(memory) = self.absence.backlog.memory_if_open()
                && let Some(body) = memory.overlay(id).await?
            {
                return Ok(Some(body));
            }
            let recent = self.absence.recent();
            let found = self.read(self.inner().overlay(id)).await;
            match (&found, recent) {
                (Ok(Some(body)), Some(recent)) => recent.add_overlay(id, body),
                (Err(_), Some(recent)) if self.absence.is_away() => {
                    if let Some(body) = recent.overlay(id) {
                        return Ok(Some(body));
                    }
                }
                _ => {}
            }
            found
        })
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        let lane = Some(commit.mark.lineage);
        let said = self.keep(lane, self.inner().commit(commit), move |memory| {
            Box::pin(async move {
                if let Some(stored) = self.stored_against(&memory, commit).await {
                    return Ok((Committed::Lost(Box::new(stored)), None));
                }
                let commit = self.with_overlay(commit).await;
                let said = memory.commit(&commit).await?;
                let done = said == Committed::Done;
                Ok((said, done.then(|| Deed::Commit(Box::new(commit)))))
            })
        });
        Box::pin(async move {
            let said = said.await?;
            if let (Committed::Done, Some(recent)) = (&said, self.absence.recent()) {
                recent.add_commit(commit);
            }
            Ok(said)
        })
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async move {
            if self.absence.is_away() || self.absence.backlog.memory_if_open().is_none() {
                let lost = self.ask(self.inner().record(marks)).await?;
                if let Some(recent) = self.absence.recent() {
                    recent.add_marks(marks);
                }
                return Ok(lost);
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
                let mut held = memory.segments(ids).await?;
                let Ok(stored) = self.read(self.inner().segments(ids)).await else {
                    return known(held);
                };
                for (id, body) in stored {
                    if held.iter().all(|(known, _)| *known != id) {
                        held.push((id, body));
                    }
                }
                return Ok(held);
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
        Box::pin(async move {
            let learned = self.read(self.inner().learned()).await?;
            if let Some(recent) = self.absence.recent() {
                for (key, value) in &learned {
                    recent.add_learned(key, value);
                }
            }
            Ok(learned)
        })
    }

    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        Box::pin(self.read(self.inner().learned_of(keys)))
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        if let Some(recent) = self.absence.recent() {
            recent.add_learned(key, value);
        }
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
            self.read(self.inner().blob(id)).await
        })
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn tables(&self) -> Option<&dyn Tables> {
        self.inner().tables()
    }

    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        Box::pin(self.ask(self.inner().lease(name, holder, time)))
    }

    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        Box::pin(self.read(self.inner().is_leased(names)))
    }

    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        Box::pin(self.ask(self.inner().release(name, holder)))
    }

    fn is_shared(&self) -> bool {
        self.inner().is_shared()
    }

    fn is_forgetful(&self) -> bool {
        self.inner().is_forgetful()
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
            let collected = self.inner().collect(keep).await;
            if let Err(StoreError::Away(why)) = &collected {
                self.lost(why);
            }
            collected
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.absence.last_words().await;
            self.inner().close().await
        })
    }
}
