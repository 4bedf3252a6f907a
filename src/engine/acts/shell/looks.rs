//! Programs that only look, and lines whose output is a record.
//!
//! Both are tables. The first says which commands fetch something and leave
//! everything as it was; to run such a command again is to fetch the same again.
//! The second says which output stays worth something when the line is run
//! again: what was committed or sent, and figures that are there to be compared.

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
    let apart = |letter: char| !letter.is_alphanumeric() && letter != '-';
    let words: Vec<&str> = line.split(apart).filter(|word| !word.is_empty()).collect();
    let found = |record: &[&str]| words.windows(record.len()).any(|window| window == record);
    RECORDS.iter().any(|record| found(record))
}
