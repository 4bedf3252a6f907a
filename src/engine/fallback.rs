//! Upstream refused a request: what to try next, and what the refusal teaches.
//!
//! A refusal as too long is answered by a smaller view. One of thinking that does
//! not belong to its conversation is answered by asking upstream to drop it. Any
//! other refusal of a request that we changed is ours until proven otherwise:
//! first goes what we added, then the API's own summary, then the thinking that
//! our change may have spoilt, then the whole change.
//!
//! Not every refusal is proof. A 413 whose body is not an API's error may come
//! from any machine on the way, and "too long" is doubtful for a size that the
//! same account was answered at: in both cases the same bytes are sent once more
//! before anything is made smaller.

use crate::wire::refusal::Refusal;

/// How often a request is made smaller because upstream finds it too long.
const SHRINKS: u32 = 2;
/// The same where it is not certain that its size was the reason.
const DOUBTFUL_SHRINKS: u32 = 1;

/// What is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The same bytes once more.
    Again,
    /// Ask upstream to drop thinking that does not fit.
    Drop,
    /// Without our cache breakpoints.
    NoMarks,
    /// Without asking upstream to drop anything.
    NoDrop,
    /// Without the summary that the API itself has written.
    NoNative,
    /// Without the thinking behind our change.
    Bare,
    /// As the client sent it.
    Own,
    /// A smaller view.
    Smaller,
}

/// A request that was refused.
#[derive(Debug, Clone, Copy, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the request"
)]
pub struct Refused {
    /// We changed something.
    pub edited: bool,
    /// The view has an overlay.
    pub overlaid: bool,
    /// We added cache breakpoints.
    pub added_marks: bool,
    /// We asked upstream to drop thinking.
    pub added_drop: bool,
    /// The view shows a summary that the API itself has written.
    pub added_native: bool,
    /// A pass was made for this request.
    pub passed: bool,
    /// The model binds thinking to what stands before it.
    pub binds_thinking: bool,
    /// Upstream can be asked to drop thinking, and has not refused that yet.
    pub can_ask_to_drop: bool,
    /// There is thinking behind our change that can be left out.
    pub can_go_bare: bool,
    /// The client's own request fits the window.
    pub own_fits: bool,
    /// The request may be made smaller.
    pub may_shrink: bool,
    /// How often it was.
    pub shrunk: u32,
    /// The same bytes were sent again already.
    pub repeated: bool,
    /// The same account was answered at this size before.
    pub answered_before: bool,
}

/// Whether a refusal is about the size of a request.
pub fn is_about_size(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::ContextExceeded { .. }
            | Refusal::OutputExceedsWindow { .. }
            | Refusal::RequestTooLarge
            | Refusal::BodyRejected
    )
}

/// Whether a refusal is about thinking that belongs to another conversation.
pub fn is_about_binding(refusal: &Refusal, binds_thinking: bool) -> bool {
    match refusal {
        Refusal::BoundThinking(_) => true,
        // In fewer words; where nothing is bound it is the client's matter.
        Refusal::InvalidThinking(_) => binds_thinking,
        _ => false,
    }
}

/// What is tried next; `None` if the refusal is the client's to see.
pub fn next(refusal: &Refusal, request: &Refused) -> Option<Fallback> {
    if is_about_size(refusal) {
        return smaller(refusal, request);
    }
    if matches!(refusal, Refusal::MaxTokensTooLarge { .. }) {
        return None;
    }
    let bound = is_about_binding(refusal, request.binds_thinking);
    if bound && request.can_ask_to_drop {
        return Some(Fallback::Drop);
    }
    let unknown = matches!(refusal, Refusal::UnknownBeta(_) | Refusal::ExtraField(_));
    let without_native = request.added_native && (request.own_fits || request.may_shrink);
    // Breakpoints and the request to drop thinking have nothing to do with where
    // thinking belongs.
    match () {
        () if unknown && request.added_drop => Some(Fallback::NoDrop),
        () if unknown && without_native => Some(Fallback::NoNative),
        () if !request.edited => None,
        () if request.added_marks && !bound => Some(Fallback::NoMarks),
        () if request.added_drop && !bound => Some(Fallback::NoDrop),
        // An older one was answered before.
        () if without_native && request.passed => Some(Fallback::NoNative),
        () if request.can_go_bare => Some(Fallback::Bare),
        () if without_native => Some(Fallback::NoNative),
        () if request.overlaid && request.own_fits => Some(Fallback::Own),
        () => None,
    }
}

fn smaller(refusal: &Refusal, request: &Refused) -> Option<Fallback> {
    let (doubtful, shrinks) = match refusal {
        Refusal::BodyRejected => (true, DOUBTFUL_SHRINKS),
        Refusal::ContextExceeded { .. } => (request.answered_before, SHRINKS),
        _ => (false, SHRINKS),
    };
    match () {
        () if !request.may_shrink => None,
        () if doubtful && !request.repeated && request.shrunk == 0 => Some(Fallback::Again),
        () => (request.shrunk < shrinks).then_some(Fallback::Smaller),
    }
}

/// What a refusal says about sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// The window.
    pub window: Option<u64>,
    /// Tokens of the refused prompt.
    pub prompt: Option<u64>,
    /// Tokens that a prompt may have beside the output that was asked for.
    pub at_most: Option<u64>,
}

/// Reads the sizes from a refusal of a request with this `max_tokens`. Only a
/// refusal in tokens teaches a window.
pub fn sizes(refusal: &Refusal, max_tokens: Option<u64>) -> Sizes {
    match *refusal {
        Refusal::ContextExceeded { tokens, window } => Sizes {
            window,
            prompt: tokens,
            at_most: None,
        },
        Refusal::OutputExceedsWindow {
            tokens,
            output,
            window,
        } => {
            let output = output.or(max_tokens).unwrap_or(0);
            let room = window.map(|window| window.saturating_sub(output));
            Sizes {
                window,
                prompt: tokens,
                at_most: room.filter(|room| *room > 0),
            }
        }
        _ => Sizes::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Refusal = Refusal::ContextExceeded {
        tokens: Some(210_000),
        window: Some(200_000),
    };
    const SHRINKABLE: Refused = Refused {
        edited: false,
        overlaid: false,
        added_marks: false,
        added_drop: false,
        added_native: false,
        passed: false,
        binds_thinking: false,
        can_ask_to_drop: false,
        can_go_bare: false,
        own_fits: false,
        may_shrink: true,
        shrunk: 0,
        repeated: false,
        answered_before: false,
    };
    const CHANGED: Refused = Refused {
        edited: true,
        overlaid: true,
        own_fits: true,
        ..SHRINKABLE
    };

    #[test]
    fn what_is_tried_when_a_request_is_too_large() {
        let request = SHRINKABLE;
        let repeated = Refused {
            repeated: true,
            ..request
        };
        let shrunk = |shrunk, request| Refused { shrunk, ..request };
        let answered = Refused {
            answered_before: true,
            ..request
        };
        let fixed = Refused {
            may_shrink: false,
            ..request
        };
        let (large, rejected) = (Refusal::RequestTooLarge, Refusal::BodyRejected);
        for (name, refusal, request, next_one) in [
            ("too long", &LONG, request, Some(Fallback::Smaller)),
            ("again", &LONG, shrunk(1, request), Some(Fallback::Smaller)),
            ("and again", &LONG, shrunk(2, request), None),
            ("as the client wants it", &LONG, fixed, None),
            ("was answered", &LONG, answered, Some(Fallback::Again)),
            (
                "was answered, and refused twice",
                &LONG,
                Refused {
                    repeated: true,
                    ..answered
                },
                Some(Fallback::Smaller),
            ),
            ("too large", &large, request, Some(Fallback::Smaller)),
            ("still too large", &large, shrunk(2, request), None),
            ("by whom?", &rejected, request, Some(Fallback::Again)),
            ("twice", &rejected, repeated, Some(Fallback::Smaller)),
            ("thrice", &rejected, shrunk(1, repeated), None),
            ("rejected, fixed", &rejected, fixed, None),
        ] {
            assert_eq!(next(refusal, &request), next_one, "{name}");
        }
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "one table")]
    fn what_is_tried_when_something_else_is_wrong() {
        let request = CHANGED;
        let bound = Refusal::BoundThinking(None);
        let beta = Refusal::UnknownBeta(vec!["b".to_owned()]);
        let native = Refused {
            added_native: true,
            ..request
        };
        let passed = Refused {
            passed: true,
            can_go_bare: true,
            ..native
        };
        let marked = Refused {
            added_marks: true,
            added_drop: true,
            can_go_bare: true,
            ..native
        };
        let other = Refusal::Other;
        let own = Some(Fallback::Own);
        for (name, refusal, request, next_one) in [
            ("the client's own", &other, SHRINKABLE, None),
            ("an overlay", &other, request, own),
            (
                "an overlay that cannot be taken back",
                &other,
                Refused {
                    own_fits: false,
                    ..request
                },
                None,
            ),
            ("breakpoints", &other, marked, Some(Fallback::NoMarks)),
            (
                "dropping",
                &other,
                Refused {
                    added_marks: false,
                    ..marked
                },
                Some(Fallback::NoDrop),
            ),
            ("a beta", &beta, marked, Some(Fallback::NoDrop)),
            (
                "a beta of a summary",
                &beta,
                native,
                Some(Fallback::NoNative),
            ),
            (
                "a new native summary",
                &other,
                passed,
                Some(Fallback::NoNative),
            ),
            (
                "an older native summary",
                &other,
                Refused {
                    passed: false,
                    ..passed
                },
                Some(Fallback::Bare),
            ),
            (
                "nothing but the summary",
                &other,
                native,
                Some(Fallback::NoNative),
            ),
            (
                "a summary without which nothing fits",
                &other,
                Refused {
                    own_fits: false,
                    ..native
                },
                Some(Fallback::NoNative),
            ),
            (
                "and nothing may be made smaller",
                &other,
                Refused {
                    own_fits: false,
                    may_shrink: false,
                    ..native
                },
                None,
            ),
            (
                "thinking",
                &bound,
                Refused {
                    can_ask_to_drop: true,
                    ..marked
                },
                Some(Fallback::Drop),
            ),
            (
                "thinking that cannot be dropped",
                &bound,
                marked,
                Some(Fallback::Bare),
            ),
            (
                "max_tokens",
                &Refusal::MaxTokensTooLarge { most: None },
                marked,
                None,
            ),
        ] {
            assert_eq!(next(refusal, &request), next_one, "{name}");
        }
    }

    #[test]
    fn what_a_refusal_teaches() {
        let beside = |window, output| Refusal::OutputExceedsWindow {
            tokens: Some(190_000),
            output,
            window,
        };
        let sized = |window, prompt, at_most| Sizes {
            window,
            prompt,
            at_most,
        };
        for (refusal, expected) in [
            (LONG, sized(Some(200_000), Some(210_000), None)),
            (
                beside(Some(200_000), Some(20_000)),
                sized(Some(200_000), Some(190_000), Some(180_000)),
            ),
            (
                beside(Some(200_000), None),
                sized(Some(200_000), Some(190_000), Some(150_000)),
            ),
            (beside(None, None), sized(None, Some(190_000), None)),
            (Refusal::RequestTooLarge, Sizes::default()),
            (Refusal::BodyRejected, Sizes::default()),
            (Refusal::Other, Sizes::default()),
        ] {
            assert_eq!(sizes(&refusal, Some(50_000)), expected, "{refusal:?}");
        }
    }
}
