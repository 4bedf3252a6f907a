//! What tokens cost.
//!
//! Prices are integers, so that sums do not depend on their order and two
//! prices are equal when they were written equal. A dollar per million tokens
//! is a million pico-dollars per token: the unit kept here.

use crate::config::ratio::{MILLION, millionths};

/// The price of a token, in pico-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(u32);

impl Price {
    /// The price written as dollars per million tokens.
    pub fn from_dollars_per_million(dollars: f64) -> Option<Self> {
        millionths(dollars).map(Self)
    }

    /// Millionths of a millionth of a dollar, for one token.
    pub fn pico_dollars_per_token(self) -> u64 {
        u64::from(self.0)
    }

    /// As it is written, for display.
    pub fn dollars_per_million(self) -> f64 {
        f64::from(self.0) / f64::from(MILLION)
    }

    fn times(self, hundredths: u32) -> Self {
        let scaled = u64::from(self.0) * u64::from(hundredths) / 100;
        Self(u32::try_from(scaled).unwrap_or(u32::MAX))
    }
}

/// The prices of every class of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Input that no cache serves or keeps.
    pub input: Price,
    /// Written to a cache of five minutes.
    pub write_5m: Price,
    /// Written to a cache of an hour.
    pub write_1h: Price,
    /// Read from a cache.
    pub read: Price,
    /// Output.
    pub output: Price,
}

impl Prices {
    /// The usual proportions, for a model whose prices nobody knows.
    pub const USUAL: Self = Self {
        input: Price(MILLION),
        write_5m: Price(MILLION / 4 * 5),
        write_1h: Price(MILLION * 2),
        read: Price(MILLION / 10),
        output: Price(MILLION * 5),
    };
}

/// Prices as written: what is missing comes from elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenPrices {
    /// See [`Prices::input`].
    pub input: Option<Price>,
    /// See [`Prices::write_5m`].
    pub write_5m: Option<Price>,
    /// See [`Prices::write_1h`].
    pub write_1h: Option<Price>,
    /// See [`Prices::read`].
    pub read: Option<Price>,
    /// See [`Prices::output`].
    pub output: Option<Price>,
}

impl WrittenPrices {
    /// These prices, and the others' where these say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            input: self.input.or(other.input),
            write_5m: self.write_5m.or(other.write_5m),
            write_1h: self.write_1h.or(other.write_1h),
            read: self.read.or(other.read),
            output: self.output.or(other.output),
        }
    }

    /// All prices, if input and output are known. The API's usual factors
    /// stand in for the rest: 1.25 and 2 for writing, a tenth for reading.
    pub fn complete(self) -> Option<Prices> {
        let input = self.input?;
        Some(Prices {
            input,
            write_5m: self.write_5m.unwrap_or(input.times(125)),
            write_1h: self.write_1h.unwrap_or(input.times(200)),
            read: self.read.unwrap_or(input.times(10)),
            output: self.output?,
        })
    }

    /// Whether any price is written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Prices> for WrittenPrices {
    fn from(prices: Prices) -> Self {
        Self {
            input: Some(prices.input),
            write_5m: Some(prices.write_5m),
            write_1h: Some(prices.write_1h),
            read: Some(prices.read),
            output: Some(prices.output),
        }
    }
}

/// Other prices for prompts beyond a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceStep {
    /// The prompt's tokens beyond which they hold.
    pub above: u64,
    /// What changes.
    pub prices: WrittenPrices,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(dollars: f64) -> Price {
        Price::from_dollars_per_million(dollars).unwrap()
    }

    #[test]
    fn a_price_is_exact_in_pico_dollars() {
        assert_eq!(price(0.3).pico_dollars_per_token(), 300_000);
        assert_eq!(price(0.125).pico_dollars_per_token(), 125_000);
        assert_eq!(Price::from_dollars_per_million(-1.0), None);
        assert_eq!(Price::from_dollars_per_million(f64::NAN), None);
    }

    #[test]
    fn missing_cache_prices_follow_from_input() {
        let written = WrittenPrices {
            input: Some(price(3.0)),
            output: Some(price(15.0)),
            ..WrittenPrices::default()
        };
        let prices = written.complete().unwrap();
        assert_eq!(prices.write_5m, price(3.75));
        assert_eq!(prices.write_1h, price(6.0));
        assert_eq!(prices.read, price(0.3));
    }

    #[test]
    fn without_input_or_output_there_are_no_prices() {
        let only_input = WrittenPrices {
            input: Some(price(3.0)),
            ..WrittenPrices::default()
        };
        assert_eq!(only_input.complete(), None);
        assert_eq!(WrittenPrices::default().complete(), None);
    }
}
