//! Files of other versions: older ones are read, newer ones left alone.

use std::path::Path;
use std::sync::Arc;

use longhaul::store::journal::Extent;
use longhaul::store::{Committed, Keep, Moment, Report, Store};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use crate::journal_support::{
    append, entry, messages, reference, search, tenant, texts, trace, whole,
};
use crate::support::{
    EVERYTHING, blob, body, commit, lineage, marks, number, open, overlay, put_segment, raw,
    segment, segments, sound,
};

/// Makes a file from SQL.
async fn make(file: &Path, sql: &str) {
    let options = SqliteConnectOptions::new().filename(file);
    let mut connection = options.create_if_missing(true).connect().await.unwrap();
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn files_of_format_1_are_read() {
    let (_folder, store) = made(include_str!("state_1.sql"), include_str!("journal_1.sql")).await;
    as_it_was_left(&*store).await;
    assert_eq!(segments(&*store, &[7]).await, []);
}

#[tokio::test]
async fn files_of_format_2_are_read() {
    let (_folder, store) = made(include_str!("state_2.sql"), include_str!("journal_2.sql")).await;
    as_it_was_left(&*store).await;
    let kept = [(segment(7), b"content".to_vec())];
    assert_eq!(segments(&*store, &[7]).await, kept);
    assert_eq!(put_segment(&*store, 7, b"second", 1).await, b"content");
}

#[tokio::test]
async fn a_journal_of_format_1_goes_on_with_what_it_has() {
    let (_folder, store) = made(include_str!("state_2.sql"), include_str!("journal_1.sql")).await;
    let extent = store.journal().extent().await.unwrap();
    assert_eq!((extent.bytes, extent.branches), (120, 0));
    append(&*store, &trace(7, None, 3), &[entry(1, "word")], 1).await;
    assert_eq!(texts(&*store, &whole(lineage(7)), "word").await, ["word"]);
    let old = Keep {
        blobs_since: Moment(1_001),
        ..EVERYTHING
    };
    assert_eq!(store.collect(old).await.unwrap().blobs, 1);
}

#[tokio::test]
async fn a_journal_of_format_2_is_read() {
    let (_folder, store) = made(include_str!("state_2.sql"), include_str!("journal_2.sql")).await;
    let journal = store.journal();
    let held = journal.branch(lineage(7)).await.unwrap().unwrap();
    assert_eq!(
        (held.tenant, held.label.as_deref()),
        (tenant(1), Some("seven"))
    );
    assert_eq!(
        (held.messages, held.began_at, held.seen_at),
        (5, Moment(1_000), Moment(2_000))
    );
    let left = journal.children(lineage(7), 0, 9).await.unwrap();
    assert_eq!(
        (left[0].id, left[0].parent),
        (lineage(8), Some((lineage(7), 3)))
    );
    let scope = whole(lineage(7));
    let content = [(0, "content".to_owned())];
    assert_eq!(messages(&*store, &scope, (0, 9), None).await, content);
    let first = journal.kept(&scope, (0, 9), Some(4)).await.unwrap();
    assert_eq!(
        (first[0].parts.as_slice(), first[0].blobs.as_slice()),
        (&b"zero"[..], &[blob(7)][..])
    );
    let found = search(&*store, &scope, "two words").await;
    assert_eq!(
        found,
        [(blob(7).to_string(), 0b10), ("two words".to_owned(), 0b11)]
    );
    for word in ["some_name", "\u{e9}t\u{e9}"] {
        assert_eq!(search(&*store, &scope, word).await.len(), 1);
    }
    let promised = journal.referred(reference(1)).await.unwrap();
    let expected = [(None, Some(blob(7))), (Some(1), None)];
    let promised: Vec<_> = promised
        .iter()
        .map(|found| (found.entry, found.blob))
        .collect();
    assert_eq!(promised, expected);
    let grown = append(&*store, &trace(7, Some(5), 8), &[entry(6, "more words")], 1).await;
    assert_eq!((grown, texts(&*store, &scope, "words").await.len()), (1, 3));
    let gone = [lineage(7), lineage(8)].map(|id| journal.forget(id));
    let [first, second] = gone;
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.branches, second.branches), (1, 1));
    assert_eq!(first.entries + second.entries, 3);
    assert_eq!(journal.extent().await.unwrap(), Extent::default());
}

/// A store in files as older versions left them.
async fn made(state: &str, journal: &str) -> (TempDir, Arc<dyn Store>) {
    let folder = crate::support::folder();
    make(&folder.path().join("state.db"), state).await;
    make(&folder.path().join("journal.db"), journal).await;
    let opened = open(folder.path()).await;
    let tightened = |report: &Report| matches!(report, Report::Tightened { .. });
    assert!(opened.reports.iter().all(tightened), "{:?}", opened.reports);
    (folder, opened.store)
}

async fn as_it_was_left(store: &dyn Store) {
    assert_eq!(marks(store, &[7]).await, [commit(7, 7).mark]);
    assert_eq!(
        store.overlay(overlay(7)).await.unwrap(),
        Some(b"body".to_vec())
    );
    assert_eq!(
        store.blob(blob(7)).await.unwrap(),
        Some(b"content".to_vec())
    );
    let learned = [("window/a".to_owned(), "200000".to_owned())];
    assert_eq!(store.learned().await.unwrap(), learned);
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
    assert_eq!(put_segment(store, 1, &body(1), 1).await, body(1));
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_left_alone() {
    let folder = crate::support::folder();
    let file = folder.path().join("state.db");
    let store = sound(folder.path()).await;
    store.commit(&commit(1, 1)).await.unwrap();
    store.close().await.unwrap();
    number(&mut raw(&file).await, "SELECT 1").await;
    make(&file, "PRAGMA user_version = 99").await;
    let before = std::fs::read(&file).unwrap();
    let opened = open(folder.path()).await;
    let expected = Report::Newer {
        file: file.clone(),
        found: 99,
        known: 2,
    };
    assert_eq!(opened.reports, [expected]);
    assert_eq!(marks(&*opened.store, &[1]).await, []);
    assert_eq!(
        opened.store.commit(&commit(2, 2)).await.unwrap(),
        Committed::Done
    );
    let content = [(blob(1), body(1))];
    opened.store.put_blobs(&content, Moment(1)).await.unwrap();
    opened.store.close().await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(
        open(folder.path()).await.store.blob(blob(1)).await.unwrap(),
        Some(body(1))
    );
}
