//! How large a prompt may be.
//!
//! A table says how large a model's window is, and tables are wrong: a gateway
//! gives less, a plan gives more. When upstream refuses a prompt it says the
//! true size; that is believed, within bounds, over any table, until upstream
//! takes a larger prompt. Bytes have a limit of their own: a view can be small
//! in tokens and too large to be sent.

use std::collections::BTreeMap;

/// Windows that upstream can be believed about.
const SMALLEST: u64 = 1_000;
const LARGEST: u64 = 100_000_000;

/// The most models that are remembered: their names come from clients.
const MODELS: usize = 1_000;

/// Windows learned from refusals, by the name of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    learned: BTreeMap<String, u64>,
}

impl Windows {
    /// Takes back what was stored.
    pub fn restore(&mut self, model: &str, stored: &str) {
        if let Ok(window) = stored.parse() {
            self.learn(model, window);
        }
    }

    /// Learns a window; says whether it is news, and then is to be stored.
    pub fn learn(&mut self, model: &str, window: u64) -> bool {
        let known = self.learned.get(model).copied();
        let room = known.is_some() || self.learned.len() < MODELS;
        if known == Some(window) || !room || !(SMALLEST..=LARGEST).contains(&window) {
            return false;
        }
        self.learned.insert(model.to_owned(), window);
        true
    }

    /// Upstream took a prompt of that size. What was learned is forgotten if it
    /// cannot be true any more; says whether it was.
    pub fn accepted(&mut self, model: &str, tokens: u64) -> bool {
        let outgrown = self
            .learned
            .get(model)
            .is_some_and(|window| *window < tokens);
        if outgrown {
            self.learned.remove(model);
        }
        outgrown
    }

    /// The window of a model: as learned, or else as configured.
    pub fn window(&self, model: &str, configured: u64) -> u64 {
        self.learned.get(model).copied().unwrap_or(configured)
    }
}

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
    fn what_upstream_says_counts_more_than_any_table() {
        let mut windows = Windows::default();
        assert_eq!(windows.window("m", 1_000_000), 1_000_000);
        assert!(windows.learn("m", 200_000));
        assert!(!windows.learn("m", 200_000), "no news");
        assert_eq!(windows.window("m", 1_000_000), 200_000);
        assert_eq!(windows.window("other", 1_000_000), 1_000_000);
        assert!(!windows.accepted("m", 200_000));
        assert!(windows.accepted("m", 200_001), "the window has grown");
        assert_eq!(windows.window("m", 1_000_000), 1_000_000);
    }

    #[test]
    fn windows_beyond_belief_are_not_learned() {
        let mut windows = Windows::default();
        for window in [0, 1, 999, 100_000_001, u64::MAX] {
            assert!(!windows.learn("m", window), "{window}");
        }
        for stored in ["", "x", "-1", "5"] {
            windows.restore("m", stored);
        }
        assert_eq!(windows, Windows::default());
        windows.restore("m", "200000");
        assert_eq!(windows.window("m", 1), 200_000);
    }

    #[test]
    fn names_from_outside_cannot_fill_the_memory() {
        let mut windows = Windows::default();
        for number in 0..5_000 {
            windows.learn(&number.to_string(), 200_000);
        }
        assert_eq!(windows.learned.len(), MODELS);
    }

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
