//! Files that are deleted or replaced under a store that is in use, behind the
//! guard that the proxy puts before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::store::writer::Writer;
use longhaul::store::{Commit, Committed, Guarded, MarkRow, Moment, Sessions, Store, sqlite};

use crate::support::{
    PATIENCE, blob, body, chain, commit, folder, hint, lineage, mark, marks, overlay, put_segment,
    segments, sound, view,
};

/// A guarded store in a folder that can be taken away.
struct Scene {
    _around: tempfile::TempDir,
    data: PathBuf,
    store: Arc<Guarded>,
}

impl Scene {
    async fn new() -> Self {
        let around = folder();
        let data = around.path().join("data");
        let opened = sqlite::open(&data, PATIENCE).await;
        Self {
            _around: around,
            data,
            store: Arc::new(Guarded::before(opened.store, None)),
        }
    }

    /// The folder goes, and nothing can take its place.
    fn lose(&self) {
        std::fs::remove_dir_all(&self.data).unwrap();
        std::fs::write(&self.data, "in the way").unwrap();
    }

    fn give_way(&self) {
        std::fs::remove_file(&self.data).unwrap();
    }

    async fn is_back(&self) {
        until("it is back", || {
            !self.store.is_away() && !self.store.is_settling()
        })
        .await;
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(2), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What another process finds there.
async fn reopened(data: &Path) -> Arc<dyn Store> {
    sound(data).await
}

/// A mark further on in the session of another.
fn later(place: u64, of: &Commit) -> MarkRow {
    MarkRow {
        chain: chain(place),
        view: view(place),
        sealed: true,
        ..of.mark.clone()
    }
}

#[tokio::test]
async fn what_is_stored_is_read_and_what_is_new_is_held_until_the_files_are_back() {
    let scene = Scene::new().await;
    let store = &scene.store;
    store.commit(&commit(1, 1)).await.unwrap();
    store.record(&[later(3, &commit(1, 1))]).await.unwrap();
    store.learn("old", "value").await.unwrap();
    put_segment(&**store, 1, b"one", 1).await;
    assert_eq!(marks(&**store, &[1, 3]).await.len(), 2);
    scene.lose();
    // The first write finds out.
    assert_eq!(store.commit(&commit(2, 2)).await.unwrap(), Committed::Done);
    assert!(store.is_away());
    assert!(store.record(&[mark(5)]).await.is_err());
    store
        .put_blobs(&[(blob(1), body(1))], Moment(1))
        .await
        .unwrap();
    store.learn("new", "value").await.unwrap();
    put_segment(&**store, 2, b"two", 1).await;
    // All of it can be asked for, and what nobody has is known to be nowhere.
    assert_eq!(marks(&**store, &[1, 2, 3]).await.len(), 3);
    assert_eq!(store.marks(&[chain(77)]).await.unwrap(), []);
    for number in [1, 2] {
        let found = store.overlay(overlay(number)).await.unwrap();
        assert_eq!(found, Some(body(number)));
    }
    let found = store.marks_by_view(hint(1), &[view(1), view(2)]).await;
    assert_eq!(found.unwrap().len(), 2);
    assert_eq!(store.overlays_of(hint(1), 9).await.unwrap().len(), 2);
    assert_eq!(segments(&**store, &[1, 2]).await.len(), 2);
    assert_eq!(store.blob(blob(1)).await.unwrap(), Some(body(1)));
    // The rules hold: of two overlays at a place the first one stays, wherever
    // it is kept, and one that is there can be taken again.
    for place in [1, 2] {
        let rival = store.commit(&commit(place, 9)).await.unwrap();
        assert_eq!(rival, Committed::Lost(Box::new(commit(place, place).mark)));
    }
    let again = Commit {
        overlay: None,
        ..commit(6, 1)
    };
    assert_eq!(store.commit(&again).await.unwrap(), Committed::Done);

    scene.give_way();
    scene.is_back().await;
    store.close().await.unwrap();
    let other = reopened(&scene.data).await;
    // Of what was stored the newest is there, and of what came since everything.
    assert_eq!(marks(&*other, &[2, 3, 6]).await.len(), 3);
    for number in [1, 2] {
        let found = other.overlay(overlay(number)).await.unwrap();
        assert_eq!(found, Some(body(number)));
    }
    assert_eq!(other.overlay(overlay(9)).await.unwrap(), None);
    assert_eq!(other.blob(blob(1)).await.unwrap(), Some(body(1)));
    assert_eq!(segments(&*other, &[2]).await.len(), 1);
    assert_eq!(other.learned().await.unwrap().len(), 2);
}

/// Without a write nothing but a look tells that the files are gone.
#[tokio::test]
async fn files_that_are_deleted_are_begun_anew_with_what_was_written_lately() {
    let scene = Scene::new().await;
    let store = &scene.store;
    let writer = Writer::start(store.clone()).unwrap();
    store.commit(&commit(1, 1)).await.unwrap();
    writer.record(later(2, &commit(1, 1)));
    writer.flush().await.unwrap();
    std::fs::remove_dir_all(&scene.data).unwrap();
    let file = scene.data.join("state.db");
    until("there are files", || file.exists()).await;
    scene.is_back().await;
    // The session goes on, by the overlay it has.
    writer.record(later(3, &commit(1, 1)));
    writer.flush().await.unwrap();
    store.close().await.unwrap();
    let other = reopened(&scene.data).await;
    assert_eq!(marks(&*other, &[1, 2, 3]).await.len(), 3);
    assert_eq!(other.overlay(overlay(1)).await.unwrap(), Some(body(1)));
}

/// As when a copy is put back: what it has stays, and what is newer is added.
#[tokio::test]
async fn files_that_are_replaced_by_others_are_used_as_they_are() {
    let scene = Scene::new().await;
    let store = &scene.store;
    let copy = scene.data.with_file_name("copy");
    let other = reopened(&copy).await;
    other.commit(&commit(1, 7)).await.unwrap();
    other.close().await.unwrap();
    store.commit(&commit(1, 1)).await.unwrap();
    store.commit(&commit(2, 2)).await.unwrap();
    std::fs::remove_dir_all(&scene.data).unwrap();
    std::fs::rename(&copy, &scene.data).unwrap();
    assert_eq!(store.commit(&commit(3, 3)).await.unwrap(), Committed::Done);
    scene.is_back().await;
    assert_eq!(marks(&**store, &[1]).await, [commit(1, 7).mark]);
    assert_eq!(marks(&**store, &[2, 3]).await.len(), 2);
}

/// What somebody wanted to be forgotten does not come back.
#[tokio::test]
async fn a_forgotten_session_is_not_written_again() {
    let scene = Scene::new().await;
    let store = &scene.store;
    store.commit(&commit(1, 1)).await.unwrap();
    let other = MarkRow {
        lineage: lineage(2),
        ..mark(2)
    };
    store.record(&[other]).await.unwrap();
    Sessions::forget(&**store, lineage(1)).await.unwrap();
    std::fs::remove_dir_all(&scene.data).unwrap();
    until("there are files", || scene.data.join("state.db").exists()).await;
    scene.is_back().await;
    assert_eq!(marks(&**store, &[1]).await, []);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
    assert_eq!(marks(&**store, &[2]).await.len(), 1);
}
