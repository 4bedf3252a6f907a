//! How large a prompt may be.
//!
//! A table says how large a model's window is, and what upstream says corrects it
//! ([`super::learned_windows`]). Bytes have a limit of their own: a view can be
//! small in tokens and too large to be sent.

/// What a prompt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of the model's window.
    pub window: u64,
    /// Tokens of it that are kept free, because sizes are estimates.
    pub margin: u64,
    /// Bytes of the largest body.
    pub bytes: u64,
}

/// Whether something fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Fits,
    /// So many tokens must go.
    TooManyTokens(u64),
    /// So many bytes must go; the tokens fit.
    TooManyBytes(u64),
}

/// Whether a request of so many tokens and bytes fits.
pub fn fits(tokens: u64, bytes: u64, limits: &Limits) -> Verdict {
    let over = tokens.saturating_sub(limits.window.saturating_sub(limits.margin));
    match (over, bytes.saturating_sub(limits.bytes)) {
        (0, 0) => Verdict::Fits,
        (0, over) => Verdict::TooManyBytes(over),
        (over, _) => Verdict::TooManyTokens(over),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_must_fit_in_tokens_and_in_bytes() {
        let limits = Limits {
            window: 200_000,
            margin: 10_000,
            bytes: 1_000_000,
        };
        for (tokens, bytes, verdict) in [
            (190_000, 1_000_000, Verdict::Fits),
            (190_001, 0, Verdict::TooManyTokens(1)),
            (230, 4_200_000, Verdict::TooManyBytes(3_200_000)),
            (200_000, 4_200_000, Verdict::TooManyTokens(10_000)),
            (0, 0, Verdict::Fits),
        ] {
            assert_eq!(fits(tokens, bytes, &limits), verdict);
        }
        let none = Limits {
            window: 5,
            margin: 10,
            bytes: 0,
        };
        assert_eq!(fits(1, 0, &none), Verdict::TooManyTokens(1));
    }
}
