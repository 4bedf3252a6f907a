//! The summarizer persona: how calls that ask for a summary are answered.
//!
//! Such a call is recognised by what it asks for, in the last message or in the
//! system prompt. A persona is a way for a summarizer to be good or bad; one
//! can be set for good, and others queued in front of it for a call each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::ApiError;
use super::fault::Fault;
use super::reply::Reply;
use super::request::{Block, Request, Role, kind, text};
use super::summary::Findings;

/// A way to summarize.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persona {
    /// A complete summary of what it was given.
    #[default]
    Good,
    /// The right form with nothing in the fields that matter.
    Forgetful,
    /// No text at all.
    Empty,
    /// Not the form that was asked for.
    Malformed,
    /// Stopped by the output limit in the middle.
    CutOff,
    /// Complete, but it names files that were never mentioned.
    InventingPaths,
    /// Calls a tool instead of writing.
    CallsTool,
    /// Good, but late.
    Slow,
    /// Never answers.
    Hanging,
    /// 429.
    RateLimited,
    /// 500.
    ServerError,
    /// 529.
    Overloaded,
    /// The prompt is too long for it.
    ContextExceeded,
}

/// What a persona does with a call.
#[derive(Debug)]
pub enum Act {
    /// Answers, after a wait.
    Say(Reply, Duration),
    /// Refuses.
    Refuse(ApiError),
    /// Fails on the wire.
    Fail(Fault),
}

/// Texts that give a request for a summary away, in lower case.
const REQUESTS: &[&str] = &[
    "session_intent",
    "summary of the conversation",
    "summary of our conversation",
    "summarize the conversation",
    "summarise the conversation",
    "summarize this conversation",
];

/// How far from its start and its end a text is searched for such a request:
/// instructions stand there, and a transcript in between may mention anything.
const SEARCHED: usize = 8_000;

/// Whether a request asks for a summary.
pub fn asks_for_summary(request: &Request) -> bool {
    request.wants_compaction() || instruction(request).is_some()
}

fn instruction(request: &Request) -> Option<&Block> {
    let asks = |block: &&Block| {
        let (start, end) = ends(text(block, "text"));
        let words = format!("{start} {end}").to_lowercase();
        REQUESTS.iter().any(|request| words.contains(request))
    };
    let last = request
        .messages
        .last()
        .filter(|message| message.role != Role::Assistant);
    let ending = last
        .and_then(|message| message.blocks.last())
        .filter(|block| kind(block) == "text");
    ending
        .filter(asks)
        .or_else(|| request.system.iter().find(asks))
}

/// The start and the end of a text.
fn ends(words: &str) -> (&str, &str) {
    let start = words
        .char_indices()
        .nth(SEARCHED)
        .map_or(words.len(), |(at, _)| at);
    let end = words
        .char_indices()
        .rev()
        .nth(SEARCHED)
        .map_or(0, |(at, _)| at);
    (
        words.get(..start).unwrap_or(words),
        words.get(end.max(start)..).unwrap_or(""),
    )
}

impl Persona {
    /// Answers a request for a summary.
    pub fn act(self, request: &Request, slow: Duration) -> Act {
        let findings = Findings::of(request);
        let form = Form::of(request);
        let good = || form.write(&findings);
        let say = |text: String| Act::Say(Reply::text(text), Duration::ZERO);
        match self {
            Self::Good => say(good()),
            Self::Slow => Act::Say(Reply::text(good()), slow),
            Self::Forgetful => say(form.write(&Findings::default())),
            Self::Empty => Act::Say(Reply::default(), Duration::ZERO),
            Self::Malformed => say("Sure! Here is { what, I remember: [".to_owned()),
            Self::CutOff => {
                let whole = good();
                let half = whole
                    .chars()
                    .take(whole.chars().count() / 2)
                    .collect::<String>();
                Act::Say(
                    Reply::text(half).stopping_with("max_tokens"),
                    Duration::ZERO,
                )
            }
            Self::InventingPaths => {
                let mut invented = findings;
                invented
                    .files
                    .push("/opt/imaginary/never_mentioned.rs".to_owned());
                invented
                    .files
                    .push("src/invented/by_the_summarizer.rs".to_owned());
                say(form.write(&invented))
            }
            Self::CallsTool => match request.tools.first() {
                Some(tool) => Act::Say(Reply::call(text(tool, "name"), &json!({})), Duration::ZERO),
                None => say(good()),
            },
            Self::Hanging => Act::Fail(Fault::Hang),
            Self::RateLimited => Act::Refuse(refusal(429)),
            Self::ServerError => Act::Refuse(refusal(500)),
            Self::Overloaded => Act::Refuse(refusal(529)),
            Self::ContextExceeded => {
                let window = request.model.window;
                let text = format!(
                    "prompt is too long: {} tokens > {window} maximum",
                    window + 1
                );
                Act::Refuse(ApiError::invalid(text))
            }
        }
    }
}

fn refusal(status: u16) -> ApiError {
    ApiError::new(status, super::fault::usual_text(status))
}

/// The form in which a summary is wanted.
#[derive(Debug, Clone, Copy)]
enum Form {
    Json,
    Tags,
    Prose,
}

impl Form {
    fn of(request: &Request) -> Self {
        let compaction = request
            .fields
            .get("compaction")
            .and_then(|c| c.get("instructions"));
        // Behind a tool call the instruction is no longer the last thing said.
        let blocks = request.messages.iter().flat_map(|message| &message.blocks);
        let earlier = || {
            blocks
                .rev()
                .find(|block| text(block, "text").contains("session_intent"))
        };
        let asked = instruction(request)
            .or_else(earlier)
            .map_or("", |block| text(block, "text"));
        let asked = compaction.and_then(Value::as_str).unwrap_or(asked);
        if asked.contains("<session_intent>") {
            Self::Tags
        } else if asked.contains("session_intent") {
            Self::Json
        } else {
            Self::Prose
        }
    }

    fn write(self, findings: &Findings) -> String {
        match self {
            Self::Json => findings.json().to_string(),
            Self::Tags => findings.tags(),
            Self::Prose => findings.prose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{request, user};

    fn asking() -> Request {
        let messages = json!([
            user("fix /project/src/a.rs, never touch main"),
            user("Write session_intent and so on as JSON")
        ]);
        request(&json!({"messages": messages}), &[])
    }

    fn said(persona: Persona) -> Reply {
        match persona.act(&asking(), Duration::from_secs(1)) {
            Act::Say(reply, _) => reply,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_for_a_summary_is_recognised() {
        assert!(asks_for_summary(&asking()));
        assert!(!asks_for_summary(&request(
            &json!({"messages": [user("hello")]}),
            &[]
        )));
        let body = json!({"system": "Produce session_intent", "messages": [user("transcript")]});
        assert!(asks_for_summary(&request(&body, &[])));
    }

    #[test]
    fn a_good_summary_has_all_keys_and_only_what_it_was_given() {
        let text = said(Persona::Good).text.unwrap();
        let summary: Value = serde_json::from_str(&text).unwrap();
        for key in super::super::summary::KEYS {
            assert!(summary.get(*key).is_some(), "{key}");
        }
        assert_eq!(summary["files_touched"], json!(["/project/src/a.rs"]));
    }

    #[test]
    fn bad_summaries_are_bad_in_their_own_way() {
        let parse = |text: &str| serde_json::from_str::<Value>(text);
        let forgetful = parse(&said(Persona::Forgetful).text.unwrap()).unwrap();
        assert_eq!(forgetful["session_intent"], "");
        assert!(parse(&said(Persona::Malformed).text.unwrap()).is_err());
        let cut = said(Persona::CutOff);
        assert_eq!(cut.stop_reason.as_deref(), Some("max_tokens"));
        assert!(parse(&cut.text.unwrap()).is_err());
        assert!(said(Persona::Empty).all_blocks().is_empty());
        let invented = parse(&said(Persona::InventingPaths).text.unwrap()).unwrap();
        assert!(
            invented["files_touched"]
                .to_string()
                .contains("never_mentioned")
        );
    }

    #[test]
    fn failing_summarizers_fail_with_their_status() {
        let table = [
            (Persona::RateLimited, 429),
            (Persona::ServerError, 500),
            (Persona::Overloaded, 529),
            (Persona::ContextExceeded, 400),
        ];
        for (persona, status) in table {
            match persona.act(&asking(), Duration::ZERO) {
                Act::Refuse(error) => assert_eq!(error.status, status),
                other => panic!("{other:?}"),
            }
        }
    }
}
