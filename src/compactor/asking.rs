//! How one attempt at a summary is made: on the cached prefix, or from a record.
//!
//! An attempt gives a narrative or says how it failed; what to do about that is
//! not decided here. A record that does not fit the model's window is written in
//! parts, several at once, and the parts are merged, in as many rounds as that
//! takes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Compactor;
use super::client::{Call, CallError, Said};
use super::errand::{Cached, Errand};
use super::sender::{VERSION, window_key};
use crate::engine::recovery::Failure;
use crate::engine::summary::Narrative;
use crate::engine::summary::check::Problem;
use crate::engine::summary::parts::{groups, parts};
use crate::engine::summary::prompt::{self, Ask, End, Wishes};
use crate::engine::summary::read::read;
use crate::engine::summary::temperature::takes_temperature;
use crate::engine::summary::transcript::{Room, transcript};
use crate::wire::body::Body;
use crate::wire::fork;
use crate::wire::refusal::Refusal;
use crate::wire::splice::joined;

/// Tokens that instructions take, about.
const INSTRUCTIONS: u64 = 2_500;
/// Bytes of a token, on the safe side: too many parts cost less than a refusal.
const BYTES_PER_TOKEN: f64 = 2.8;
/// The most parts of one span, and the most rounds in which they are merged.
const PARTS: usize = 64;
const ROUNDS: usize = 6;
/// What a tool call in place of a summary is met with.
const NO_TOOLS: &str =
    "Tools cannot be used now. Answer with the JSON object, beginning with session_intent.";

/// How a summary is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The conversation's own model, on what it has in its cache.
    Fork,
    /// This model, from a record of the span.
    Model(String),
    /// The same in parts.
    InParts(String),
    /// The API itself.
    Native,
}

impl Way {
    /// The label of the metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Native => "native",
            Self::Model(_) | Self::InParts(_) => "model",
        }
    }

    /// The model that is asked.
    pub fn model<'a>(&'a self, errand: &'a Errand) -> &'a str {
        match self {
            Self::Fork | Self::Native => &errand.model,
            Self::Model(model) | Self::InParts(model) => model,
        }
    }
}

/// What an attempt gave.
pub struct Written {
    /// What it says.
    pub narrative: Narrative,
    /// The API's own block, as JSON.
    pub block: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug, Clone)]
pub struct Failed {
    /// The kind.
    pub failure: Failure,
    /// What was wrong with the summary.
    pub problem: Option<Problem>,
    /// For how long the API wants to be left alone.
    pub asked: Option<Duration>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            problem: None,
            asked: None,
        }
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        let failure = match problem {
            Problem::Malformed => Failure::Malformed,
            Problem::EmptyFields(_) => Failure::EmptyFields,
            Problem::Invented(_) => Failure::NotVerbatim,
        };
        Self {
            failure,
            problem: Some(problem),
            asked: None,
        }
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let (failure, asked) = match error {
            CallError::Refused {
                refusal:
                    Refusal::ContextExceeded { .. }
                    | Refusal::OutputExceedsWindow { .. }
                    | Refusal::RequestTooLarge
                    | Refusal::BodyRejected,
                ..
            } => (Failure::ContextExceeded, None),
            CallError::Refused {
                status: 401 | 403, ..
            } => (Failure::Refused, None),
            CallError::Refused { .. } => (Failure::Unsupported, None),
            CallError::Failing { asked, .. } => (Failure::Upstream, asked),
            CallError::Unreachable(_) => (Failure::Upstream, None),
            CallError::Garbled => (Failure::Malformed, None),
            CallError::Late(_) => (Failure::Timeout, None),
        };
        Self {
            failure,
            problem: (failure == Failure::Malformed).then_some(Problem::Malformed),
            asked,
        }
    }
}

impl Compactor {
    /// One attempt. `refused` is what was wrong with the one before.
    pub(super) async fn attempt(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        way: &Way,
        refused: Option<&Problem>,
        until: Instant,
    ) -> Result<Written, Failed> {
        let narrative = match way {
            Way::Native => return self.natively(errand, refused, until).await,
            Way::Fork => self.fork(errand, refused, until).await?,
            Way::Model(model) => {
                let whole = errand.span.clone();
                let asked = Asked::new(self, errand, model, until);
                asked.part(whole, refused).await?
            }
            Way::InParts(model) => {
                let asked = Asked::new(self, errand, model, until);
                asked.in_parts(refused).await?
            }
        };
        Ok(Written {
            narrative,
            block: None,
        })
    }

    pub(super) fn wishes<'a>(&'a self, errand: &'a Errand) -> Wishes<'a> {
        Wishes {
            configured: &self.config.summarizer.instructions,
            replaces: self.config.summarizer.replace_prompt,
            this_request: errand.instructions.as_deref(),
        }
    }

    async fn fork(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        refused: Option<&Problem>,
        until: Instant,
    ) -> Result<Narrative, Failed> {
        let cached = errand.cached.as_ref().ok_or(Failure::Unsupported)?;
        let ask = Ask {
            wishes: self.wishes(errand),
            refused,
        };
        let conversation = errand.conversation();
        let next = conversation.message(errand.span.end);
        let next = next.map_or(&[][..], |message| message.content.of(&errand.bytes));
        let next = first_words(next);
        let instruction = ask.fork(&End {
            messages_after: conversation.len().saturating_sub(errand.span.end),
            next: &next,
        });
        let body = forked(cached, &instruction, self.config.summarizer.max_tokens);
        let body = body.ok_or(Failure::Unsupported)?;
        let (to, headers) = errand.sender.again(&self.base, &cached.betas);
        let mut call = Call { to, headers, body };
        let mut said = self.call(&call, errand, &errand.model, until).await?;
        if said.stop_reason == "tool_use" {
            let met = Body::split(&call.body).ok();
            let met =
                met.and_then(|body| fork::declined(&call.body, &body, &said.content, NO_TOOLS));
            call.body = met.ok_or(Problem::Malformed)?;
            said = self.call(&call, errand, &errand.model, until).await?;
        }
        narrative(&said)
    }

    /// Makes a call and accounts for it.
    pub(super) async fn call(
        &self,
        call: &Call,
        errand: &Errand,
        model: &str,
        until: Instant,
    ) -> Result<Said, Failed> {
        let left = until.saturating_duration_since(Instant::now());
        let within = left.min(self.config.summarizer.timeout);
        if within.is_zero() {
            return Err(Failure::Timeout.into());
        }
        if self.store.is_away() {
            // What was begun ends, but nothing more is begun.
            return Err(Failure::Shut.into());
        }
        tracing::info!(model, "a model is asked for a summary");
        let said = self.client.call(call, within).await.inspect_err(|error| {
            tracing::debug!(model, %error, "a call for a summary failed");
            if let CallError::Refused {
                refusal:
                    Refusal::ContextExceeded {
                        window: Some(window),
                        ..
                    },
                ..
            } = error
            {
                let key = window_key(&call.to, &call.headers, model);
                self.windows.refused(key, *window, &errand.claimed);
            }
        })?;
        self.bill(model, &said.usage, &errand.spent);
        Ok(said)
    }
}

/// Everything that calls to one model have in common.
struct Asked {
    compactor: Arc<Compactor>,
    errand: Arc<Errand>,
    model: Arc<str>,
    until: Instant,
}

impl Asked {
    fn new(compactor: &Arc<Compactor>, errand: &Arc<Errand>, model: &str, until: Instant) -> Self {
        Self {
            compactor: compactor.clone(),
            errand: errand.clone(),
            model: model.into(),
            until,
        }
    }

    /// Tokens that a record may take.
    fn room(&self) -> u64 {
        let reserved = self.compactor.config.summarizer.max_tokens + INSTRUCTIONS;
        let window = self.compactor.window(&self.errand, &self.model);
        window.saturating_sub(reserved).max(window / 4)
    }

    /// The summary of a part, which may be all.
    async fn part(
        &self,
        part: std::ops::Range<usize>,
        refused: Option<&Problem>,
    ) -> Result<Narrative, Failed> {
        let ask = Ask {
            wishes: self.compactor.wishes(&self.errand),
            refused,
        };
        let (room, errand) = (self.room(), self.errand.clone());
        let record = tokio::task::spawn_blocking(move || {
            let room = Room::at(room, BYTES_PER_TOKEN);
            transcript(&errand.conversation(), part, room).text
        });
        let record = record.await.map_err(|_| Failure::Malformed)?;
        let text = prompt::around(&record, &self.errand.earlier);
        // As long as what it was made from: only one of them is kept.
        drop(record);
        self.ask(&ask.system(), text).await
    }

    async fn in_parts(&self, refused: Option<&Problem>) -> Result<Narrative, Failed> {
        let (room, errand) = (self.room(), self.errand.clone());
        let found = tokio::task::spawn_blocking(move || {
            let conversation = errand.conversation();
            let weight = |at: usize| {
                let message = conversation.message(at);
                let bytes = message.map_or(0, |message| message.span.len());
                tokens(bytes)
            };
            let span = errand.span.clone();
            let found = parts(&conversation, span.clone(), weight, room);
            if found.len() > 1 {
                return found;
            }
            // It should have fitted and was refused: the whole is no part.
            let whole: u64 = span.clone().map(weight).sum();
            parts(&conversation, span, weight, whole / 2 + 1)
        });
        let found = found.await.map_err(|_| Failure::Malformed)?;
        if found.len() > PARTS {
            return Err(Failure::ContextExceeded.into());
        }
        let permits = Arc::new(Semaphore::new(self.compactor.config.summarizer.parallel));
        let mut flights = JoinSet::new();
        for (at, part) in found.into_iter().enumerate() {
            let asked = Self::new(&self.compactor, &self.errand, &self.model, self.until);
            let (permits, refused) = (permits.clone(), refused.cloned());
            flights.spawn(async move {
                let _permit = permits.acquire().await;
                (at, asked.part(part, refused.as_ref()).await)
            });
        }
        let mut written: Vec<(usize, Narrative)> = Vec::new();
        while let Some(joined) = flights.join_next().await {
            let (at, narrative) = joined.map_err(|_| Failure::Malformed)?;
            written.push((at, narrative?));
        }
        written.sort_by_key(|(at, _)| *at);
        let narratives = written.into_iter().map(|(_, narrative)| narrative);
        self.merge(narratives.collect(), refused).await
    }

    async fn merge(
        &self,
        mut narratives: Vec<Narrative>,
        refused: Option<&Problem>,
    ) -> Result<Narrative, Failed> {
        let ask = Ask {
            wishes: self.compactor.wishes(&self.errand),
            refused,
        };
        for _ in 0..ROUNDS {
            if narratives.len() <= 1 {
                break;
            }
            let weights: Vec<u64> = narratives.iter().map(|n| tokens(n.json().len())).collect();
            let mut merged = Vec::new();
            for group in groups(&weights, self.room()) {
                let group = narratives.get(group).unwrap_or(&[]);
                merged.push(match group {
                    [one] => one.clone(),
                    several => self.ask(&ask.merge(), prompt::parts(several)).await?,
                });
            }
            if merged.len() == narratives.len() {
                break;
            }
            narratives = merged;
        }
        let mut narratives = narratives.into_iter();
        match (narratives.next(), narratives.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Failure::ContextExceeded.into()),
        }
    }

    async fn ask(&self, system: &str, text: String) -> Result<Narrative, Failed> {
        let compactor = &self.compactor;
        let max_tokens = compactor.config.summarizer.max_tokens + ROOM_TO_THINK;
        let mut body = serde_json::Map::new();
        body.insert("model".to_owned(), json!(&*self.model));
        body.insert("max_tokens".to_owned(), json!(max_tokens));
        body.insert("system".to_owned(), json!(system));
        let mut asked = serde_json::Map::new();
        asked.insert("role".to_owned(), json!("user"));
        asked.insert("content".to_owned(), Value::String(text));
        let asked = Value::Array(vec![Value::Object(asked)]);
        body.insert("messages".to_owned(), asked);
        if takes_temperature(&self.model, VERSION) {
            body.insert("temperature".to_owned(), json!(0));
        }
        let (to, headers) = compactor.own_call(&self.errand);
        let key = window_key(&to, &headers, &self.model);
        let call = Call {
            to,
            headers,
            body: Bytes::from(Value::Object(body).to_string()),
        };
        let said = compactor.call(&call, &self.errand, &self.model, self.until);
        let said = said.await?;
        let prompt = said.usage.prompt().unwrap_or(0);
        let windows = &compactor.windows;
        windows.answered(key, prompt, &self.errand.claimed);
        narrative(&said)
    }
}

/// Tokens besides the summary, for models that think unasked.
const ROOM_TO_THINK: u64 = 4_096;

/// What a model said, if it is complete and of the form that was asked for.
fn narrative(said: &Said) -> Result<Narrative, Failed> {
    match said.stop_reason.as_str() {
        "end_turn" | "stop_sequence" => Ok(read(&said.text())?),
        _ => Err(Problem::Malformed.into()),
    }
}

fn forked(cached: &Cached, instruction: &str, max_tokens: u64) -> Option<Bytes> {
    let bytes = joined(&cached.pieces);
    let body = Body::split(&bytes).ok()?;
    fork::fork(&bytes, &body, instruction, max_tokens)
}

/// How a message begins, as far as it says something.
fn first_words(content: &[u8]) -> String {
    let value: Value = serde_json::from_slice(content).unwrap_or_default();
    let mut blocks = value.as_array().into_iter().flatten();
    let said = blocks.find_map(|block| {
        let mut said = ["text", "content", "name"].into_iter();
        said.find_map(|key| block.get(key)?.as_str())
    });
    let said = value.as_str().or(said).unwrap_or_default();
    said.chars().take(200).collect()
}

/// Tokens of so many bytes, rather too many than too few.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as f64 / BYTES_PER_TOKEN) as u64
}
