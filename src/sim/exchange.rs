//! The life of a request: who asks, what is asked, is it legal, what is cached,
//! what is answered, what goes into the ledger.
//!
//! This half is synchronous and decides everything; `respond` carries it out
//! with its delays and faults.

use serde_json::{Value, json};

use super::account::Account;
use super::arrival::Arrival;
use super::binding::{self, Verdict};
use super::cache::Plan;
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
use super::{limits, pairing, pieces, roles, system_messages, threads, tools};
use crate::clock::Moment;

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
    pub(super) fn answer(
        &self,
        endpoint: Endpoint,
        arrival: &Arrival,
    ) -> (Answer, Option<Account>) {
        let account = Account::of(&arrival.headers, self.options());
        let parsed = arrival
            .body(self)
            .and_then(|body| Request::parse(endpoint, &arrival.headers, &body, self.options()));
        let mut entry = arrival.entry(self, account.as_ref().ok());
        if let Ok(request) = &parsed {
            entry.model = Some(request.name.clone());
            entry.streamed = request.stream;
            entry.kind = self.kind_of(request);
        }
        let answer = self
            .fault_for(endpoint, arrival, parsed.as_ref().ok())
            .and_then(|fault| match fault {
                Some(
                    fault @ (Fault::Status { .. } | Fault::Reset | Fault::Hang | Fault::Garbage),
                ) => {
                    entry.outcome = Outcome::Faulted {
                        fault: fault.clone(),
                    };
                    Ok(Answer::Broken(fault))
                }
                fault => {
                    let judged = {
                        let account = account.clone()?;
                        self.judge(parsed?, account)?
                    };
                    self.reply(arrival, judged, fault, &mut entry)
                }
            });
        let answer = answer.unwrap_or_else(|error| {
            entry.outcome = Outcome::refused(&error);
            Answer::Refusal(error)
        });
        self.state().entries.push(entry);
        (answer, account.ok())
    }

    fn fault_for(
        &self,
        endpoint: Endpoint,
        arrival: &Arrival,
        request: Option<&Request>,
    ) -> Checked<Option<Fault>> {
        if let Some(named) = arrival.header("x-sim-fault") {
            let fault = Fault::parse(named);
            return match fault {
                Some(fault) => Ok(Some(fault)),
                None => Err(ApiError::invalid(format!(
                    "x-sim-fault: there is no fault {named}"
                ))),
            };
        }
        let wanted: &[Target] = match (endpoint, request) {
            (Endpoint::CountTokens, _) => &[Target::Count],
            (_, None) => &[Target::Any],
            (_, Some(request)) if self.is_summary(request) => &[Target::Any, Target::Summary],
            (_, Some(_)) => &[Target::Any, Target::Main],
        };
        Ok(self.state().take_fault(wanted))
    }

    /// Runs every check, in the order in which the API is believed to.
    fn judge(&self, mut request: Request, account: Account) -> Checked<Judged> {
        let options = self.options();
        threads::expand(&mut request, &account, options, &self.state().threads)?;
        roles::check(&request)?;
        system_messages::check(&request, options.system_message_runs)?;
        pairing::check(&request, options)?;
        tools::check_choice(&request)?;
        limits::check(&request)?;
        let marks = marks::collect(&request)?;
        let edits = edits::parse(&request)?;
        if request.wants_compaction()
            && request.endpoint == Endpoint::Messages
            && !request.model.summarizes
        {
            return Err(ApiError::invalid("compaction: not supported on this model"));
        }
        let verdict = binding::check(&request, &account, options, &self.state().issued)?;
        let mut pieces = pieces::pieces(&request, &verdict.dropped);
        if request.model.strips_thinking && edits.thinking.is_none() {
            pieces::strip(&mut pieces);
        }
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
        if judged.request.endpoint == Endpoint::CountTokens {
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
