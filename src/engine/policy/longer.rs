//! Whether the provider is asked to keep the stable prefix for an hour.
//!
//! A cache entry lives for five minutes, or for an hour at a higher write price.
//! After a pause in between, a prefix with the longer lifetime is read instead of
//! written. How often a session pauses is not known beforehand, so this is rent or
//! buy as well: each such pause adds what the longer lifetime would have saved, each
//! write at the higher price takes its surcharge away. It only ever changes when the
//! prefix has to be written anyway, because its entry is dead.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rates::Pico;

/// Lifetimes that the API sells.
const SHORT: Duration = Duration::from_mins(5);
const LONG: Duration = Duration::from_hours(1);
/// What a pause between the two saves with the longer one, in hundredths of the
/// input price of the prefix: a write at 1.25 less a read at 0.1 at the most.
const SAVES: i32 = 115;
/// What writing it costs more: 2 less 1.25.
const COSTS: i32 = 75;
/// The most that is believed of past pauses.
const MOST: i32 = 5 * COSTS;

/// Whether the stable prefix is kept for an hour, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LongPrefix {
    /// It is.
    pub on: bool,
    /// What pauses so far have shown to be worth, less what was paid for it.
    credit: i32,
    /// Tokens that the provider keeps for an hour, as it reported them.
    pub tokens: u64,
}

impl LongPrefix {
    /// Whether nothing is known of it.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// The next request comes after this pause. `allowed`: the session may spend the
    /// surcharge.
    #[must_use]
    pub fn after_pause(self, pause: Duration, allowed: bool) -> Self {
        if pause <= SHORT {
            return self;
        }
        let helps = pause <= LONG;
        let credit = if helps {
            (self.credit + SAVES).min(MOST)
        } else {
            self.credit
        };
        if self.on && helps {
            // The entry is alive, and this request extends its life.
            return Self { credit, ..self };
        }
        if credit >= COSTS && allowed {
            Self {
                on: true,
                credit: credit - COSTS,
                tokens: 0,
            }
        } else {
            Self {
                on: false,
                credit,
                tokens: 0,
            }
        }
    }

    /// Tokens that are still readable after this pause although everything else is
    /// gone.
    pub fn alive_after(&self, pause: Duration) -> u64 {
        if self.on && pause <= LONG {
            self.tokens
        } else {
            0
        }
    }

    /// The provider has read this many tokens from its cache and written that many
    /// behind them for an hour.
    pub fn reported(&mut self, read: u64, written_for_an_hour: u64) {
        if self.on && written_for_an_hour > 0 {
            self.tokens = read.saturating_add(written_for_an_hour);
        }
    }
}

/// What keeping a prefix of this many tokens for an hour costs more when it is
/// written, at these prices per token.
pub fn surcharge(tokens: u64, short: u64, long: u64) -> Pico {
    Pico::from(tokens) * Pico::from(long.saturating_sub(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn after(pauses: &[u32]) -> Vec<bool> {
        let mut prefix = LongPrefix::default();
        let step = |minutes: &u32| {
            prefix = prefix.after_pause(MINUTE * *minutes, true);
            prefix.on
        };
        pauses.iter().map(step).collect()
    }

    #[test]
    fn the_first_pause_that_it_would_have_bridged_switches_it_on() {
        assert_eq!(after(&[1, 4, 20, 1, 30]), [false, false, true, true, true]);
    }

    #[test]
    fn pauses_that_outlive_it_switch_it_off_until_it_has_earned_its_price_again() {
        assert_eq!(after(&[90, 20, 90, 1]), [false, true, false, false]);
        assert_eq!(after(&[20, 20, 90, 1]), [true, true, true, true]);
        assert_eq!(after(&[20, 90, 20]), [true, false, true]);
    }

    #[test]
    fn a_session_that_may_not_spend_the_surcharge_does_without() {
        let prefix = LongPrefix::default().after_pause(MINUTE * 20, false);
        assert!(!prefix.on);
        assert!(
            prefix.after_pause(MINUTE * 90, true).on,
            "what was seen counts later"
        );
    }

    #[test]
    fn what_the_provider_reported_is_alive_for_an_hour() {
        let mut prefix = LongPrefix::default().after_pause(MINUTE * 20, true);
        prefix.reported(1_000, 9_000);
        assert_eq!(prefix.alive_after(MINUTE * 59), 10_000);
        assert_eq!(prefix.alive_after(MINUTE * 61), 0);
        assert_eq!(surcharge(1_000, 5, 8), 3_000);
    }
}
