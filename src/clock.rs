//! The clock that cache lifetimes and ages are measured with.
//!
//! Tests and replays must be able to let an hour pass without waiting, so the
//! clock is the system's plus an offset, or stands still until it is moved. The
//! proxy and the simulator may share one. Delays on the wire use real time and
//! have nothing to do with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, by some clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// This moment plus a duration.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// The moment so many milliseconds after the Unix epoch.
    pub fn at_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> u64 {
        self.0
    }
}

#[derive(Debug, Default)]
struct State {
    frozen: Option<u64>,
    offset: i64,
}

/// A settable clock; clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<Mutex<State>>);

impl Clock {
    /// A clock that stands still until it is moved.
    pub fn frozen(at: Moment) -> Self {
        Self(Arc::new(Mutex::new(State {
            frozen: Some(at.0),
            offset: 0,
        })))
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let base = state.frozen.unwrap_or_else(system_millis);
        Moment(base.saturating_add_signed(state.offset))
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let by = i64::try_from(millis(by)).unwrap_or(i64::MAX);
        state.offset = state.offset.saturating_add(by);
    }

    /// Sets the clock back, as somebody does who finds that it is fast.
    pub fn turn_back(&self, by: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let by = i64::try_from(millis(by)).unwrap_or(i64::MAX);
        state.offset = state.offset.saturating_sub(by);
    }

    /// Stops the clock at its present moment; only [`Clock::advance`] moves it then.
    pub fn freeze(&self) {
        let now = self.now();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State {
            frozen: Some(now.0),
            offset: 0,
        };
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn system_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_clock_moves_only_when_told() {
        let clock = Clock::frozen(Moment(1_000));
        assert_eq!(clock.now(), Moment(1_000));
        clock.advance(Duration::from_mins(5));
        assert_eq!(clock.now(), Moment(301_000));
        clock.turn_back(Duration::from_mins(1));
        assert_eq!(clock.now(), Moment(241_000));
        clock.turn_back(Duration::from_mins(10));
        assert_eq!(clock.now(), Moment(0), "there is nothing before it");
    }

    #[test]
    fn clones_share_their_time() {
        let clock = Clock::default();
        clock.freeze();
        let other = clock.clone();
        let before = other.now();
        clock.advance(Duration::from_secs(1));
        assert_eq!(other.now(), before.after(Duration::from_secs(1)));
    }
}
