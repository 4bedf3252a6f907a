//! Files that cannot be trusted or cannot be used.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use longhaul::store::{Committed, Moment, Report, Store};
use tempfile::TempDir;

use crate::support::{
    blob, body, commit, files, marks, open, overlay, put_segment, raw, segment, segments, sound,
};

/// A folder with a store that has something in both files.
async fn filled() -> TempDir {
    let folder = crate::support::folder();
    let store = sound(folder.path()).await;
    for place in 0..100 {
        store.commit(&commit(place, place)).await.unwrap();
    }
    store
        .put_blobs(&[(blob(1), body(1))], Moment(1))
        .await
        .unwrap();
    store.close().await.unwrap();
    folder
}

fn overwrite(file: &Path, at: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Opens a folder whose `state.db` must be found damaged and set aside, while
/// the other file keeps what it has.
async fn state_is_set_aside(folder: &Path) {
    let damaged = fs::read(folder.join("state.db")).unwrap();
    let opened = open(folder).await;
    let [Report::SetAside { file, to, .. }] = &opened.reports[..] else {
        panic!("{:?}", opened.reports);
    };
    assert_eq!(*file, folder.join("state.db"));
    assert!(fs::read(to).unwrap() == damaged, "it was written to");
    let name = to.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("state.db.damaged-"), "{name}");
    works(&*opened.store).await;
    assert_eq!(opened.store.blob(blob(1)).await.unwrap(), Some(body(1)));
    opened.store.close().await.unwrap();
    let again = sound(folder).await;
    assert_eq!(marks(&*again, &[1]).await, [commit(1, 1).mark]);
}

async fn works(store: &dyn Store) {
    assert_eq!(marks(store, &[1]).await, []);
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
    assert_eq!(marks(store, &[1]).await, [commit(1, 1).mark]);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), Some(body(1)));
}

#[tokio::test]
async fn a_file_with_a_garbage_header_is_set_aside() {
    let folder = filled().await;
    overwrite(&folder.path().join("state.db"), 0, &[0xAB; 100]);
    state_is_set_aside(folder.path()).await;
}

#[tokio::test]
async fn a_truncated_file_is_set_aside() {
    let folder = filled().await;
    let file = OpenOptions::new()
        .write(true)
        .open(folder.path().join("state.db"))
        .unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length / 2 - 100).unwrap();
    state_is_set_aside(folder.path()).await;
}

#[tokio::test]
async fn a_file_with_a_garbage_page_in_the_middle_is_set_aside() {
    let folder = filled().await;
    let file = folder.path().join("state.db");
    let root = {
        let mut connection = raw(&file).await;
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'marks'";
        crate::support::number(&mut connection, sql).await
    };
    let at = (u64::try_from(root).unwrap() - 1) * 4_096;
    overwrite(&file, at, &[0x5A; 4_096]);
    state_is_set_aside(folder.path()).await;
}

#[tokio::test]
async fn a_file_of_something_else_is_set_aside() {
    let folder = filled().await;
    fs::write(
        folder.path().join("state.db"),
        "not a database at all\n".repeat(500),
    )
    .unwrap();
    state_is_set_aside(folder.path()).await;
}

#[tokio::test]
async fn a_file_with_other_tables_is_set_aside() {
    let folder = filled().await;
    fs::remove_file(folder.path().join("state.db")).unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("state.db"));
    let mut other = sqlx::ConnectOptions::connect(&options.create_if_missing(true))
        .await
        .unwrap();
    sqlx::raw_sql("CREATE TABLE marks (a)")
        .execute(&mut other)
        .await
        .unwrap();
    sqlx::Connection::close(other).await.unwrap();
    let opened = open(folder.path()).await;
    let set_aside = |report: &Report| matches!(report, Report::SetAside { .. });
    assert!(opened.reports.iter().any(set_aside), "{:?}", opened.reports);
    works(&*opened.store).await;
}

#[tokio::test]
async fn the_log_goes_aside_with_its_file() {
    let folder = filled().await;
    let path = folder.path();
    let kept = sound(path).await;
    kept.commit(&commit(200, 200)).await.unwrap();
    assert_eq!(files(path, "state.db-wal").len(), 1);
    // A copy taken while the store is open still has its log, as after a crash.
    let crashed = crate::support::folder();
    for file in files(path, "") {
        fs::copy(&file, crashed.path().join(file.file_name().unwrap())).unwrap();
    }
    // The log may hold the first pages.
    overwrite(
        &crashed.path().join("state.db"),
        20 * 4_096,
        &vec![0x5A; 50 * 4_096],
    );
    state_is_set_aside(crashed.path()).await;
    let aside = files(crashed.path(), "state.db.damaged-");
    let log = aside
        .iter()
        .find(|file| file.to_string_lossy().ends_with("-wal"));
    assert!(fs::read(log.unwrap()).unwrap() == fs::read(path.join("state.db-wal")).unwrap());
}

#[tokio::test]
async fn a_damaged_overlay_is_an_error_and_not_other_bytes() {
    let folder = filled().await;
    let file = folder.path().join("state.db");
    // Inside the body of some overlay, where SQLite itself has no means to tell.
    let content = fs::read(&file).unwrap();
    let needle = &body(50)[..512];
    let at = content
        .windows(512)
        .position(|window| window == needle)
        .unwrap();
    overwrite(&file, at as u64 + 10, &[0]);
    let store = sound(folder.path()).await;
    store.overlay(overlay(50)).await.unwrap_err();
    assert_eq!(store.overlay(overlay(51)).await.unwrap(), Some(body(51)));
    assert!(folder.path().join("state.db.suspect").exists());
    store.close().await.unwrap();
    // The structure is sound, so nothing else is given up for it.
    let store = sound(folder.path()).await;
    assert_eq!(store.overlay(overlay(51)).await.unwrap(), Some(body(51)));
    assert!(!folder.path().join("state.db.suspect").exists());
}

/// Overlays hold their own copy, so what is lost is only what it had cost.
#[tokio::test]
async fn a_damaged_segment_is_none_and_gives_way_to_the_next() {
    let folder = filled().await;
    let store = sound(folder.path()).await;
    for number in [1, 2] {
        put_segment(&*store, number, &body(number), 1).await;
    }
    let mut connection = raw(&folder.path().join("state.db")).await;
    let spoil = "UPDATE segments SET body = substr(body, 1, length(body) - 1) || x'00' WHERE id = ";
    let spoil = format!("{spoil}x'{}'", segment(1));
    sqlx::raw_sql(sqlx::AssertSqlSafe(spoil))
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(segments(&*store, &[1, 2]).await, [(segment(2), body(2))]);
    assert!(folder.path().join("state.db.suspect").exists());
    assert_eq!(
        put_segment(&*store, 1, b"made again", 2).await,
        b"made again"
    );
    assert_eq!(put_segment(&*store, 1, b"third", 3).await, b"made again");
    assert_eq!(segments(&*store, &[1, 2]).await.len(), 2);
}

#[tokio::test]
async fn where_no_folder_can_be_made_memory_serves() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let opened = open(&file.path().join("data")).await;
    let in_memory = |report: &Report| matches!(report, Report::InMemory { .. });
    assert_eq!(opened.reports.len(), 2);
    assert!(opened.reports.iter().all(in_memory), "{:?}", opened.reports);
    works(&*opened.store).await;
    let content = [(blob(1), body(1))];
    opened.store.put_blobs(&content, Moment(1)).await.unwrap();
    assert_eq!(put_segment(&*opened.store, 1, &body(1), 1).await, body(1));
    assert_eq!(opened.store.blob(blob(1)).await.unwrap(), Some(body(1)));
    opened.store.close().await.unwrap();
}

#[tokio::test]
async fn where_one_file_cannot_be_made_the_other_is_used() {
    let folder = crate::support::folder();
    fs::create_dir(folder.path().join("journal.db")).unwrap();
    let opened = open(folder.path()).await;
    let [Report::InMemory { file, .. }] = &opened.reports[..] else {
        panic!("{:?}", opened.reports);
    };
    assert_eq!(*file, folder.path().join("journal.db"));
    works(&*opened.store).await;
    opened.store.close().await.unwrap();
    let opened = open(folder.path()).await;
    assert_eq!(marks(&*opened.store, &[1]).await.len(), 1);
}
