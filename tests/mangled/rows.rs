//! Rows of a store that others have written to: reading them is an answer or an
//! error, and the rows beside them are what they were.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use longhaul::engine::figures::Figures;
use longhaul::engine::ids::{BlobId, ChainHash, LineageId, OverlayId, SegmentId};
use longhaul::engine::overlay::Overlay;
use longhaul::store::{Commit, MarkRow, Moment, Store, sqlite};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::{corpus, mangle, times};

fn hash(kind: &str, number: u8) -> [u8; 32] {
    *blake3::hash(format!("{kind} {number}").as_bytes()).as_bytes()
}

/// A place with an overlay, a segment and a blob, by number.
async fn put(store: &dyn Store, number: u8, body: &[u8]) {
    let id = OverlayId::from_bytes(hash("overlay", number));
    let mark = MarkRow {
        chain: ChainHash::from_bytes(hash("chain", number)),
        model: "m".to_owned(),
        lineage: LineageId::beginning(&hash("lineage", number)),
        messages: 3,
        overlay: Some(id),
        view: ChainHash::from_bytes(hash("view", number)),
        hint: None,
        sealed: false,
        figures: Figures::default().store(),
        seen_at: Moment(1),
    };
    let commit = Commit {
        overlay: Some((id, body.to_vec())),
        mark,
        parent: None,
        refused: false,
    };
    store.commit(&commit).await.unwrap();
    let segment = SegmentId::from_bytes(hash("segment", number));
    store.put_segment(segment, body, Moment(1)).await.unwrap();
    let blob = BlobId::from_bytes(hash("blob", number));
    store
        .put_blobs(&[(blob, body.to_vec())], Moment(1))
        .await
        .unwrap();
}

/// Everything that was put under a number, as far as it can be read.
async fn get(store: &dyn Store, number: u8) -> [Option<Vec<u8>>; 4] {
    let chain = ChainHash::from_bytes(hash("chain", number));
    let marks = store.marks(&[chain]).await.unwrap_or_default();
    let figures = marks.first().map(|mark| mark.figures.clone());
    let overlay = store.overlay(OverlayId::from_bytes(hash("overlay", number)));
    let segment = [SegmentId::from_bytes(hash("segment", number))];
    let segments = store.segments(&segment).await.unwrap_or_default();
    let blob = store.blob(BlobId::from_bytes(hash("blob", number)));
    [
        figures,
        overlay.await.ok().flatten(),
        segments.into_iter().next().map(|(_, body)| body),
        blob.await.ok().flatten(),
    ]
}

/// Writes bytes into a column, of the row that was put first.
async fn spoil(folder: &Path, file: &str, table: &str, column: &str, bytes: Vec<u8>) {
    let options = SqliteConnectOptions::new().filename(folder.join(file));
    let mut connection = options.connect().await.unwrap();
    let statement =
        format!("UPDATE {table} SET {column} = ? WHERE rowid = (SELECT min(rowid) FROM {table})");
    let done = sqlx::query(AssertSqlSafe(statement)).bind(bytes);
    done.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_row_that_others_wrote_is_read_or_refused_and_its_neighbour_is_untouched() {
    let bodies = corpus("overlay");
    for seed in 0..times(24).min(400) as u64 {
        let mut rng = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let opened = sqlite::open(folder.path(), Duration::from_secs(20)).await;
        let store = opened.store;
        put(&*store, 1, &bodies[0]).await;
        put(&*store, 2, &bodies[1]).await;
        let neighbour = get(&*store, 2).await;
        let (file, table, column) = [
            ("state.db", "overlays", "body"),
            ("state.db", "marks", "figures"),
            ("state.db", "segments", "body"),
            ("journal.db", "blobs", "body"),
        ][rng.usize(0..4)];
        let bytes = mangle::mangle(&mut rng, &bodies);
        spoil(folder.path(), file, table, column, bytes).await;
        let [figures, overlay, ..] = get(&*store, 1).await;
        let _ = Figures::read(&figures.unwrap_or_default());
        let _ = Overlay::read(&overlay.unwrap_or_default());
        assert_eq!(get(&*store, 2).await, neighbour, "{table}.{column}");
        store.close().await.unwrap();
    }
}
