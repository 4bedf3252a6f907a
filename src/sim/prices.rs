//! What tokens cost.
//!
//! Prices are kept in whole micro-dollars per million tokens, so that sums are
//! exact: a ledger that rounds at every request is off by more than a cache
//! decision is worth.

use serde::Serialize;

/// Prices of one model, in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Input that is neither read from nor written to the cache.
    pub input: u64,
    /// Input written to the cache for five minutes.
    pub write_5m: u64,
    /// Input written to the cache for an hour.
    pub write_1h: u64,
    /// Input read from the cache.
    pub read: u64,
    /// Output.
    pub output: u64,
}

/// Dearer prices beyond a prompt size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceStep {
    /// The step applies to prompts of more tokens than this, cached ones included.
    pub above: u64,
    /// The prices beyond it.
    pub prices: Prices,
}

/// An amount of money in millionths of a millionth of a dollar.
///
/// One token at one dollar per million is a micro-dollar; at ten cents it is a
/// tenth of one. Whole pico-dollars keep every price of the table exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Serialize for Cost {
    /// Micro-dollars: what a reader of the ledger can add up.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.micro_dollars())
    }
}

impl Cost {
    /// Micro-dollars, rounded down.
    pub fn micro_dollars(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The sum of two amounts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Tokens of one request by price class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Input after the last cache mark.
    pub input: u64,
    /// Written to the cache for five minutes.
    pub write_5m: u64,
    /// Written to the cache for an hour.
    pub write_1h: u64,
    /// Read from the cache.
    pub read: u64,
    /// Output.
    pub output: u64,
}

impl Tokens {
    /// The whole prompt: the three input classes together.
    pub fn prompt(&self) -> u64 {
        self.input + self.write_5m + self.write_1h + self.read
    }

    /// The sum of two requests.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            write_5m: self.write_5m + other.write_5m,
            write_1h: self.write_1h + other.write_1h,
            read: self.read + other.read,
            output: self.output + other.output,
        }
    }
}

impl Prices {
    /// Prices from cents per million tokens, times ten to allow for half cents
    /// and tenths: `tenths(1000, ..)` is one dollar.
    pub const fn tenths(input: u64, five: u64, hour: u64, read: u64, output: u64) -> Self {
        Self {
            input: input * 1_000,
            write_5m: five * 1_000,
            write_1h: hour * 1_000,
            read: read * 1_000,
            output: output * 1_000,
        }
    }

    /// What these tokens cost.
    pub fn cost(&self, tokens: &Tokens) -> Cost {
        // Micro-dollars per million tokens are pico-dollars per token.
        let classes = [
            (tokens.input, self.input),
            (tokens.write_5m, self.write_5m),
            (tokens.write_1h, self.write_1h),
            (tokens.read, self.read),
            (tokens.output, self.output),
        ];
        Cost(classes.iter().fold(0, |sum: u64, (count, price)| {
            sum.saturating_add(count.saturating_mul(*price))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_tokens_cost_the_listed_price() {
        let prices = Prices::tenths(4_000, 5_000, 8_000, 200, 20_000);
        let tokens = Tokens {
            input: 1_000_000,
            ..Tokens::default()
        };
        assert_eq!(prices.cost(&tokens).micro_dollars(), 4_000_000);
        let tokens = Tokens {
            read: 1_000_000,
            output: 1_000_000,
            ..Tokens::default()
        };
        assert_eq!(prices.cost(&tokens).micro_dollars(), 20_200_000);
    }
}
