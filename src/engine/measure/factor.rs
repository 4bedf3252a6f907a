//! The factor between the raw count and a model's own tokens.
//!
//! Learned from prompts whose raw count is known and whose tokens upstream
//! reported. The first says all there is to know; after that each counts by its
//! size against what was seen before, because a short prompt is mostly frame.
//! What cannot be a token count of that prompt is refused, and what is merely
//! odd moves the factor a little: one gateway that reports nonsense must not
//! make every session of a model look small.

use super::raw::Raw;

/// What a factor can be.
const LOWEST: f64 = 0.5;
const HIGHEST: f64 = 3.0;

/// Reported tokens outside of these multiples of the raw count are nonsense.
const NONSENSE_BELOW: f64 = 0.15;
const NONSENSE_ABOVE: f64 = 8.0;

/// Raw tokens of evidence that are remembered; what comes later weighs at least
/// its share against them.
const MEMORY: u64 = 200_000;

/// Evidence from which an observation can be odd, and how far it may then pull.
const SETTLED: u64 = 5_000;
const PULL: f64 = 0.15;

/// Raw tokens of text below which a prompt says nothing.
const LEAST: u64 = 20;

/// A model's factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    value: f64,
    /// Raw tokens it was learned from; none: it is assumed.
    evidence: u64,
}

/// What became of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// It was learned from.
    Taken,
    /// It was too far off to be believed, and was learned from a little.
    Damped,
    /// It says nothing about text: too short, or mostly pictures.
    Uninformative,
    /// It cannot be the size of that prompt.
    Nonsense,
}

impl Factor {
    /// A factor that nothing has been learned about.
    pub fn assumed(value: f64) -> Self {
        let value = if value.is_finite() { value } else { HIGHEST };
        Self {
            value: value.clamp(LOWEST, HIGHEST),
            evidence: 0,
        }
    }

    /// Tokens of one raw token.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether any reply has been learned from.
    pub fn is_learned(&self) -> bool {
        self.evidence > 0
    }

    /// Raw tokens it was learned from, as far as they are remembered.
    pub fn evidence(&self) -> u64 {
        self.evidence
    }

    /// Tokens of a raw count, rounded up.
    pub fn tokens(&self, raw: Raw) -> u64 {
        scale(raw.scaled(), self.value).saturating_add(raw.fixed)
    }

    /// Whether so many tokens can be the size of a prompt at all.
    pub fn is_plausible(raw: Raw, reported: u64) -> bool {
        let ratio = ratio(reported, raw.total());
        // Frames and pictures by rule may be far off in a small prompt.
        raw.total() < 1_000 && (1..20_000).contains(&reported)
            || (NONSENSE_BELOW..=NONSENSE_ABOVE).contains(&ratio)
    }

    /// Learns from a prompt: its raw count as it was sent, and what upstream
    /// said its size was, cached parts included.
    pub fn observe(&mut self, raw: Raw, reported: u64) -> Observed {
        if !Self::is_plausible(raw, reported) {
            return Observed::Nonsense;
        }
        let text = raw.scaled();
        if text < LEAST || text < raw.fixed || reported <= raw.fixed {
            return Observed::Uninformative;
        }
        let seen = ratio(reported - raw.fixed, text).clamp(LOWEST, HIGHEST);
        let near = if self.evidence < SETTLED {
            seen
        } else {
            seen.clamp(self.value * (1.0 - PULL), self.value * (1.0 + PULL))
        };
        let share = ratio(text, self.evidence.saturating_add(text));
        self.value = (self.value + (near - self.value) * share).clamp(LOWEST, HIGHEST);
        self.evidence = self.evidence.saturating_add(text).min(MEMORY);
        if near.to_bits() == seen.to_bits() {
            Observed::Taken
        } else {
            Observed::Damped
        }
    }

    /// As it is stored: exactly, so that whoever reads it counts the same.
    pub fn to_text(&self) -> String {
        format!("{} {}", self.value, self.evidence)
    }

    /// From what was stored; `None` if it cannot be a factor.
    pub fn from_text(text: &str) -> Option<Self> {
        let (value, evidence) = text.split_once(' ')?;
        let value: f64 = value.parse().ok()?;
        let evidence: u64 = evidence.parse().ok()?;
        (LOWEST..=HIGHEST).contains(&value).then_some(Self {
            value,
            evidence: evidence.min(MEMORY),
        })
    }
}

/// So many times a factor, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "token counts are far below 2^52, factors are positive, and the cast saturates"
)]
pub(super) fn scale(count: u64, factor: f64) -> u64 {
    // A hair below the next integer is not worth another token.
    (count as f64 * factor - 1e-6).ceil() as u64
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of token counts")]
pub(super) fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(tokens: u64) -> Raw {
        Raw {
            text: tokens,
            ..Raw::default()
        }
    }

    fn close(factor: &Factor, expected: f64) -> bool {
        (factor.value() - expected).abs() < 0.005
    }

    #[test]
    fn the_first_reply_counts_fully() {
        let mut factor = Factor::assumed(1.4);
        assert_eq!(factor.observe(text(10_000), 11_500), Observed::Taken);
        assert!(factor.is_learned() && close(&factor, 1.15), "{factor:?}");
    }

    #[test]
    fn a_long_prompt_outweighs_a_short_one() {
        let mut factor = Factor::assumed(1.4);
        factor.observe(text(30), 60);
        factor.observe(text(20_000), 26_000);
        assert!(close(&factor, 1.3), "{factor:?}");
        factor.observe(text(30), 60);
        assert!(close(&factor, 1.3), "{factor:?}");
    }

    #[test]
    fn an_outlier_is_damped_and_a_lasting_change_is_followed() {
        let mut factor = Factor::assumed(1.4);
        for _ in 0..20 {
            factor.observe(text(50_000), 60_000);
        }
        assert_eq!(factor.observe(text(50_000), 110_000), Observed::Damped);
        assert!(factor.value() < 1.25, "{factor:?}");
        for _ in 0..30 {
            factor.observe(text(50_000), 75_000);
        }
        assert!(close(&factor, 1.5), "{factor:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        for (raw, reported) in [
            (text(100_000), 0),
            (text(100_000), 10_000),
            (text(100_000), 1_000_000),
            (text(335_000), 4_000_000),
            (text(500), 0),
            (text(500), 50_000),
        ] {
            let mut factor = Factor::assumed(1.4);
            assert_eq!(
                factor.observe(raw, reported),
                Observed::Nonsense,
                "{raw:?} {reported}"
            );
            assert_eq!(factor, Factor::assumed(1.4));
        }
    }

    #[test]
    fn pictures_and_crumbs_say_nothing_about_text() {
        let picture = Raw {
            text: 300,
            thinking: 0,
            fixed: 1_600,
        };
        for (raw, reported) in [(picture, 2_500), (text(5), 9), (picture, 1_200)] {
            let mut factor = Factor::assumed(1.2);
            assert_eq!(factor.observe(raw, reported), Observed::Uninformative);
        }
    }

    #[test]
    fn what_was_stored_comes_back_and_damage_is_seen() {
        let mut factor = Factor::assumed(1.4);
        factor.observe(text(12_345), 15_000);
        let back = Factor::from_text(&factor.to_text()).unwrap();
        assert!(close(&back, factor.value()) && back.is_learned());
        for damaged in [
            "", "1.2", "x 5", "1.2 x", "9.0 5", "NaN 5", "0.1 5", "1.2 -5",
        ] {
            assert_eq!(Factor::from_text(damaged), None, "{damaged}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_observed_the_factor_stays_sane(
            observations in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..20)
        ) {
            let mut factor = Factor::assumed(1.4);
            for (text, fixed, reported) in observations {
                factor.observe(Raw { text, thinking: fixed, fixed }, reported);
                prop_assert!((LOWEST..=HIGHEST).contains(&factor.value()));
            }
            prop_assert!(Factor::from_text(&factor.to_text()).is_some());
        }
    }
}
