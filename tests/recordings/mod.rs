//! The recordings that tests look at: the only place that knows where they are.
//!
//! Recordings of real agents are not part of the project. `LONGHAUL_TRANSCRIPTS`
//! names a folder of them, one folder a recording with `messages.jsonl` in it;
//! without it the folder `../shared/transcripts` is taken if there is one. Where
//! there are none, or with `LONGHAUL_TRANSCRIPTS=none`, tests get the two made-up
//! recordings that ship beside this file, so that none of them ever passes
//! without having looked at anything.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};

/// The recordings, in the order of their names: those from outside, else those
/// that ship with the project. Never empty.
pub fn all() -> Vec<PathBuf> {
    let outside = outside().map(|folder| in_folder(&folder));
    let outside = outside.filter(|found| !found.is_empty());
    outside.unwrap_or_else(shipped)
}

/// The made-up recordings that ship with the project.
pub fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = in_folder(&root.join("tests/recordings"));
    assert_eq!(found.len(), 2, "{found:?}");
    found
}

/// What a recording is called.
pub fn name(recording: &Path) -> String {
    let name = recording.file_name().unwrap();
    name.to_string_lossy().into_owned()
}

/// The messages of a recording, a line each.
pub fn lines(recording: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(recording.join("messages.jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

/// The folder of recordings from outside, whether there is one or not.
fn outside() -> Option<PathBuf> {
    let given = std::env::var_os("LONGHAUL_TRANSCRIPTS").map(PathBuf::from);
    match given {
        Some(given) if given.as_os_str() == "none" => None,
        // A folder that was named and is not there is a mistake, not a choice.
        Some(given) => {
            assert!(
                given.is_dir(),
                "LONGHAUL_TRANSCRIPTS is {}, which is no folder: name one, or say none",
                given.display()
            );
            Some(given)
        }
        None => Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/transcripts")),
    }
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.join("messages.jsonl").exists());
    found.sort();
    found
}
