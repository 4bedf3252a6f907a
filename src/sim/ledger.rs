//! The ledger: what the simulator saw and what it would have cost.
//!
//! One entry per request, refused ones included. Credentials appear as hashes.

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::binding::Transformation;
use super::error::ApiError;
use super::prices::{Cost, Tokens};

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message.
    Message,
    /// A message that is a summary.
    Summary,
    /// On-demand compaction.
    Compaction,
    /// A token count.
    Count,
    /// Anything else.
    Other,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// With a message or a count.
    Answered {
        /// The stop reason; empty for a count.
        stop_reason: String,
    },
    /// With an error that the request earned.
    Refused {
        /// Status.
        status: u16,
        /// `error.message`.
        message: String,
    },
    /// With a fault that was asked for.
    Faulted {
        /// Which one.
        fault: super::fault::Fault,
    },
}

impl Outcome {
    /// The outcome of a refusal.
    pub fn refused(error: &ApiError) -> Self {
        Self::Refused {
            status: error.status,
            message: error.message.clone(),
        }
    }
}

/// Where a request departs from the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Index of the first position that differs.
    pub position: usize,
    /// Its path in this request; empty if this request ends before it.
    pub path: String,
}

/// One request.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Milliseconds by the simulator's clock.
    pub at: u64,
    /// `request-id` of the answer.
    pub request_id: String,
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers; credentials are hashed.
    pub headers: Vec<(String, String)>,
    /// The body as it arrived, if bodies are kept.
    #[serde(serialize_with = "as_text")]
    pub body: Option<Bytes>,
    /// The model.
    pub model: Option<String>,
    /// What it was for.
    pub kind: Kind,
    /// Whether the answer was streamed.
    pub streamed: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Which requests belong together.
    pub conversation: Option<String>,
    /// `id` of the message.
    pub message_id: Option<String>,
    /// Tokens by class, a compaction in the same request included.
    pub tokens: Tokens,
    /// What it cost.
    pub cost: Cost,
    /// Positions of the prompt.
    pub positions: usize,
    /// Position up to which the cache was read.
    pub read_position: Option<usize>,
    /// Positions at which the cache was written.
    pub written_positions: Vec<usize>,
    /// Where the prompt departs from the previous one of its conversation.
    pub broken_at: Option<Break>,
    /// Thinking that was dropped or tolerated.
    pub transformations: Vec<Transformation>,
    /// The first block that did not fit its prefix and was tolerated.
    pub prefix_mismatch: Option<String>,
    /// Context edits that were applied.
    pub applied_edits: Vec<Value>,
}

/// Sums over the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests for messages and counts.
    pub requests: u64,
    /// Answered ones.
    pub answered: u64,
    /// Refused ones.
    pub refused: u64,
    /// Faulted ones.
    pub faulted: u64,
    /// Answered requests whose prompt did not continue the previous one.
    pub breaks: u64,
    /// Tokens by class.
    pub tokens: Tokens,
    /// Cost.
    pub cost: Cost,
}

/// A snapshot.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ledger {
    /// Entries in order of arrival.
    pub entries: Vec<Entry>,
    /// Their sums.
    pub totals: Totals,
}

impl Ledger {
    /// A ledger of these entries.
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut totals = Totals::default();
        for entry in &entries {
            totals.requests += 1;
            match entry.outcome {
                Outcome::Answered { .. } => totals.answered += 1,
                Outcome::Refused { .. } => totals.refused += 1,
                Outcome::Faulted { .. } => totals.faulted += 1,
            }
            totals.breaks += u64::from(entry.broken_at.is_some());
            totals.tokens = totals.tokens.plus(entry.tokens);
            totals.cost = totals.cost.plus(entry.cost);
        }
        Self { entries, totals }
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }
}

impl Entry {
    /// The body as JSON, decoded if it was compressed.
    pub fn json(&self) -> Option<Value> {
        let encoding = self
            .headers
            .iter()
            .find(|(name, _)| name == "content-encoding");
        let encoding = encoding.map(|(_, value)| value.as_str());
        let body = super::encoding::decode(self.body.as_ref()?, encoding, usize::MAX).ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// A header of the request.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the request was answered.
    pub fn is_answered(&self) -> bool {
        matches!(self.outcome, Outcome::Answered { .. })
    }
}

#[allow(clippy::ref_option, reason = "the signature is serde's")]
fn as_text<S: Serializer>(body: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
    match body {
        Some(body) => serializer.serialize_str(&String::from_utf8_lossy(body)),
        None => serializer.serialize_none(),
    }
}
