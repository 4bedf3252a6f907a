//! Programs that only look, and lines whose output is a record.
//!
//! All are tables. The first say which commands fetch something and leave
//! everything as it was; to run such a command again is to fetch the same again.
//! Another says which output stays worth something when the line is run again:
//! what was committed or sent, figures that are there to be compared, and a
//! window that has moved on, as over a log or a terminal. The last says after
//! which commands the same line is about other files.

/// Programs that change nothing, whatever their arguments.
const ALWAYS: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cd",
    "cmp",
    "column",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "false",
    "fgrep",
    "file",
    "grep",
    "head",
    "hexdump",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "od",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "sha256sum",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wc",
    "which",
    "whoami",
    "xxd",
];

/// Programs that change nothing without one of these arguments, or arguments
/// that begin so.
const UNLESS: &[(&str, &[&str])] = &[
    ("find", &["-delete", "-exec", "-ok", "-fprint", "-fls"]),
    ("fd", &["-x", "-X", "--exec"]),
    ("sed", &["-i", "--in-place"]),
    ("sort", &["-o", "--output"]),
];

/// Programs that change nothing with one of these as their first argument.
const ONLY_WITH: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "blame",
            "cat-file",
            "describe",
            "diff",
            "grep",
            "log",
            "ls-files",
            "ls-tree",
            "merge-base",
            "rev-list",
            "rev-parse",
            "shortlog",
            "show",
            "status",
        ],
    ),
    ("cargo", &["metadata", "tree"]),
    ("go", &["doc", "env", "list", "version"]),
    ("npm", &["ls", "view"]),
    ("command", &["-v"]),
];

/// Words of lines after which other files stand in the same places.
const SWITCHES: &[&[&str]] = &[
    &["git", "bisect"],
    &["git", "checkout"],
    &["git", "stash"],
    &["git", "switch"],
];

/// Words of lines that show what differs, which may be gone the next time.
const DIFFERENCES: &[&[&str]] = &[&["diff"], &["show"], &["log"]];

/// Words of lines whose output is a record, each as one word or two in a row.
const RECORDS: &[&[&str]] = &[
    &["bench"],
    &["benchmark"],
    &["benches"],
    &["hyperfine"],
    &["perf"],
    &["time"],
    &["profile"],
    &["git", "commit"],
    &["git", "push"],
    &["git", "merge"],
    &["git", "rebase"],
    &["git", "stash"],
    &["git", "cherry-pick"],
    &["git", "reset"],
    &["pr", "create"],
    &["issue", "create"],
    &["release", "create"],
    &["publish"],
    &["deploy"],
    &["POST"],
    &["PUT"],
    &["DELETE"],
    &["PATCH"],
    &["--data"],
    &["-X"],
    &["mktemp"],
    &["uuidgen"],
    &["RANDOM"],
    &["rand"],
    &["capture"],
    &["capture-pane"],
    &["dmesg"],
    &["history"],
    &["journalctl"],
    &["logs"],
];

/// Whether every one of these commands only looks.
pub(super) fn only_looks(commands: &[Vec<String>]) -> bool {
    !commands.is_empty() && commands.iter().all(|command| looks(command))
}

fn looks(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    if ALWAYS.contains(&program.as_str()) {
        return true;
    }
    if let Some((_, unless)) = UNLESS.iter().find(|(name, _)| name == program) {
        let changes = |argument: &String| unless.iter().any(|start| argument.starts_with(start));
        return !arguments.iter().any(changes);
    }
    let row = ONLY_WITH.iter().find(|(name, _)| name == program);
    let first = arguments.first().map_or("", String::as_str);
    row.is_some_and(|(_, with)| with.contains(&first))
}

/// Whether the output of a line is worth something after another run.
pub(super) fn is_record(line: &str) -> bool {
    has(line, RECORDS) || begins_with_tail(line)
}

/// Whether a line puts other files in the place of those that are there.
pub(super) fn switches(line: &str) -> bool {
    line.split([' ', '\n', ';', '&', '|', '('])
        .any(|word| word == "git")
        && has(line, SWITCHES)
}

/// Whether a line shows what differs.
pub(super) fn shows_differences(line: &str) -> bool {
    has(line, DIFFERENCES)
}

fn has(line: &str, rows: &[&[&str]]) -> bool {
    let apart = |letter: char| !letter.is_alphanumeric() && letter != '-';
    let words: Vec<&str> = line.split(apart).filter(|word| !word.is_empty()).collect();
    let found = |row: &[&str]| words.windows(row.len()).any(|window| window == row);
    rows.iter().any(|row| found(row))
}

/// Whether `tail` is a command of its own somewhere in a line, and not behind a
/// pipe: then it looks at the end of something that grows.
fn begins_with_tail(line: &str) -> bool {
    line.match_indices("tail ").any(|(at, _)| {
        let before = line
            .get(..at)
            .unwrap_or_default()
            .trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with([';', '&', '\n', '(', '{'])
    })
}
