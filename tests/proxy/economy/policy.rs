//! The policies that are compared, and what each puts around the messages.

use std::collections::BTreeSet;

use fastrand::Rng;
use longhaul::sim::models;
use serde_json::{Value, json};

use super::history::History;
use super::session::Session;
use super::text::prose;

/// Letters of the system prompt and of all tools: about 12,000 tokens together.
const SYSTEM: usize = 24_000;
const TOOLS: usize = 40_000;

/// The share of the usable window from which clearing may begin.
pub const CLEAR_AT: f64 = 0.60;

/// What keeps a history small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Nothing.
    None,
    /// For each request anew, every tool result but the newest few is cleared.
    Rolling(usize),
    /// The API's own edit: above 100,000 tokens all but the newest three.
    Trigger,
    /// All but the newest three when the last prompt was over the watermark of
    /// this budget; what is cleared stays so until then. Not a rival: what a
    /// proxy without any thought for prices would do.
    Batch(u64),
    /// The proxy, with this budget.
    Longhaul(u64),
    /// The proxy, when it is asked to: with each so many requests.
    Asked(usize),
}

impl Policy {
    pub fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Rolling(keep) => format!("rolling {keep}"),
            Self::Trigger => "trigger".to_owned(),
            Self::Batch(_) => "batch".to_owned(),
            Self::Longhaul(_) => "longhaul".to_owned(),
            Self::Asked(_) => "asked".to_owned(),
        }
    }

    /// How many of the oldest results the client clears; `before` are already,
    /// and the last prompt had so many tokens.
    pub fn cleared(self, history: &History, before: usize, prompt: u64) -> usize {
        let all_but = |keep: usize| history.results().saturating_sub(keep);
        match self {
            Self::Rolling(keep) => all_but(keep),
            Self::Batch(budget) if prompt > watermark(budget) => all_but(3),
            Self::Batch(_) => before,
            Self::None | Self::Trigger | Self::Longhaul(_) | Self::Asked(_) => 0,
        }
    }

    /// The budget of the proxy, where there is one.
    pub fn proxied(self) -> Option<u64> {
        match self {
            Self::Longhaul(budget) => Some(budget),
            Self::Asked(_) => Some(0),
            _ => None,
        }
    }

    /// What is said to the proxy with a request.
    pub fn wish(self, request: usize) -> &'static str {
        match self {
            Self::Asked(each) if (request + 1).is_multiple_of(each) => {
                "x-longhaul-compact: now\r\n"
            }
            _ => "",
        }
    }

    /// Whether the client changes what thinking is bound to.
    fn edits(self) -> bool {
        matches!(self, Self::Rolling(_) | Self::Batch(_))
    }
}

/// Tokens from which a proxy with this budget may clear.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
pub fn watermark(budget: u64) -> u64 {
    (budget as f64 * CLEAR_AT) as u64
}

/// Everything of a request but its messages.
pub struct Around {
    before: String,
    after: String,
    pub headers: String,
    pub mark: Value,
}

impl Around {
    pub fn new(session: &Session, policy: Policy, model: &str, lifetime: &str) -> Self {
        let mark = json!({"type": "ephemeral", "ttl": lifetime});
        let mut betas = Vec::new();
        let mut thinking = json!({"type": "adaptive", "display": "summarized"});
        // A client that changes old messages must ask for the thinking that no
        // longer fits to be dropped, or is refused.
        if policy.edits() && models::find(model).unwrap().binds_thinking {
            thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
            betas.push("thinking-binding-controls-2026-08-01");
        }
        let mut fields = json!({
            "system": [{"type": "text", "text": "You are an agent."},
                       {"type": "text", "text": prose(&mut Rng::with_seed(1), SYSTEM), "cache_control": mark}],
            "tools": tools(session),
            "max_tokens": 32_000,
            "thinking": thinking,
        });
        if policy == Policy::Trigger {
            let edit = json!({"type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 100_000},
                "keep": {"type": "tool_uses", "value": 3}});
            fields["context_management"] = json!({"edits": [edit]});
            betas.push("context-management-2025-06-27");
        }
        let mut headers =
            "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
                .to_owned();
        if !betas.is_empty() {
            headers.push_str(&format!("anthropic-beta: {}\r\n", betas.join(",")));
        }
        Self {
            before: format!(r#"{{"model":"{model}","messages":["#),
            after: format!("],{}", &fields.to_string()[1..]),
            headers,
            mark,
        }
    }

    pub fn body(&self, messages: &str) -> Vec<u8> {
        [&self.before, messages, &self.after].concat().into_bytes()
    }
}

fn tools(session: &Session) -> Vec<Value> {
    let answers = session
        .steps
        .iter()
        .filter_map(|step| step.answer["content"].as_array());
    let names: BTreeSet<&str> = answers
        .flatten()
        .filter_map(|block| block["name"].as_str())
        .collect();
    let each = TOOLS / names.len().max(1);
    let mut rng = Rng::with_seed(2);
    let tool = |name: &str| json!({"name": name, "description": prose(&mut rng, each), "input_schema": {"type": "object"}});
    names.into_iter().map(tool).collect()
}
