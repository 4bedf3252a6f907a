//! How many sessions' breakers are in which state.
//!
//! A breaker lives in the session's mark and outlives the process, so the changes
//! that one process sees do not add up to a number: a breaker may have been
//! opened by another, and a session that forks has it twice. So it is looked at
//! with every request, and those that are not closed are kept by session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::breaker::Phase;
use crate::engine::ids::LineageId;

/// The most sessions that are counted.
const SESSIONS: usize = 65_536;

/// The sessions whose breaker is not closed.
#[derive(Default)]
pub struct Census(Mutex<HashMap<LineageId, Phase>>);

impl Census {
    /// Notes how a session's breaker stands; how many are open and half-open, if
    /// that has changed.
    pub fn note(&self, lineage: LineageId, phase: Phase) -> Option<(usize, usize)> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.get(&lineage).copied().unwrap_or(Phase::Closed);
        if before == phase || (before == Phase::Closed && held.len() >= SESSIONS) {
            return None;
        }
        match phase {
            Phase::Closed => held.remove(&lineage),
            _ => held.insert(lineage, phase),
        };
        let open = held.values().filter(|phase| **phase == Phase::Open).count();
        Some((open, held.len() - open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_counted_once_wherever_its_breaker_was_opened() {
        let census = Census::default();
        let (one, other) = (
            LineageId::beginning(&[1; 32]),
            LineageId::beginning(&[2; 32]),
        );
        let rows = [
            (one, Phase::Closed, None),
            (one, Phase::Open, Some((1, 0))),
            (one, Phase::Open, None),
            (other, Phase::HalfOpen, Some((1, 1))),
            (one, Phase::HalfOpen, Some((0, 2))),
            (one, Phase::Closed, Some((0, 1))),
            (other, Phase::Closed, Some((0, 0))),
        ];
        for (lineage, phase, expected) in rows {
            assert_eq!(census.note(lineage, phase), expected);
        }
    }
}
