//! The life of a request: who asks, what is asked, is it legal, what is cached,
//! what is answered, what goes into the ledger.
//!
//! This half is synchronous and decides everything; `respond` carries it out
//! with its delays and faults.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

use super::account::Account;
use super::betas::{Betas, beta};
use super::binding::{self, Verdict};
use super::cache::Plan;
use super::clock::Moment;
use super::compose::Composer;
use super::edits::{self, Edits};
use super::error::{ApiError, Checked};
use super::fault::{Fault, Target};
use super::ledger::{Break, Entry, Kind, Outcome};
use super::marks::{self, Mark};
use super::message::Message;
use super::persona;
use super::prompt::{self, Prompt};
use super::request::{Endpoint, Request};
use super::state::{Sim, State};
use super::{encoding, limits, pairing, pieces, roles, system_messages, threads, tools};

/// A request as it arrived.
#[derive(Debug)]
pub(super) struct Arrival {
    pub endpoint: Endpoint,
    pub request_id: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: Moment,
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Refusal(ApiError),
    Broken(Fault),
    Count(Value),
    Message(Box<Said>),
}

/// A message and how it is sent.
#[derive(Debug)]
pub(super) struct Said {
    pub message: Message,
    pub stream: bool,
    pub fault: Option<Fault>,
    pub mismatch: Option<String>,
    pub first_byte_delay: std::time::Duration,
    pub event_delay: std::time::Duration,
    pub workspace: String,
    pub prompt: Prompt,
    pub plan: Plan,
}

/// A legal request and all that was found out about it.
#[derive(Debug)]
pub(super) struct Judged {
    pub request: Request,
    pub account: Account,
    pub verdict: Verdict,
    pub marks: Vec<Mark>,
    pub edits: Edits,
    pub applied: Vec<Value>,
    pub prompt: Prompt,
    pub original_tokens: u64,
    pub conversation: String,
    pub summary: bool,
}

impl Sim {
    /// Decides what a request is answered with and records it.
    pub(super) fn answer(&self, arrival: &Arrival) -> (Answer, Option<Account>) {
        let account = Account::of(
            &arrival.headers,
            self.options(),
            Betas::of(&arrival.headers).has(beta::OAUTH),
        );
        let parsed = self.parse(arrival);
        let mut entry = self.open_entry(arrival, account.as_ref().ok());
        if let Ok(request) = &parsed {
            entry.model = Some(request.name.clone());
            entry.streamed = request.stream;
            entry.kind = self.kind_of(request);
        }
        let fault = self.fault_for(arrival, parsed.as_ref().ok());
        let answer = match fault {
            Some(fault @ (Fault::Status { .. } | Fault::Reset | Fault::Hang | Fault::Garbage)) => {
                entry.outcome = Outcome::Faulted {
                    fault: fault.clone(),
                };
                Answer::Broken(fault)
            }
            fault => {
                let judged = account
                    .clone()
                    .and_then(|account| self.judge(parsed?, account));
                let answer =
                    judged.and_then(|judged| self.reply(arrival, judged, fault, &mut entry));
                answer.unwrap_or_else(|error| {
                    entry.outcome = Outcome::Refused {
                        status: error.status,
                        message: error.message.clone(),
                    };
                    Answer::Refusal(error)
                })
            }
        };
        self.state().entries.push(entry);
        (answer, account.ok())
    }

    fn parse(&self, arrival: &Arrival) -> Checked<Request> {
        let content_encoding = arrival
            .headers
            .get("content-encoding")
            .and_then(|value| value.to_str().ok());
        let body = encoding::decode(&arrival.body, content_encoding, self.options().body_limit)?;
        Request::parse(arrival.endpoint, &arrival.headers, &body, self.options())
    }

    fn fault_for(&self, arrival: &Arrival, request: Option<&Request>) -> Option<Fault> {
        if let Some(named) = arrival
            .headers
            .get("x-sim-fault")
            .and_then(|value| value.to_str().ok())
        {
            return Fault::parse(named);
        }
        let wanted: &[Target] = match (arrival.endpoint, request) {
            (Endpoint::CountTokens, _) => &[Target::Count],
            (_, None) => &[Target::Any],
            (_, Some(request)) if self.is_summary(request) => &[Target::Any, Target::Summary],
            (_, Some(_)) => &[Target::Any, Target::Main],
        };
        self.state().take_fault(wanted)
    }

    /// Runs every check, in the order in which the API is believed to.
    fn judge(&self, mut request: Request, account: Account) -> Checked<Judged> {
        let options = self.options();
        threads::expand(&mut request, &account, options, &self.state().threads)?;
        roles::check(&request)?;
        system_messages::check(&request, options.system_message_runs)?;
        pairing::check(&request)?;
        tools::check_choice(&request)?;
        limits::check(&request)?;
        let marks = marks::collect(&request)?;
        let edits = edits::parse(&request)?;
        if request.wants_compaction() && !request.model.compaction {
            return Err(ApiError::invalid("compaction: not supported on this model"));
        }
        let verdict = binding::check(&request, &account, options, &self.state().issued)?;
        let mut pieces = pieces::pieces(&request, &verdict.dropped);
        let original = prompt::render(&request, &pieces, self.counter());
        let applied = edits::apply(&edits, &mut pieces, &request, self.counter());
        let prompt = if applied.is_empty() {
            original.clone()
        } else {
            prompt::render(&request, &pieces, self.counter())
        };
        if request.endpoint == Endpoint::Messages {
            limits::window(&request, prompt.tokens())?;
        }
        let conversation =
            threads::conversation(&request, &account, verdict.conversation.as_deref());
        let summary = self.is_summary(&request);
        Ok(Judged {
            account,
            verdict,
            marks,
            edits,
            applied,
            original_tokens: original.tokens(),
            prompt,
            conversation,
            summary,
            request,
        })
    }

    fn reply(
        &self,
        arrival: &Arrival,
        judged: Judged,
        fault: Option<Fault>,
        entry: &mut Entry,
    ) -> Checked<Answer> {
        entry.conversation = Some(judged.conversation.clone());
        entry.positions = judged.prompt.positions.len();
        entry.applied_edits.clone_from(&judged.applied);
        entry.prefix_mismatch.clone_from(&judged.verdict.mismatch);
        entry
            .transformations
            .clone_from(&judged.verdict.transformations);
        if arrival.endpoint == Endpoint::CountTokens {
            entry.outcome = Outcome::Answered {
                stop_reason: String::new(),
            };
            return Ok(Answer::Count(count(&judged)));
        }
        let mut guard = self.state();
        let state = &mut *guard;
        let minimum = judged.request.model.min_cacheable;
        let workspace = judged.account.workspace.clone();
        let plan = state.cache.plan(
            &workspace,
            &judged.prompt,
            &judged.marks,
            minimum,
            arrival.at,
        );
        let answering = Composer {
            sim: self,
            judged: &judged,
            plan: &plan,
        };
        let finished = match answering.compose(state, &arrival.headers)? {
            Ok(finished) => finished,
            Err(fault) => {
                entry.outcome = Outcome::Faulted {
                    fault: fault.clone(),
                };
                return Ok(Answer::Broken(fault));
            }
        };
        if !judged.summary {
            entry.broken_at = departure(state, &judged);
        }
        let message = finished.message;
        threads::remember(state, &judged, &message);
        record(entry, &judged, &message, &plan);
        if let Some(fault) = &fault {
            entry.outcome = Outcome::Faulted {
                fault: fault.clone(),
            };
        }
        Ok(Answer::Message(Box::new(Said {
            message,
            stream: judged.request.stream,
            fault,
            mismatch: judged.verdict.mismatch.clone(),
            first_byte_delay: finished.first_byte_delay,
            event_delay: finished.event_delay,
            workspace,
            prompt: judged.prompt,
            plan,
        })))
    }

    fn kind_of(&self, request: &Request) -> Kind {
        match request.endpoint {
            Endpoint::CountTokens => Kind::Count,
            Endpoint::Messages if request.wants_compaction() => Kind::Compaction,
            Endpoint::Messages if self.is_summary(request) => Kind::Summary,
            Endpoint::Messages => Kind::Message,
        }
    }

    /// Whether a summary is asked for, now or before a tool call in between.
    fn is_summary(&self, request: &Request) -> bool {
        persona::asks_for_summary(request) || {
            let state = self.state();
            request
                .answered_calls()
                .any(|id| state.summary_calls.contains(id))
        }
    }

    /// Called when the first byte of an answer leaves.
    pub(super) fn first_byte(&self, said: &Said, start: Moment) {
        self.state()
            .cache
            .commit(&said.workspace, &said.prompt, &said.plan, start);
    }

    fn open_entry(&self, arrival: &Arrival, account: Option<&Account>) -> Entry {
        let hash = account.map_or("", |account| account.credential_hash.as_str());
        let headers = arrival.headers.iter().map(|(name, value)| {
            let secret = name == "x-api-key" || name == "authorization";
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (
                name.to_string(),
                if secret {
                    format!("hash:{hash}")
                } else {
                    value
                },
            )
        });
        Entry {
            at: arrival.at.as_millis(),
            request_id: arrival.request_id.clone(),
            method: "POST".to_owned(),
            path: arrival.path.clone(),
            headers: headers.collect(),
            body: self.options().keep_bodies.then(|| arrival.body.clone()),
            model: None,
            kind: Kind::Other,
            streamed: false,
            outcome: Outcome::Answered {
                stop_reason: String::new(),
            },
            conversation: None,
            message_id: None,
            tokens: super::prices::Tokens::default(),
            cost: super::prices::Cost::default(),
            positions: 0,
            read_position: None,
            written_positions: Vec::new(),
            broken_at: None,
            transformations: Vec::new(),
            prefix_mismatch: None,
            applied_edits: Vec::new(),
        }
    }
}

fn count(judged: &Judged) -> Value {
    let mut count = serde_json::Map::new();
    count.insert("input_tokens".to_owned(), json!(judged.prompt.tokens()));
    if judged.request.fields.contains_key("context_management") {
        let original = json!({"original_input_tokens": judged.original_tokens});
        count.insert("context_management".to_owned(), original);
    }
    Value::Object(count)
}

/// Where this prompt departs from the previous one of its conversation.
fn departure(state: &mut State, judged: &Judged) -> Option<Break> {
    let digests: Vec<_> = judged
        .prompt
        .positions
        .iter()
        .map(|position| position.digest)
        .collect();
    let previous = state
        .prompts
        .insert(judged.conversation.clone(), digests.clone())?;
    let common = previous
        .iter()
        .zip(&digests)
        .take_while(|(a, b)| a == b)
        .count();
    (common < previous.len()).then(|| Break {
        position: common,
        path: judged
            .prompt
            .positions
            .get(common)
            .map(|at| at.place.path())
            .unwrap_or_default(),
    })
}

fn record(entry: &mut Entry, judged: &Judged, message: &Message, plan: &Plan) {
    entry.outcome = Outcome::Answered {
        stop_reason: message.stop_reason.clone(),
    };
    entry.message_id = Some(message.id.clone());
    for tokens in message.billed() {
        entry.tokens = entry.tokens.plus(tokens);
        entry.cost = entry
            .cost
            .plus(judged.request.model.prices_for(&tokens).cost(&tokens));
    }
    entry.read_position = plan.read;
    entry.written_positions = plan.writes.iter().map(|(at, _)| *at).collect();
}
