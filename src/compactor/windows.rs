//! The windows of summarizers, as their refusals and answers tell them.
//!
//! They are learned with the same care as those of conversations: per upstream,
//! model and credential, and a claim never outweighs an answer (see
//! [`crate::engine::measure`]). What calls for one summary were refused with holds
//! for the calls that follow for the same summary, whoever else believes it.
//! Nothing is stored: a refused call costs little and nobody waits for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::engine::measure::{LearnedWindows, WindowKey};

/// The windows that were claimed while one summary was made.
#[derive(Debug, Default)]
pub struct Claimed(Mutex<BTreeMap<WindowKey, u64>>);

impl Claimed {
    fn get(&self, key: &WindowKey) -> Option<u64> {
        let claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.get(key).copied()
    }

    fn put(&self, key: WindowKey, window: u64) {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.insert(key, window);
    }
}

/// What was learned.
pub struct Windows {
    learned: Mutex<LearnedWindows>,
    clock: Clock,
}

impl Windows {
    /// Nothing is known yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            learned: Mutex::default(),
            clock,
        }
    }

    fn learned(&self) -> MutexGuard<'_, LearnedWindows> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.now().as_millis()).unwrap_or(i64::MAX)
    }

    /// A call was refused with this window.
    pub fn refused(&self, key: WindowKey, window: u64, claimed: &Claimed) {
        claimed.put(key, window);
        let now = self.now();
        self.learned().refused(key, window, now);
    }

    /// A call with a prompt of this size was answered.
    pub fn answered(&self, key: WindowKey, tokens: u64, claimed: &Claimed) {
        self.learned().answered(key, tokens, claimed.get(&key));
    }

    /// The window of the next call for a summary, given what is configured. A
    /// claim can only make it smaller.
    pub fn window(&self, key: &WindowKey, configured: u64, claimed: &Claimed) -> u64 {
        let learned = self.learned().get(key).window(configured, self.now());
        let said = claimed.get(key).unwrap_or(u64::MAX);
        configured.min(learned).min(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::engine::measure::Account;

    #[test]
    fn a_refusal_can_only_make_a_window_smaller_and_only_its_own() {
        let windows = Windows::new(Clock::frozen(Moment::at_millis(5)));
        let key = |name| WindowKey::new("u", "m", Account::Tenant(name), false);
        let (mine, other) = (Claimed::default(), Claimed::default());
        let seen = |name, claimed| windows.window(&key(name), 200_000, claimed);
        assert_eq!(seen("a", &mine), 200_000);
        windows.refused(key("a"), 9_000, &mine);
        assert_eq!(seen("a", &mine), 9_000, "for the summary that was refused");
        assert_eq!(seen("a", &other), 200_000, "nobody else believes it yet");
        windows.answered(key("a"), 5_000, &mine);
        assert_eq!(seen("a", &other), 9_000, "now it is confirmed");
        assert_eq!(seen("b", &other), 200_000, "another credential's");
        windows.refused(key("b"), 500_000, &other);
        assert_eq!(seen("b", &other), 200_000);
        windows.answered(key("a"), 9_001, &other);
        assert_eq!(seen("a", &other), 200_000, "it was not true");
    }
}
