//! What a request is, and how it may be treated.
//!
//! Most requests continue a conversation and may start a pass. Some must never
//! start one: they are bound to what was sent before, or they are the client's
//! own way of making room. Some cannot be understood from what they carry and
//! go through as they came. The rules are one table, [`Treatment::of`].

use serde_json::Value;

use super::client_edits::{self, ClearToolUses};
use crate::wire::body::{Body, Kind, Role};
use crate::wire::scan::Span;

/// The longest model name that is taken for one.
const NAME: usize = 128;
/// How much of an instruction's beginning and end is looked at.
const LOOK: usize = 4096;
/// What clients write when they sum a conversation up themselves.
const OWN_SUMMARY: [&str; 6] = [
    "summary of the conversation",
    "summary of our conversation",
    "summarize the conversation",
    "summarize our conversation",
    "prompt for continuing our conversation",
    "context checkpoint compaction",
];

/// What a request says besides its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own that the request states"
)]
pub struct Facts {
    /// The model it asks.
    pub model: String,
    /// How much the model may write.
    pub max_tokens: Option<u64>,
    /// Whether the history is held by the server.
    pub thread: Option<Thread>,
    /// It asks the API for a summary.
    pub compaction: bool,
    /// It redeems a credit, and must equal the request that was refused.
    pub fallback_credit: bool,
    /// Thinking is switched on with a budget, the older way.
    pub manual_thinking: bool,
    /// The client sums the conversation up itself.
    pub own_summary: bool,
    /// It asks the API to clear old tool results.
    pub clears: Option<ClearToolUses>,
}

/// A history that is held by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// This request begins one.
    Create,
    /// This request continues one, and carries only what is new.
    Continue,
}

impl Facts {
    /// What a request says; `None` if it is not one.
    pub fn read(bytes: &[u8], body: &Body) -> Option<Self> {
        let field = |name: &str| body.field(bytes, name).map(|span| span.of(bytes));
        let small = |name: &str| {
            field(name)
                .filter(|value| value.len() <= LOOK)
                .and_then(|value| serde_json::from_slice::<Value>(value).ok())
        };
        let set = |name: &str| field(name).is_some_and(|value| value != b"null");
        let model = small("model")?.as_str()?.to_owned();
        if model.is_empty() || model.len() > NAME {
            return None;
        }
        let thread = small("thread").and_then(|thread| match thread.get("type")?.as_str()? {
            "create" => Some(Thread::Create),
            _ => Some(Thread::Continue),
        });
        let thread = thread.or_else(|| set("thread").then_some(Thread::Continue));
        let thinking = small("thinking");
        let thinking = thinking
            .as_ref()
            .and_then(|value| value.get("type")?.as_str());
        Some(Self {
            max_tokens: small("max_tokens").and_then(|value| value.as_u64()),
            thread,
            compaction: set("compaction"),
            fallback_credit: set("fallback_credit_token"),
            manual_thinking: thinking == Some("enabled"),
            own_summary: own_summary(bytes, body),
            clears: client_edits::asked(bytes, body),
            model,
        })
    }
}

/// Whether the last words of the user are an instruction to sum up. Clients put
/// it at the end of the last message, or in a message of its own.
fn own_summary(bytes: &[u8], body: &Body) -> bool {
    let said = |message: &&crate::wire::body::Message| message.role != Role::System;
    let Some(message) = body.messages().iter().rfind(said) else {
        return false;
    };
    if message.role != Role::User {
        return false;
    }
    let last = body.blocks(message).last();
    let text: Option<Span> = match last {
        None if message.is_string => Some(message.content),
        Some(block) if block.kind == Kind::Text => block.payload,
        _ => None,
    };
    let text = text.map_or(&[][..], |text| text.of(bytes));
    let start = text.get(..LOOK.min(text.len())).unwrap_or(text);
    let end = text.get(text.len().saturating_sub(LOOK)..).unwrap_or(text);
    [start, end].into_iter().any(|part| {
        let part = String::from_utf8_lossy(part).to_ascii_lowercase();
        OWN_SUMMARY.iter().any(|phrase| part.contains(phrase))
    })
}

/// How a request may be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It may start a pass.
    Ordinary,
    /// It is rendered by the plan its lineage has, and starts no pass.
    Fixed,
    /// It goes through as it came.
    Untouched,
}

impl Treatment {
    /// The treatment of a request; `counts` if it only asks for a count.
    pub fn of(facts: &Facts, body: &Body, counts: bool) -> Self {
        let Facts {
            max_tokens,
            thread,
            compaction,
            fallback_credit,
            own_summary,
            ..
        } = facts;
        match () {
            () if thread.is_some() || body.messages().is_empty() => Self::Untouched,
            () if counts || *compaction || *fallback_credit || *own_summary => Self::Fixed,
            () if *max_tokens == Some(0) => Self::Fixed,
            () => Self::Ordinary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn treated(change: &Value, counts: bool) -> Option<Treatment> {
        let mut request = json!({"model": "m", "max_tokens": 9, "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": [{"type": "text", "text": "y"}]},
        ]});
        for (key, value) in change.as_object().unwrap() {
            request[key] = value.clone();
        }
        let bytes = serde_json::to_vec(&request).unwrap();
        let body = Body::split(&bytes).unwrap();
        let facts = Facts::read(&bytes, &body)?;
        Some(Treatment::of(&facts, &body, counts))
    }

    #[test]
    fn each_kind_of_request_has_its_treatment() {
        let text = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
        let rows = [
            (json!({}), false, Treatment::Ordinary),
            (json!({}), true, Treatment::Fixed),
            (json!({"max_tokens": 0}), false, Treatment::Fixed),
            (
                json!({"compaction": {"type": "summarize"}}),
                false,
                Treatment::Fixed,
            ),
            (json!({"compaction": null}), false, Treatment::Ordinary),
            (
                json!({"fallback_credit_token": "t"}),
                false,
                Treatment::Fixed,
            ),
            (
                json!({"thread": {"type": "continue"}}),
                false,
                Treatment::Untouched,
            ),
            (
                json!({"thread": {"type": "create"}}),
                false,
                Treatment::Untouched,
            ),
            (
                json!({"thread": "from the future"}),
                false,
                Treatment::Untouched,
            ),
            (json!({"messages": []}), false, Treatment::Untouched),
            (
                text("Your task is to create a detailed Summary of the conversation so far."),
                false,
                Treatment::Fixed,
            ),
            (
                text("Provide a detailed prompt for continuing our conversation above."),
                false,
                Treatment::Fixed,
            ),
            (text("Summarize the file."), false, Treatment::Ordinary),
        ];
        for (change, counts, expected) in rows {
            assert_eq!(treated(&change, counts), Some(expected), "{change}");
        }
    }

    #[test]
    fn without_a_model_it_is_not_a_request() {
        for model in [json!(null), json!(5), json!(""), json!("m".repeat(200))] {
            assert_eq!(treated(&json!({"model": model}), false), None);
        }
    }

    #[test]
    fn what_the_user_said_before_is_no_instruction_now() {
        let messages = json!({"messages": [
            {"role": "user", "content": "write a summary of the conversation"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "thanks"},
            {"role": "system", "content": "summary of the conversation"},
        ]});
        assert_eq!(treated(&messages, false), Some(Treatment::Ordinary));
    }
}
