//! A tool that nobody has told us about, judged by the words of its name.
//!
//! A name that says it changes something may change a file; one that says it
//! looks something up can be asked again, if every argument is the same. Its
//! files are in a world of their own: what `get_file` calls by a path need not be
//! what another tool finds there. A word that hints at something live, of which
//! each answer is the next and not the same again, makes it opaque.

use super::arguments;
use super::fields::Fields;
use super::paths::{Base, File};
use super::table::Tool;
use super::{Act, Part, Reading, Writing};

/// Words of names that look something up.
const LOOKS: &[&str] = &[
    "cat", "describe", "fetch", "find", "get", "grep", "inspect", "list", "lookup", "open",
    "query", "read", "search", "show", "view",
];
/// Words of names that change something.
const CHANGES: &[&str] = &[
    "add", "append", "apply", "book", "cancel", "change", "click", "close", "commit", "create",
    "delete", "edit", "execute", "insert", "install", "move", "patch", "post", "push", "put",
    "remove", "rename", "replace", "run", "save", "send", "set", "start", "stop", "submit", "type",
    "undo", "update", "upload", "write",
];
/// Words of names whose answer is not the same thing twice, or is somebody's.
const LIVE: &[&str] = &[
    "agent",
    "ask",
    "bash",
    "browser",
    "buffer",
    "chat",
    "console",
    "event",
    "events",
    "feedback",
    "input",
    "job",
    "log",
    "logs",
    "message",
    "messages",
    "monitor",
    "new",
    "next",
    "now",
    "output",
    "page",
    "poll",
    "pop",
    "process",
    "prompt",
    "queue",
    "random",
    "response",
    "sample",
    "screen",
    "screenshot",
    "session",
    "shell",
    "snapshot",
    "stdin",
    "stdout",
    "stream",
    "tab",
    "task",
    "terminal",
    "thread",
    "time",
    "updates",
    "user_input",
    "wait",
];

/// What a call of such a tool does.
pub(super) fn act(tool: &Tool<'_>, fields: &Fields<'_>) -> Act {
    let words = words(tool.own);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let path = || arguments::likely_path(fields);
    let file = |path: String| File::new(tool.name, Base::Session, &path);
    if has(CHANGES) {
        return path().and_then(file).map_or(Act::Opaque, |file| {
            Act::Writes(vec![Writing {
                file,
                is_full: false,
            }])
        });
    }
    let looks = words
        .first()
        .is_some_and(|first| LOOKS.contains(&first.as_str()));
    if !looks || has(LIVE) {
        return Act::Opaque;
    }
    let reads = has(&["cat", "file", "open", "read", "view"]);
    match path().filter(|_| reads).and_then(file) {
        Some(file) => fields.arguments().map_or(Act::Opaque, |arguments| {
            Act::Reads(Reading {
                file,
                part: Part::Other(arguments),
            })
        }),
        None => arguments::question(fields),
    }
}

/// Whether the name of a tool says that it changes something.
pub(super) fn changes(tool: &Tool<'_>) -> bool {
    let words = words(tool.own);
    words.iter().any(|word| CHANGES.contains(&word.as_str()))
}

/// The words of a name, in lower case, however they are joined.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = letter.is_ascii_uppercase() && was_lower;
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
