//! What a request cost, what passes saved on it, and whether its prefix held.
//!
//! Savings are reckoned against the same conversation without any pass, from
//! what upstream reported for this very request: what passes keep out would have
//! been read, or written where the cache was gone; a pass itself is charged with
//! everything it wrote once more. The sum may be negative, and says so.

use super::policy::{Cache, Pico, Rates};
use crate::config::models::Prices;
use crate::wire::reply::Usage;

/// In hundredths: how much of what was cached must be read for a prefix to have
/// held. The rest is for what is counted in other ways.
const HELD: u64 = 97;

/// What was known of a request when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Tokens that the request before had left in the cache.
    pub cached: u64,
    /// The state of the cache, as it was predicted.
    pub cache: Cache,
    /// Tokens that are cached for longer than that, and alive.
    pub alive: u64,
    /// The cache was idle for at least its lifetime.
    pub outlived: bool,
    /// The client changed something before what is new.
    pub client_edited: bool,
    /// Something else than time has made what is cached worthless, as it seems.
    pub invalidated: bool,
    /// Tokens that earlier passes keep out of the view.
    pub removed_before: u64,
    /// Tokens that all passes keep out of it.
    pub removed: u64,
    /// A pass changed what had been sent before: the tokens of the view without
    /// that pass.
    pub unchanged: Option<u64>,
    /// Tokens of system and tools, about.
    pub base: u64,
}

/// Why less was read from the cache than had been left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A pass.
    Compaction,
    /// The client changed what it had sent.
    ClientEdit,
    /// Too much time had passed.
    Ttl,
    /// Nobody knows.
    Unexplained,
}

impl Cause {
    /// The label of the metric.
    pub fn label(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::ClientEdit => "client_edit",
            Self::Ttl => "ttl",
            Self::Unexplained => "unexplained",
        }
    }
}

impl Sending {
    /// Whether what was cached before was not read again, and why.
    pub fn broken(&self, usage: &Usage) -> Option<Cause> {
        let read = usage.cache_read.unwrap_or(0);
        if read.saturating_mul(100) >= self.cached.saturating_mul(HELD) {
            return None;
        }
        Some(match () {
            () if self.unchanged.is_some() => Cause::Compaction,
            () if self.outlived => Cause::Ttl,
            () if self.client_edited => Cause::ClientEdit,
            () => Cause::Unexplained,
        })
    }

    /// Whether a cache that was taken for cold was cold; `None` if it was not, or
    /// if nobody can know. A pass leaves little that could have been read: system
    /// and tools, which another session may have kept alive.
    pub fn came_true(&self, usage: &Usage, base_is_shared: bool) -> Option<bool> {
        let predicted = self.cache == Cache::Cold || self.invalidated;
        if !predicted || self.cached == 0 {
            return None;
        }
        let read = usage.cache_read.unwrap_or(0);
        match self.unchanged {
            None => Some(self.broken(usage).is_some()),
            Some(_) if read < self.base / 2 || read * 100 <= self.alive * 105 => Some(true),
            Some(_) => (!base_is_shared).then_some(false),
        }
    }

    /// What passes have saved on this request, in pico-dollars.
    pub fn saved(&self, usage: &Usage, prices: &Prices, rates: &Rates) -> Pico {
        let times = |tokens: u64, rate: u64| Pico::from(tokens) * Pico::from(rate);
        if self.cache == Cache::Unused {
            return times(self.removed, rates.input);
        }
        let again =
            |tokens: u64, alive: bool| times(tokens, if alive { rates.read } else { rates.write });
        // A longer lifetime of ours costs more to write, and bridges pauses.
        let hour = usage.cache_write_1h.unwrap_or(0);
        let surcharge =
            Pico::from(prices.write_1h.pico_dollars_per_token()) - Pico::from(rates.write);
        let bridged = if self.outlived && self.alive > 0 {
            usage.cache_read.unwrap_or(0)
        } else {
            0
        };
        let longer = times(bridged, rates.write.saturating_sub(rates.read))
            - Pico::from(hour) * surcharge.max(0);
        let Some(whole) = self.unchanged else {
            let alive = self.broken(usage).is_none();
            let new = self.removed.saturating_sub(self.removed_before);
            let removed = again(self.removed_before.min(self.removed), alive);
            return removed + times(new, rates.write) + longer;
        };
        // Without the pass the cache would have been read, if it was there.
        let alive = !self.outlived && !self.client_edited;
        let new = whole.saturating_sub(self.cached);
        let without = again(self.cached.min(whole), alive)
            + times(new, rates.write)
            + again(self.removed_before, alive);
        without - prompt_cost(usage, prices)
    }
}

/// What a prompt cost.
pub fn prompt_cost(usage: &Usage, prices: &Prices) -> Pico {
    let times = |tokens: u64, price: crate::config::models::Price| {
        Pico::from(tokens) * Pico::from(price.pico_dollars_per_token())
    };
    let written = usage.cache_write.unwrap_or(0);
    let hour = usage.cache_write_1h.unwrap_or(0).min(written);
    times(usage.input.unwrap_or(0), prices.input)
        + times(written - hour, prices.write_5m)
        + times(hour, prices.write_1h)
        + times(usage.cache_read.unwrap_or(0), prices.read)
}

/// What a request cost, the reply included.
pub fn cost(usage: &Usage, prices: &Prices) -> Pico {
    let output = Pico::from(usage.output.unwrap_or(0));
    let price = Pico::from(prices.output.pico_dollars_per_token());
    prompt_cost(usage, prices) + output * price
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::models::Models;

    fn sending() -> Sending {
        Sending {
            cached: 50_000,
            cache: Cache::Warm,
            alive: 0,
            outlived: false,
            client_edited: false,
            invalidated: false,
            removed_before: 0,
            removed: 0,
            unchanged: None,
            base: 10_000,
        }
    }

    fn usage(read: u64, write: u64) -> Usage {
        Usage {
            input: Some(0),
            cache_write: Some(write),
            cache_write_1h: None,
            cache_read: Some(read),
            output: Some(100),
        }
    }

    fn prices() -> (Prices, Rates) {
        let prices = Models::default()
            .lookup("claude-opus-4-8")
            .prices(0)
            .unwrap();
        (prices, Rates::new(&prices, None))
    }

    /// Micro-dollars.
    fn micro(pico: Pico) -> Pico {
        pico / 1_000_000
    }

    #[test]
    fn a_break_has_its_cause() {
        let rows = [
            (sending(), 50_000, None),
            (sending(), 49_000, None),
            (sending(), 20_000, Some(Cause::Unexplained)),
            (
                Sending {
                    client_edited: true,
                    ..sending()
                },
                0,
                Some(Cause::ClientEdit),
            ),
            (
                Sending {
                    outlived: true,
                    client_edited: true,
                    ..sending()
                },
                0,
                Some(Cause::Ttl),
            ),
            (
                Sending {
                    unchanged: Some(1),
                    outlived: true,
                    ..sending()
                },
                0,
                Some(Cause::Compaction),
            ),
            (
                Sending {
                    cached: 0,
                    ..sending()
                },
                0,
                None,
            ),
        ];
        for (sending, read, expected) in rows {
            assert_eq!(sending.broken(&usage(read, 0)), expected, "{sending:?}");
        }
    }

    #[test]
    fn a_prediction_is_judged_by_what_was_read() {
        let cold = Sending {
            cache: Cache::Cold,
            ..sending()
        };
        let passed = Sending {
            unchanged: Some(51_000),
            ..cold
        };
        let rows = [
            (sending(), 0, false, None),
            (cold, 0, false, Some(true)),
            (cold, 50_000, false, Some(false)),
            (passed, 0, false, Some(true)),
            (passed, 9_000, false, Some(false)),
            (passed, 9_000, true, None),
            (Sending { cached: 0, ..cold }, 0, false, None),
        ];
        for (sending, read, shared, expected) in rows {
            assert_eq!(
                sending.came_true(&usage(read, 0), shared),
                expected,
                "{sending:?}"
            );
        }
    }

    #[test]
    fn without_a_pass_nothing_is_saved() {
        let (prices, rates) = prices();
        for read in [0, 50_000] {
            assert_eq!(sending().saved(&usage(read, 9_000), &prices, &rates), 0);
        }
    }

    #[test]
    fn what_is_kept_out_would_have_been_read_or_written_again() {
        let (prices, rates) = prices();
        let kept = Sending {
            removed_before: 100_000,
            removed: 100_000,
            ..sending()
        };
        assert_eq!(
            micro(kept.saved(&usage(50_000, 0), &prices, &rates)),
            50_000
        );
        assert_eq!(
            micro(kept.saved(&usage(0, 50_000), &prices, &rates)),
            625_000
        );
        let trimmed = Sending {
            removed: 10_000,
            ..sending()
        };
        assert_eq!(
            micro(trimmed.saved(&usage(50_000, 0), &prices, &rates)),
            62_500
        );
        let unused = Sending {
            cache: Cache::Unused,
            ..kept
        };
        assert_eq!(micro(unused.saved(&usage(0, 0), &prices, &rates)), 500_000);
    }

    #[test]
    fn a_pass_is_charged_with_what_it_writes_again() {
        let (prices, rates) = prices();
        // 50,000 were cached and 1,000 are new; the pass leaves 20,000, of which
        // 5,000 are read.
        let pass = Sending {
            unchanged: Some(51_000),
            removed: 31_000,
            ..sending()
        };
        let saved = pass.saved(&usage(5_000, 15_000), &prices, &rates);
        assert_eq!(micro(saved), 25_000 + 6_250 - 2_500 - 93_750);
        assert!(saved < 0, "and may be negative");
        let cold = Sending {
            outlived: true,
            ..pass
        };
        assert!(cold.saved(&usage(0, 20_000), &prices, &rates) > 0);
    }
}
