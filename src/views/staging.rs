//! Summaries that are under way or lie ready, by session.
//!
//! A summary is prepared while the conversation goes on, and taken when the
//! policy says so. Until then nothing of it shows. It belongs to the history it
//! was made from: a session that has gone another way leaves it behind. All of
//! this is memory: what is finished is in the store, and is found there again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::compactor::errand::Finished;
use crate::compactor::{Boarding, Landed};
use crate::engine::breaker::Permit;
use crate::engine::ids::LineageId;
use crate::engine::recovery::Failure;
use crate::engine::swift::Swift;

/// The most sessions with a summary under way.
const SESSIONS: usize = 4_096;

/// A summary of a session's.
#[derive(Debug, Clone)]
pub struct Staged {
    /// The messages it is to stand for.
    pub span: Range<usize>,
    /// The history up to the end of these.
    pub end: Swift,
    /// Some of them were left out without an account.
    pub heals: bool,
    /// What was wished of it.
    pub instructions: Option<String>,
    /// What it was begun with; none once its outcome is noted.
    pub permit: Option<Permit>,
    /// The flight.
    pub boarding: Boarding,
}

/// How a session's summary stands.
#[derive(Debug, Clone)]
pub enum Stage {
    /// There is none.
    None,
    /// It is under way.
    Flying(Boarding),
    /// It lies ready.
    Ready(Arc<Finished>, bool),
    /// It failed.
    Failed(Failure),
    /// It is of another history.
    Astray,
}

/// What is staged, by session.
#[derive(Default)]
pub struct Staging(Mutex<HashMap<LineageId, Staged>>);

impl Staging {
    fn held(&self) -> MutexGuard<'_, HashMap<LineageId, Staged>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session has one.
    pub fn has(&self, lineage: LineageId) -> bool {
        self.held().contains_key(&lineage)
    }

    /// Leaves a session's summary behind if something else is wished of one now.
    pub fn unless(&self, lineage: LineageId, wished: &str) {
        let mut held = self.held();
        let other = |staged: &Staged| staged.instructions.as_deref() != Some(wished);
        if held.get(&lineage).is_some_and(other) {
            held.remove(&lineage);
        }
    }

    /// Takes a summary in. One that a request waits for takes the place of what
    /// is there; one that nobody waits for does not.
    pub fn put(&self, lineage: LineageId, staged: Staged, must: bool) {
        let mut held = self.held();
        if !must && held.contains_key(&lineage) {
            return;
        }
        if held.len() >= SESSIONS {
            held.retain(|_, staged| staged.boarding.outcome().is_none());
        }
        if held.len() < SESSIONS {
            held.insert(lineage, staged);
        }
    }

    /// How a session's summary stands, for a history. The permit it was begun
    /// with is given back with its outcome, once. What failed or went astray is
    /// forgotten.
    pub fn look(&self, lineage: LineageId, swifts: &[Swift]) -> (Stage, Option<Permit>) {
        let mut held = self.held();
        let Some(staged) = held.get_mut(&lineage) else {
            return (Stage::None, None);
        };
        let end = staged.span.end.checked_sub(1);
        let fits = end.and_then(|end| swifts.get(end)) == Some(&staged.end);
        let outcome: Option<Landed> = staged.boarding.outcome();
        let permit = if outcome.is_some() || !fits {
            staged.permit.take()
        } else {
            None
        };
        let stage = match outcome {
            Some(Err(failure)) => Stage::Failed(failure),
            _ if !fits => Stage::Astray,
            Some(Ok(finished)) => Stage::Ready(finished, staged.heals),
            None => Stage::Flying(staged.boarding.clone()),
        };
        if matches!(stage, Stage::Failed(_) | Stage::Astray) {
            held.remove(&lineage);
        }
        (stage, permit)
    }

    /// A session's summary was taken, or is not wanted any more.
    pub fn forget(&self, lineage: LineageId) {
        self.held().remove(&lineage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::breaker::{Breaker, Settings};
    use crate::engine::swift::{Key, swift};
    use crate::wire::body::Body;

    fn swifts(said: &str) -> Vec<Swift> {
        let text = format!(
            r#"{{"messages":[{{"role":"user","content":"{said}"}},{{"role":"assistant","content":"b"}}]}}"#
        );
        let body = Body::split(text.as_bytes()).unwrap();
        swift(&Key::new([1; 32]), "t", text.as_bytes(), &body)
    }

    fn staged(outcome: Landed) -> Staged {
        let settings = Settings {
            max_failures: 1,
            cooldown: 1,
            trial: 1,
        };
        Staged {
            span: 0..1,
            end: swifts("a")[0],
            heals: false,
            instructions: None,
            permit: Breaker::default().permit(0, &settings).permit,
            boarding: Boarding::landed(outcome),
        }
    }

    fn finished() -> Finished {
        let block = r#"{"type":"text","text":"x"}"#.to_owned();
        Finished::new(&(0..1), block, 0)
    }

    #[test]
    fn what_lies_ready_is_for_its_own_history_and_its_outcome_is_noted_once() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        let finished = Arc::new(finished());
        staging.put(id, staged(Ok(finished.clone())), false);
        staging.put(id, staged(Err(Failure::Timeout)), false);
        let (stage, permit) = staging.look(id, &swifts("a"));
        assert!(matches!(stage, Stage::Ready(_, false)) && permit.is_some());
        let (stage, permit) = staging.look(id, &swifts("a"));
        assert!(matches!(stage, Stage::Ready(_, false)) && permit.is_none());
        let (stage, _) = staging.look(id, &swifts("other"));
        assert!(matches!(stage, Stage::Astray) && !staging.has(id));
    }

    #[test]
    fn a_failure_is_told_once() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        staging.put(id, staged(Ok(Arc::new(finished()))), false);
        staging.put(id, staged(Err(Failure::Timeout)), true);
        let (stage, permit) = staging.look(id, &swifts("a"));
        assert!(matches!(stage, Stage::Failed(Failure::Timeout)) && permit.is_some());
        assert!(matches!(staging.look(id, &swifts("a")).0, Stage::None));
    }
}
