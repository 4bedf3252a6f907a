//! What garbage collection takes and what it leaves.

use longhaul::store::{Collected, Commit, Keep, MarkRow, Moment, Store};

use crate::over_every_store;
use crate::support::{
    EVERYTHING, blob, body, commit, files, in_files, lineage, mark, marks, number, overlay,
    put_segment, raw, segment, segments,
};

over_every_store! {
    nothing_goes_while_everything_is_kept
    old_marks_go_and_take_their_overlays
    an_overlay_stays_while_any_mark_points_to_it
    an_overlay_that_lost_its_place_goes
    past_the_limit_the_least_used_lineages_go_whole
    old_segments_go_and_reading_keeps_none
    without_room_segments_go_before_lineages
    old_blobs_go
    past_the_limit_the_oldest_blobs_go
    a_blob_used_again_is_young_again
}

async fn put(store: &dyn Store, place: u64, of: u64, seen_at: i64) {
    let mut commit = commit(place, place);
    commit.mark.lineage = lineage(of);
    commit.mark.seen_at = Moment(seen_at);
    store.commit(&commit).await.unwrap();
}

async fn nothing_goes_while_everything_is_kept(store: &dyn Store) {
    put(store, 1, 1, 10).await;
    store
        .put_blobs(&[(blob(1), body(1))], Moment(10))
        .await
        .unwrap();
    put_segment(store, 1, &body(1), 10).await;
    let done = store.collect(EVERYTHING).await.unwrap();
    assert_eq!(done, Collected::default());
    assert_eq!(segments(store, &[1]).await.len(), 1);
    assert_eq!(marks(store, &[1]).await.len(), 1);
}

async fn old_marks_go_and_take_their_overlays(store: &dyn Store) {
    for place in 0..250 {
        put(store, place, 1, 10).await;
    }
    put(store, 300, 1, 20).await;
    let keep = Keep {
        since: Moment(20),
        ..EVERYTHING
    };
    let done = store.collect(keep).await.unwrap();
    assert_eq!((done.marks, done.overlays), (250, 250));
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
    assert_eq!(store.overlay(overlay(300)).await.unwrap(), Some(body(300)));
}

async fn an_overlay_stays_while_any_mark_points_to_it(store: &dyn Store) {
    put(store, 1, 1, 10).await;
    let shares = MarkRow {
        seen_at: Moment(20),
        ..commit(2, 1).mark
    };
    store.record(&[shares]).await.unwrap();
    let keep = Keep {
        since: Moment(20),
        ..EVERYTHING
    };
    let done = store.collect(keep).await.unwrap();
    assert_eq!((done.marks, done.overlays), (1, 0));
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), Some(body(1)));
}

async fn an_overlay_that_lost_its_place_goes(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    let next = Commit {
        parent: Some(overlay(1)),
        refused: false,
        ..commit(1, 2)
    };
    store.commit(&next).await.unwrap();
    let done = store.collect(EVERYTHING).await.unwrap();
    assert_eq!((done.marks, done.overlays), (0, 1));
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
}

async fn past_the_limit_the_least_used_lineages_go_whole(store: &dyn Store) {
    // The first mark of lineage 1 is the oldest of all, its last the newest.
    for (place, of, seen_at) in [(1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 3, 31), (5, 1, 40)] {
        put(store, place, of, seen_at).await;
    }
    let keep = Keep {
        state_bytes: 35_000,
        ..EVERYTHING
    };
    let done = store.collect(keep).await.unwrap();
    assert_eq!((done.marks, done.overlays), (3, 3));
    let left = marks(store, &[1, 2, 3, 4, 5]).await;
    assert!(left.iter().all(|mark| mark.lineage == lineage(1)));
    assert_eq!(left.len(), 2);
    let none = Keep {
        state_bytes: 0,
        ..EVERYTHING
    };
    assert_eq!(store.collect(none).await.unwrap().marks, 2);
    store.record(&[mark(1)]).await.unwrap();
}

async fn old_segments_go_and_reading_keeps_none(store: &dyn Store) {
    for number in 0..250 {
        put_segment(store, number, &body(number), 10).await;
    }
    // Put again: it is young again, and the clock may run backwards.
    for at in [30, 20] {
        assert_eq!(put_segment(store, 7, b"another", at).await, body(7));
    }
    segments(store, &[1]).await;
    let keep = |since| Keep {
        since: Moment(since),
        ..EVERYTHING
    };
    assert_eq!(store.collect(keep(30)).await.unwrap().segments, 249);
    assert_eq!(segments(store, &[1, 7]).await, [(segment(7), body(7))]);
    assert_eq!(store.collect(keep(31)).await.unwrap().segments, 1);
}

async fn without_room_segments_go_before_lineages(store: &dyn Store) {
    for place in [1, 2] {
        put(store, place, place, 10).await;
    }
    for number in 0..5 {
        let mut random = vec![0; 1_000];
        let mut hash = blake3::Hasher::new();
        hash.update(&[number]).finalize_xof().fill(&mut random);
        let at = 100 - i64::from(number);
        put_segment(store, number.into(), &random, at).await;
    }
    // Two overlays with their marks take some 20 kB, a segment some 1.1 kB.
    let keep = |state_bytes| Keep {
        state_bytes,
        ..EVERYTHING
    };
    let done = store.collect(keep(23_500)).await.unwrap();
    assert_eq!((done.segments, done.marks), (3, 0));
    assert_eq!(segments(store, &[0, 1, 2, 3, 4]).await.len(), 2);
    assert_eq!(segments(store, &[0, 1]).await.len(), 2);
    let done = store.collect(keep(15_000)).await.unwrap();
    assert_eq!((done.segments, done.marks), (2, 1));
}

async fn old_blobs_go(store: &dyn Store) {
    let old: Vec<_> = (0..250)
        .map(|number| (blob(number), body(number)))
        .collect();
    store.put_blobs(&old, Moment(10)).await.unwrap();
    store
        .put_blobs(&[(blob(300), body(300))], Moment(20))
        .await
        .unwrap();
    let keep = Keep {
        blobs_since: Moment(20),
        ..EVERYTHING
    };
    assert_eq!(store.collect(keep).await.unwrap().blobs, 250);
    assert_eq!(store.blob(blob(1)).await.unwrap(), None);
    assert_eq!(store.blob(blob(300)).await.unwrap(), Some(body(300)));
}

async fn past_the_limit_the_oldest_blobs_go(store: &dyn Store) {
    for number in 0..5 {
        let content = blake3::Hasher::new().update(&[1]).finalize_xof();
        let mut random = vec![0; 1_000];
        content.clone().fill(&mut random);
        let at = Moment(100 - i64::try_from(number).unwrap());
        store
            .put_blobs(&[(blob(number), random)], at)
            .await
            .unwrap();
    }
    let keep = Keep {
        blob_bytes: 2_500,
        ..EVERYTHING
    };
    assert_eq!(store.collect(keep).await.unwrap().blobs, 3);
    assert_eq!(store.blob(blob(4)).await.unwrap(), None);
    assert!(store.blob(blob(1)).await.unwrap().is_some());
}

async fn a_blob_used_again_is_young_again(store: &dyn Store) {
    let blobs = [(blob(1), body(1))];
    for at in [10, 30, 20] {
        store.put_blobs(&blobs, Moment(at)).await.unwrap();
    }
    let keep = |since| Keep {
        blobs_since: Moment(since),
        ..EVERYTHING
    };
    assert_eq!(store.collect(keep(30)).await.unwrap().blobs, 0);
    assert_eq!(store.collect(keep(31)).await.unwrap().blobs, 1);
}

#[tokio::test]
async fn files_shrink_with_their_content() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    for place in 0..200 {
        put(&*home.store, place, place, 10).await;
    }
    let size = |name: &str| std::fs::metadata(folder.join(name)).unwrap().len();
    let nothing = Keep {
        since: Moment(i64::MAX),
        ..EVERYTHING
    };
    let mut connection = raw(&folder.join("state.db")).await;
    number(&mut connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    assert!(size("state.db") > 1_000_000);
    home.store.collect(nothing).await.unwrap();
    assert_eq!(number(&mut connection, "PRAGMA freelist_count").await, 0);
    assert!(size("state.db") < 100_000, "{}", size("state.db"));
    assert_eq!(files(folder, "state.db.").len(), 0);
}
