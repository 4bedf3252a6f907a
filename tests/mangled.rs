//! Bytes of others, mangled: nothing panics, nothing explodes, nothing is lost.
//!
//! The corpus is in `tests/corpus`, a folder for each entry: a few small inputs
//! that say much of what can be said there. They are cut, flipped, doubled and
//! grafted onto each other by a rule with a seed; `LONGHAUL_MANGLED` says how many
//! times. The same entries can be fuzzed (`fuzz/`), starting from the same corpus.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "mangled/entries.rs"]
mod entries;
#[path = "mangled/mangle.rs"]
mod mangle;
#[path = "mangled/rows.rs"]
mod rows;

use std::path::Path;

use bytes::Bytes;
use fastrand::Rng;

/// The inputs of an entry, in a fixed order.
fn corpus(entry: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = std::fs::read_dir(root.join(entry)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{entry}");
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn times(usual: usize) -> usize {
    let said = std::env::var("LONGHAUL_MANGLED").ok();
    said.map_or(usual, |times| times.parse().unwrap())
}

/// Tries an entry with its corpus, and with what becomes of it.
fn mangled(entry: &str, usual: usize, law: impl Fn(&[u8])) {
    let corpus = corpus(entry);
    for input in &corpus {
        law(input);
    }
    for seed in 0..times(usual) as u64 {
        let mut rng = Rng::with_seed(seed);
        let input = if seed % 16 == 0 {
            mangle::noise(&mut rng)
        } else {
            mangle::mangle(&mut rng, &corpus)
        };
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| law(&input)));
        if tried.is_err() {
            let text = String::from_utf8_lossy(&input).into_owned();
            panic!("{entry}, seed {seed}: {text}");
        }
    }
}

#[test]
fn a_body_goes_on_as_it_is_or_has_a_view_that_is_no_worse() {
    mangled("body", 3_000, entries::body);
}

#[test]
fn what_is_read_of_an_answer_does_not_depend_on_its_pieces() {
    mangled("stream", 4_000, entries::stream);
}

#[test]
fn every_mistake_in_a_configuration_is_one_line() {
    mangled("config", 400, entries::config);
}

#[test]
fn an_overlay_that_can_be_read_holds_together() {
    let histories: Vec<Bytes> = corpus("body").into_iter().map(Bytes::from).collect();
    mangled("overlay", 3_000, |input| {
        entries::overlay(input, &histories);
    });
}

#[test]
fn figures_that_can_be_read_can_be_kept() {
    mangled("row", 3_000, entries::row);
}
