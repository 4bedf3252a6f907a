//! The size of a prompt, from what upstream last said about its beginning.
//!
//! What was reported is exact and includes everything that the rules here can
//! only guess at. So it stays, and only the difference between then and now is
//! estimated: what was added, at the model's factor; what went, when a new view
//! is smaller, at the rate the reported prompt itself had. A change of system or
//! tools is such a difference too.

use super::factor::{Factor, Observed, ratio, scale};
use super::prompt::Size;
use super::raw::Raw;

/// Raw tokens of added text from which they tell the factor.
const ENOUGH: u64 = 50;

/// What upstream said about a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The size it reported, cached parts included.
    pub tokens: u64,
    /// The raw count of what was sent.
    pub size: Size,
}

/// How a size is known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exactness {
    /// Upstream reported this very prompt.
    Reported,
    /// Upstream reported another prompt of this conversation.
    Anchored,
    /// The model's factor is known from other prompts.
    Learned,
    /// The model has not answered yet.
    Assumed,
}

/// A size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// In tokens of the model.
    pub tokens: u64,
    /// How it is known.
    pub exactness: Exactness,
}

impl Anchor {
    /// The prompt together with the reply to it, once the client sends that back
    /// as it was given: its output tokens are exact too, hidden thinking
    /// included. Not for models that are shown no earlier thinking.
    #[must_use]
    pub fn with_reply(mut self, output: u64, reply: Raw) -> Self {
        self.tokens = self.tokens.saturating_add(output);
        self.size.messages += reply;
        self
    }

    /// Tokens of one raw token of this prompt.
    fn rate(&self, factor: &Factor) -> f64 {
        let raw = self.size.raw();
        if raw.scaled() <= raw.fixed || self.tokens <= raw.fixed {
            return factor.value();
        }
        Factor::assumed(ratio(self.tokens - raw.fixed, raw.scaled())).value()
    }
}

/// Measures a prompt. If system and tools are the same as at the anchor, their
/// raw count need not be known.
pub fn measure(anchor: Option<&Anchor>, now: &Size, factor: &Factor) -> Measured {
    let usable = |anchor: &&Anchor| Factor::is_plausible(anchor.size.raw(), anchor.tokens);
    let Some(anchor) = anchor.filter(usable) else {
        let exactness = if factor.is_learned() {
            Exactness::Learned
        } else {
            Exactness::Assumed
        };
        return Measured {
            tokens: factor.tokens(now.raw()),
            exactness,
        };
    };
    let same_base = now.base.digest == anchor.size.base.digest;
    let (before, mut after) = (anchor.size, *now);
    if same_base {
        after.base = before.base;
    }
    let (before, after) = (before.raw(), after.raw());
    if same_base && before == after {
        return Measured {
            tokens: anchor.tokens,
            exactness: Exactness::Reported,
        };
    }
    let added = after.scaled().saturating_sub(before.scaled());
    let gone = before.scaled().saturating_sub(after.scaled());
    let more =
        scale(added, factor.value()).saturating_add(after.fixed.saturating_sub(before.fixed));
    // Rounded up less one, so that what is subtracted is rounded down.
    let less = scale(gone, anchor.rate(factor))
        .saturating_sub(u64::from(gone > 0))
        .saturating_add(before.fixed.saturating_sub(after.fixed));
    Measured {
        tokens: anchor
            .tokens
            .saturating_add(more)
            .saturating_sub(less)
            .max(after.fixed)
            .max(1),
        exactness: Exactness::Anchored,
    }
}

/// Learns a model's factor from a prompt that was answered: by what was added
/// since the anchor if that is enough, because then hidden thinking, pictures
/// and all else that the rules guess at cancels out; else by the whole, if there
/// is no anchor or little was learned so far.
pub fn learn(factor: &mut Factor, anchor: Option<&Anchor>, now: &Size, reported: u64) -> Observed {
    let whole = now.raw();
    if !Factor::is_plausible(whole, reported) {
        return Observed::Nonsense;
    }
    let grown = anchor.and_then(|anchor| {
        let before = anchor.size.raw();
        let added = Raw {
            text: whole.text.checked_sub(before.text)?,
            thinking: whole.thinking.checked_sub(before.thinking)?,
            fixed: whole.fixed.checked_sub(before.fixed)?,
        };
        let enough = added.text >= ENOUGH && mostly_text(added);
        let same_base = anchor.size.base.digest == now.base.digest;
        (enough && same_base).then_some((added, reported.checked_sub(anchor.tokens)?))
    });
    match grown {
        Some((added, tokens)) => factor.observe(added, tokens),
        None if anchor.is_none() && mostly_text(whole) => factor.observe(whole, reported),
        None if factor.evidence() < whole.text / 4 => factor.observe(whole, reported),
        None => Observed::Uninformative,
    }
}

fn mostly_text(raw: Raw) -> bool {
    raw.thinking <= raw.text / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::measure::prompt::Base;
    use proptest::prelude::*;

    fn text(tokens: u64) -> Raw {
        Raw {
            text: tokens,
            ..Raw::default()
        }
    }

    fn size(base: u64, messages: u64) -> Size {
        Size {
            base: Base {
                digest: [u8::try_from(base % 251).unwrap(); 16],
                raw: text(base),
            },
            messages: text(messages),
        }
    }

    fn learned(value: f64) -> Factor {
        Factor::from_text(&format!("{value} 100000")).unwrap()
    }

    #[test]
    fn only_the_difference_is_estimated() {
        let anchor = Anchor {
            tokens: 15_000,
            size: size(1_000, 10_000),
        };
        let factor = learned(1.3);
        for (now, tokens, exactness) in [
            (size(1_000, 10_000), 15_000, Exactness::Reported),
            (size(1_000, 12_000), 15_000 + 2_600, Exactness::Anchored),
            (size(2_000, 10_000), 15_000 + 1_300, Exactness::Anchored),
            (size(2_000, 12_000), 15_000 + 3_900, Exactness::Anchored),
        ] {
            assert_eq!(
                measure(Some(&anchor), &now, &factor),
                Measured { tokens, exactness }
            );
        }
    }

    #[test]
    fn a_view_that_shrank_is_smaller_at_its_own_rate() {
        let anchor = Anchor {
            tokens: 15_008,
            size: size(0, 10_000),
        };
        let measured = measure(Some(&anchor), &size(0, 4_000), &learned(1.2));
        assert!((6_008..=6_010).contains(&measured.tokens), "{measured:?}");
        let none = measure(Some(&anchor), &size(0, 0), &learned(1.2));
        assert!((8..=10).contains(&none.tokens), "{none:?}");
    }

    #[test]
    fn without_an_anchor_or_with_a_nonsensical_one_the_factor_decides() {
        let now = size(1_000, 9_000);
        let assumed = measure(None, &now, &Factor::assumed(1.4));
        assert_eq!(
            assumed,
            Measured {
                tokens: 14_008,
                exactness: Exactness::Assumed
            }
        );
        for tokens in [0, 300, 9_000_000] {
            let anchor = Anchor {
                tokens,
                size: size(1_000, 8_000),
            };
            let measured = measure(Some(&anchor), &now, &learned(1.2));
            assert_eq!(
                measured,
                Measured {
                    tokens: 12_008,
                    exactness: Exactness::Learned
                }
            );
        }
    }

    #[test]
    fn a_reply_that_comes_back_is_known_exactly() {
        let anchor = Anchor {
            tokens: 15_000,
            size: size(0, 10_000),
        }
        .with_reply(700, text(50));
        assert_eq!(
            measure(Some(&anchor), &size(0, 10_050), &learned(1.2)).tokens,
            15_700
        );
    }

    #[test]
    fn equal_system_and_tools_need_not_be_counted_again() {
        let anchor = Anchor {
            tokens: 15_000,
            size: size(5_000, 6_000),
        };
        let mut now = size(5_000, 7_000);
        now.base.raw = Raw::default();
        assert_eq!(measure(Some(&anchor), &now, &learned(1.2)).tokens, 16_200);
    }

    #[test]
    fn what_was_added_tells_the_factor_whatever_the_rest_hides() {
        // Half of what was reported is thinking that no rule can see.
        let before = Anchor {
            tokens: 20_000,
            size: size(0, 10_000),
        };
        let mut factor = Factor::assumed(1.4);
        let observed = learn(&mut factor, Some(&before), &size(0, 12_000), 22_600);
        assert_eq!(observed, Observed::Taken);
        assert!((factor.value() - 1.3).abs() < 0.01, "{factor:?}");
        let nonsense = learn(&mut factor, Some(&before), &size(0, 12_000), 900_000);
        assert_eq!(nonsense, Observed::Nonsense);
        let crumb = learn(&mut factor, Some(&before), &size(0, 10_010), 20_013);
        assert_eq!(crumb, Observed::Taken, "little was learned so far");
        let mut settled = learned(1.3);
        let crumb = learn(&mut settled, Some(&before), &size(0, 10_010), 20_013);
        assert_eq!(crumb, Observed::Uninformative);
        let shrunk = learn(&mut settled, Some(&before), &size(0, 4_000), 8_000);
        assert_eq!(shrunk, Observed::Uninformative);
        assert_eq!(
            learn(&mut settled, None, &size(0, 4_000), 5_200),
            Observed::Taken
        );
    }

    proptest! {
        #[test]
        fn more_text_is_never_measured_smaller(
            reported in 1_000u64..100_000, before in 1_000u64..60_000, now in 0u64..90_000, more in 0u64..9_000,
        ) {
            let anchor = Anchor { tokens: reported, size: size(0, before) };
            let factor = learned(1.3);
            let one = measure(Some(&anchor), &size(0, now), &factor).tokens;
            let other = measure(Some(&anchor), &size(0, now + more), &factor).tokens;
            prop_assert!(one <= other && one > 0);
        }
    }
}
