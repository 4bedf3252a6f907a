//! The table of known tools: what a name, and perhaps an argument, means.
//!
//! Names are compared without case, underscores and hyphens, and without the
//! prefix of an MCP server, so that `Read`, `read` and `mcp__disk__read` share a
//! row. Each row is a promise that the tool does this and nothing else; of a tool
//! that gives something new each time it is asked alike (the next output of a
//! process, a person's answer) the row says that it is opaque.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fields::Fields;

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Shows a file.
    Read,
    /// Writes all of a file.
    Write,
    /// Changes a file in places.
    Edit,
    /// A patch that names its files.
    Patch,
    /// A command line.
    Shell,
    /// A question that can be asked again.
    Ask,
    /// A list that replaces the one before.
    Plan,
    /// Nothing that can be told.
    Opaque,
}

use Meaning::{Ask, Edit, Opaque, Patch, Plan, Read, Shell, Write};

/// Names, and what they mean.
const NAMES: [(Meaning, &str); 18] = [
    // Coding agents: one file is shown.
    (
        Read,
        "read readfile readtextfile readmediafile notebookread",
    ),
    (Read, "view viewfile viewimage openfile catfile fsread"),
    (
        Write,
        "write writefile writetofile create createfile savefile fswrite",
    ),
    (
        Edit,
        "edit editfile multiedit notebookedit editnotebook strreplace replace",
    ),
    (
        Edit,
        "replaceinfile searchreplace insert insertcontent applydiff deletefile undoedit",
    ),
    (Patch, "applypatch"),
    (
        Shell,
        "bash shell localshell shellcommand powershell terminal execcommand executebash",
    ),
    (
        Shell,
        "executecommand runshellcommand runterminalcmd runterminalcommand runcommand runbash",
    ),
    // Searches and listings.
    (
        Ask,
        "grep grepfiles grepsearch rg glob globsearch globfilesearch find findfile findfiles",
    ),
    (
        Ask,
        "searchfiles searchfile searchfilecontent searchdir filesearch codebasesearch codesearch",
    ),
    (
        Ask,
        "ls list listdir listfiles listdirectory listdirectorywithsizes directorytree getfileinfo",
    ),
    (
        Ask,
        "listalloweddirectories readmultiplefiles readmanyfiles listcodedefinitionnames",
    ),
    // The web, and what MCP servers hold.
    (
        Ask,
        "webfetch websearch googlewebsearch fetch fetchurl todoread tasklist",
    ),
    (
        Ask,
        "listmcpresourcestool readmcpresourcetool listmcpresources readmcpresource",
    ),
    (
        Plan,
        "todowrite updateplan writetodos managetodolist updatetodolist",
    ),
    // A part of a plan each, other agents, people.
    (
        Opaque,
        "agent task taskcreate taskget taskupdate taskstop think skill toolsearch",
    ),
    (Opaque, "askuser askuserquestion enterplanmode exitplanmode"),
    // The next output of something that runs.
    (
        Opaque,
        "bashoutput killbash killshell monitor readbash readpowershell stopbash taskoutput writebash writestdin executeipythoncell",
    ),
];

/// Tools that are several in one.
struct Several {
    names: &'static [&'static str],
    /// The argument that says which.
    argument: &'static str,
    /// What it says, and what that means. What else it may say is opaque.
    rows: &'static [(&'static str, Meaning)],
}

const SEVERAL: [Several; 2] = [
    Several {
        names: &[
            "strreplaceeditor",
            "strreplacebasededittool",
            "texteditor",
            "fileeditor",
            "planningfileeditor",
            "editor",
        ],
        argument: "command",
        rows: &[
            ("view", Read),
            ("create", Write),
            ("str_replace", Edit),
            ("insert", Edit),
            ("undo_edit", Edit),
        ],
    },
    Several {
        names: &["tasktracker"],
        argument: "command",
        rows: &[("plan", Plan), ("view", Ask)],
    },
];

static BY_NAME: LazyLock<HashMap<&str, Meaning>> = LazyLock::new(|| {
    let rows = NAMES.iter();
    rows.flat_map(|(meaning, names)| names.split(' ').map(|name| (name, *meaning)))
        .collect()
});

/// A tool's name, taken apart.
pub(super) struct Tool<'a> {
    /// As it came.
    pub(super) name: &'a str,
    /// The MCP server it belongs to; empty if to none.
    pub(super) server: &'a str,
    /// The name without the server.
    pub(super) own: &'a str,
    /// The name as the table spells it.
    pub(super) folded: String,
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
    let name = tool.folded.as_str();
    if let Some(meaning) = BY_NAME.get(name) {
        return Some(*meaning);
    }
    let several = SEVERAL.iter().find(|row| row.names.contains(&name))?;
    let said = fields.text(&[several.argument]).unwrap_or_default();
    let row = several.rows.iter().find(|(value, _)| *value == said);
    Some(row.map_or(Opaque, |(_, meaning)| *meaning))
}
