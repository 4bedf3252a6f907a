//! The shape of the source: layers, headers, size, and what must not be in it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

mod cycles;

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((name, text));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// What each folder may not mention, because of the layer it belongs to.
#[test]
fn no_layer_reaches_into_a_layer_it_must_not_know() {
    let shell = [
        "crate::server",
        "crate::admin",
        "crate::store",
        "crate::upstream",
        "crate::views",
        "crate::compactor",
        "crate::recall",
    ];
    let edge = ["crate::app", "crate::cli", "crate::metrics"];
    let effects = [
        "tokio::",
        "std::time::Instant",
        "SystemTime",
        "std::net",
        "std::fs",
    ];
    let pure = [&shell[..], &edge, &effects, &["crate::sim"]].concat();
    let apart = [
        &shell[..],
        &edge,
        &["crate::config", "crate::wire", "crate::engine"],
    ]
    .concat();
    let rows = [
        (
            "src/wire",
            [&pure[..], &["crate::engine", "crate::config"]].concat(),
        ),
        ("src/engine", pure),
        (
            "src/upstream",
            [
                &["crate::server", "crate::store", "crate::views"][..],
                &edge,
                &["crate::config"],
            ]
            .concat(),
        ),
        (
            "src/store",
            [
                &["crate::server", "crate::upstream", "crate::views"][..],
                &edge,
                &["crate::sim", "crate::wire"],
            ]
            .concat(),
        ),
        (
            "src/recall",
            vec!["crate::app", "crate::cli", "crate::server", "crate::views"],
        ),
        (
            "src/compactor",
            vec![
                "crate::server",
                "crate::views",
                "crate::app",
                "crate::cli",
                "crate::sim",
            ],
        ),
        (
            "src/views",
            vec![
                "crate::server",
                "crate::upstream",
                "crate::app",
                "crate::cli",
                "crate::sim",
            ],
        ),
        (
            "src/server",
            vec!["crate::admin", "crate::app", "crate::cli", "crate::sim"],
        ),
        ("src/admin", vec!["crate::app", "crate::cli", "crate::sim"]),
        ("src/sim", apart),
    ];
    for (folder, forbidden) in rows {
        for (name, text) in files(folder) {
            for word in &forbidden {
                assert!(!text.contains(word), "{name} mentions {word}");
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (name, text) in files("src")
        .into_iter()
        .chain(files("tests"))
        .chain(files("benches"))
    {
        assert!(
            text.starts_with("//! "),
            "{name} does not open with what it is for"
        );
    }
}

#[test]
fn no_file_holds_more_than_one_can_read() {
    for (name, text) in files("src") {
        let lines = text.lines().count();
        assert!(
            lines <= 450,
            "{name} has {lines} lines: does it hold one idea?"
        );
    }
}

/// Whatever a test looks at, it must find on a fresh clone too, so only the module
/// that falls back on the shipped recordings may look beside the project.
#[test]
fn only_one_module_looks_for_recordings_outside_the_project() {
    let outside = ["../sha", "red"].concat();
    let variable = ["LONGHAUL_", "TRANSCRIPTS"].concat();
    let all = [files("src"), files("tests"), files("benches")].concat();
    let mut found: Vec<String> = all
        .into_iter()
        .filter(|(_, text)| text.contains(&outside) || text.contains(&variable))
        .map(|(name, _)| name)
        .collect();
    found.sort();
    assert_eq!(found, ["tests/recordings/mod.rs"]);
}
