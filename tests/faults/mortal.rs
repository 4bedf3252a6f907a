//! A store that fails on command, and that outlives the proxy before it.
//!
//! To a store the death of a process is that nothing more comes from it. So a
//! proxy in this process is killed by taking its store away: what it had asked
//! for is done or not, what it asks for afterwards never happens, and the next
//! proxy finds what was there at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use longhaul::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, Reference, SegmentId};
use longhaul::store::journal::{
    Archive, Branch, Entry, EntryRow, Extent, Forgotten, Journal, Kept, Listing, Match, Referred,
    Scope, Trace,
};
use longhaul::store::{
    Answer, Collected, Commit, Committed, Holder, Keep, MarkRow, Moment, Sessions, Store,
    StoreError,
};

/// What a store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Fine,
    /// Nothing works.
    Down,
    /// What is written is written, and said to have been too slow.
    Slow,
    /// Whoever asks is dead.
    Dead,
}

/// What one proxy sees of a store.
pub struct Mortal {
    inner: Arc<dyn Store>,
    state: Arc<AtomicU8>,
}

/// The handle by which it is spoilt.
#[derive(Clone, Default)]
pub struct Spoiler(Arc<AtomicU8>);

impl Spoiler {
    pub fn set(&self, state: State) {
        self.0.store(state as u8, Ordering::SeqCst);
    }
}

impl Mortal {
    pub fn new(inner: Arc<dyn Store>, spoiler: &Spoiler) -> Self {
        Self {
            inner,
            state: spoiler.0.clone(),
        }
    }

    fn is(&self, state: State) -> bool {
        self.state.load(Ordering::SeqCst) == state as u8
    }

    fn read<'a, T: Send + 'a>(&'a self, work: Answer<'a, T>) -> Answer<'a, T> {
        if self.is(State::Down) || self.is(State::Dead) {
            return Box::pin(async { Err(StoreError::Failed("down".to_owned())) });
        }
        work
    }

    fn write<'a, T: Send + 'a>(&'a self, work: Answer<'a, T>) -> Answer<'a, T> {
        if !self.is(State::Slow) {
            return self.read(work);
        }
        Box::pin(async {
            work.await?;
            Err(StoreError::Slow(Duration::from_secs(5)))
        })
    }
}

impl Store for Mortal {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.read(self.inner.marks(places))
    }
    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.read(self.inner.marks_by_view(hint, views))
    }
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.read(self.inner.overlays_of(hint, limit))
    }
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        self.read(self.inner.overlay(id))
    }
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        self.write(self.inner.commit(commit))
    }
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        self.write(self.inner.record(marks))
    }
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.read(self.inner.segments(ids))
    }
    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.write(self.inner.put_segment(id, body, now))
    }
    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.read(self.inner.learned())
    }
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.write(self.inner.learn(key, value))
    }
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.write(self.inner.put_blobs(blobs, now))
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.read(self.inner.blob(id))
    }
    fn journal(&self) -> &dyn Journal {
        self
    }
    fn sessions(&self) -> &dyn Sessions {
        self.inner.sessions()
    }
    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        self.read(self.inner.is_leased(names))
    }
    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        self.read(self.inner.lease(name, holder, time))
    }
    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        self.read(self.inner.release(name, holder))
    }
    /// By the proxies beside this one.
    fn is_shared(&self) -> bool {
        true
    }
    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.read(self.inner.collect(keep))
    }
    /// The next proxy goes on with it.
    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl Journal for Mortal {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        self.write(self.inner.journal().archive(trace, archive, now))
    }
    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        self.write(self.inner.journal().append(trace, entries, now))
    }
    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        self.read(self.inner.journal().referred(reference))
    }
    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        self.read(self.inner.journal().alive(session))
    }
    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        self.read(self.inner.journal().branch(id))
    }
    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        self.read(self.inner.journal().children(id, behind, limit))
    }
    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        self.read(self.inner.journal().branches(before, limit))
    }
    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        self.read(self.inner.journal().matching(scope, terms))
    }
    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        self.read(self.inner.journal().entries(numbers))
    }
    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        self.read(self.inner.journal().list(scope, listing))
    }
    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        self.read(self.inner.journal().kept(scope, messages, as_of))
    }
    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        self.write(self.inner.journal().forget(id))
    }
    fn extent(&self) -> Answer<'_, Extent> {
        self.read(self.inner.journal().extent())
    }
}
