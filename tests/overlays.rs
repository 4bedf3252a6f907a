//! Overlays of every version, rendered as they were when they were made.
//!
//! Each folder in `tests/overlays` is one: the overlay as the store holds it, a
//! history, and the view of it. The view must come out to the byte for ever:
//! providers have it in their caches, and thinking is bound to it. A folder is
//! never changed; a new version of the format adds new ones. To add one, put
//! `history.json` and `overlay.json` into a folder and run this test with
//! `LONGHAUL_WRITE_VIEWS=1`, which writes missing views and nothing else.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use longhaul::engine::cache_marks::Basis;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::overlay::Overlay;
use longhaul::engine::view::{Recipe, View};
use longhaul::wire::body::Body;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overlays");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn view(folder: &Path) -> Bytes {
    let history = Bytes::from(std::fs::read(folder.join("history.json")).unwrap());
    let stored = std::fs::read(folder.join("overlay.json")).unwrap();
    let overlay = Overlay::read(&stored).unwrap();
    let body = Body::split(&history).unwrap();
    let conversation = Conversation::new(&history, &body);
    let recipe = Recipe {
        overlay: Some(&overlay),
        marks: Some(Basis {
            swap: true,
            ..Basis::default()
        }),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(&history, &conversation, recipe).unwrap();
    view.bytes()
}

#[test]
fn every_overlay_ever_stored_renders_to_the_same_bytes() {
    let folders = folders();
    assert!(folders.len() >= 3);
    for folder in folders {
        let made = view(&folder);
        let path = folder.join("view.json");
        if !path.exists() && std::env::var_os("LONGHAUL_WRITE_VIEWS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let expected = std::fs::read(&path).unwrap();
        assert!(made == expected, "{} renders differently", folder.display());
    }
}

/// The stored form of this version is still what it was.
#[test]
fn an_overlay_is_stored_as_it_always_was() {
    for folder in folders() {
        let stored = std::fs::read(folder.join("overlay.json")).unwrap();
        let anchor = longhaul::engine::ids::ChainHash::from_bytes([7; 32]);
        let (_, again) = Overlay::read(&stored).unwrap().store(anchor).unwrap();
        assert_eq!(
            String::from_utf8(again),
            String::from_utf8(stored),
            "{}",
            folder.display()
        );
    }
}
