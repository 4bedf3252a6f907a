//! The stored forms: a value of each type with every field set is read and written
//! again as it was.
//!
//! What is only stored as a part of a row (breakers of summarizers, notes of
//! copies, the parts of messages) is pinned there, in `rows.txt`.

use longhaul::compactor::errand::Finished;
use longhaul::engine::breaker::Breaker;
use longhaul::engine::facts::{Fact, FactKind};
use longhaul::engine::figures::Figures;
use longhaul::engine::ids::ChainHash;
use longhaul::engine::measure::{Factor, LearnedWindow, WindowKey};
use longhaul::engine::overlay::Overlay;
use longhaul::engine::recall::entry::EntryKind;
use longhaul::engine::summary::Narrative;
use longhaul::views::learned::{Learned, Quirk, window_note};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pins;

/// Reads a pinned form, and compares it with what it is written as again.
#[track_caller]
fn again(name: &str, write: impl Fn(&[u8]) -> Vec<u8>) {
    let file = format!("forms/{name}");
    let pinned = std::fs::read(pins::path(&file)).unwrap();
    let written = String::from_utf8(write(pinned.trim_ascii_end())).unwrap();
    pins::check(&file, &(written + "\n"));
}

/// The same by serde.
fn as_json<T: Serialize + DeserializeOwned>(pinned: &[u8]) -> Vec<u8> {
    let value: T = serde_json::from_slice(pinned).unwrap();
    serde_json::to_vec(&value).unwrap()
}

#[test]
fn stored_forms_are_what_they_were() {
    again("figures.json", |pinned| Figures::read(pinned).store());
    for name in ["overlay-1.json", "overlay-2.json"] {
        again(name, |pinned| {
            let anchor = ChainHash::from_bytes([7; 32]);
            let (_, written) = Overlay::read(pinned).unwrap().store(anchor).unwrap();
            written
        });
    }
    again("segment.json", |pinned| {
        let read = Finished::read(pinned).unwrap();
        assert!(read.reference().is_some());
        read.store()
    });
    again("window.json", |pinned| {
        let text = std::str::from_utf8(pinned).unwrap();
        LearnedWindow::from_text(text).unwrap().to_text().into()
    });
    again("breakers.json", as_json::<Vec<Breaker>>);
    again("narrative.json", as_json::<Narrative>);
    again("fact.json", as_json::<Fact>);
}

/// Words that stand in rows.
#[test]
fn stored_words_are_what_they_were() {
    let learned = Learned::default();
    let quirks = [
        Quirk::NoMarks,
        Quirk::NoDrop,
        Quirk::Enforces,
        Quirk::NoNative,
    ];
    let quirks = quirks.map(|quirk| format!("{:?}", learned.shown(quirk, "m").unwrap()));
    let kinds: Vec<&str> = EntryKind::all().map(EntryKind::name).collect();
    let facts = FactKind::ALL.map(|kind| serde_json::to_string(&kind).unwrap());
    let factor = Factor::from_text("1.25 900").unwrap().to_text();
    let text = format!(
        "{}\n{}\nfactor: {factor}\nkinds: {}\nfacts: {}\n",
        quirks.join("\n"),
        window_note(WindowKey::default()),
        kinds.join(" "),
        facts.join(" "),
    );
    pins::check("words.txt", &text);
}
