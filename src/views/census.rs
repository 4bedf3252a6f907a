//! Which sessions are active, and how many of their breakers are in which state.
//!
//! A breaker lives in the session's mark and outlives the process, so the changes
//! that one process sees do not add up to a number: a breaker may have been
//! opened by another, and a session that forks has it twice. So it is looked at
//! with every request, and kept by session. A session that sends nothing for a
//! while has ended as far as anybody can tell, and its breaker with it: an open
//! one would else be counted, and somebody be woken by it, for ever.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::breaker::Phase;
use crate::engine::ids::LineageId;
use crate::store::Moment;

/// The most sessions that are counted.
const SESSIONS: usize = 65_536;

/// How long a session is active after its last request, in milliseconds. A tool
/// that takes longer than this is rare.
const ACTIVE: i64 = 10 * 60 * 1000;

/// The sessions of late.
#[derive(Default)]
pub struct Census(Mutex<HashMap<LineageId, (Phase, Moment)>>);

/// How many there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stock {
    /// Active sessions.
    pub active: usize,
    /// Those of them whose breaker is open.
    pub open: usize,
    /// Those of them whose breaker is half-open.
    pub half_open: usize,
}

impl Census {
    /// Notes that a session has sent something, and how its breaker stands.
    pub fn note(&self, lineage: LineageId, phase: Phase, now: Moment) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= SESSIONS {
            held.retain(|_, (_, seen)| is_active(*seen, now));
        }
        if held.len() < SESSIONS || held.contains_key(&lineage) {
            held.insert(lineage, (phase, now));
        }
    }

    /// Counts the active ones and forgets the others.
    pub fn stock(&self, now: Moment) -> Stock {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, (_, seen)| is_active(*seen, now));
        let count = |wanted| held.values().filter(|(phase, _)| *phase == wanted).count();
        Stock {
            active: held.len(),
            open: count(Phase::Open),
            half_open: count(Phase::HalfOpen),
        }
    }
}

fn is_active(seen: Moment, now: Moment) -> bool {
    now.0.saturating_sub(seen.0) < ACTIVE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u8) -> LineageId {
        LineageId::beginning(&[number; 32])
    }

    #[test]
    fn each_session_is_counted_once_wherever_its_breaker_was_opened() {
        let census = Census::default();
        let rows = [
            (1, Phase::Closed, (1, 0, 0)),
            (1, Phase::Open, (1, 1, 0)),
            (1, Phase::Open, (1, 1, 0)),
            (2, Phase::HalfOpen, (2, 1, 1)),
            (1, Phase::HalfOpen, (2, 0, 2)),
            (1, Phase::Closed, (2, 0, 1)),
            (2, Phase::Closed, (2, 0, 0)),
        ];
        for (number, phase, (active, open, half_open)) in rows {
            census.note(session(number), phase, Moment(0));
            let expected = Stock {
                active,
                open,
                half_open,
            };
            assert_eq!(census.stock(Moment(0)), expected);
        }
    }

    #[test]
    fn a_session_that_sends_nothing_ends_and_its_breaker_with_it() {
        let census = Census::default();
        census.note(session(1), Phase::Open, Moment(0));
        census.note(session(2), Phase::Closed, Moment(ACTIVE / 2));
        assert_eq!(census.stock(Moment(ACTIVE - 1)).active, 2);
        let later = census.stock(Moment(ACTIVE));
        assert_eq!((later.active, later.open), (1, 0));
        census.note(session(1), Phase::Open, Moment(ACTIVE));
        assert_eq!(census.stock(Moment(ACTIVE)).open, 1, "it is back");
    }
}
