//! What only a database server can suffer or do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longhaul::engine::chain;
use longhaul::store::journal::Extent;
use longhaul::store::{MarkRow, Moment, StoreError, postgres};

use crate::cluster::{Cluster, execute, number, raw};
use crate::journal_support::{append, archive, entry, fork, search, trace, whole};
use crate::support::{
    PATIENCE, at, body, chain as place, commit, in_database, lineage, mark, marks, segments,
};

#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_make_its_tables_once() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = url.clone();
        opening.spawn(async move { at(&url).await });
    }
    let stores = opening.join_all().await;
    stores[0].commit(&commit(1, 1)).await.unwrap();
    for store in stores {
        assert_eq!(marks(&*store, &[1]).await.len(), 1);
    }
    let mut stranger = raw(&url).await;
    let rows = "SELECT count(*) FROM longhaul.format";
    assert_eq!(number(&mut stranger, rows).await, 1);
}

#[tokio::test]
async fn a_standby_is_refused_and_the_error_says_what_to_do() {
    let Some(mut primary) = Cluster::start() else {
        return;
    };
    let url = primary.database().await;
    at(&url).await.close().await.unwrap();
    let standby = primary.standby();
    let name = url.rsplit('/').next().unwrap();
    let refused = postgres::open(&standby.url(name), 4, PATIENCE).await;
    let Err(error) = refused else {
        panic!("a standby was taken");
    };
    let said = error.to_string();
    assert!(
        said.contains("standby") && said.contains("primary"),
        "{said}"
    );
    // Not even its address is read from: what it says may be old.
    primary.stop();
    let error = postgres::open(&standby.url(name), 4, PATIENCE).await.err();
    assert!(error.unwrap().to_string().contains("standby"));
}

#[tokio::test]
async fn a_database_that_takes_no_changes_is_refused() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let name = url.rsplit('/').next().unwrap();
    let mut stranger = raw(&url).await;
    let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    execute(&mut stranger, &sql).await;
    let error = postgres::open(&url, 4, PATIENCE).await.err().unwrap();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    store.close().await.unwrap();
    let mut stranger = raw(&url).await;
    execute(&mut stranger, "UPDATE longhaul.format SET version = 1000").await;
    let error = postgres::open(&url, 4, PATIENCE).await.err().unwrap();
    assert!(error.to_string().contains("format 1000"), "{error}");
}

#[tokio::test]
async fn a_wrong_address_is_an_error_that_keeps_the_password() {
    for url in [
        "postgres://me:s3cret@[",
        "postgres://me:s3cret@host:port/db",
    ] {
        let error = postgres::open(url, 4, PATIENCE).await.err().unwrap();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_no_reason_not_to_start() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    cluster.stop();
    let opened = postgres::open(&url, 4, PATIENCE).await.unwrap();
    assert_eq!(opened.reports.len(), 1);
    assert!(opened.reports[0].is_serious());
    let away = opened.store.marks(&[place(1)]).await.unwrap_err();
    assert!(matches!(away, StoreError::Away(_)), "{away}");
    cluster.resume();
    // The tables are made by whoever finds the database first.
    opened.store.record(&[mark(1)]).await.unwrap();
    assert_eq!(marks(&*opened.store, &[1]).await, [mark(1)]);
}

/// Everything is stored under names that the tenant is part of.
#[tokio::test]
async fn tenants_with_the_same_history_share_no_row() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    let tenants = ["organization:a/", "organization:b/"];
    for tenant in tenants {
        let mut commit = commit(1, 1);
        let start = chain::start(tenant);
        let overlay = longhaul::engine::overlay::Overlay::default();
        let (id, bytes) = overlay.store(start).unwrap();
        commit.mark.chain = start;
        commit.mark.overlay = Some(id);
        commit.overlay = Some((id, bytes));
        store.commit(&commit).await.unwrap();
        let segment = longhaul::compactor::errand::id(start, &(1..9), &[7; 32]);
        let first = store.put_segment(segment, tenant.as_bytes(), Moment(1));
        assert_eq!(first.await.unwrap(), tenant.as_bytes());
    }
    let mut stranger = raw(&url).await;
    for (table, key) in [
        ("marks", "chain"),
        ("marks", "overlay"),
        ("overlays", "id"),
        ("segments", "id"),
    ] {
        let sql = format!("SELECT count(DISTINCT {key}) FROM longhaul.{table}");
        assert_eq!(number(&mut stranger, &sql).await, 2, "{table}");
    }
}

#[tokio::test]
async fn zeros_in_texts_survive() {
    let Some((store, _)) = in_database().await else {
        return;
    };
    let odd = "a\0b'c\\d";
    store.learn(odd, odd).await.unwrap();
    let learned = store.learned().await.unwrap();
    assert_eq!(learned, [(odd.to_owned(), odd.to_owned())]);
    let named = MarkRow {
        model: odd.to_owned(),
        ..mark(1)
    };
    store.record(std::slice::from_ref(&named)).await.unwrap();
    assert_eq!(marks(&*store, &[1]).await, [named]);
}

#[tokio::test]
async fn an_overlay_that_was_tampered_with_is_not_shown() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    store.commit(&commit(1, 1)).await.unwrap();
    let segment = crate::support::segment(1);
    store
        .put_segment(segment, &body(1), Moment(1))
        .await
        .unwrap();
    let mut stranger = raw(&url).await;
    let damage = "UPDATE longhaul.overlays SET body = set_byte(body, 7, 1); \
        UPDATE longhaul.segments SET body = set_byte(body, 9, 1)";
    execute(&mut stranger, damage).await;
    store.overlay(crate::support::overlay(1)).await.unwrap_err();
    assert_eq!(segments(&*store, &[1]).await, []);
    // A segment that is lost gives way to the next.
    let put = store.put_segment(segment, b"anew", Moment(2));
    assert_eq!(put.await.unwrap(), b"anew");
    assert_eq!(segments(&*store, &[1]).await, [(segment, b"anew".to_vec())]);
}

#[tokio::test]
async fn a_lock_held_by_a_stranger_is_waited_for_no_longer_than_allowed() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    store.commit(&commit(1, 1)).await.unwrap();
    let limit = Duration::from_millis(150);
    let hasty = postgres::open(&url, 4, limit).await.unwrap().store;
    let mut stranger = raw(&url).await;
    let lock = "BEGIN; SELECT 1 FROM longhaul.marks FOR UPDATE";
    execute(&mut stranger, lock).await;
    let begun = Instant::now();
    let next = longhaul::store::Commit {
        parent: Some(crate::support::overlay(1)),
        ..commit(1, 2)
    };
    let slow = hasty.commit(&next).await.unwrap_err();
    assert!(matches!(slow, StoreError::Slow(_)), "{slow}");
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(marks(&*hasty, &[1]).await.len(), 1, "reading goes on");
    execute(&mut stranger, "ROLLBACK").await;
    // Nothing of it is left behind, and asking again is safe.
    hasty.commit(&next).await.unwrap();
    assert_eq!(marks(&*store, &[1]).await, [next.mark]);
}

/// The server ends in the middle of everything, as in a power cut, and comes
/// back: nobody needs to be restarted, and what was said to be done is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_and_comes_back_under_load_loses_nothing_it_confirmed() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database().await;
    let store = at(&url).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut load = tokio::task::JoinSet::new();
    for worker in 0..8_u64 {
        let (store, over) = (Arc::clone(&store), Arc::clone(&over));
        load.spawn(async move {
            let (mut done, mut failed) = (Vec::new(), 0_u32);
            for at in 0.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let number = worker * 1_000_000 + at;
                if store.commit(&commit(number, number)).await.is_ok() {
                    done.push(number);
                } else {
                    failed += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            (done, failed)
        });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..2 {
        cluster = tokio::task::spawn_blocking(move || {
            cluster.stop();
            std::thread::sleep(Duration::from_millis(200));
            cluster.resume();
            cluster
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    over.store(true, Ordering::Relaxed);
    let outcomes = load.join_all().await;
    assert!(outcomes.iter().any(|(_, failed)| *failed > 0));
    for (done, _) in outcomes {
        assert!(!done.is_empty());
        assert_eq!(marks(&*store, &done).await.len(), done.len());
    }
}

/// Replicas tell of one conversation at once, and of forks of it: each is one
/// branch, and whatever was confirmed is there once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_tell_of_one_conversation_grow_one_branch() {
    let Some((_, url)) = in_database().await else {
        return;
    };
    let mut telling = tokio::task::JoinSet::new();
    for replica in 0..4_u32 {
        let store = at(&url).await;
        telling.spawn(async move {
            let mut new = 0;
            for turn in 1..15_u32 {
                let here = trace(1, (turn > 1).then_some(turn - 1), turn);
                let content = archive(&[(turn, "parts", u64::from(turn % 5))]);
                let put = store.journal().archive(&here, &content, Moment(1));
                assert_eq!(put.await.unwrap(), lineage(1));
                let entries = [entry(turn, "word both"), entry(100 + replica, "word own")];
                new += append(&*store, &here, &entries, 1).await;
            }
            for turn in 1..9 {
                let left = fork(u64::from(10 + turn), 1, turn, turn + 1);
                new += append(&*store, &left, &[entry(turn, "word fork")], 1).await;
            }
            new
        });
    }
    let new: u64 = telling.join_all().await.iter().sum();
    let store = at(&url).await;
    let journal = store.journal();
    let extent = journal.extent().await.unwrap();
    assert_eq!(extent.entries, new);
    let found = search(&*store, &whole(lineage(1)), "both own").await;
    let both = found.iter().filter(|(text, _)| text == "word both");
    assert_eq!(both.count(), 14);
    assert_eq!(journal.branches(None, 99).await.unwrap().len(), 1 + 8);
    // What is counted is what is there.
    let mut stranger = raw(&url).await;
    for (counted, there) in [
        ("sum(entries)", "SELECT count(*) FROM longhaul.entries"),
        ("sum(places)", "SELECT count(*) FROM longhaul.places"),
    ] {
        let sql = format!("SELECT {counted}::bigint FROM longhaul.branches");
        let counted = number(&mut stranger, &sql).await;
        assert_eq!(counted, number(&mut stranger, there).await);
    }
    for held in journal.branches(None, 99).await.unwrap() {
        journal.forget(held.id).await.unwrap();
    }
    assert_eq!(journal.extent().await.unwrap(), Extent::default());
    for table in [
        "branches", "places", "messages", "promises", "links", "entries", "words", "blobs",
    ] {
        let sql = format!("SELECT count(*) FROM longhaul.{table}");
        assert_eq!(number(&mut stranger, &sql).await, 0, "{table}");
    }
}
