//! Stops asking a summarizer that keeps failing, and tries it again now and then.
//!
//! The same machine serves two scopes: a lineage, whose clock is its requests,
//! and a summarizer, whose clock is time. So it takes the present as a number of
//! ticks and does not know what a tick is.
//!
//! Whoever wants to call asks for a permit and brings it back with the outcome.
//! While half-open there is one permit, the trial, and only its outcome can open
//! the breaker again: calls that began earlier may fail at any time and say
//! nothing new. A trial that is never heard of again counts as lost after a
//! while, so that a crash cannot leave the breaker half-open for ever.
//!
//! Each trial that fails doubles the time until the next one, up to a bound: a
//! summarizer that never gives anything usable is asked ever more rarely.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// How often the time until the next trial doubles at the most.
const DOUBLINGS: u32 = 6;

/// What a breaker is set to; lengths in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row that open it; none counts as one.
    pub max_failures: u32,
    /// How long it stays open at first.
    pub cooldown: u64,
    /// After how long a trial without an outcome is lost; none counts as one.
    pub trial: u64,
}

/// A breaker. What is stored and cannot be read is a closed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Breaker(State);

/// What a breaker remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State {
    Closed {
        /// In a row.
        failures: u32,
    },
    Open {
        until: u64,
        /// Trials in a row that have failed.
        #[serde(default, skip_serializing_if = "is_none")]
        trials: u32,
    },
    HalfOpen {
        /// When the trial is lost; none: nobody has it.
        trial_until: Option<u64>,
        /// Trials in a row that have failed before.
        #[serde(default, skip_serializing_if = "is_none")]
        trials: u32,
    },
}

impl State {
    /// Trials in a row that have failed.
    fn trials(self) -> u32 {
        match self {
            Self::Closed { .. } => 0,
            Self::Open { trials, .. } | Self::HalfOpen { trials, .. } => trials,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none(trials: &u32) -> bool {
    *trials == 0
}

/// The state as the rest of the world sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Calls are made.
    Closed,
    /// None is.
    Open,
    /// One is, to see.
    HalfOpen,
}

impl Phase {
    /// Its name in metrics, logs and headers.
    pub fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// A change of phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The phase before.
    pub from: Phase,
    /// The phase now.
    pub to: Phase,
}

/// Leave to make one call. It tells the trial from other calls, and one trial
/// from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    trial_until: Option<u64>,
}

impl Permit {
    /// Whether it is the one permit of a breaker that is half-open.
    pub fn is_trial(&self) -> bool {
        self.trial_until.is_some()
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It gave what was wanted.
    Succeeded,
    /// It did not.
    Failed(Permit),
    /// It was not made, or its outcome says nothing about the summarizer.
    Withdrawn(Permit),
}

/// The answer to someone who wants to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The permit, if there is one to have.
    pub permit: Option<Permit>,
    /// What asking has changed.
    pub transition: Option<Transition>,
}

impl Settings {
    /// How long it stays open when this many trials have failed.
    fn open_for(&self, trials: u32) -> u64 {
        self.cooldown.saturating_mul(1 << trials.min(DOUBLINGS))
    }
}

impl Breaker {
    /// Where it stands.
    pub fn phase(&self) -> Phase {
        match self.0 {
            State::Closed { .. } => Phase::Closed,
            State::Open { .. } => Phase::Open,
            State::HalfOpen { .. } => Phase::HalfOpen,
        }
    }

    /// Whether a permit could be had now.
    pub fn admits(&self, now: u64, settings: &Settings) -> bool {
        let mut asked = *self;
        asked.permit(now, settings).permit.is_some()
    }

    /// Asks for a permit.
    pub fn permit(&mut self, now: u64, settings: &Settings) -> Answer {
        let trial_until = now.saturating_add(settings.trial.max(1));
        let trials = self.0.trials();
        let trial = State::HalfOpen {
            trial_until: Some(trial_until),
            trials,
        };
        // A stored moment further away than any that could be set now is from
        // another clock or other settings, and must not be waited for.
        let (next, admitted) = match self.0 {
            State::Closed { .. } => (self.0, true),
            State::Open { until, .. } if now >= until => (trial, true),
            State::Open { until, .. } => {
                let until = until.min(now.saturating_add(settings.open_for(trials)));
                (State::Open { until, trials }, false)
            }
            State::HalfOpen {
                trial_until: Some(until),
                ..
            } if now < until && until <= trial_until => (self.0, false),
            State::HalfOpen { .. } => (trial, true),
        };
        let transition = self.becomes(next);
        let permit = admitted.then(|| Permit {
            trial_until: (next == trial).then_some(trial_until),
        });
        Answer { permit, transition }
    }

    /// Notes what became of a call.
    pub fn on(&mut self, event: Event, now: u64, settings: &Settings) -> Option<Transition> {
        let open = |trials: u32| State::Open {
            until: now.saturating_add(settings.open_for(trials)),
            trials,
        };
        let next = match (self.0, event) {
            (_, Event::Succeeded) => State::Closed { failures: 0 },
            (State::Closed { failures }, Event::Failed(_)) => {
                let failures = failures.saturating_add(1);
                if failures >= settings.max_failures {
                    open(0)
                } else {
                    State::Closed { failures }
                }
            }
            (
                State::HalfOpen {
                    trial_until,
                    trials,
                },
                Event::Failed(permit),
            ) if trial_until.is_some() && trial_until == permit.trial_until => {
                open(trials.saturating_add(1).min(DOUBLINGS))
            }
            (
                State::HalfOpen {
                    trial_until,
                    trials,
                },
                Event::Withdrawn(permit),
            ) if trial_until == permit.trial_until => {
                let trial_until = None;
                State::HalfOpen {
                    trial_until,
                    trials,
                }
            }
            (State::Closed { .. } | State::HalfOpen { .. }, Event::Withdrawn(_))
            | (State::HalfOpen { .. }, Event::Failed(_))
            | (State::Open { .. }, Event::Failed(_) | Event::Withdrawn(_)) => self.0,
        };
        self.becomes(next)
    }

    fn becomes(&mut self, next: State) -> Option<Transition> {
        let from = self.phase();
        self.0 = next;
        let to = self.phase();
        (from != to).then_some(Transition { from, to })
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// What may be found where a breaker was stored.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Known(State),
    Unknown(IgnoredAny),
}

impl From<Stored> for Breaker {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Known(state) => Self(state),
            Stored::Unknown(_) => Self::default(),
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
