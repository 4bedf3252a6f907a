//! What a pass did, as the mark of its request remembers it.
//!
//! Nothing is decided by it: it is for people who look at how a session went and
//! ask why its view became smaller here, by what means and by how much.

use serde::{Deserialize, Serialize};

/// A pass that was made for a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Passed {
    /// What started it, as the metric calls it; or that something oversized has
    /// arrived.
    pub trigger: String,
    /// What it did, the lightest means first.
    pub kinds: Vec<Did>,
    /// Tokens of the view before it, about.
    pub before_tokens: u64,
    /// Tokens of the view after it, about.
    pub after_tokens: u64,
    /// Tokens that its request was expected to write into the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_writes: Option<u64>,
    /// Tokens that it did not read from there, as upstream said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
}

/// One of the things it did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Did {
    /// Which, as the metric calls it.
    pub kind: String,
    /// Tokens that it took out of the view, about.
    pub tokens: u64,
}

impl Passed {
    /// Something oversized has arrived, and was trimmed before it was ever sent.
    pub const ARRIVAL: &str = "arrival";

    /// Whether it is only that, which is not counted as a pass.
    pub fn is_on_arrival(&self) -> bool {
        self.trigger == Self::ARRIVAL
    }

    /// From the labels of the metrics.
    pub fn new(
        trigger: &str,
        kinds: impl IntoIterator<Item = (&'static str, u64)>,
        (before_tokens, after_tokens): (u64, u64),
    ) -> Self {
        let did = |(kind, tokens): (&str, u64)| Did {
            kind: kind.to_owned(),
            tokens,
        };
        Self {
            trigger: trigger.to_owned(),
            kinds: kinds.into_iter().map(did).collect(),
            before_tokens,
            after_tokens,
            expected_writes: None,
            writes: None,
        }
    }

    /// What was expected to be written, and what was.
    pub fn writes(&self) -> Option<(u64, u64)> {
        self.expected_writes.zip(self.writes)
    }
}
