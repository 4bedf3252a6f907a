//! Whether a summarizer may be called, across all sessions.
//!
//! One breaker for each upstream, model and credential, by the clock: a provider
//! that is down is not asked again by every session in turn. And a credential
//! whose own conversation is told to slow down makes no calls beside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::breaker::{Breaker, Event, Permit, Phase, Settings, Transition};
use crate::metrics::Metrics;

/// The most breakers and credentials that are remembered.
const MOST: usize = 4_096;
/// How long a credential is left alone if nobody says for how long.
const QUIET: Duration = Duration::from_secs(30);
/// The longest that anybody can ask for.
const LONGEST: Duration = Duration::from_mins(10);

/// A summarizer: upstream, model and credential, in one digest.
pub type Gate = [u8; 32];

/// All gates.
pub struct Gates {
    settings: Settings,
    clock: Clock,
    metrics: Arc<Metrics>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    breakers: HashMap<Gate, Breaker>,
    /// By credential, until when.
    quiet: HashMap<[u8; 32], u64>,
}

impl Gates {
    /// Gates that stay shut for so long after so many failures. A call is given
    /// up for lost after `lost`.
    pub fn new(
        max_failures: u32,
        cooldown: Duration,
        lost: Duration,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Self {
        let ticks = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            settings: Settings {
                max_failures,
                cooldown: ticks(cooldown),
                trial: ticks(lost),
            },
            clock,
            metrics,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.clock.now().as_millis()
    }

    /// Leave to call a summarizer, if there is any to have.
    pub fn permit(&self, gate: Gate) -> Option<Permit> {
        let now = self.now();
        let mut held = self.held();
        if held.breakers.len() >= MOST {
            held.breakers.clear();
        }
        let breaker = held.breakers.entry(gate).or_default();
        let answer = breaker.permit(now, &self.settings);
        drop(held);
        self.tell(answer.transition);
        answer.permit
    }

    /// Notes what became of a call.
    pub fn on(&self, gate: Gate, event: Event) {
        let now = self.now();
        let mut held = self.held();
        let breaker = held.breakers.entry(gate).or_default();
        let transition = breaker.on(event, now, &self.settings);
        drop(held);
        self.tell(transition);
    }

    fn tell(&self, transition: Option<Transition>) {
        if let Some(Transition { from, to }) = transition {
            let (from, to) = (from.label(), to.label());
            tracing::warn!(from, to, "the breaker of a summarizer");
            self.metrics.breaker("summarizer", from, to);
        }
    }

    /// How many are shut, and how many are about to be tried. One that is due
    /// for its trial is not shut any more, even if nobody comes to make it.
    pub fn shut(&self) -> (usize, usize) {
        let now = self.now();
        let held = self.held();
        let count = |wanted: &dyn Fn(&Breaker) -> bool| {
            let breakers = held.breakers.values();
            breakers.filter(|breaker| wanted(breaker)).count()
        };
        let admits = |breaker: &Breaker| breaker.admits(now, &self.settings);
        let open = count(&|breaker| breaker.phase() == Phase::Open && !admits(breaker));
        let closed = count(&|breaker| breaker.phase() == Phase::Closed);
        (open, held.breakers.len() - open - closed)
    }

    /// A credential's own conversation is told to slow down.
    pub fn hush(&self, credential: [u8; 32], asked: Option<Duration>) {
        let pause = asked.unwrap_or(QUIET).min(LONGEST);
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let until = self.now().saturating_add(pause);
        let mut held = self.held();
        if held.quiet.len() >= MOST {
            held.quiet.clear();
        }
        held.quiet.insert(credential, until);
    }

    /// Whether a credential is to be left alone.
    pub fn is_hushed(&self, credential: &[u8; 32]) -> bool {
        let now = self.now();
        let mut held = self.held();
        let Some(until) = held.quiet.get(credential).copied() else {
            return false;
        };
        if until <= now {
            held.quiet.remove(credential);
        }
        until > now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    fn gates() -> (Gates, Clock) {
        let clock = Clock::frozen(Moment::at_millis(1_000_000));
        let metrics = Arc::new(Metrics::new().unwrap());
        let minute = Duration::from_mins(1);
        let gates = Gates::new(2, minute, minute * 5, clock.clone(), metrics);
        (gates, clock)
    }

    #[test]
    fn a_summarizer_that_fails_is_left_alone_for_a_while_and_no_other() {
        let (gates, clock) = gates();
        for _ in 0..2 {
            let permit = gates.permit([1; 32]).unwrap();
            gates.on([1; 32], Event::Failed(permit));
        }
        assert_eq!(gates.permit([1; 32]), None);
        assert!(gates.permit([2; 32]).is_some());
        assert_eq!(gates.shut(), (1, 0));
        clock.advance(Duration::from_secs(61));
        assert_eq!(gates.shut(), (0, 1), "nobody need come for it to open");
        let trial = gates.permit([1; 32]);
        assert!(trial.is_some() && gates.permit([1; 32]).is_none());
        assert_eq!(gates.shut(), (0, 1));
        gates.on([1; 32], Event::Succeeded);
        assert_eq!(gates.shut(), (0, 0));
        assert!(gates.permit([1; 32]).is_some());
    }

    #[test]
    fn a_credential_is_left_alone_for_as_long_as_was_asked() {
        let (gates, clock) = gates();
        assert!(!gates.is_hushed(&[1; 32]));
        gates.hush([1; 32], Some(Duration::from_secs(5)));
        assert!(gates.is_hushed(&[1; 32]) && !gates.is_hushed(&[2; 32]));
        clock.advance(Duration::from_secs(5));
        assert!(!gates.is_hushed(&[1; 32]));
    }
}
