//! What was spent, and what would have been spent without Longhaul.
//!
//! Metrics, sessions and `longhaul run` all count this pair and nothing else;
//! what was saved is the difference of the two, wherever it is shown.

use super::policy::Pico;

/// Two sums of money, in pico-dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Money {
    /// What was paid upstream, summaries included.
    pub spent: Pico,
    /// What the same requests would have cost without any pass.
    pub without: Pico,
}

impl Money {
    /// A request that cost this and on which passes saved that; the latter may be
    /// negative.
    pub fn of_request(cost: Pico, saved: Pico) -> Self {
        Self {
            spent: cost,
            without: cost + saved,
        }
    }

    /// A call for a summary: nobody would have made it without Longhaul.
    pub fn of_summary(cost: Pico) -> Self {
        Self {
            spent: cost,
            without: 0,
        }
    }

    /// What was saved, net; may be negative.
    pub fn saved(self) -> Pico {
        self.without - self.spent
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            spent: self.spent + other.spent,
            without: self.without + other.without,
        }
    }
}

/// Pico-dollars in dollars, to the millionth.
#[allow(clippy::cast_precision_loss, reason = "dollars are for people")]
pub fn in_dollars(pico: Pico) -> f64 {
    (pico / 1_000_000) as f64 / 1e6
}

/// Dollars as people read them: with cents, and small sums with more digits.
pub fn dollars(value: f64) -> String {
    let sign = if value <= -0.000_05 { "-" } else { "" };
    let value = value.abs();
    match value {
        0.0..0.000_05 => "$0.00".to_owned(),
        0.000_05..0.1 => format!("{sign}${value:.4}"),
        _ => format!("{sign}${value:.2}"),
    }
}

/// The two sums in a sentence, in dollars.
pub fn sentence(spent: f64, without: f64) -> String {
    format!(
        "spent {}; without Longhaul it would have been {}",
        dollars(spent),
        dollars(without)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_the_difference_and_a_summary_saves_nothing() {
        let money = Money::of_request(1_000, 500).plus(Money::of_summary(700));
        assert_eq!((money.spent, money.without), (1_700, 1_500));
        assert_eq!(money.saved(), -200);
    }

    #[test]
    fn dollars_are_written_as_people_read_them() {
        for (value, expected) in [
            (0.0, "$0.00"),
            (-0.000_01, "$0.00"),
            (0.0042, "$0.0042"),
            (-0.5, "-$0.50"),
            (12.345, "$12.35"),
        ] {
            assert_eq!(dollars(value), expected);
        }
        assert_eq!(
            sentence(1.2, 2.1),
            "spent $1.20; without Longhaul it would have been $2.10"
        );
        assert!((in_dollars(-1_500_000_000_000) + 1.5).abs() < 1e-9);
    }
}
