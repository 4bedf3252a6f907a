//! The store in a PostgreSQL database, shared by replicas.
//!
//! Everything happens on one thread with a few connections, see `lane` and
//! `desk`, and a question is one message, see `ask`. Only the primary is asked:
//! a standby may not know yet what another replica has just committed. The
//! tables stand in a schema of their own, `longhaul`.

mod ask;
mod collect;
mod desk;
mod journal;
mod lane;
mod leases;
mod open;
mod pieces;
mod rows;
mod schema;
mod sessions;
mod state;
mod tables;
mod trouble;
mod write;

pub use open::{OpenError, look, open};

use std::time::Duration;

use self::lane::Lane;
use super::copy::Tables;
use super::journal::Journal;
use super::{
    Answer, Collected, Commit, Committed, Found, Holder, Keep, MarkRow, Moment, Sessions, Store,
};
use crate::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};

/// The store; made by [`open()`].
struct PostgresStore {
    lane: Lane,
}

impl Store for PostgresStore {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(self.find_marks(places))
    }

    fn find<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<Found>> {
        Box::pin(self.find_with_newest(places))
    }

    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(self.find_by_view(hint, views))
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        Box::pin(self.find_overlays_of(hint, limit))
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.find_overlay(id))
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        Box::pin(self.write_commit(commit))
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(self.write_marks(marks))
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        Box::pin(self.find_segments(ids))
    }

    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        Box::pin(self.write_segment(id, body, now))
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(self.read_learned())
    }

    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        Box::pin(self.read_learned_of(keys))
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        Box::pin(self.write_learned(key, value))
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        Box::pin(self.write_blobs(blobs, now))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.find_blob(id))
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn tables(&self) -> Option<&dyn Tables> {
        Some(self)
    }

    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        Box::pin(self.take_lease(name, holder, time))
    }

    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        Box::pin(self.has_lease(names))
    }

    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        Box::pin(self.give_back_lease(name, holder))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        Box::pin(self.tidy(keep))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(self.lane.close(collect::UNHURRIED))
    }
}
