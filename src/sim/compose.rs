//! What is said in answer to a legal request.
//!
//! In this order: what the request's own header scripts, a compaction, a warmed
//! cache, a summary, the next scripted reply, the rule.

use std::time::Duration;

use http::HeaderMap;
use serde_json::json;

use super::account::short_hash;
use super::betas::beta;
use super::cache::Plan;
use super::canonical::Digest;
use super::error::{ApiError, Checked};
use super::exchange::Judged;
use super::fault::Fault;
use super::message::{Finish, Message};
use super::persona::Act;
use super::pieces::Piece;
use super::prices::Tokens;
use super::prompt;
use super::reply::Reply;
use super::request::{Block, Role, is_thinking, kind, text};
use super::seal::CompactionSeal;
use super::state::{Sim, State};
use super::{diagnostics, rule};

/// A finished message and its delays.
#[derive(Debug)]
pub(super) struct Composed {
    pub message: Message,
    pub first_byte_delay: Duration,
    pub event_delay: Duration,
}

/// Makes the answer to one request.
#[derive(Debug)]
pub(super) struct Composer<'a> {
    pub sim: &'a Sim,
    pub judged: &'a Judged,
    pub plan: &'a Plan,
}

impl Composer<'_> {
    /// The answer, or a fault in its place.
    pub fn compose(
        &self,
        state: &mut State,
        headers: &HeaderMap,
    ) -> Checked<Result<Composed, Fault>> {
        let scripted = scripted(headers)?;
        let request = &self.judged.request;
        let id = self.message_id(state);
        let mut wait = Duration::ZERO;
        let reply = if let Some(reply) = scripted {
            reply
        } else if request.max_tokens == 0 {
            Reply {
                output_tokens: Some(0),
                ..Reply::default().stopping_with("max_tokens")
            }
        } else if self.judged.summary {
            match state
                .take_persona()
                .act(request, self.sim.options().slow_summary)
            {
                Act::Refuse(error) => return Err(error),
                Act::Fail(fault) => return Ok(Err(fault)),
                Act::Say(reply, delay) => {
                    wait = delay;
                    Reply {
                        with_thinking: true,
                        ..reply
                    }
                }
            }
        } else if let Some(reply) = state.replies.pop_front() {
            reply
        } else {
            let words = self.sim.options().reply_words;
            let conversation = &self.judged.conversation;
            rule::apply(
                &state.rule,
                &mut state.progress,
                request,
                conversation,
                self.end(),
                words,
            )
        };
        let mut message = if request.wants_compaction() {
            self.compaction(&reply, &id)
        } else {
            self.message(state, &reply, &id)?
        };
        self.report(&mut message);
        message.diagnostics = diagnostics::report(self.judged, &state.sent);
        diagnostics::remember(self.judged, &id, &mut state.sent);
        remember_thinking(state, &message);
        if self.judged.summary {
            let calls = message
                .content
                .iter()
                .filter(|block| kind(block) == "tool_use");
            state
                .summary_calls
                .extend(calls.map(|call| text(call, "id").to_owned()));
        }
        let options = self.sim.options();
        let millis = |given: Option<u64>, usual| given.map_or(usual, Duration::from_millis);
        Ok(Ok(Composed {
            message,
            first_byte_delay: millis(reply.first_byte_delay_ms, options.first_byte_delay) + wait,
            event_delay: millis(reply.event_delay_ms, options.event_delay),
        }))
    }

    fn end(&self) -> Digest {
        let verdict = &self.judged.verdict;
        verdict.ends.first().copied().unwrap_or(verdict.base)
    }

    fn message_id(&self, state: &mut State) -> String {
        let serial = state.next_serial();
        format!("msg_sim{}", short_hash(&format!("{} {serial}", self.end())))
    }

    fn finish(&self, prompt: u64, lead: Option<Block>) -> Finish<'_> {
        Finish {
            request: &self.judged.request,
            account: &self.judged.account,
            verdict: &self.judged.verdict,
            counter: self.sim.counter(),
            prompt,
            thinking_words: self.sim.options().thinking_words,
            lead,
        }
    }

    /// An ordinary message, behind a compaction if the prompt is beyond the
    /// threshold the request set.
    fn message(&self, state: &mut State, reply: &Reply, id: &str) -> Checked<Message> {
        let size = self.judged.prompt.tokens();
        let compact = self
            .judged
            .edits
            .compact
            .filter(|compact| size > compact.trigger);
        let Some(compact) = compact else {
            return Ok(self.finish(size, None).message(reply, id, self.plan.tokens));
        };
        let request = &self.judged.request;
        let act = state.take_persona().act(request, Duration::ZERO);
        let summary = match act {
            Act::Refuse(error) => return Err(error),
            Act::Fail(_) => None,
            Act::Say(reply, _) => reply.text,
        };
        let written = summary
            .as_deref()
            .map_or(0, |summary| self.sim.counter().text(summary));
        let spent = Tokens {
            output: written,
            ..self.plan.tokens
        };
        let mut block = Block::new();
        block.insert("type".to_owned(), json!("compaction"));
        block.insert("content".to_owned(), json!(summary));
        let piece = Piece {
            message: 0,
            index: 0,
            role: Role::Assistant,
            block: std::borrow::Cow::Borrowed(&block),
        };
        // Without a summary nothing gets shorter.
        let (shorter, input) = if summary.is_some() {
            let input = prompt::render(request, &[piece], self.sim.counter()).tokens();
            let tokens = Tokens {
                input,
                ..Tokens::default()
            };
            (input, tokens)
        } else {
            (size, self.plan.tokens)
        };
        let finish = self.finish(shorter, Some(block.clone()));
        let mut message = if compact.pause {
            let mut paused = finish.message(
                &Reply::default().stopping_with("compaction"),
                id,
                Tokens::default(),
            );
            paused.tokens = Tokens::default();
            paused
        } else {
            finish.message(reply, id, input)
        };
        message.compaction = Some(spent);
        Ok(message)
    }

    /// On-demand compaction: one signed block and nothing else.
    fn compaction(&self, reply: &Reply, id: &str) -> Message {
        let verdict = &self.judged.verdict;
        let request = &self.judged.request;
        let written = reply.text.clone().unwrap_or_default();
        // A summary that was cut is none.
        let cut = self.sim.counter().text(&written) > request.max_tokens;
        let failed = reply.stop_reason.clone();
        let failed = failed.or_else(|| cut.then(|| "max_tokens".to_owned()));
        let summary = Some(written).filter(|text| !text.is_empty() && failed.is_none());
        let mut content = Vec::new();
        let mut output = if cut { request.max_tokens } else { 1 };
        if let Some(summary) = &summary {
            output = self.sim.counter().text(summary);
            let seal = CompactionSeal {
                content: Digest::of(summary),
                base: verdict.base,
                ends: verdict.ends.clone(),
                after_assistant: request
                    .messages
                    .last()
                    .is_some_and(|message| message.role == Role::Assistant),
                bound: verdict.bound && request.model.binds_thinking,
                conversation: self.judged.conversation.clone(),
            };
            let block = json!({"type": "compaction", "content": summary, "signature": seal.sign()});
            content.extend(block.as_object().cloned());
        }
        let reason = if summary.is_some() {
            "compaction"
        } else {
            "end_turn"
        };
        Message {
            id: id.to_owned(),
            model: request.name.clone(),
            content,
            stop_reason: failed.unwrap_or_else(|| reason.to_owned()),
            stop_sequence: None,
            tokens: Tokens::default(),
            compaction: Some(Tokens {
                output,
                ..self.plan.tokens
            }),
            iterations: None,
            transformations: request
                .betas
                .has(beta::BINDING)
                .then(|| json!(verdict.transformations)),
            context_management: None,
            diagnostics: None,
        }
    }

    /// Adds what the betas of the request have reported.
    fn report(&self, message: &mut Message) {
        let request = &self.judged.request;
        if request
            .betas
            .any(&[beta::COMPACT_ON_DEMAND, beta::COMPACT_THRESHOLD])
        {
            let mut iterations: Vec<_> = message
                .compaction
                .iter()
                .map(|tokens| ("compaction", *tokens))
                .collect();
            if message.tokens != Tokens::default() {
                iterations.push(("message", message.tokens));
            }
            message.iterations = Some(iterations);
        }
        if request.fields.contains_key("context_management") {
            message.context_management = Some(json!({"applied_edits": self.judged.applied}));
        }
    }
}

fn scripted(headers: &HeaderMap) -> Checked<Option<Reply>> {
    let Some(value) = headers.get("x-sim-reply") else {
        return Ok(None);
    };
    serde_json::from_slice(value.as_bytes())
        .map(Some)
        .map_err(|error| ApiError::invalid(format!("x-sim-reply: {error}")))
}

/// The thinking that came with a tool call must come back with its result.
fn remember_thinking(state: &mut State, message: &Message) {
    let blocks = || message.content.iter().enumerate();
    let thinking: Vec<(usize, &str)> = blocks()
        .filter(|(_, block)| is_thinking(block))
        .map(|(at, block)| (at, super::binding::signature(block)))
        .collect();
    if thinking.is_empty() {
        return;
    }
    for (call, block) in blocks().filter(|(_, block)| kind(block) == "tool_use") {
        let sides = thinking.iter();
        let sides = sides.map(|(at, signature)| ((*signature).to_owned(), *at < call));
        state
            .issued
            .insert(text(block, "id").to_owned(), sides.collect());
    }
}
