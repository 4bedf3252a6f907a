//! A flight: from an errand to a finished summary, or to the reason why not.
//!
//! Attempts follow each other as the table of recoveries says, until one gives a
//! summary that holds up against what it was made from, or until there is no
//! time left. What is finished is stored before anybody hears of it, so that it
//! is never paid for twice; if somebody else was first, theirs is the one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::asking::{Failed, Way, Written, tokens};
use super::errand::{Errand, Finished};
use super::gates::Gate;
use super::turn::Turn;
use super::{Compactor, LARGE, Spent};
use crate::config::{Prices, SummarizerMode};
use crate::engine::accounts::cost;
use crate::engine::breaker::{Event, Permit};
use crate::engine::ids::Reference;
use crate::engine::money::Money;
use crate::engine::pinned::pinned;
use crate::engine::policy::Pico;
use crate::engine::recall::reference::reference_of_segment;
use crate::engine::recovery::{Failure, Means, Next, Tried};
use crate::engine::stub::quoted;
use crate::engine::summary::check::{Problem, Source, check};
use crate::engine::summary::segment;
use crate::store::Moment;
use crate::wire::reply::Usage;
use crate::wire::splice::joined;

/// Of what it stands for, in percent, that a summary may be at the most; pins
/// aside, which are as long as what the user said.
const SMALLER: u64 = 60;

/// Leave to ask a summarizer.
struct Leave {
    gate: Gate,
    permit: Permit,
}

impl Compactor {
    /// Makes a summary, whatever it takes until then.
    pub(super) async fn fly(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        turn: &Turn,
        until: Instant,
    ) -> Result<Finished, Failure> {
        // It may have landed between somebody's look and this take-off, here or
        // in another process.
        if let Some(finished) = self.await_turn(turn, errand, until).await? {
            return Ok(Finished::clone(&finished));
        }
        let finished = tokio::select! {
            finished = self.fly_alone(errand, turn, until) => finished?,
            never = turn.keep() => never,
        };
        Ok(self.keep(errand, finished).await)
    }

    /// The same, when it is this process's turn.
    async fn fly_alone(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        turn: &Turn,
        until: Instant,
    ) -> Result<Finished, Failure> {
        let large = errand.bytes.len() >= LARGE;
        let _one_of_few = match large.then(|| self.large.acquire()) {
            Some(turn) => turn.await.ok(),
            None => None,
        };
        let begun = Instant::now();
        let leave = self.leave(errand, turn, self.way(errand)).await;
        let (mut way, mut leave) = leave.ok_or(Failure::Shut)?;
        tracing::info!(segment = %errand.id, ?way, "a summary is begun");
        let outcome = self.attempts(errand, &mut way, &mut leave, until).await;
        self.came_of(leave, outcome.as_ref().err().copied());
        self.tell().await;
        let label = outcome
            .as_ref()
            .map_or_else(|failure| failure.label(), |_| "finished");
        self.metrics.summary(way.label(), label, begun.elapsed());
        outcome
    }

    /// The way, or the one to fall back on, whichever may be asked.
    async fn leave(&self, errand: &Errand, turn: &Turn, way: Way) -> Option<(Way, Leave)> {
        let fallback = self.fallback(errand, &way);
        let ways = std::iter::once(way).chain(fallback);
        let ways: Vec<(Gate, Way)> = ways.map(|way| (self.gate(errand, &way), way)).collect();
        let gates: Vec<Gate> = ways.iter().map(|(gate, _)| *gate).collect();
        self.hear(&gates).await;
        if !turn.holds().await {
            // What it is to be stored in has gone meanwhile, or somebody else is
            // at it.
            return None;
        }
        let leave = ways.into_iter().find_map(|(gate, way)| {
            let permit = self.gates.permit(gate)?;
            Some((way, Leave { gate, permit }))
        });
        self.tell().await;
        leave
    }

    /// Notes what came of asking a summarizer. Each answers for itself: that
    /// another could help says nothing good of the first.
    fn came_of(&self, Leave { gate, permit }: Leave, failure: Option<Failure>) {
        let event = match failure {
            None => Event::Succeeded,
            Some(failure) if failure.is_provider_s() => Event::Failed(permit),
            Some(_) => Event::Withdrawn(permit),
        };
        self.gates.on(gate, event);
    }

    async fn attempts(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        way: &mut Way,
        leave: &mut Leave,
        until: Instant,
    ) -> Result<Finished, Failure> {
        let mut tried = Tried::default();
        let mut refused: Option<Problem> = None;
        loop {
            let attempt = self.attempt(errand, way, refused.as_ref(), until).await;
            let failed = match attempt {
                Ok(written) => match self.judge(errand, way, written).await {
                    Ok(finished) => return Ok(finished),
                    Err(failed) => failed,
                },
                Err(failed) => failed,
            };
            let Failed {
                failure,
                problem,
                asked,
            } = failed;
            self.metrics.summary_failed(failure.label());
            let left = until.saturating_duration_since(Instant::now());
            let next = tried.next(failure, self.means(errand, way), asked, left);
            tracing::info!(
                ?failure,
                ?problem,
                ?way,
                ?next,
                "an attempt at a summary failed"
            );
            match next {
                Next::Again(pause) => tokio::time::sleep(pause).await,
                Next::Repair => refused = problem,
                Next::InParts => {
                    let model = match &*way {
                        Way::Fork | Way::Native => self.config.summarizer.model.clone(),
                        Way::Model(model) | Way::InParts(model) => model.clone(),
                    };
                    *way = Way::InParts(model);
                }
                Next::Fallback => {
                    let other = self.fallback(errand, way).ok_or(failure)?;
                    let gate = self.gate(errand, &other);
                    let permit = self.gates.permit(gate).ok_or(failure)?;
                    let before = std::mem::replace(leave, Leave { gate, permit });
                    self.came_of(before, Some(failure));
                    *way = other;
                }
                Next::GiveUp => return Err(failure),
            }
        }
    }

    /// What there is to fall back on.
    fn means(&self, errand: &Errand, way: &Way) -> Means {
        Means {
            fallback: self.fallback(errand, way).is_some(),
            parts: !matches!(way, Way::InParts(_)),
        }
    }

    /// Another way, if there is one: the model that is configured for it, else
    /// the conversation's own.
    fn fallback(&self, errand: &Errand, way: &Way) -> Option<Way> {
        let summarizer = &self.config.summarizer;
        if *way == Way::Native {
            return Some(self.without_native(errand));
        }
        let others = [
            (*way == Way::Fork).then(|| summarizer.model.clone()),
            summarizer.fallback.clone(),
            self.elsewhere.is_none().then(|| errand.model.clone()),
        ];
        let asked = way.model(errand).to_owned();
        let mut others = others.into_iter().flatten();
        let other = others.find(|other| *other != asked || *way == Way::Fork)?;
        Some(self.by_record(errand, other))
    }

    /// How a summary is asked for first.
    fn way(&self, errand: &Errand) -> Way {
        match errand.native {
            Some(_) => Way::Native,
            None => self.without_native(errand),
        }
    }

    fn without_native(&self, errand: &Errand) -> Way {
        let summarizer = &self.config.summarizer;
        let record = || self.by_record(errand, summarizer.model.clone());
        match (summarizer.mode, &errand.cached) {
            (SummarizerMode::Fork, Some(_)) => Way::Fork,
            (SummarizerMode::Fork, None) => self.by_record(errand, errand.model.clone()),
            (SummarizerMode::Auto | SummarizerMode::Native, Some(cached)) => {
                let span = span_tokens(errand);
                let fork = self.price(&errand.model, cached.tokens, true);
                let model = self.price(&summarizer.model, span, false);
                match (fork, model) {
                    (Some(fork), Some(model)) if fork < model => Way::Fork,
                    (_, None) => Way::Fork,
                    _ => record(),
                }
            }
            _ => record(),
        }
    }

    /// From a record, whole if it fits the model's window.
    fn by_record(&self, errand: &Errand, model: String) -> Way {
        let fits = span_tokens(errand) < self.window(errand, &model) / 10 * 8;
        if fits {
            Way::Model(model)
        } else {
            Way::InParts(model)
        }
    }

    /// What a call costs, about.
    fn price(&self, model: &str, prompt: u64, cached: bool) -> Option<Pico> {
        let prices = self.config.models.lookup(model).prices(prompt)?;
        let output = Some(self.config.summarizer.max_tokens / 2);
        let usage = Usage {
            input: Some(if cached { 0 } else { prompt }),
            cache_read: cached.then_some(prompt),
            output,
            ..Usage::default()
        };
        Some(cost(&usage, &prices))
    }

    /// Accounts for a call.
    pub(super) fn bill(&self, model: &str, usage: &Usage, spent: &Spent) {
        let label = self.config.models.label(model);
        self.metrics.tokens(label, usage);
        let prompt = usage.prompt().unwrap_or(0);
        let known = self.config.models.lookup(model).prices(prompt);
        let cost = cost(usage, &known.unwrap_or(Prices::USUAL));
        // The session is charged in whatever money its own requests are.
        spent.add(cost);
        if known.is_some() {
            self.metrics.summary_cost(label, cost);
            self.metrics.paid(label, Money::of_summary(cost));
        }
    }

    /// Holds a narrative against what it was made from.
    async fn judge(
        &self,
        errand: &Arc<Errand>,
        way: &Way,
        written: Written,
    ) -> Result<Finished, Failed> {
        let (errand, whole) = (errand.clone(), matches!(way, Way::Fork | Way::Native));
        let judged = tokio::task::spawn_blocking(move || judge(&errand, whole, written));
        judged
            .await
            .unwrap_or_else(|_| Err(Failure::Malformed.into()))
    }

    /// Stores a summary; what is stored under its name from now on.
    async fn keep(&self, errand: &Errand, finished: Finished) -> Finished {
        let now = Moment(i64::try_from(self.clock.now().as_millis()).unwrap_or(i64::MAX));
        let bytes = finished.store();
        let begun = Instant::now();
        let kept = self.store.put_segment(errand.id, &bytes, now).await;
        self.metrics
            .store("put_segment", begun.elapsed(), kept.is_err());
        match kept {
            Ok(first) => Finished::read(&first).unwrap_or(finished),
            Err(error) => {
                tracing::warn!(%error, "a summary could not be stored, and lives in memory only");
                finished
            }
        }
    }
}

/// `whole`: the model was given all of the request as it was sent, stubs of ours,
/// system and tools included, and not only the span.
fn judge(errand: &Errand, whole: bool, written: Written) -> Result<Finished, Failed> {
    let Written { narrative, block } = written;
    let narrative = &narrative;
    let conversation = errand.conversation();
    let span = errand.span.clone();
    let mut source = Source::of(&conversation, 0..span.end);
    if let Some(cached) = errand.cached.as_ref().filter(|_| whole) {
        let sent = serde_json::from_slice(&joined(&cached.pieces));
        source.add_json(&sent.unwrap_or_default());
    }
    source.add(&errand.earlier);
    source.add(errand.instructions.as_deref().unwrap_or_default());
    check(narrative, &source, span.len())?;
    if let Some(native) = block {
        return Ok(by_the_api(errand, native));
    }
    let pins = pinned(&conversation, span.clone(), &errand.pins);
    let count = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    let (reference, told) = promised(errand);
    let text = pins.text();
    let block = segment::Finished {
        from: count(span.start),
        to: count(span.end),
        narrative,
        pinned: &text,
        reference: told.as_deref(),
    }
    .block();
    let messages = errand.body.messages().get(span.clone()).unwrap_or(&[]);
    let whole: usize = messages.iter().map(|message| message.span.len()).sum();
    let said = block.len().saturating_sub(text.len());
    if said as u64 * 100 > whole as u64 * SMALLER {
        return Err(Failure::StillTooLarge.into());
    }
    Ok(Finished::new(&span, block, pins.user_tokens()).showing(reference))
}

/// The reference to the messages themselves, and how it is told.
fn promised(errand: &Errand) -> (Option<Reference>, Option<String>) {
    let Some(telling) = &errand.archives else {
        return (None, None);
    };
    let reference = reference_of_segment(errand.id);
    let told = format!("[longhaul: {}]", telling.of_messages(reference));
    (Some(reference), Some(told))
}

/// The API's own summary, with what is pinned of everything before its end.
fn by_the_api(errand: &Errand, block: String) -> Finished {
    let conversation = errand.conversation();
    let pins = pinned(&conversation, 0..errand.span.end, &errand.pins);
    let (reference, told) = promised(errand);
    let mut text = segment::pinned(&pins.text());
    text.extend(told);
    let note = match text.trim() {
        "" => String::new(),
        text => format!(r#"{{"type":"text","text":{}}}"#, quoted(text)),
    };
    let span = 0..errand.span.end;
    let finished = Finished::new(&span, note, pins.user_tokens());
    finished.showing(reference).by_the_api(block)
}

/// How long a flight may take that nobody waits for, for each call of it.
pub(super) fn patience(timeout: Duration) -> Duration {
    timeout.saturating_mul(3)
}

/// Tokens of the messages to be summed up, rather too many.
fn span_tokens(errand: &Errand) -> u64 {
    let messages = errand.body.messages();
    let span = messages.get(errand.span.clone()).unwrap_or(&[]);
    tokens(span.iter().map(|message| message.span.len()).sum())
}
