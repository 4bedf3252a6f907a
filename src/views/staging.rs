//! Summaries that are under way or lie ready, by session.
//!
//! A summary is prepared while the conversation goes on, and taken when the
//! policy says so. Until then nothing of it shows. It belongs to the history it
//! was made from: a session that has gone another way leaves it behind. All of
//! this is memory: what is finished is in the store, and is found there again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bounded::Bounded;
use crate::compactor::errand::Finished;
use crate::compactor::{Boarding, Landed};
use crate::engine::breaker::{Event, Permit};
use crate::engine::ids::{LineageId, OverlayId};
use crate::engine::overlay::{Origin, Overlay};
use crate::engine::policy::Pico;
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
    /// How many messages were hidden when it was begun.
    pub hidden: u32,
    /// Who is asked.
    pub asked: Asked,
    /// What was wished of it.
    pub instructions: Option<String>,
    /// What it was begun with; none once its outcome is noted.
    pub permit: Option<Permit>,
    /// The flight.
    pub boarding: Boarding,
}

/// Who is asked for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A model.
    Model,
    /// The API itself, under the overlay that the conversation had then: its
    /// summary can be used under no other.
    Api(Option<OverlayId>),
}

/// How a session's summary stands.
#[derive(Debug, Clone)]
pub enum Stage {
    /// There is none.
    None,
    /// It is under way.
    Flying(Boarding),
    /// It lies ready.
    Ready(Arc<Finished>),
    /// It failed.
    Failed(Failure),
    /// It is of another history.
    Astray,
}

impl Stage {
    /// What has become of the permit that it was begun with.
    pub fn event(&self, permit: Permit) -> Event {
        match self {
            Self::Ready(_) => Event::Succeeded,
            Self::Failed(failure) if failure.counts() => Event::Failed(permit),
            _ => Event::Withdrawn(permit),
        }
    }
}

/// What is staged, by session.
pub struct Staging {
    staged: Mutex<HashMap<LineageId, Staged>>,
    /// Sessions for which one is just being begun: one at a time.
    beginning: Mutex<HashSet<LineageId>>,
    /// Trials that were not made after all.
    returned: Mutex<HashMap<LineageId, Permit>>,
    /// The size at which a session had nothing to be summed up.
    idle: Bounded<LineageId, u64>,
    /// Sessions that others have answered meanwhile, and perhaps prepared for.
    elsewhere: Bounded<LineageId, ()>,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            staged: Mutex::default(),
            beginning: Mutex::default(),
            returned: Mutex::default(),
            idle: Bounded::new(SESSIONS),
            elsewhere: Bounded::new(SESSIONS),
        }
    }
}

/// A session's summary is being begun, until this is dropped.
pub struct Beginning<'a> {
    staging: &'a Staging,
    lineage: LineageId,
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.staging.beginning().remove(&self.lineage);
    }
}

impl Staging {
    fn held(&self) -> MutexGuard<'_, HashMap<LineageId, Staged>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beginning(&self) -> MutexGuard<'_, HashSet<LineageId>> {
        self.beginning
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one is just being begun for a session.
    pub fn is_beginning(&self, lineage: LineageId) -> bool {
        self.beginning().contains(&lineage)
    }

    /// Begins one for a session, unless it has one or one is being begun.
    pub fn begin(&self, lineage: LineageId) -> Option<Beginning<'_>> {
        if self.has(lineage) || !self.beginning().insert(lineage) {
            return None;
        }
        let beginning = Beginning {
            staging: self,
            lineage,
        };
        // It may have come in between.
        (!self.has(lineage)).then_some(beginning)
    }

    fn returned(&self) -> MutexGuard<'_, HashMap<LineageId, Permit>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Others have answered a session since this process last did.
    pub fn comes_from_elsewhere(&self, lineage: LineageId) {
        self.elsewhere.insert(lineage, ());
    }

    /// Whether others have, since this was last asked.
    pub fn came_from_elsewhere(&self, lineage: LineageId) -> bool {
        self.elsewhere.remove(&lineage)
    }

    /// A session of this size has nothing to be summed up, or nothing came of it.
    pub fn found_nothing(&self, lineage: LineageId, size: u64) {
        self.idle.insert(lineage, size);
    }

    /// Whether a session has changed enough since then to be looked at again.
    pub fn is_worth_a_look(&self, lineage: LineageId, size: u64, at_least: u64) -> bool {
        let idle = self.idle.get(&lineage);
        idle.is_none_or(|before| size < before || size - before >= at_least)
    }

    /// Nothing was asked for after all: with the session's next request the
    /// permit is withdrawn. Only a trial is missed by anybody.
    pub fn give_back(&self, lineage: LineageId, permit: Option<Permit>) {
        let mut returned = self.returned();
        if let Some(trial) = permit.filter(Permit::is_trial)
            && returned.len() < SESSIONS
        {
            returned.insert(lineage, trial);
        }
    }

    /// Whether a session has one.
    pub fn has(&self, lineage: LineageId) -> bool {
        self.held().contains_key(&lineage)
    }

    /// Whether the API is at work on one, so that nothing may change before the
    /// tail.
    pub fn stands_still(&self, lineage: LineageId) -> bool {
        let held = self.held();
        let staged = held.get(&lineage);
        staged.is_some_and(|staged| {
            staged.asked != Asked::Model && staged.boarding.outcome().is_none()
        })
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

    /// How a session's summary stands, for a history and the overlay that holds.
    /// The permit it was begun with is given back with its outcome, once. What
    /// failed or went astray is forgotten: also what another replica has been
    /// quicker to sum up.
    pub fn look(
        &self,
        lineage: LineageId,
        swifts: &[Swift],
        overlay: Option<(OverlayId, &Overlay)>,
    ) -> (Stage, Option<Permit>) {
        let mut held = self.held();
        let Some(staged) = held.get_mut(&lineage) else {
            return (Stage::None, self.returned().remove(&lineage));
        };
        let end = staged.span.end.checked_sub(1);
        let outcome: Option<Landed> = staged.boarding.outcome();
        let asked = match &outcome {
            Some(Ok(finished)) if finished.native.is_none() => Asked::Model,
            _ => staged.asked,
        };
        let (overlay, shown) = overlay.unzip();
        let segments = shown.map_or(&[][..], |shown| &shown.segments).iter();
        let mut summaries = segments.filter(|segment| segment.origin == Origin::Summary);
        let fits = end.and_then(|end| swifts.get(end)) == Some(&staged.end)
            && (asked == Asked::Model || asked == Asked::Api(overlay))
            && !summaries.any(|segment| segment.to > staged.hidden);
        let permit = if outcome.is_some() || !fits {
            staged.permit.take()
        } else {
            None
        };
        let stage = match outcome {
            Some(Err(failure)) => Stage::Failed(failure),
            _ if !fits => Stage::Astray,
            Some(Ok(finished)) => Stage::Ready(finished),
            None => Stage::Flying(staged.boarding.clone()),
        };
        if matches!(stage, Stage::Failed(_) | Stage::Astray) {
            held.remove(&lineage);
        }
        (stage, permit)
    }

    /// What a session's summary has cost since this was last asked.
    pub fn take_spent(&self, lineage: LineageId) -> Pico {
        let held = self.held();
        let staged = held.get(&lineage);
        staged.map_or(0, |staged| staged.boarding.take_spent())
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
    use crate::engine::overlay::Segment;
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
            hidden: 0,
            asked: Asked::Model,
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
        let (stage, permit) = staging.look(id, &swifts("a"), None);
        assert!(matches!(stage, Stage::Ready(_)) && permit.is_some());
        let (stage, permit) = staging.look(id, &swifts("a"), None);
        assert!(matches!(stage, Stage::Ready(_)) && permit.is_none());
        let (stage, _) = staging.look(id, &swifts("other"), None);
        assert!(matches!(stage, Stage::Astray) && !staging.has(id));
    }

    #[test]
    fn the_api_s_own_is_for_the_overlay_it_was_made_under() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        let [one, other] = [1, 2].map(|byte| OverlayId::from_bytes([byte; 32]));
        let finished = Finished::new(&(0..1), String::new(), 0).by_the_api("{}".to_owned());
        let staged = Staged {
            asked: Asked::Api(Some(one)),
            ..staged(Ok(Arc::new(finished)))
        };
        staging.put(id, staged.clone(), false);
        let overlay = Overlay::default();
        let (stage, _) = staging.look(id, &swifts("a"), Some((one, &overlay)));
        assert!(matches!(stage, Stage::Ready(..)));
        let (stage, _) = staging.look(id, &swifts("a"), Some((other, &overlay)));
        assert!(matches!(stage, Stage::Astray));
    }

    /// Notices are no summaries: what they stand for can still be made good.
    #[test]
    fn what_another_replica_has_summed_up_meanwhile_is_not_summed_up_again() {
        let id = LineageId::beginning(&[1; 32]);
        let segment = |to: u32, origin: Origin| Segment {
            block: String::new(),
            from: 1,
            to,
            origin,
            pinned: 0,
        };
        for (hidden, held, fits) in [
            (0, segment(9, Origin::Summary), false),
            (0, segment(9, Origin::Truncated), true),
            (9, segment(9, Origin::Summary), true),
        ] {
            let staging = Staging::default();
            let staged = Staged {
                hidden,
                ..staged(Ok(Arc::new(finished())))
            };
            staging.put(id, staged, false);
            let overlay = Overlay {
                segments: vec![held],
                ..Overlay::default()
            };
            let name = OverlayId::from_bytes([1; 32]);
            let (stage, _) = staging.look(id, &swifts("a"), Some((name, &overlay)));
            assert_eq!(matches!(stage, Stage::Ready(_)), fits, "{overlay:?}");
        }
    }

    #[test]
    fn a_trial_that_was_not_made_is_given_back_once() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        let settings = Settings {
            max_failures: 1,
            cooldown: 1,
            trial: 9,
        };
        let mut breaker = Breaker::default();
        let permit = breaker.permit(0, &settings).permit.unwrap();
        staging.give_back(id, Some(permit));
        assert!(staging.look(id, &[], None).1.is_none(), "nobody misses it");
        breaker.on(Event::Failed(permit), 0, &settings);
        let trial = breaker.permit(1, &settings).permit.unwrap();
        staging.give_back(id, Some(trial));
        assert_eq!(staging.look(id, &[], None).1, Some(trial));
        assert_eq!(staging.look(id, &[], None).1, None);
    }

    #[test]
    fn a_session_with_nothing_to_sum_up_is_looked_at_again_when_it_has_grown() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        assert!(staging.is_worth_a_look(id, 50_000, 5_000));
        staging.found_nothing(id, 50_000);
        for (size, expected) in [
            (50_000, false),
            (54_999, false),
            (55_000, true),
            (20_000, true),
        ] {
            assert_eq!(staging.is_worth_a_look(id, size, 5_000), expected, "{size}");
        }
    }

    #[test]
    fn a_failure_is_told_once() {
        let staging = Staging::default();
        let id = LineageId::beginning(&[1; 32]);
        staging.put(id, staged(Ok(Arc::new(finished()))), false);
        staging.put(id, staged(Err(Failure::Timeout)), true);
        let (stage, permit) = staging.look(id, &swifts("a"), None);
        assert!(matches!(stage, Stage::Failed(Failure::Timeout)) && permit.is_some());
        assert!(matches!(
            staging.look(id, &swifts("a"), None).0,
            Stage::None
        ));
    }
}
