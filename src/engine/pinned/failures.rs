//! What failed in a span and was not made good since, in its own words.
//!
//! A refusal by a person is among them: the agent must not try again what it was
//! told not to do. Of the same call that failed several times, the newest counts.

use std::collections::HashSet;

use super::quote::{self, Clipped, DATA};
use super::turns::{self, Turns};
use crate::engine::candidates::{self, Deed, Fate};

/// Bytes that one may take, about.
const ROOM: usize = 720;

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
