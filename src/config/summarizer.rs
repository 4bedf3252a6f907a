//! The sections about summaries: who writes them, and what happens when that
//! fails again and again.
//!
//! A client's own credential is only ever sent where the client sent it:
//! another upstream needs a key of its own, which `rules` sees to.

use super::address::Upstream;
use super::choice::SummarizerMode;
use super::names::VariableName;
use std::time::Duration;

/// `[summarizer]`: who writes the summaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summarizer {
    /// How a summary is asked for.
    pub mode: SummarizerMode,
    /// The model asked by mode `model`.
    pub model: String,
    /// A model with a larger window, asked when the first cannot.
    pub fallback: Option<String>,
    /// Where it is asked; none: the main upstream.
    pub upstream: Option<Upstream>,
    /// The variable that holds its key; none: the client's own credential.
    pub api_key_env: Option<VariableName>,
    /// Its window in tokens; none: from the model table.
    pub window: Option<u64>,
    /// Longest summary.
    pub max_tokens: u64,
    /// All waiting that one request may suffer for compaction.
    pub deadline: Duration,
    /// One call in the background.
    pub timeout: Duration,
    /// Calls at once for a span written in parts.
    pub parallel: usize,
    /// Added to the built-in prompt.
    pub instructions: String,
    /// Whether they replace the built-in prompt instead.
    pub replace_prompt: bool,
}

impl Default for Summarizer {
    fn default() -> Self {
        Self {
            mode: SummarizerMode::Auto,
            model: "claude-haiku-5-5".to_owned(),
            fallback: None,
            upstream: None,
            api_key_env: None,
            window: None,
            max_tokens: 4_096,
            deadline: Duration::from_mins(1),
            timeout: Duration::from_mins(5),
            parallel: 4,
            instructions: String::new(),
            replace_prompt: false,
        }
    }
}

/// `[breaker]`: when to stop asking for summaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row that open it.
    pub max_failures: u32,
    /// Requests of the lineage it stays open.
    pub cooldown_turns: u32,
    /// How long the one per upstream, model and credential stays open.
    pub summarizer_cooldown: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            max_failures: 3,
            cooldown_turns: 5,
            summarizer_cooldown: Duration::from_mins(1),
        }
    }
}
