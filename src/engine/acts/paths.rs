//! Which file a path names, by its letters alone.
//!
//! There is no file system to ask: links, letter case and where a relative path
//! starts are not known. So two paths are the same file only if they are spelled
//! alike once `.`, `..` and doubled slashes are gone, are relative to the same
//! thing, and belong to the same world.

/// A file, as far as its name tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct File {
    /// Whose files these are: empty for the machine the agent works on, else the
    /// server or the tool that alone knows what it calls by this path.
    pub world: String,
    /// What the path is relative to.
    pub base: Base,
    /// The path, tidied.
    pub path: String,
}

/// What a path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// Nothing: it is absolute.
    Root,
    /// Where the session was started.
    Session,
    /// Wherever the shell stands.
    Shell,
}

impl File {
    /// The file that a path names; `None` if it cannot be the name of one.
    pub(super) fn new(world: &str, base: Base, path: &str) -> Option<Self> {
        let path = path.trim();
        let path = path.strip_prefix("file://").unwrap_or(path);
        if path.is_empty() || path.len() > 4096 || path.contains(['\n', '\0']) {
            return None;
        }
        let path = if has_drive(path) {
            path.replace('\\', "/")
        } else {
            path.to_owned()
        };
        let base = if is_absolute(&path) { Base::Root } else { base };
        Some(Self {
            world: world.to_owned(),
            base,
            path: tidy(&path),
        })
    }
}

/// Whether a path starts at a root: `/`, a home folder, or a drive.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.starts_with('~') || has_drive(path)
}

fn has_drive(path: &str) -> bool {
    let begins =
        |letter: u8, after: u8| letter.is_ascii_alphabetic() && matches!(after, b'/' | b'\\');
    matches!(path.as_bytes(), [letter, b':', after, ..] if begins(*letter, *after))
}

/// A path within a folder.
pub(super) fn join(folder: &str, path: &str) -> String {
    if is_absolute(path) {
        return tidy(path);
    }
    tidy(&format!("{folder}/{path}"))
}

/// Without `.`, doubled slashes, and `..` where it goes back over a name.
pub(super) fn tidy(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let rooted = path.starts_with('/');
    for name in path.split('/') {
        match (name, names.last()) {
            ("" | ".", _) => {}
            ("..", None) if rooted => {}
            ("..", Some(last)) if *last != ".." && *last != "~" => {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    let tidied = names.join("/");
    match (rooted, tidied.is_empty()) {
        (true, _) => format!("/{tidied}"),
        (false, true) => ".".to_owned(),
        (false, false) => tidied,
    }
}

/// Whether a text looks like a path: one word with a slash or an extension, and
/// no address.
pub(super) fn looks_like_path(text: &str) -> bool {
    let odd = |letter: char| letter.is_whitespace() || "*?{}()<>|\"'`$;&".contains(letter);
    if text.is_empty() || text.len() > 1024 || text.contains(odd) || text.contains("://") {
        return false;
    }
    let name = text.rsplit('/').next().unwrap_or_default();
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        let letters = extension
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric());
        !stem.is_empty()
            && (1..=8).contains(&extension.len())
            && letters
            && extension.contains(|letter: char| letter.is_ascii_alphabetic())
    });
    is_absolute(text) || text.starts_with("./") || text.starts_with("../") || has_extension
}
