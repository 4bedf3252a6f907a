//! Files as they are named and found: which of a folder are recordings, what
//! they are called, and whether they are text at all.

use std::path::{Path, PathBuf};

use super::Unreadable;

/// What the file of a recording is called in a folder of its own.
pub const MESSAGES: &str = "messages.jsonl";

/// The recordings that a path names: itself, or those of a folder that is not
/// itself the recording of one session.
pub fn recordings_at(given: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    if !given.is_dir() || given.join(MESSAGES).exists() {
        return Ok(vec![given.to_owned()]);
    }
    let path = plain_text(&given.display().to_string());
    let io = |source| Unreadable::Io {
        path: path.clone(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(given).map_err(io)? {
        found.push(entry.map_err(io)?.path());
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    found.sort();
    if found.is_empty() {
        return Err(Unreadable::NoRecordings { path });
    }
    Ok(found)
}

/// The first line that is no text. An end within a letter is only half written.
pub fn not_text(bytes: &[u8]) -> Option<usize> {
    let error = std::str::from_utf8(bytes).err()?;
    error.error_len()?;
    let before = bytes.get(..error.valid_up_to())?;
    Some(before.split(|byte| *byte == b'\n').count())
}

/// A name without what would move the cursor of a terminal or break a page.
pub fn plain_text(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

/// The file's own name, or that of its folder if all are named alike.
pub fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.canonicalize().ok();
    let folder = folder.as_deref().and_then(Path::parent);
    match (&*stem, folder.and_then(Path::file_name)) {
        ("messages", Some(folder)) => plain_text(&folder.to_string_lossy()),
        _ => plain_text(&stem),
    }
}
