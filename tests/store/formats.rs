//! Files of other versions: older ones are read, newer ones left alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::store::{Committed, Holder, Moment, Report, Store};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use crate::support::{
    blob, body, commit, marks, number, open, overlay, put_segment, raw, segment, segments, sound,
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
    let (_folder, store) = made(include_str!("state_1.sql")).await;
    as_it_was_left(&*store).await;
    assert_eq!(segments(&*store, &[7]).await, []);
}

#[tokio::test]
async fn files_of_format_2_are_read() {
    let (_folder, store) = made(include_str!("state_2.sql")).await;
    as_it_was_left(&*store).await;
    let kept = [(segment(7), b"content".to_vec())];
    assert_eq!(segments(&*store, &[7]).await, kept);
    assert_eq!(put_segment(&*store, 7, b"second", 1).await, b"content");
}

#[tokio::test]
async fn files_of_format_3_are_read() {
    let (_folder, store) = made(include_str!("state_3.sql")).await;
    as_it_was_left(&*store).await;
    let late = store.lease("segment/7", Holder::random(), Duration::from_mins(1));
    assert!(late.await.unwrap(), "it expired long ago");
}

/// A store in files as older versions left them.
async fn made(state: &str) -> (TempDir, Arc<dyn Store>) {
    let folder = crate::support::folder();
    make(&folder.path().join("state.db"), state).await;
    make(
        &folder.path().join("journal.db"),
        include_str!("journal_1.sql"),
    )
    .await;
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
        known: 3,
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
