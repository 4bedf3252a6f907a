//! What tokens cost a conversation, by the state of the provider's cache.
//!
//! All amounts are pico-dollars: prices are whole ones per token, so that sums
//! do not depend on their order. A model without known prices is reckoned with
//! at the usual proportions, which is enough to tell whether a pass pays.

use std::time::Duration;

use crate::config::models::Prices;

/// An amount of money, in pico-dollars; may be negative.
pub type Pico = i128;

/// Lifetimes beyond this are sold at the price of an hour.
const SHORT: Duration = Duration::from_mins(5);

/// What a token costs, in pico-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Sent past the cache.
    pub input: u64,
    /// Written to the cache, for the lifetime in use.
    pub write: u64,
    /// Read from the cache.
    pub read: u64,
}

impl Rates {
    /// What each of some tokens cost when so many of them were in no cache.
    pub fn mean(&self, tokens: u64, unread: u64) -> u64 {
        let unread = unread.min(tokens);
        let paid = u128::from(unread) * u128::from(self.write)
            + u128::from(tokens - unread) * u128::from(self.read);
        u64::try_from(paid / u128::from(tokens.max(1))).unwrap_or(u64::MAX)
    }

    /// The rates of a model, for caches of this lifetime.
    pub fn new(prices: &Prices, lifetime: Option<Duration>) -> Self {
        let hour = lifetime.is_some_and(|lifetime| lifetime > SHORT);
        let write = if hour {
            prices.write_1h
        } else {
            prices.write_5m
        };
        Self {
            input: prices.input.pico_dollars_per_token(),
            write: write.pico_dollars_per_token(),
            read: prices.read.pico_dollars_per_token(),
        }
    }

    /// The usual proportions, for a model whose prices nobody knows.
    pub fn usual(lifetime: Option<Duration>) -> Self {
        Self::new(&Prices::USUAL, lifetime)
    }
}

/// The provider's cache for a lineage, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The client asks for no caching: every token is a full input each time.
    Unused,
    /// It should still be alive, or nobody knows.
    Warm,
    /// It has gone: whatever is sent is written anew.
    Cold,
}

/// What is known of the age of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// How long ago it was last used; none: not known.
    pub idle: Option<Duration>,
    /// The longest lifetime the lineage has asked for; none: it asks for none.
    pub lifetime: Option<Duration>,
    /// Idle time beyond the lifetime before it counts as cold.
    pub margin: Duration,
    /// Predictions have been wrong: it is taken for warm.
    pub distrusted: bool,
}

impl Cache {
    /// The state of a cache of some age. What is not known counts as warm.
    pub fn of(age: &Age) -> Self {
        let Some(lifetime) = age.lifetime else {
            return Self::Unused;
        };
        let gone = |idle: Duration| idle > lifetime.saturating_add(age.margin);
        if !age.distrusted && age.idle.is_some_and(gone) {
            Self::Cold
        } else {
            Self::Warm
        }
    }
}

/// What a change saves in all, over the requests to come: what it removes is
/// not paid for again and again; what stands behind it is written once more.
pub fn gain(rates: &Rates, cache: Cache, removed: u64, rewritten: u64, horizon: u32) -> Pico {
    let times = |tokens: u64, rate: u64| Pico::from(tokens) * Pico::from(rate);
    let later = |requests: u32| times(removed, rates.read) * Pico::from(requests);
    match cache {
        Cache::Unused => times(removed, rates.input) * Pico::from(horizon),
        Cache::Warm => later(horizon) - rewriting(rates, cache, rewritten),
        Cache::Cold => times(removed, rates.write) + later(horizon.saturating_sub(1)),
    }
}

/// What it costs to write once more what could have been read.
fn rewriting(rates: &Rates, cache: Cache, rewritten: u64) -> Pico {
    match cache {
        Cache::Warm => Pico::from(rewritten) * Pico::from(rates.write.saturating_sub(rates.read)),
        Cache::Unused | Cache::Cold => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_cache_is_cold_after_its_lifetime_and_a_margin_and_unknown_is_warm() {
        let age = |idle: Option<u32>, lifetime: Option<u32>, distrusted| Age {
            idle: idle.map(|minutes| MINUTE * minutes),
            lifetime: lifetime.map(|minutes| MINUTE * minutes),
            margin: MINUTE,
            distrusted,
        };
        let rows = [
            (age(Some(0), Some(5), false), Cache::Warm),
            (age(Some(6), Some(5), false), Cache::Warm),
            (age(Some(7), Some(5), false), Cache::Cold),
            (age(Some(7), Some(60), false), Cache::Warm),
            (age(Some(62), Some(60), false), Cache::Cold),
            (age(None, Some(5), false), Cache::Warm),
            (age(Some(999), Some(5), true), Cache::Warm),
            (age(Some(999), None, false), Cache::Unused),
        ];
        for (age, expected) in rows {
            assert_eq!(Cache::of(&age), expected, "{age:?}");
        }
    }

    #[test]
    fn cheap_reads_put_the_break_even_far_away() {
        // Half of what is behind the change goes, a third is written again.
        let break_even = |read: u64| {
            let rates = Rates {
                input: 1_000,
                write: 1_250,
                read,
            };
            (1..1000).find(|horizon| gain(&rates, Cache::Warm, 60_000, 40_000, *horizon) > 0)
        };
        assert_eq!(break_even(100), Some(8));
        assert_eq!(break_even(50), Some(17));
        assert_eq!(break_even(25), Some(33));
    }

    #[test]
    fn a_cold_cache_and_no_cache_have_nothing_to_write_again() {
        let rates = Rates::usual(None);
        for horizon in [1, 2, 50] {
            for cache in [Cache::Cold, Cache::Unused] {
                let small = gain(&rates, cache, 1_000, 0, horizon);
                assert_eq!(small, gain(&rates, cache, 1_000, 1_000_000, horizon));
                assert!(small > 0);
            }
        }
    }

    #[test]
    fn a_cache_of_an_hour_is_dearer_to_write() {
        let short = Rates::usual(Some(MINUTE * 5));
        let long = Rates::usual(Some(MINUTE * 60));
        assert!(long.write > short.write && long.read == short.read);
    }
}
