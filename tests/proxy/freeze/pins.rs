//! Pinned values: compared with the files in `tests/freeze`, or written to them.

use std::path::{Path, PathBuf};

/// A body that a line of a pinned file stands for, and its name.
pub type Body = (String, Vec<u8>);

/// The most differences that are shown.
const SHOWN: usize = 6;

fn mode() -> String {
    std::env::var("LONGHAUL_FREEZE").unwrap_or_default()
}

/// Whether the pinned files are to be written.
pub fn writes() -> bool {
    mode() == "write"
}

/// A file in `tests/freeze`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/freeze")
        .join(name)
}

/// Where bodies are kept for whoever wants to compare them.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("freeze")
        .join(name)
}

/// Compares a text with the pinned file of this name.
#[track_caller]
pub fn check(name: &str, actual: &str) {
    check_with(name, actual, &[]);
}

/// The same, where bodies stand behind the lines.
#[track_caller]
pub fn check_with(name: &str, actual: &str, bodies: &[Body]) {
    let file = path(name);
    if writes() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, actual).unwrap();
        return;
    }
    if mode() == "bodies" {
        keep(name, actual, bodies);
    }
    let pinned = std::fs::read_to_string(&file).unwrap_or_default();
    if pinned == actual {
        return;
    }
    let folder = keep(name, actual, bodies);
    panic!(
        "tests/freeze/{name} is not what happens now.\n{}\n\
         Now: {} (`now.txt` is the whole file, `line-N-*` the body behind line N).\n\
         Before: check out the commit that wrote tests/freeze/{name} and run this test with \
         LONGHAUL_FREEZE=bodies; its bodies are then in the same folder.\n\
         If the change is meant: LONGHAUL_FREEZE=write cargo test --locked --test proxy -- freeze::",
        differences(&pinned, actual),
        folder.display(),
    );
}

/// Writes what happens now to a folder of its own.
fn keep(name: &str, actual: &str, bodies: &[Body]) -> PathBuf {
    let folder = kept(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("now.txt"), actual).unwrap();
    for (name, body) in bodies {
        std::fs::write(folder.join(name), body).unwrap();
    }
    folder
}

/// The first lines that differ, with the last heading before them.
fn differences(pinned: &str, actual: &str) -> String {
    let (before, now): (Vec<&str>, Vec<&str>) =
        (pinned.lines().collect(), actual.lines().collect());
    let mut said = Vec::new();
    let mut heading = "";
    for at in 0..before.len().max(now.len()) {
        let (old, new) = (before.get(at), now.get(at));
        if let Some(title) = new.or(old).and_then(|line| line.strip_prefix("## ")) {
            heading = title;
        }
        if old == new {
            continue;
        }
        said.push(format!(
            "in \"{heading}\", line {}:\n  pinned: {}\n  now:    {}",
            at + 1,
            old.unwrap_or(&"(nothing)"),
            new.unwrap_or(&"(nothing)"),
        ));
        if said.len() == SHOWN {
            said.push("and perhaps more".to_owned());
            break;
        }
    }
    said.join("\n")
}
