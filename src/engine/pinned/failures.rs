//! What failed in a span and was not made good since, in its own words.
//!
//! A refusal by a person is among them: the agent must not try again what it was
//! told not to do. Of the same call that failed several times, the newest counts.

use std::collections::HashSet;

use super::quote::{self, Clipped, DATA};
use super::turns::{self, Turns};
use crate::engine::acts::Act;
use crate::engine::candidates::{self, Deed, Fate, Outcome};
use crate::engine::facts;

/// Bytes that one may take, about.
const ROOM: usize = 720;

/// Characters of the line that says what went wrong, at most, and how far into a
/// line is looked.
const LINE: usize = 160;
const LOOK: usize = 400;
/// Words of a line that tells of an error.
const ERRORS: [&str; 16] = [
    "error",
    "failed",
    "failure",
    "panicked",
    "exception",
    "fatal",
    "denied",
    "not found",
    "no such",
    "cannot",
    "can't",
    "unable",
    "refused",
    "timed out",
    "invalid",
    "does not",
];

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    turn: usize,
    call: String,
    text: Clipped,
}

/// The newest of them, oldest first.
pub(super) fn failures<'d>(
    deeds: impl DoubleEndedIterator<Item = &'d Deed<'d>>,
    turns: &Turns,
    most: usize,
) -> Vec<Failure> {
    let mut seen = HashSet::new();
    let open = deeds.rev().filter(|deed| deed.fate == Fate::Open);
    let new = open.filter(|deed| seen.insert((deed.tool.as_str(), deed.input)));
    let failure = |deed: &Deed<'_>| {
        let text = super::result_text(deed.payload);
        let subject = deed.act.subject();
        Some(Failure {
            turn: turns.of(deed.used.0),
            call: candidates::line(&format!("{}: {subject}", deed.tool)),
            text: Clipped::new(DATA, text.trim_end(), ROOM)?,
        })
    };
    let mut failures: Vec<Failure> = new.take(most).filter_map(failure).collect();
    failures.reverse();
    failures
}

/// Something that was tried and did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) turn: usize,
    /// What was called, in a line.
    pub(super) call: String,
    /// The line that says what went wrong.
    pub(super) error: String,
}

/// What these calls tried and nothing has made good since, newest first, at most
/// so many. A command that only looks has found nothing rather than failed.
pub(super) fn attempts(deeds: &[Deed<'_>], turns: &Turns, most: usize) -> Vec<Attempt> {
    let mut seen = HashSet::new();
    let open = deeds.iter().rev().filter(|deed| deed.fate == Fate::Open);
    let tried = open.filter(|deed| match &deed.act {
        Act::Runs(command) => deed.outcome == Outcome::Refused || !command.only_looks(),
        _ => true,
    });
    let new = tried.filter(|deed| seen.insert((deed.tool.as_str(), deed.input)));
    let attempt = |deed: &Deed<'_>| Attempt {
        turn: turns.of(deed.used.0),
        call: candidates::line(&format!("{}: {}", deed.tool, deed.act.subject())),
        error: error_line(&super::result_text(deed.payload)),
    };
    new.take(most).map(attempt).collect()
}

/// The first line that tells of an error, else the first that tells anything.
fn error_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_status = |line: &str| line.starts_with("Exit code");
    let tells = |line: &&str| {
        let start = line.floor_char_boundary(LOOK.min(line.len()));
        let start = line.get(..start).unwrap_or_default().to_ascii_lowercase();
        !is_status(line)
            && !start.contains("0 failed")
            && !start.contains("0 errors")
            && ERRORS.iter().any(|word| start.contains(word))
    };
    let line = lines()
        .find(tells)
        .or_else(|| lines().find(|line| !is_status(line)))
        .or_else(|| lines().next());
    facts::shortened(line.unwrap_or("failed without a word"), LINE)
}

/// Them all, quoted.
pub(super) fn text(failures: &[Failure]) -> String {
    let mut text = String::new();
    for failure in failures {
        text.push_str(&turns::heading(failure.turn));
        quote::quote(&mut text, DATA, &failure.call);
        failure.text.quote(&mut text, DATA);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_tells_of_an_error_stands_for_all() {
        let rows = [
            (
                "Exit code 101\n  Compiling x\nerror[E0308]: mismatched types\nerror: aborting",
                "error[E0308]: mismatched types",
            ),
            ("Exit code 2\nno rule", "no rule"),
            ("Exit code 1", "Exit code 1"),
            (
                "test result: ok. 3 passed; 0 failed\ntest b ... FAILED",
                "test b ... FAILED",
            ),
            (" \n", "failed without a word"),
        ];
        for (text, expected) in rows {
            assert_eq!(error_line(text), expected, "{text}");
        }
    }
}
