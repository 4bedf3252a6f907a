//! The table of known tools: what a name, and perhaps an argument, means.
//!
//! Names are compared without case, underscores and hyphens, and without the
//! prefix of an MCP server, so that `Read`, `read` and `mcp__disk__read` share a
//! row. Each row is a promise that the tool does this and nothing else; of a tool
//! that gives something new each time it is asked alike (the next output of a
//! process, a person's answer) the row says that it is opaque.

use super::fields::{self, Fields};
use super::paths::{self, Base, File};
use super::{Act, Part, Query, Reading, Writing, patch, shell};

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Read,
    /// Writes all of a file.
    Write,
    /// Changes a file in places.
    Edit,
    /// A patch that names its files.
    Patch,
    Shell,
    Ask,
    Plan,
    Opaque,
}

use Meaning::{Ask, Edit, Opaque, Patch, Plan, Read, Shell, Write};

/// Names, and what they mean.
const NAMES: &[(Meaning, &[&str])] = &[
    (
        Read,
        &[
            "read",
            "readfile",
            "readtextfile",
            "readmediafile",
            "notebookread",
            "view",
            "viewfile",
            "viewimage",
            "openfile",
            "catfile",
            "fsread",
        ],
    ),
    (
        Write,
        &[
            "write",
            "writefile",
            "writetofile",
            "create",
            "createfile",
            "savefile",
            "fswrite",
        ],
    ),
    (
        Edit,
        &[
            "edit",
            "editfile",
            "multiedit",
            "notebookedit",
            "strreplace",
            "replace",
            "replaceinfile",
            "searchreplace",
            "insert",
            "insertcontent",
            "applydiff",
            "editnotebook",
            "deletefile",
            "undoedit",
        ],
    ),
    (Patch, &["applypatch"]),
    (
        Shell,
        &[
            "bash",
            "shell",
            "execcommand",
            "localshell",
            "shellcommand",
            "executebash",
            "executecommand",
            "runshellcommand",
            "runterminalcmd",
            "runterminalcommand",
            "runcommand",
            "runbash",
            "powershell",
            "terminal",
        ],
    ),
    (
        Ask,
        &[
            "grep",
            "grepfiles",
            "grepsearch",
            "glob",
            "globsearch",
            "globfilesearch",
            "rg",
            "find",
            "findfile",
            "findfiles",
            "searchfiles",
            "searchfilecontent",
            "searchdir",
            "searchfile",
            "filesearch",
            "codebasesearch",
            "codesearch",
            "ls",
            "list",
            "listdir",
            "listfiles",
            "listdirectory",
            "listdirectorywithsizes",
            "directorytree",
            "getfileinfo",
            "listalloweddirectories",
            "readmultiplefiles",
            "readmanyfiles",
            "listcodedefinitionnames",
            "webfetch",
            "websearch",
            "googlewebsearch",
            "fetch",
            "fetchurl",
            "todoread",
            "tasklist",
            "listmcpresourcestool",
            "readmcpresourcetool",
            "listmcpresources",
            "readmcpresource",
        ],
    ),
    (
        Plan,
        &[
            "todowrite",
            "updateplan",
            "writetodos",
            "managetodolist",
            "updatetodolist",
        ],
    ),
    (
        Opaque,
        &[
            "agent",
            "askuserquestion",
            "askuser",
            "bashoutput",
            "enterplanmode",
            "executeipythoncell",
            "exitplanmode",
            "killbash",
            "killshell",
            "monitor",
            "readbash",
            "readpowershell",
            "skill",
            "stopbash",
            "task",
            "taskcreate",
            "taskget",
            "taskoutput",
            "taskstop",
            "taskupdate",
            "think",
            "toolsearch",
            "writebash",
            "writestdin",
        ],
    ),
];

/// Tools that are several in one: the argument that says which, what it says,
/// and what that means. What else it may say is opaque.
const SEVERAL: &[(&[&str], &str, &[(&str, Meaning)])] = &[
    (
        &[
            "strreplaceeditor",
            "strreplacebasededittool",
            "texteditor",
            "fileeditor",
            "editor",
        ],
        "command",
        &[
            ("view", Read),
            ("create", Write),
            ("str_replace", Edit),
            ("insert", Edit),
            ("undo_edit", Edit),
        ],
    ),
    (&["planningfileeditor"], "command", &[("view", Read)]),
    (
        &["tasktracker"],
        "command",
        &[("plan", Plan), ("view", Ask)],
    ),
];

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

/// A tool's name, taken apart.
pub(super) struct Tool<'a> {
    /// As it came.
    pub(super) name: &'a str,
    /// The MCP server it belongs to; empty if to none.
    pub(super) server: &'a str,
    /// The name without the server.
    pub(super) own: &'a str,
    folded: String,
}

impl<'a> Tool<'a> {
    pub(super) fn named(name: &'a str) -> Self {
        let apart = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"));
        let (server, own) = apart.unwrap_or(("", name));
        let counts = |letter: &char| !matches!(letter, '_' | '-');
        let folded = own.chars().filter(counts).map(|l| l.to_ascii_lowercase());
        Self {
            name,
            server,
            own,
            folded: folded.collect(),
        }
    }
}

/// What the table says of a call; `None` if the tool is not in it.
pub(super) fn meaning(tool: &Tool<'_>, fields: &Fields<'_>) -> Option<Meaning> {
    let is = |names: &[&str]| names.contains(&tool.folded.as_str());
    if let Some((_, argument, rows)) = SEVERAL.iter().find(|(names, ..)| is(names)) {
        let said = fields.text(&[argument]).unwrap_or_default();
        let row = rows.iter().find(|(value, _)| *value == said);
        return Some(row.map_or(Opaque, |(_, meaning)| *meaning));
    }
    let row = NAMES.iter().find(|(_, names)| is(names));
    row.map(|(meaning, _)| *meaning)
}

impl Meaning {
    /// What a call does by it; `None` if its arguments do not say enough.
    pub(super) fn act(self, tool: &Tool<'_>, fields: &Fields<'_>) -> Option<Act> {
        match self {
            Read => Some(Act::Reads(Reading {
                file: file(tool, fields)?,
                part: part(fields)?,
            })),
            Write | Edit => {
                let adds = fields.is_true("append")
                    || fields
                        .text(&["mode"])
                        .is_some_and(|mode| mode != "overwrite");
                Some(Act::Writes(vec![Writing {
                    file: file(tool, fields)?,
                    is_full: self == Write && !adds,
                }]))
            }
            Patch => {
                let text = fields.text(&["input", "patch", "patchText", "patch_text"])?;
                patch::files(&text, tool.server).map(Act::Writes)
            }
            Shell => shell(tool, fields),
            Ask => ask(fields),
            Plan => Some(Act::Plans),
            Opaque => None,
        }
    }
}

/// The one file that a call names.
pub(super) fn file(tool: &Tool<'_>, fields: &Fields<'_>) -> Option<File> {
    File::new(tool.server, Base::Session, &fields.text(PATHS)?)
}

/// How much of its file a call asks for.
pub(super) fn part(fields: &Fields<'_>) -> Option<Part> {
    let known = [PATHS, FIRST, LAST, COUNT, PAIR, &["command"]].concat();
    let other = || fields.arguments().map(Part::Other);
    if !fields.are_only(&known) {
        return other();
    }
    let all = [FIRST, LAST, COUNT, PAIR].concat();
    if !all.iter().any(|name| fields.has(name)) {
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
    let list = COMMANDS.iter().find_map(|name| fields.list(name));
    let command = if let Some(list) = list {
        let words: Option<Vec<String>> = list.into_iter().map(fields::text).collect();
        let words = words?;
        if let [first, text] = words.as_slice()
            && first == "apply_patch"
        {
            return patch::files(text, tool.server).map(Act::Writes);
        }
        shell::listed(&words)
    } else {
        fields.text(COMMANDS)?
    };
    let most = fields.number(&["max_output_tokens"]);
    shell::command(&command, directory, most, tool.server).map(Act::Runs)
}

/// The path that a call of a tool not in the table seems to be about.
pub(super) fn likely_path(fields: &Fields<'_>) -> Option<String> {
    fields.text(PATHS).or_else(|| {
        let mut alike = fields.texts().filter(|text| paths::looks_like_path(text));
        alike.next().filter(|_| alike.next().is_none())
    })
}
