//! Whether a summarizer may be called, across all sessions.
//!
//! One breaker for each upstream, model and credential, by the clock: a provider
//! that is down is not asked again by every session in turn. Whoever shares the
//! store shares them: see `shared`. And a credential whose own conversation is
//! told to slow down makes no calls beside it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded::Bounded;
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
    breakers: Bounded<Gate, Kept>,
    /// By credential, until when.
    quiet: Bounded<[u8; 32], u64>,
}

/// A breaker, and what is told of it.
#[derive(Default)]
struct Kept {
    breaker: Breaker,
    /// When it last changed, here or elsewhere.
    changed: u64,
    /// It has changed here, and nobody else knows.
    untold: bool,
}

/// A breaker as others are told of it.
#[derive(Serialize, Deserialize)]
struct Told {
    changed: u64,
    breaker: Breaker,
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
            breakers: Bounded::new(MOST),
            quiet: Bounded::new(MOST),
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_millis()
    }

    /// Leave to call a summarizer, if there is any to have.
    pub fn permit(&self, gate: Gate) -> Option<Permit> {
        let now = self.now();
        let answer = self.breakers.update(gate, |kept| {
            kept.change(now, |breaker| breaker.permit(now, &self.settings))
        });
        self.tell(answer.transition);
        answer.permit
    }

    /// Notes what became of a call.
    pub fn on(&self, gate: Gate, event: Event) {
        let now = self.now();
        let transition = self.breakers.update(gate, |kept| {
            kept.change(now, |breaker| breaker.on(event, now, &self.settings))
        });
        self.tell(transition);
    }

    /// What others should know and were not told yet.
    pub(super) fn untold(&self) -> Vec<(Gate, String)> {
        let mut untold = Vec::new();
        self.breakers.for_each(|gate, kept| {
            if !std::mem::take(&mut kept.untold) {
                return;
            }
            let told = Told {
                changed: kept.changed,
                breaker: kept.breaker,
            };
            untold.extend(serde_json::to_string(&told).ok().map(|told| (*gate, told)));
        });
        untold
    }

    /// Others tell of a breaker; the latest news counts.
    pub(super) fn hear(&self, gate: Gate, told: &str) {
        let Ok(told) = serde_json::from_str::<Told>(told) else {
            return;
        };
        let transition = self.breakers.update(gate, |kept| {
            if told.changed <= kept.changed {
                return None;
            }
            let (from, to) = (kept.breaker.phase(), told.breaker.phase());
            *kept = Kept {
                breaker: told.breaker,
                changed: told.changed,
                untold: false,
            };
            (from != to).then_some(Transition { from, to })
        });
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
        let (mut open, mut trying) = (0, 0);
        self.breakers.for_each(|_, kept| {
            let breaker = &kept.breaker;
            match breaker.phase() {
                Phase::Closed => {}
                Phase::Open if !breaker.admits(now, &self.settings) => open += 1,
                _ => trying += 1,
            }
        });
        (open, trying)
    }

    /// A credential's own conversation is told to slow down.
    pub fn hush(&self, credential: [u8; 32], asked: Option<Duration>) {
        let pause = asked.unwrap_or(QUIET).min(LONGEST);
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let until = self.now().saturating_add(pause);
        self.quiet.insert(credential, until);
    }

    /// Whether a credential is to be left alone.
    pub fn is_hushed(&self, credential: &[u8; 32]) -> bool {
        let now = self.now();
        let Some(until) = self.quiet.get(credential) else {
            return false;
        };
        if until <= now {
            self.quiet.remove(credential);
        }
        until > now
    }
}

impl Kept {
    /// Lets something happen to the breaker. Failures that do not open it are
    /// each process's own.
    fn change<T>(&mut self, now: u64, happens: impl FnOnce(&mut Breaker) -> T) -> T {
        let before = self.breaker;
        let answer = happens(&mut self.breaker);
        let closed = |breaker: Breaker| breaker.phase() == Phase::Closed;
        if self.breaker != before && !(closed(before) && closed(self.breaker)) {
            // Later than what was heard, whatever the clock says.
            self.changed = now.max(self.changed + 1);
            self.untold = true;
        }
        answer
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
    fn what_one_finds_out_others_hear_and_only_one_of_them_tries_again() {
        let (one, clock) = gates();
        let metrics = Arc::new(Metrics::new().unwrap());
        let minute = Duration::from_mins(1);
        let other = Gates::new(2, minute, minute * 5, clock.clone(), metrics);
        let tell = |from: &Gates, to: &Gates| {
            let untold = from.untold();
            for (gate, told) in &untold {
                to.hear(*gate, told);
            }
            untold.len()
        };
        let permit = one.permit([1; 32]).unwrap();
        one.on([1; 32], Event::Failed(permit));
        assert_eq!(tell(&one, &other), 0, "it is not shut");
        one.on([1; 32], Event::Failed(permit));
        assert_eq!(tell(&one, &other), 1);
        assert_eq!(tell(&one, &other), 0, "once");
        assert_eq!((other.permit([1; 32]), other.shut()), (None, (1, 0)));
        clock.advance(Duration::from_secs(61));
        let trial = other.permit([1; 32]).unwrap();
        assert!(trial.is_trial());
        tell(&other, &one);
        assert_eq!(one.permit([1; 32]), None, "somebody tries");
        other.on([1; 32], Event::Withdrawn(trial));
        tell(&other, &one);
        let trial = one.permit([1; 32]).unwrap();
        one.on([1; 32], Event::Succeeded);
        assert!(trial.is_trial());
        tell(&one, &other);
        assert!(
            other
                .permit([1; 32])
                .is_some_and(|permit| !permit.is_trial())
        );
        other.hear([1; 32], "rubbish");
        assert_eq!(other.shut(), (0, 0));
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
