//! A share of a whole, such as the part of the window at which a pass starts.
//!
//! Kept in millionths: two ratios are equal when they were written equal, and
//! a share of a token count is the same integer on every machine.

use std::fmt;

/// One whole in the integer form of ratios and prices.
pub(super) const MILLION: u32 = 1_000_000;

/// A share between nothing and everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    /// Everything.
    pub const ONE: Self = Self(MILLION);
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A whole number of hundredths; more than a hundred is everything.
    pub const fn percent(hundredths: u32) -> Self {
        if hundredths >= 100 {
            Self::ONE
        } else {
            Self(hundredths * (MILLION / 100))
        }
    }

    /// The ratio nearest to a number between 0 and 1.
    pub fn from_number(number: f64) -> Option<Self> {
        let ratio = Self(millionths(number)?);
        (ratio <= Self::ONE).then_some(ratio)
    }

    /// This share of a whole, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.0) / u128::from(MILLION);
        // Never more than the whole, so it always fits.
        u64::try_from(share).unwrap_or(whole)
    }

    /// Half of this share.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// The share as a floating point number, for display and metrics.
    pub fn number(self) -> f64 {
        f64::from(self.0) / f64::from(MILLION)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(formatter)
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(formatter)
    }
}

/// A number as an integer of millionths, if it is not negative and fits.
pub(super) fn millionths(number: f64) -> Option<u32> {
    // Through text, because it refuses what a cast would silently bend:
    // negative numbers, infinities and everything too large.
    format!("{:.0}", number * f64::from(MILLION)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_between_nothing_and_everything() {
        for (number, expected) in [
            (0.0, Some(Ratio::ZERO)),
            (0.6, Some(Ratio::percent(60))),
            (1.0, Some(Ratio::ONE)),
            (1.000_001, None),
            (-0.5, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e300, None),
        ] {
            assert_eq!(Ratio::from_number(number), expected, "{number}");
        }
    }

    #[test]
    fn a_share_of_tokens_is_rounded_down() {
        assert_eq!(Ratio::percent(35).of(200_000), 70_000);
        assert_eq!(Ratio::percent(33).of(10), 3);
        assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_ratio_prints_as_it_was_written() {
        for text in ["0.6", "0.05", "0.123456", "1"] {
            let ratio = Ratio::from_number(text.parse().unwrap()).unwrap();
            assert_eq!(ratio.to_string(), text);
        }
    }
}
