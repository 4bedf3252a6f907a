//! How a call came out, as far as its result tells.
//!
//! Only some clients mark a failure; others write the exit code into the text,
//! at its beginning or end. A result can also say that there is none: the process
//! goes on, the file is as it was when it was last read, the client has cleared
//! it. Whatever is in doubt is not a success, for a success may supersede.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Outcome {
    /// It worked, and what it gave is here.
    Good,
    /// It failed.
    Failed,
    /// A person refused, and may have said why.
    Refused,
    /// It points back at an earlier result, which is therefore still needed.
    Unchanged,
    /// What it gave is not here, or not yet all of it.
    Absent,
}

/// How far into a result, from either end, is looked for what the client says.
const EDGE: usize = 300;

/// What clients write between the word and an exit code. All but zero is a
/// failure.
const BEFORE_CODE: [&[u8]; 3] = [b" ", b": ", b"\\\":"];

/// What stands before the word, where it is about an exit.
const EXITS: [&[u8]; 4] = [b"Exit ", b"exit ", b"exited with ", b"exit_"];

/// How results begin that are failures without being marked.
const FAILURES: [&[u8]; 6] = [
    b"Error",
    b"ERROR",
    b"error:",
    b"<error>",
    b"<tool_use_error>",
    b"[Request interrupted",
];

/// What stands before the word, where something still goes on.
const WHAT_RUNS: [&[u8]; 3] = [b"Process ", b"still ", b"is "];

/// What a short result says that stands for what is not here.
const ABSENT: [&str; 4] = [
    "content cleared",
    "was cleared",
    "result cleared",
    "output omitted",
];

/// Longer results are what they are.
const SHORT: usize = 400;

/// What is looked for in every result, so it is made ready once.
static CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("code"));
static RUNS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("running"));
static LATE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("timed out"));

static SAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("unchanged since"));
static GONE: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| ABSENT.map(Finder::new));

/// How a call came out whose result holds this JSON.
pub(super) fn outcome(is_error: bool, payload: &[u8]) -> Outcome {
    let first = payload.get(..EDGE).unwrap_or(payload);
    let last = payload.len().checked_sub(EDGE);
    let last = last.and_then(|from| payload.get(from..)).unwrap_or(&[]);
    let edges = [first, last];
    if is_error {
        let refuses = |edge: &&[u8]| {
            memmem::find(edge, b"The user ").is_some() || memmem::find(edge, b"the user ").is_some()
        };
        return if edges.iter().any(refuses) {
            Outcome::Refused
        } else {
            Outcome::Failed
        };
    }
    let text = beginning(payload);
    if FAILURES.iter().any(|start| text.starts_with(start)) || edges.into_iter().any(fails) {
        return Outcome::Failed;
    }
    if edges.into_iter().any(goes_on) {
        return Outcome::Absent;
    }
    if payload.len() <= SHORT {
        if SAME.find(payload).is_some() {
            return Outcome::Unchanged;
        }
        if GONE.iter().any(|text| text.find(payload).is_some()) {
            return Outcome::Absent;
        }
    }
    Outcome::Good
}

/// Whether these bytes give an exit code, and it is not zero.
fn fails(edge: &[u8]) -> bool {
    CODE.find_iter(edge).any(|at| {
        let before = edge.get(..at).unwrap_or_default();
        let behind = edge.get(at + 4..).unwrap_or_default();
        let code = BEFORE_CODE
            .iter()
            .find_map(|mark| behind.strip_prefix(*mark));
        let digits = code.unwrap_or_default().trim_ascii_start();
        let digits = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'-');
        EXITS.iter().any(|exit| before.ends_with(exit))
            && digits.into_iter().any(|digit| *digit != b'0')
    })
}

/// Whether these bytes say that something still goes on.
fn goes_on(edge: &[u8]) -> bool {
    let runs = |at: usize| {
        let before = edge.get(..at).unwrap_or_default();
        let behind = edge.get(at..).unwrap_or_default();
        WHAT_RUNS.iter().any(|what| before.ends_with(what))
            || behind.starts_with(b"running in background")
            || behind.starts_with(b"running in the background")
    };
    RUNS.find_iter(edge).any(runs) || LATE.find(edge).is_some()
}

/// Where the text of a result begins, be it in a block.
fn beginning(payload: &[u8]) -> &[u8] {
    let text = if payload.first() == Some(&b'[') {
        let mark = b"\"text\":";
        let at = memmem::find(payload.get(..EDGE).unwrap_or(payload), mark);
        at.map_or(payload, |at| {
            payload.get(at + mark.len()..).unwrap_or_default()
        })
    } else {
        payload
    };
    let text = text.trim_ascii_start();
    text.strip_prefix(b"\"").unwrap_or(text)
}
