//! A database that goes away and comes back, behind the guard that the proxy
//! puts before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::engine::ids::LineageId;
use longhaul::store::writer::Writer;
use longhaul::store::{Commit, Committed, Guarded, MarkRow, Moment, Store, StoreError, postgres};

use crate::cluster::{Cluster, execute, raw};
use crate::support::{
    at, blob, body, chain, commit, lineage, mark, marks, overlay, put_segment, segment, segments,
};

/// As long as a request waits by default.
const LIMIT: Duration = Duration::from_millis(250);

async fn guarded(url: &str) -> Guarded {
    let opened = postgres::open(url, 4, LIMIT).await.unwrap();
    Guarded::before(opened.store, None)
}

async fn until_back(store: &Guarded) {
    let begun = Instant::now();
    while store.is_away() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// SQL that lets the marks of a conversation wait, as a trigger `gate`.
fn held_back(lineage: LineageId) -> String {
    format!(
        r"CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN PERFORM pg_sleep(10); RETURN NEW; END';
          CREATE TRIGGER gate BEFORE INSERT ON longhaul.marks FOR EACH ROW
          WHEN (NEW.lineage = '\x{lineage}') EXECUTE FUNCTION wait()"
    )
}

/// Waits until the database has all that was done without it.
async fn until_settled(store: &Guarded) {
    let begun = Instant::now();
    while store.is_settling() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks until the store has noticed.
async fn until_away(store: &Guarded) {
    while !store.is_away() {
        let _ = store.marks(&[chain(1)]).await;
    }
}

#[tokio::test]
async fn while_the_database_is_away_nothing_waits_and_afterwards_it_has_everything() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    store.commit(&commit(1, 1)).await.unwrap();
    cluster.stop();
    until_away(&store).await;
    let begun = Instant::now();
    for _ in 0..100 {
        let away = store.marks(&[chain(1)]).await.unwrap_err();
        assert!(matches!(away, StoreError::Away(_)));
        store.overlay(overlay(1)).await.unwrap_err();
        store.record(&[mark(5)]).await.unwrap_err();
    }
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    // What cannot wait is done here, by the same rules.
    store
        .put_blobs(&[(blob(1), body(1))], Moment(1))
        .await
        .unwrap();
    assert_eq!(store.commit(&commit(2, 2)).await.unwrap(), Committed::Done);
    let rival = store.commit(&commit(2, 3)).await.unwrap();
    assert_eq!(rival, Committed::Lost(Box::new(commit(2, 2).mark)));
    assert_eq!(put_segment(&store, 1, b"one", 1).await, b"one");
    store.learn("key", "value").await.unwrap();
    assert_eq!(marks(&store, &[1, 2]).await, [commit(2, 2).mark]);
    assert_eq!(store.overlay(overlay(2)).await.unwrap(), Some(body(2)));
    assert_eq!(store.blob(blob(1)).await.unwrap(), Some(body(1)));
    assert_eq!(segments(&store, &[1]).await.len(), 1);

    cluster.resume();
    until_settled(&store).await;
    let other = at(&url).await;
    for store in [&store as &dyn Store, &*other] {
        assert_eq!(marks(store, &[1, 2]).await.len(), 2);
        assert_eq!(store.overlay(overlay(2)).await.unwrap(), Some(body(2)));
        assert_eq!(store.overlay(overlay(3)).await.unwrap(), None);
        assert_eq!(store.blob(blob(1)).await.unwrap(), Some(body(1)));
        let kept = [(segment(1), b"one".to_vec())];
        assert_eq!(segments(store, &[1]).await, kept);
        assert_eq!(store.learned().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn what_was_done_meanwhile_yields_to_who_was_first() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    let other = at(&url).await;
    other.commit(&commit(1, 9)).await.unwrap();
    put_segment(&*other, 1, b"first", 1).await;
    cluster.stop();
    until_away(&store).await;
    assert_eq!(store.commit(&commit(1, 2)).await.unwrap(), Committed::Done);
    assert_eq!(put_segment(&store, 1, b"second", 1).await, b"second");
    cluster.resume();
    until_back(&store).await;
    assert_eq!(marks(&store, &[1]).await, [commit(1, 9).mark]);
    // Its view may have been sent: the reply to it goes on by it.
    assert_eq!(store.overlay(overlay(2)).await.unwrap(), Some(body(2)));
    let kept = [(segment(1), b"first".to_vec())];
    assert_eq!(segments(&store, &[1]).await, kept);
}

/// Figures that point to an overlay must find it in the store.
#[tokio::test]
async fn figures_that_wait_are_written_after_the_overlay_they_point_to() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = Arc::new(guarded(&url).await);
    let writer = Writer::start(store.clone()).unwrap();
    cluster.stop();
    until_away(&store).await;
    store.commit(&commit(1, 1)).await.unwrap();
    let next = MarkRow {
        chain: chain(2),
        ..commit(1, 1).mark
    };
    writer.record(next.clone());
    writer.flush().await.unwrap_err();
    cluster.resume();
    until_back(&store).await;
    writer.flush().await.unwrap();
    assert_eq!(marks(&*at(&url).await, &[2]).await, [next]);
}

/// A commit that the database cannot take yet: its conversation waits, and is
/// served as before; no other does.
#[tokio::test]
async fn one_conversation_that_waits_for_the_database_holds_up_no_other() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    let other = commit(2, 2);
    let other = Commit {
        mark: MarkRow {
            lineage: lineage(2),
            ..other.mark
        },
        ..other
    };
    let mut connection = raw(&url).await;
    execute(&mut connection, &held_back(lineage(1))).await;
    cluster.stop();
    until_away(&store).await;
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
    assert_eq!(store.commit(&other).await.unwrap(), Committed::Done);
    cluster.resume();
    until_back(&store).await;

    let beside = at(&url).await;
    assert_eq!(marks(&store, &[2]).await, [other.mark]);
    assert_eq!(marks(&*beside, &[2]).await.len(), 1);
    assert_eq!(marks(&store, &[1]).await, [commit(1, 1).mark]);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), Some(body(1)));
    assert_eq!(store.commit(&commit(3, 3)).await.unwrap(), Committed::Done);
    assert_eq!(marks(&store, &[3]).await, [commit(3, 3).mark]);
    assert!(marks(&*beside, &[1, 3]).await.is_empty());
    assert!(store.is_settling() && !store.is_away());

    let mut connection = raw(&url).await;
    execute(&mut connection, "DROP TRIGGER gate ON longhaul.marks").await;
    until_settled(&store).await;
    assert_eq!(marks(&*beside, &[1, 2, 3]).await.len(), 3);
}

/// A disk that is full is no reason to give anything up; what an overlay leaves
/// out is there before it.
#[tokio::test]
async fn what_the_database_cannot_write_yet_is_kept_until_it_can() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    let mut connection = raw(&url).await;
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100''; END';
        CREATE TRIGGER gate BEFORE INSERT ON longhaul.overlays FOR EACH ROW
        EXECUTE FUNCTION full_disk()";
    execute(&mut connection, full).await;
    // It is kept without any other sign that the database is away.
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
    assert_eq!(marks(&store, &[1]).await, [commit(1, 1).mark]);
    cluster.stop();
    assert_eq!(store.commit(&commit(2, 2)).await.unwrap(), Committed::Done);
    cluster.resume();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let beside = at(&url).await;
    assert!(store.is_settling() && marks(&*beside, &[1, 2]).await.is_empty());

    let mut connection = raw(&url).await;
    execute(&mut connection, "DROP TRIGGER gate ON longhaul.overlays").await;
    until_settled(&store).await;
    assert_eq!(marks(&*beside, &[1, 2]).await.len(), 2);
}

/// What another replica has decided since counts, whatever waits here.
#[tokio::test]
async fn a_conversation_that_waits_still_sees_what_others_store() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    let mut connection = raw(&url).await;
    execute(&mut connection, &held_back(lineage(1))).await;
    cluster.stop();
    until_away(&store).await;
    store.commit(&commit(1, 1)).await.unwrap();
    cluster.resume();
    until_back(&store).await;
    let beside = at(&url).await;
    let theirs = Commit {
        mark: MarkRow {
            lineage: lineage(2),
            ..commit(2, 2).mark
        },
        ..commit(2, 2)
    };
    beside.commit(&theirs).await.unwrap();
    assert_eq!(marks(&store, &[1, 2]).await.len(), 2);
    // The figures of others do not wait, and those of its own are kept with it.
    let figures = [
        MarkRow {
            lineage: lineage(3),
            ..mark(3)
        },
        mark(4),
    ];
    assert!(store.record(&figures).await.unwrap().is_empty());
    assert_eq!(marks(&*beside, &[3, 4]).await.len(), 1);
    assert_eq!(marks(&store, &[4]).await.len(), 1);

    let mut connection = raw(&url).await;
    execute(&mut connection, "DROP TRIGGER gate ON longhaul.marks").await;
    until_settled(&store).await;
    assert_eq!(marks(&*beside, &[1, 2, 3, 4]).await.len(), 4);
}

/// A replica that is told to stop just after the database is back.
#[tokio::test]
async fn what_waits_is_written_before_the_process_ends() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    cluster.stop();
    until_away(&store).await;
    store.commit(&commit(1, 1)).await.unwrap();
    cluster.resume();
    store.close().await.unwrap();
    assert_eq!(marks(&*at(&url).await, &[1]).await.len(), 1);
}

/// A server that hangs does not even refuse.
#[tokio::test]
async fn a_database_that_hangs_is_waited_for_no_more_than_twice() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = guarded(&url).await;
    store.commit(&commit(1, 1)).await.unwrap();
    cluster.freeze(true);
    let begun = Instant::now();
    for _ in 0..20 {
        store.marks(&[chain(1)]).await.unwrap_err();
    }
    let waited = begun.elapsed();
    assert!(waited < LIMIT * 8, "{waited:?}");
    assert_eq!(store.commit(&commit(2, 2)).await.unwrap(), Committed::Done);
    cluster.freeze(false);
    until_back(&store).await;
    assert_eq!(marks(&store, &[1, 2]).await.len(), 2);
}
