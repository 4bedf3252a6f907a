//! What can be set on a simulator before it starts.
//!
//! Where the documentation leaves two outcomes open, both are here as a switch;
//! the default is the stricter one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::models::{self, Model};
use crate::clock::Clock;

/// What happens when thinking does not fit the conversation before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// The request is refused, as on accounts created since August 2026.
    #[default]
    Enforced,
    /// The mismatch is only reported in a header, unless the request itself
    /// says what to do, as on older accounts.
    Recorded,
}

/// A credential that is accepted, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key or token as it stands in the header.
    pub credential: String,
    /// Organization: thinking of some models is locked to it.
    pub organization: String,
    /// Workspace: the prompt cache is scoped by it.
    pub workspace: String,
}

/// Changes to one model of the table; `None` leaves the value as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelOverride {
    /// Largest prompt in tokens.
    pub window: Option<u64>,
    /// Largest `max_tokens`.
    pub max_output: Option<u64>,
    /// Shortest prefix that is cached.
    pub min_cacheable: Option<u64>,
    /// Whether thinking is bound to its prefix.
    pub binds_thinking: Option<bool>,
    /// Whether `role: "system"` is accepted inside `messages`.
    pub system_messages: Option<bool>,
    /// Whether on-demand compaction is supported.
    pub summarizes: Option<bool>,
}

/// Settings of a simulator.
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an independent switch"
)]
pub struct Options {
    /// A window for every model, before the overrides per model.
    pub window: Option<u64>,
    /// Changes per model id.
    pub models: BTreeMap<String, ModelOverride>,
    /// Factor between the public vocabulary's counts and the simulator's.
    pub drift: f64,
    /// What a prefix mismatch leads to.
    pub enforcement: Enforcement,
    /// Whether thinking of an open tool loop may not be left out altogether.
    pub loop_thinking_required: bool,
    /// Whether thinking signed by somebody else is dropped instead of refused:
    /// for recordings of the real API.
    pub foreign_signatures: bool,
    /// Whether several mid-conversation system messages may follow each other.
    pub system_message_runs: bool,
    /// Whether server-held threads are accepted.
    pub threads: bool,
    /// Whether on-demand compaction is accepted.
    pub compaction: bool,
    /// Whether what on-demand compaction wrote may stand elsewhere than first.
    pub compaction_anywhere: bool,
    /// Whether tool results may be spread over several user messages in a row.
    pub split_results: bool,
    /// Whether a history with tool calls is accepted without `tools`.
    pub calls_without_tools: bool,
    /// Whether `context_management` is accepted.
    pub context_management: bool,
    /// Block types beyond the known ones that are accepted as they are.
    pub extra_block_types: Vec<String>,
    /// Accepted credentials; empty: any that is not empty.
    pub keys: Vec<Key>,
    /// Whether a request needs a credential at all.
    pub credential_required: bool,
    /// Wait before the first byte of an answer.
    pub first_byte_delay: Duration,
    /// Wait between two stream events.
    pub event_delay: Duration,
    /// Characters of text or JSON in one stream delta.
    pub delta_chars: usize,
    /// Words of an unscripted text reply.
    pub reply_words: usize,
    /// Words of the thinking before a reply.
    pub thinking_words: usize,
    /// How long the slow summarizer takes.
    pub slow_summary: Duration,
    /// Start of every request id.
    pub request_id_prefix: String,
    /// Largest request body in bytes, after decoding.
    pub body_limit: usize,
    /// Whether the ledger keeps request bodies. A session of hundreds of long
    /// requests is better told without.
    pub keep_bodies: bool,
    /// The clock for cache lifetimes.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: None,
            models: BTreeMap::new(),
            drift: 1.0,
            enforcement: Enforcement::default(),
            loop_thinking_required: true,
            foreign_signatures: false,
            system_message_runs: false,
            threads: true,
            compaction: true,
            compaction_anywhere: false,
            split_results: false,
            calls_without_tools: false,
            context_management: true,
            extra_block_types: Vec::new(),
            keys: Vec::new(),
            credential_required: true,
            first_byte_delay: Duration::ZERO,
            event_delay: Duration::ZERO,
            delta_chars: 40,
            reply_words: 12,
            thinking_words: 24,
            slow_summary: Duration::from_secs(2),
            request_id_prefix: "req_sim".to_owned(),
            body_limit: 32 * 1024 * 1024,
            keep_bodies: true,
            clock: Clock::default(),
        }
    }
}

impl Options {
    /// Gives one model another window: small windows make short tests.
    #[must_use]
    pub fn with_window(mut self, model: &str, window: u64) -> Self {
        self.models.entry(model.to_owned()).or_default().window = Some(window);
        self
    }

    /// The model of that name with all changes applied.
    pub fn model(&self, name: &str) -> Option<Model> {
        let mut model = models::find(name)?.clone();
        if let Some(window) = self.window {
            model.window = window;
        }
        if let Some(change) = self.models.get(model.id) {
            model.window = change.window.unwrap_or(model.window);
            model.max_output = change.max_output.unwrap_or(model.max_output);
            model.min_cacheable = change.min_cacheable.unwrap_or(model.min_cacheable);
            model.binds_thinking = change.binds_thinking.unwrap_or(model.binds_thinking);
            model.system_messages = change.system_messages.unwrap_or(model.system_messages);
            model.summarizes = change.summarizes.unwrap_or(model.summarizes);
        }
        Some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_changes_only_its_model() {
        let options = Options::default().with_window("claude-opus-5-5", 32_000);
        assert_eq!(options.model("claude-opus-5-5").unwrap().window, 32_000);
        assert_eq!(options.model("claude-opus-5").unwrap().window, 1_000_000);
    }
}
