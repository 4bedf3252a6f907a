//! The store in two SQLite files of a data folder.
//!
//! `state.db` holds marks, overlays and segments, `journal.db` content. Several processes
//! may share them. Reading goes through a few connections that all requests
//! share, writing through one thread for each file, see `lane`. A file that
//! cannot be used is replaced by memory, so each part may be either.

mod check;
mod collect;
mod database;
mod folder;
mod journal;
mod lane;
mod leases;
mod open;
mod readers;
mod rows;
mod schema;
mod segments;
mod sessions;
mod state;
mod tables;
mod write;

pub use open::open;

use std::time::Duration;

use self::journal::Journal;
use self::state::State;
use super::copy::Tables;
use super::{
    Answer, Collected, Commit, Committed, Holder, Keep, MarkRow, Memory, Moment, Sessions, Store,
};
use crate::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};

/// The store; made by [`open()`].
struct SqliteStore {
    state: Option<State>,
    journal: Option<Journal>,
    /// Stands in for a file that cannot be used.
    memory: Memory,
}

impl SqliteStore {
    fn new(state: Option<State>, journal: Option<Journal>) -> Self {
        Self {
            state,
            journal,
            memory: Memory::new(),
        }
    }
}

impl Store for SqliteStore {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        match &self.state {
            Some(state) => Box::pin(state.marks(places)),
            None => self.memory.marks(places),
        }
    }

    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        match &self.state {
            Some(state) => Box::pin(state.marks_by_view(hint, views)),
            None => self.memory.marks_by_view(hint, views),
        }
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        match &self.state {
            Some(state) => Box::pin(state.overlays_of(hint, limit)),
            None => self.memory.overlays_of(hint, limit),
        }
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        match &self.state {
            Some(state) => Box::pin(state.overlay(id)),
            None => self.memory.overlay(id),
        }
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        match &self.state {
            Some(state) => Box::pin(state.commit(commit)),
            None => self.memory.commit(commit),
        }
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        match &self.state {
            Some(state) => Box::pin(state.record(marks)),
            None => self.memory.record(marks),
        }
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        match &self.state {
            Some(state) => Box::pin(state.segments(ids)),
            None => self.memory.segments(ids),
        }
    }

    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        match &self.state {
            Some(state) => Box::pin(state.put_segment(id, body, now)),
            None => self.memory.put_segment(id, body, now),
        }
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        match &self.state {
            Some(state) => Box::pin(state.learned()),
            None => self.memory.learned(),
        }
    }

    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        match &self.state {
            Some(state) => Box::pin(state.learned_of(keys)),
            None => self.memory.learned_of(keys),
        }
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        match &self.state {
            Some(state) => Box::pin(state.learn(key, value)),
            None => self.memory.learn(key, value),
        }
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        match &self.journal {
            Some(journal) => Box::pin(journal.put(blobs, now)),
            None => self.memory.put_blobs(blobs, now),
        }
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        match &self.journal {
            Some(journal) => Box::pin(journal.get(id)),
            None => self.memory.blob(id),
        }
    }

    fn journal(&self) -> &dyn super::journal::Journal {
        match &self.journal {
            Some(journal) => journal,
            None => self.memory.journal(),
        }
    }

    fn sessions(&self) -> &dyn Sessions {
        match &self.state {
            Some(state) => state,
            None => &self.memory,
        }
    }

    fn tables(&self) -> Option<&dyn Tables> {
        Some(self)
    }

    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        match &self.state {
            Some(state) => Box::pin(state.lease(name, holder, time)),
            None => self.memory.lease(name, holder, time),
        }
    }

    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        match &self.state {
            Some(state) => Box::pin(state.is_leased(names)),
            None => self.memory.is_leased(names),
        }
    }

    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        match &self.state {
            Some(state) => Box::pin(state.release(name, holder)),
            None => self.memory.release(name, holder),
        }
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        Box::pin(async move {
            // Memory holds only what a missing file would.
            let mut done = self.memory.collect(keep).await?;
            if let Some(state) = &self.state {
                collect::state(state, keep, &mut done).await?;
            }
            if let Some(journal) = &self.journal {
                collect::journal(journal, keep, &mut done).await?;
            }
            Ok(done)
        })
    }

    fn is_forgetful(&self) -> bool {
        self.state.is_none() || self.journal.is_none()
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let state = match &self.state {
                Some(state) => state.close().await,
                None => Ok(()),
            };
            match &self.journal {
                Some(journal) => state.and(journal.close().await),
                None => state,
            }
        })
    }
}
