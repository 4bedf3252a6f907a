//! Names, marks and stores for the tests, each from a small number.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, SegmentId};
use longhaul::store::{Commit, Keep, MarkRow, Memory, Moment, Opened, Store, postgres, sqlite};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Row};

use crate::cluster::Cluster;

/// Generous: the machine that runs the tests may be busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

fn hash(kind: &str, number: u64) -> [u8; 32] {
    *blake3::hash(format!("{kind} {number}").as_bytes()).as_bytes()
}

pub fn chain(number: u64) -> ChainHash {
    ChainHash::from_bytes(hash("chain", number))
}

pub fn view(number: u64) -> ChainHash {
    ChainHash::from_bytes(hash("view", number))
}

pub fn overlay(number: u64) -> OverlayId {
    OverlayId::from_bytes(hash("overlay", number))
}

pub fn lineage(number: u64) -> LineageId {
    LineageId::beginning(&hash("lineage", number))
}

pub fn hint(number: u64) -> Hint {
    Hint::beginning(&hash("hint", number))
}

pub fn blob(number: u64) -> BlobId {
    BlobId::from_bytes(hash("blob", number))
}

pub fn segment(number: u64) -> SegmentId {
    SegmentId::from_bytes(hash("segment", number))
}

/// The bytes of an overlay: enough for several pages.
pub fn body(number: u64) -> Vec<u8> {
    hash("body", number).repeat(300)
}

/// A mark as the client sent it, at a place.
pub fn mark(place: u64) -> MarkRow {
    MarkRow {
        chain: chain(place),
        model: "model-a".to_owned(),
        lineage: lineage(1),
        messages: 3,
        overlay: None,
        view: view(place),
        hint: Some(hint(1)),
        sealed: false,
        figures: b"figures".to_vec(),
        seen_at: Moment(1_000),
    }
}

/// A commit of a new overlay at a place where none held.
pub fn commit(place: u64, number: u64) -> Commit {
    Commit {
        overlay: Some((overlay(number), body(number))),
        mark: MarkRow {
            overlay: Some(overlay(number)),
            ..mark(place)
        },
        parent: None,
        refused: false,
    }
}

/// Keeps everything.
pub const EVERYTHING: Keep = Keep {
    since: Moment(i64::MIN),
    state_bytes: u64::MAX,
    blobs_since: Moment(i64::MIN),
    blob_bytes: u64::MAX,
    idle_since: Moment(i64::MAX),
};

/// A store, and the folder it may be in.
pub struct Home {
    pub store: Arc<dyn Store>,
    pub folder: Option<tempfile::TempDir>,
}

/// A folder for this user alone, which goes with the value.
pub fn folder() -> tempfile::TempDir {
    let permissions = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(permissions).tempdir();
    folder.unwrap()
}

pub fn in_memory() -> Home {
    Home {
        store: Arc::new(Memory::new()),
        folder: None,
    }
}

pub async fn in_files() -> Home {
    let folder = folder();
    Home {
        store: sound(folder.path()).await,
        folder: Some(folder),
    }
}

/// A store in a database of its own, and its URL; none where there is no server.
pub async fn in_database() -> Option<(Arc<dyn Store>, String)> {
    let url = Cluster::shared()?.database().await;
    Some((at(&url).await, url))
}

/// Opens a database with which nothing may be wrong.
pub async fn at(url: &str) -> Arc<dyn Store> {
    let opened = postgres::open(url, 8, PATIENCE).await.unwrap();
    assert_eq!(opened.reports, []);
    opened.store
}

pub async fn open(folder: &Path) -> Opened {
    sqlite::open(folder, PATIENCE).await
}

/// Opens a folder in which nothing may be wrong.
pub async fn sound(folder: &Path) -> Arc<dyn Store> {
    let opened = open(folder).await;
    assert_eq!(opened.reports, []);
    opened.store
}

/// The marks at some places, in an order.
pub async fn marks(store: &dyn Store, places: &[u64]) -> Vec<MarkRow> {
    let places: Vec<_> = places.iter().map(|place| chain(*place)).collect();
    ordered(store.marks(&places).await.unwrap())
}

pub fn ordered(mut marks: Vec<MarkRow>) -> Vec<MarkRow> {
    marks.sort_by(|a, b| (a.chain, &a.model).cmp(&(b.chain, &b.model)));
    marks
}

/// Puts a segment; the bytes that hold.
pub async fn put_segment(store: &dyn Store, number: u64, body: &[u8], at: i64) -> Vec<u8> {
    let put = store.put_segment(segment(number), body, Moment(at));
    put.await.unwrap()
}

/// Some segments, in an order.
pub async fn segments(store: &dyn Store, numbers: &[u64]) -> Vec<(SegmentId, Vec<u8>)> {
    let ids: Vec<_> = numbers.iter().map(|number| segment(*number)).collect();
    let mut found = store.segments(&ids).await.unwrap();
    found.sort_unstable();
    found
}

/// A connection past the store.
pub async fn raw(file: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file);
    options.busy_timeout(PATIENCE).connect().await.unwrap()
}

/// A number that a statement finds past the store.
pub async fn number(connection: &mut SqliteConnection, sql: &str) -> i64 {
    let row = sqlx::query(AssertSqlSafe(sql.to_owned()))
        .fetch_one(connection)
        .await
        .unwrap();
    row.get(0)
}

/// The files of a folder whose names begin so.
pub fn files(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(beginning)
        })
        .collect();
    found.sort();
    found
}

/// A test for every home of the store.
#[macro_export]
macro_rules! over_every_store {
    ($($name:ident)*) => {
        mod over_memory {
            $(#[tokio::test] async fn $name() {
                let home = $crate::support::in_memory();
                super::$name(&*home.store).await;
            })*
        }
        mod over_sqlite {
            $(#[tokio::test] async fn $name() {
                let home = $crate::support::in_files().await;
                super::$name(&*home.store).await;
                home.store.close().await.unwrap();
            })*
        }
        mod over_postgres {
            $(#[tokio::test] async fn $name() {
                let Some((store, _)) = $crate::support::in_database().await else { return };
                super::$name(&*store).await;
                store.close().await.unwrap();
            })*
        }
    };
}
