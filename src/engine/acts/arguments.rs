//! From a tool's meaning and the arguments of a call to what the call does.
//!
//! Arguments have as many names as tools have authors; the lists below are those
//! that are met. An argument that is in none of them may change what is shown, so
//! a read with one is compared by all that it says.

use super::fields::{self, Fields};
use super::paths::{self, Base, File};
use super::table::{Meaning, Tool};
use super::{Act, Part, Query, Reading, Writing, patch, shell};

const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "filepath",
    "absolute_path",
    "notebook_path",
    "notebookPath",
    "target_file",
    "target_notebook",
    "file",
    "filename",
    "file_name",
    "fileName",
    "file_uri",
    "uri",
];
const FIRST: &[&str] = &[
    "offset",
    "start_line",
    "startLine",
    "line_start",
    "start_line_one_indexed",
];
const LAST: &[&str] = &[
    "end_line",
    "endLine",
    "line_end",
    "end_line_one_indexed_inclusive",
];
const COUNT: &[&str] = &["limit", "max_lines", "head"];
const PAIR: &[&str] = &["view_range", "line_range"];
/// What a search or a page is about, the most telling first.
const ABOUT: &[&str] = &[
    "pattern",
    "query",
    "search_term",
    "regex",
    "url",
    "path",
    "file_path",
    "dir_path",
    "target_directory",
    "uri",
    "name",
    "id",
];
const COMMANDS: &[&str] = &["command", "cmd", "script"];
const DIRECTORIES: &[&str] = &[
    "workdir",
    "cwd",
    "working_directory",
    "directory",
    "dir_path",
];

impl Meaning {
    /// What a call does by it; `None` if its arguments do not say enough.
    pub(super) fn act(self, tool: &Tool<'_>, fields: &Fields<'_>) -> Option<Act> {
        match self {
            Self::Read => Some(Act::Reads(Reading {
                file: file(tool, fields)?,
                part: part(fields)?,
            })),
            Self::Write | Self::Edit => {
                let adds = fields.is_true("append")
                    || fields
                        .text(&["mode"])
                        .is_some_and(|mode| mode != "overwrite");
                Some(Act::Writes(vec![Writing {
                    file: file(tool, fields)?,
                    is_full: self == Self::Write && !adds,
                }]))
            }
            Self::Patch => {
                let text = fields.text(&["input", "patch", "patchText", "patch_text"])?;
                patch::files(&text, tool.server).map(Act::Writes)
            }
            Self::Shell => shell(tool, fields),
            Self::Ask => ask(fields),
            Self::Plan => Some(Act::Plans),
            Self::Opaque => None,
        }
    }
}

/// The one file that a call names.
pub(super) fn file(tool: &Tool<'_>, fields: &Fields<'_>) -> Option<File> {
    File::new(tool.server, Base::Session, &fields.text(PATHS)?)
}

/// How much of its file a call asks for.
pub(super) fn part(fields: &Fields<'_>) -> Option<Part> {
    let other = || fields.arguments().map(Part::Other);
    if !fields.are_only(&[PATHS, FIRST, LAST, COUNT, PAIR, &["command"]]) {
        return other();
    }
    let ranges = [FIRST, LAST, COUNT, PAIR];
    if !ranges.into_iter().flatten().any(|name| fields.has(name)) {
        return Some(Part::Whole);
    }
    if let Some(pair) = PAIR.iter().find_map(|name| fields.list(name)) {
        return match pair.as_slice() {
            [first, last] => match (fields::number(first), fields::number(last), *last) {
                (Some(first), Some(last), _) if first <= last => {
                    Some(Part::Lines(first, Some(last)))
                }
                (Some(first), None, b"-1") => Some(Part::Lines(first, None)),
                _ => other(),
            },
            _ => other(),
        };
    }
    let is_number = |names: &[&str]| {
        let given = names.iter().any(|name| fields.has(name));
        !given || fields.number(names).is_some()
    };
    if !is_number(FIRST) || !is_number(LAST) || !is_number(COUNT) {
        return other();
    }
    let first = fields.number(FIRST);
    let from = first.unwrap_or(1).max(1);
    let to = match (fields.number(LAST), fields.number(COUNT)) {
        (Some(last), None) => Some(last),
        (None, Some(count)) => Some((from - 1).saturating_add(count)),
        (None, None) => None,
        (Some(_), Some(_)) => return other(),
    };
    match to {
        None if from == 1 => Some(Part::Whole),
        to => Some(Part::Lines(from, to)),
    }
}

fn ask(fields: &Fields<'_>) -> Option<Act> {
    let arguments = fields.arguments()?;
    let about = ABOUT.iter().find_map(|name| fields.text(&[name]));
    let about = about.unwrap_or_else(|| arguments.clone());
    Some(Act::Asks(Query { arguments, about }))
}

/// A question that only an identical one repeats.
pub(super) fn question(fields: &Fields<'_>) -> Act {
    ask(fields).unwrap_or(Act::Opaque)
}

/// Arguments that turn a command into a conversation with a process.
const LIVE: &[&str] = &[
    "run_in_background",
    "is_background",
    "is_input",
    "background",
    "detach",
];

fn shell(tool: &Tool<'_>, fields: &Fields<'_>) -> Option<Act> {
    let live = LIVE.iter().any(|name| fields.is_true(name));
    if live || fields.text(&["mode"]).is_some_and(|mode| mode == "async") {
        return None;
    }
    let directory = fields.text(DIRECTORIES).map(|path| paths::tidy(&path));
    let command = match line(fields)? {
        Line::Text(text) => text,
        Line::Patch(text) => return patch::files(&text, tool.server).map(Act::Writes),
    };
    let most = fields.number(&["max_output_tokens"]);
    shell::command(&command, directory.as_deref(), most, tool.server).map(Act::Runs)
}

/// What a shell is given.
enum Line {
    Text(String),
    Patch(String),
}

fn line(fields: &Fields<'_>) -> Option<Line> {
    let list = COMMANDS.iter().find_map(|name| fields.list(name));
    let Some(list) = list else {
        return fields.text(COMMANDS).map(Line::Text);
    };
    let words: Option<Vec<String>> = list.into_iter().map(fields::text).collect();
    Some(match words?.as_slice() {
        [first, text] if first == "apply_patch" => Line::Patch(text.clone()),
        words => Line::Text(shell::listed(words)),
    })
}

/// The command line of a call, if its tool is a shell.
pub(super) fn command_line(fields: &Fields<'_>) -> Option<String> {
    line(fields).map(|(Line::Text(text) | Line::Patch(text))| text)
}

/// The path that a call of a tool not in the table seems to be about.
pub(super) fn likely_path(fields: &Fields<'_>) -> Option<String> {
    fields.text(PATHS).or_else(|| {
        let mut alike = fields.texts().filter(|text| paths::looks_like_path(text));
        alike.next().filter(|_| alike.next().is_none())
    })
}
