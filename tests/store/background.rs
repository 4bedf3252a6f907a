//! The background writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul::engine::bound;
use longhaul::engine::figures::Figures;
use longhaul::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};
use longhaul::store::journal::Journal;
use longhaul::store::writer::Writer;
use longhaul::store::{
    Answer, Collected, Commit, Committed, Keep, MarkRow, Memory, Moment, Sessions, Store,
    StoreError,
};

use crate::support::{chain, commit, in_files, in_memory, mark, marks};

/// A memory that can be made to fail.
#[derive(Default)]
struct Moody {
    memory: Memory,
    fails: AtomicBool,
}

impl Store for Moody {
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Failed("moody".to_owned())) });
        }
        self.memory.record(marks)
    }
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.memory.marks(places)
    }
    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.memory.marks_by_view(hint, views)
    }
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.memory.overlays_of(hint, limit)
    }
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        self.memory.overlay(id)
    }
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        self.memory.commit(commit)
    }
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.memory.segments(ids)
    }
    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.memory.put_segment(id, body, now)
    }
    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.memory.learned()
    }
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.memory.learn(key, value)
    }
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.memory.put_blobs(blobs, now)
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.memory.blob(id)
    }
    fn journal(&self) -> &dyn Journal {
        self.memory.journal()
    }
    fn sessions(&self) -> &dyn Sessions {
        self.memory.sessions()
    }
    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.memory.collect(keep)
    }
    fn close(&self) -> Answer<'_, ()> {
        self.memory.close()
    }
}

fn figures(place: u64, figures: &str, seen_at: i64) -> MarkRow {
    MarkRow {
        figures: figures.into(),
        seen_at: Moment(seen_at),
        ..mark(place)
    }
}

#[tokio::test]
async fn what_was_handed_over_can_be_read_at_once() {
    let home = in_files().await;
    let writer = Writer::start(home.store).unwrap();
    for place in 0..1_000 {
        writer.record(mark(place));
        assert_eq!(writer.marks(&[chain(place)]).await.unwrap(), [mark(place)]);
    }
}

#[tokio::test]
async fn after_a_flush_everything_is_in_the_store() {
    let home = in_files().await;
    let writer = Writer::start(Arc::clone(&home.store)).unwrap();
    for place in 0..1_000 {
        writer.record(mark(place));
    }
    writer.flush().await.unwrap();
    let places: Vec<_> = (0..1_000).collect();
    assert_eq!(marks(&*home.store, &places).await.len(), 1_000);
    assert_eq!(
        writer.pending(&places.iter().map(|n| chain(*n)).collect::<Vec<_>>()),
        []
    );
    writer.flush().await.unwrap();
}

#[tokio::test]
async fn everything_is_written_without_being_asked_for() {
    let home = in_memory();
    let writer = Writer::start(Arc::clone(&home.store)).unwrap();
    writer.record(mark(1));
    while !writer.pending(&[chain(1)]).is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(marks(&*home.store, &[1]).await, [mark(1)]);
}

#[tokio::test]
async fn the_newest_figures_win_and_seals_stay() {
    let moody = Arc::new(Moody::default());
    moody.fails.store(true, Ordering::SeqCst);
    let writer = Writer::start(moody.clone()).unwrap();
    let sealed = MarkRow {
        sealed: true,
        ..figures(1, "first", 1)
    };
    writer.record(sealed);
    writer.flush().await.unwrap_err();
    writer.record(figures(1, "third", 3));
    writer.record(figures(1, "second", 2));
    let expected = MarkRow {
        sealed: true,
        ..figures(1, "third", 3)
    };
    assert_eq!(writer.pending(&[chain(1)]), std::slice::from_ref(&expected));
    moody.fails.store(false, Ordering::SeqCst);
    writer.flush().await.unwrap();
    assert_eq!(marks(&*moody, &[1]).await, [expected]);
    assert_eq!(writer.dropped(), 0);
}

#[tokio::test]
async fn without_room_the_oldest_figures_go_and_are_counted() {
    let moody = Arc::new(Moody::default());
    moody.fails.store(true, Ordering::SeqCst);
    let writer = Writer::with_room(moody.clone(), 10).unwrap();
    for place in 0..15 {
        writer.record(mark(place));
        writer.flush().await.unwrap_err();
    }
    assert_eq!(writer.dropped(), 5);
    moody.fails.store(false, Ordering::SeqCst);
    writer.flush().await.unwrap();
    let places: Vec<_> = (0..15).collect();
    assert_eq!(marks(&*moody, &places).await.len(), 10);
    assert_eq!(marks(&*moody, &[4, 5]).await, [mark(5)]);
}

#[tokio::test]
async fn rivals_at_one_place_are_judged_by_the_store() {
    let home = in_memory();
    home.store.commit(&commit(1, 1)).await.unwrap();
    let writer = Writer::start(Arc::clone(&home.store)).unwrap();
    let stale = figures(1, "stale", 5_000);
    let right = MarkRow {
        overlay: commit(1, 1).mark.overlay,
        ..figures(1, "right", 2_000)
    };
    writer.record(stale);
    writer.record(right.clone());
    assert_eq!(
        writer.marks(&[chain(1)]).await.unwrap(),
        std::slice::from_ref(&right)
    );
    writer.flush().await.unwrap();
    assert_eq!(marks(&*home.store, &[1]).await, [right]);
}

#[tokio::test]
async fn the_last_handle_writes_what_is_left() {
    let home = in_memory();
    let writer = Writer::start(Arc::clone(&home.store)).unwrap();
    let clone = writer.clone();
    writer.record(mark(1));
    drop(writer);
    clone.record(mark(2));
    drop(clone);
    while marks(&*home.store, &[1, 2]).await.len() < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_mark_that_loses_its_place_is_found_by_its_reply() {
    let store = Arc::new(Memory::new());
    store.commit(&commit(1, 1)).await.unwrap();
    let writer = Writer::start(store.clone()).unwrap();
    let mut told = Figures::default();
    told.reply = vec!["toolu_1".to_owned()];
    writer.record(MarkRow {
        figures: told.store(),
        ..mark(1)
    });
    writer.flush().await.unwrap();
    let holds = store.marks(&[chain(1)]).await.unwrap();
    assert_eq!(holds, [commit(1, 1).mark]);
    let place = bound::place(chain(1), "toolu_1");
    let beside = store.marks(&[place]).await.unwrap();
    assert_eq!(beside.len(), 1);
    assert_eq!((beside[0].overlay, beside[0].messages), (None, 3));
}
