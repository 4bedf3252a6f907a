//! How a call came out, as far as its result tells.
//!
//! Only some clients mark a failure; others write the exit code into the text,
//! at its beginning or end. A result can also say that there is none: the process
//! goes on, the file is as it was when it was last read, the client has cleared
//! it. Whatever is in doubt is not a success, for a success may supersede.

use memchr::memmem;

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
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

/// What clients write before an exit code. All but zero is a failure.
const CODES: [&[u8]; 7] = [
    b"Process exited with code ",
    b"Exit code: ",
    b"Exit code ",
    b"exit_code\\\":",
    b"completed with exit code ",
    b"exited with exit code ",
    b"Command exited with code ",
];

/// How results begin that are failures without being marked.
const FAILURES: [&[u8]; 6] = [
    b"Error",
    b"ERROR",
    b"error:",
    b"<error>",
    b"<tool_use_error>",
    b"[Request interrupted",
];

/// What a result says, at its beginning or end, that goes on.
const GOING_ON: [&[u8]; 4] = [
    b"Process running with session ID",
    b"running in background",
    b"still running",
    b"timed out",
];

/// What a short result says that stands for what is not here.
const ABSENT: [&[u8]; 4] = [
    b"content cleared",
    b"was cleared",
    b"tool result cleared",
    b"output omitted",
];

/// Longer results are what they are.
const SHORT: usize = 400;

/// How a call came out whose result holds this JSON.
pub(super) fn outcome(is_error: bool, payload: &[u8]) -> Outcome {
    let first = payload.get(..EDGE).unwrap_or(payload);
    let last = payload.len().checked_sub(EDGE);
    let last = last.and_then(|from| payload.get(from..)).unwrap_or(&[]);
    let says = |text: &[u8]| {
        [first, last]
            .iter()
            .any(|edge| memmem::find(edge, text).is_some())
    };
    if is_error {
        return if says(b"The user ") || says(b"the user ") {
            Outcome::Refused
        } else {
            Outcome::Failed
        };
    }
    let text = beginning(payload);
    let failed = FAILURES.iter().any(|start| text.starts_with(start));
    if failed
        || CODES
            .iter()
            .any(|code| [first, last].iter().any(|edge| fails(edge, code)))
    {
        return Outcome::Failed;
    }
    if GOING_ON.iter().any(|text| says(text)) {
        return Outcome::Absent;
    }
    if payload.len() <= SHORT {
        if says(b"unchanged since") {
            return Outcome::Unchanged;
        }
        if ABSENT.iter().any(|text| says(text)) {
            return Outcome::Absent;
        }
    }
    Outcome::Good
}

/// Whether these bytes give an exit code, and it is not zero.
fn fails(edge: &[u8], code: &[u8]) -> bool {
    let Some(at) = memmem::find(edge, code) else {
        return false;
    };
    let behind = edge.get(at + code.len()..).unwrap_or_default();
    let digits: Vec<&u8> = behind
        .iter()
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'-')
        .collect();
    !digits.is_empty() && digits.iter().any(|digit| **digit != b'0')
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
