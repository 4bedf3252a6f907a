//! What to do when a summary fails: one table, by the kind of failure.
//!
//! | failure | first | then | then |
//! |---|---|---|---|
//! | unreachable, overloaded, late | again, a little later | the fallback model | give up |
//! | malformed, cut off, empty | one repair | give up | |
//! | fields empty, names invented | one repair that names them | give up | |
//! | not taken by this API or model | the fallback model | give up | |
//! | longer than the summarizer's window | in parts | the fallback model | give up |
//! | the view is still too large | give up: other tiers go on from there | | |
//!
//! Giving up is what counts against the breaker, once for a flight however many
//! calls it took. That a view is still too large is nobody's failure.

use std::time::Duration;

/// How a summary failed: the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The API could not be reached, or failed.
    Upstream,
    /// The API does not accept the credential.
    Refused,
    /// The API does not take this request: the model, or something in it.
    Unsupported,
    /// The breaker that all sessions share is open: nothing was asked.
    Shut,
    /// It took too long.
    Timeout,
    /// What came is no summary, or only a part of one.
    Malformed,
    /// Fields that matter say nothing.
    EmptyFields,
    /// The span is longer than the summarizer's window.
    ContextExceeded,
    /// It names what never occurred.
    NotVerbatim,
    /// It does not make the view small enough.
    StillTooLarge,
}

impl Failure {
    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Upstream | Self::Refused | Self::Unsupported | Self::Shut => "upstream",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::EmptyFields => "empty_fields",
            Self::ContextExceeded => "context_exceeded",
            Self::NotVerbatim => "not_verbatim",
            Self::StillTooLarge => "still_too_large",
        }
    }

    /// Whether the summarizer's provider is to blame: it counts against the
    /// breaker that all sessions share.
    pub fn is_provider_s(self) -> bool {
        matches!(self, Self::Upstream | Self::Timeout)
    }

    /// Whether it counts against the lineage's breaker.
    pub fn counts(self) -> bool {
        !matches!(self, Self::StillTooLarge | Self::Shut)
    }
}

/// What is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The same call, after a pause.
    Again(Duration),
    /// The same call, told what was wrong.
    Repair,
    /// The span in parts.
    InParts,
    /// Another model, from the start.
    Fallback,
    /// Nothing.
    GiveUp,
}

/// How often a call that could not be made is made again.
const CALLS_AGAIN: u32 = 2;
/// The first pause before it is; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause that an API can ask for and be waited for.
const LONGEST: Duration = Duration::from_secs(20);

/// What there is to fall back on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Means {
    /// Another model can be asked.
    pub fallback: bool,
    /// The span can be cut further.
    pub parts: bool,
}

/// What has been tried for one summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tried {
    again: u32,
    repaired: bool,
    in_parts: bool,
    fallback: bool,
}

impl Tried {
    /// What comes after a failure. `asked` is how long the API wants to be left
    /// alone, `left` how long there is still to wait.
    pub fn next(
        &mut self,
        failure: Failure,
        means: Means,
        asked: Option<Duration>,
        left: Duration,
    ) -> Next {
        let step = match failure {
            Failure::Upstream | Failure::Timeout => {
                let pause = asked.unwrap_or(PAUSE * 2_u32.saturating_pow(self.again));
                // Whoever was slow once would be slow again.
                let may = failure == Failure::Upstream && self.again < CALLS_AGAIN;
                if may && pause <= LONGEST && pause < left {
                    self.again += 1;
                    return Next::Again(pause);
                }
                Next::Fallback
            }
            Failure::Malformed | Failure::EmptyFields | Failure::NotVerbatim if !self.repaired => {
                self.repaired = true;
                return Next::Repair;
            }
            Failure::ContextExceeded if means.parts && !self.in_parts => {
                self.in_parts = true;
                return Next::InParts;
            }
            Failure::ContextExceeded | Failure::Unsupported => Next::Fallback,
            Failure::Malformed
            | Failure::EmptyFields
            | Failure::NotVerbatim
            | Failure::Refused
            | Failure::Shut
            | Failure::StillTooLarge => Next::GiveUp,
        };
        if step == Next::Fallback && means.fallback && !self.fallback && !left.is_zero() {
            *self = Self {
                fallback: true,
                ..Self::default()
            };
            return Next::Fallback;
        }
        Next::GiveUp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Means = Means {
        fallback: true,
        parts: true,
    };
    const LONG: Duration = Duration::from_mins(5);

    fn course(failures: &[Failure], means: Means) -> Vec<Next> {
        let mut tried = Tried::default();
        let step = |failure: &Failure| tried.next(*failure, means, None, LONG);
        failures.iter().map(step).collect()
    }

    #[test]
    fn each_kind_of_failure_has_its_recovery() {
        let half = Next::Again(PAUSE);
        let whole = Next::Again(PAUSE * 2);
        let (repair, parts, other, up) =
            (Next::Repair, Next::InParts, Next::Fallback, Next::GiveUp);
        let rows = [
            (Failure::Upstream, vec![half, whole, other, half, whole, up]),
            (Failure::Timeout, vec![other, up]),
            (Failure::Malformed, vec![repair, up]),
            (Failure::EmptyFields, vec![repair, up]),
            (Failure::NotVerbatim, vec![repair, up]),
            (Failure::ContextExceeded, vec![parts, other, parts, up]),
            (Failure::StillTooLarge, vec![up]),
            (Failure::Refused, vec![up]),
            (Failure::Unsupported, vec![other, up]),
            (Failure::Shut, vec![up]),
        ];
        for (failure, expected) in rows {
            let failures = vec![failure; expected.len()];
            assert_eq!(course(&failures, ALL), expected, "{failure:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_tried() {
        let none = Means::default();
        let failures = [Failure::Upstream; 3];
        assert_eq!(course(&failures, none).last(), Some(&Next::GiveUp));
        assert_eq!(course(&[Failure::ContextExceeded], none), [Next::GiveUp]);
    }

    #[test]
    fn nobody_waits_longer_than_there_is_time() {
        let mut tried = Tried::default();
        let soon = Duration::from_millis(400);
        assert_eq!(
            tried.next(Failure::Upstream, Means::default(), None, soon),
            Next::GiveUp
        );
        let asked = Some(Duration::from_secs(3));
        assert_eq!(
            Tried::default().next(Failure::Upstream, ALL, asked, LONG),
            Next::Again(Duration::from_secs(3))
        );
        let hours = Some(Duration::from_hours(2));
        assert_eq!(
            Tried::default().next(Failure::Upstream, ALL, hours, LONG),
            Next::Fallback
        );
    }

    #[test]
    fn every_course_ends() {
        let kinds = [
            Failure::Upstream,
            Failure::Timeout,
            Failure::Malformed,
            Failure::EmptyFields,
            Failure::NotVerbatim,
            Failure::ContextExceeded,
        ];
        for seed in 0..500_usize {
            let mut tried = Tried::default();
            let steps = (0..).take_while(|step: &usize| {
                let failure = kinds[(seed * 7 + step * (seed / 6 + 1)) % kinds.len()];
                tried.next(failure, ALL, None, LONG) != Next::GiveUp
            });
            assert!(steps.count() <= 12);
        }
    }
}
