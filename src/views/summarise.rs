//! Summaries for a session: prepared while it goes on, waited for only when a
//! request could not be sent otherwise.
//!
//! After a reply the next request is thought of: if the conversation is about to
//! need a summary and nothing lighter will do, a flight is begun, or one boarded
//! that somebody else has begun for the same messages. Its outcome is noted in
//! the session's breaker with the next request. Whatever goes wrong, the session
//! goes on with the tiers that need no model.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::Views;
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::staging::{Stage, Staged};
use crate::compactor::client::left_alone;
use crate::compactor::errand::{Cached, Errand, Finished, id};
use crate::compactor::sender::Sender;
use crate::compactor::{Boarding, Compactor};
use crate::config::{Mode, Style, SummarizerMode};
use crate::engine::breaker::{Event, Permit, Phase, Settings, Transition};
use crate::engine::ids::{ChainHash, LineageId, SegmentId};
use crate::engine::overlay::{Origin, Overlay, Segment};
use crate::engine::pinned;
use crate::engine::policy::Situation;
use crate::engine::recovery::Failure;
use crate::engine::request::Treatment;
use crate::engine::span::{Look, Wanted, wanted};
use crate::engine::split::Split;
use crate::engine::swift::Swift;
use crate::engine::tiers::Settings as Tiers;
use crate::engine::tiers::Survey;
use crate::engine::view::DROP_BETA;

/// Requests after which a trial whose outcome never came counts as lost.
const TRIAL: u64 = 20;

/// Everything that preparing a summary needs, once the request is on its way.
pub struct Preparation {
    recognised: Arc<Recognised>,
    overlay: Option<Arc<Overlay>>,
    lineage: LineageId,
    situation: Situation,
    tiers: Tiers,
    split: Split,
    base: u64,
    pieces: Vec<Bytes>,
    beta: Option<&'static str>,
    tokens: u64,
    sender: Sender,
    permit: Permit,
    instructions: Option<String>,
}

/// A span, and what a summary of it is called.
struct Named {
    wanted: Wanted,
    id: SegmentId,
    as_good: Vec<SegmentId>,
    end: Swift,
    earlier: String,
    pins: pinned::Settings,
}

impl Views {
    /// The compactor, where summaries are made at all.
    fn summarizer(&self) -> Option<&Arc<Compactor>> {
        let config = &self.config;
        let on = config.policy.mode == Mode::On
            && config.policy.style == Style::Compact
            && config.summarizer.mode != SummarizerMode::Off;
        self.compactor.as_ref().filter(|_| on)
    }

    fn breaker_settings(&self) -> Settings {
        let breaker = &self.config.breaker;
        Settings {
            max_failures: breaker.max_failures,
            cooldown: breaker.cooldown_turns.into(),
            trial: TRIAL,
        }
    }

    /// Notes what has become of the session's summary, and takes what lies ready.
    pub(super) fn staged(&self, prepared: &mut Prepared) -> Option<(Arc<Finished>, bool)> {
        let (stage, permit) = self
            .staging
            .look(prepared.lineage, &prepared.recognised.swifts);
        let event = match (&stage, permit) {
            (_, None) => None,
            (Stage::Ready(..), Some(_)) => Some(Event::Succeeded),
            (Stage::Failed(failure), Some(permit)) if failure.counts() => {
                Some(Event::Failed(permit))
            }
            (_, Some(permit)) => Some(Event::Withdrawn(permit)),
        };
        if let Some(event) = event {
            self.note_outcome(prepared, event);
        }
        match stage {
            Stage::Ready(finished, heals) => Some((finished, heals)),
            Stage::Failed(failure) => {
                let outcome = if failure == Failure::Shut {
                    "abandoned"
                } else {
                    "failed"
                };
                self.metrics.compaction("summary", "budget", outcome);
                None
            }
            Stage::Astray => {
                self.metrics.compaction("summary", "budget", "abandoned");
                None
            }
            Stage::None | Stage::Flying(_) => None,
        }
    }

    fn note_outcome(&self, prepared: &mut Prepared, event: Event) {
        let now = prepared.figures.requests.into();
        let settings = self.breaker_settings();
        let transition = prepared.figures.breaker.on(event, now, &settings);
        self.tell(prepared.lineage, transition);
    }

    fn tell(&self, lineage: LineageId, transition: Option<Transition>) {
        if let Some(Transition { from, to }) = transition {
            let (from, to) = (from.label(), to.label());
            tracing::warn!(session = %lineage, from, to, "the breaker of a session");
            self.metrics.breaker("session", from, to);
        }
    }

    /// Leave to ask for a summary, if the session's breaker gives it.
    fn permit(&self, prepared: &mut Prepared) -> Option<Permit> {
        let now = prepared.figures.requests.into();
        let settings = self.breaker_settings();
        let answer = prepared.figures.breaker.permit(now, &settings);
        self.tell(prepared.lineage, answer.transition);
        answer.permit
    }

    /// What a summary would be made from, if one should be prepared after this
    /// request.
    pub(super) fn preparation(&self, prepared: &mut Prepared) -> Option<Preparation> {
        self.summarizer()?;
        let ordinary = prepared.recognised.treatment == Treatment::Ordinary;
        if !ordinary || !prepared.remembers || self.staging.has(prepared.lineage) {
            return None;
        }
        let situation = self.situation(prepared, None);
        let truncated = prepared.overlay.as_ref().is_some_and(|(_, overlay)| {
            let mut segments = overlay.segments.iter();
            segments.any(|segment| segment.origin == Origin::Truncated)
        });
        if !(truncated || situation.is_due()) {
            return None;
        }
        self.prepare_with(prepared, situation)
    }

    fn prepare_with(&self, prepared: &mut Prepared, situation: Situation) -> Option<Preparation> {
        let sender = prepared.sender.clone()?;
        let compactor = self.summarizer()?;
        if compactor.gates.is_hushed(&sender.digest()) {
            return None;
        }
        let permit = self.permit(prepared)?;
        let archives = self.config.journal.enabled;
        let (tiers, base) = self.tiers(prepared, &situation, archives);
        Some(Preparation {
            recognised: prepared.recognised.clone(),
            overlay: prepared
                .overlay
                .as_ref()
                .map(|(_, overlay)| overlay.clone()),
            lineage: prepared.lineage,
            split: tiers.split.clone(),
            base,
            pieces: prepared.view.pieces.clone(),
            beta: prepared.view.added_drop.then_some(DROP_BETA),
            tokens: prepared.sent.tokens,
            instructions: Self::instructions(prepared),
            situation,
            tiers,
            sender,
            permit,
        })
    }

    /// What is wished of a summary, if anything is.
    pub(super) fn instructions(prepared: &Prepared) -> Option<String> {
        let wished = prepared.wished.as_ref();
        let wished = wished.and_then(|wished| wished.instructions.clone());
        wished.or_else(|| prepared.instructions.clone())
    }

    /// Begins to prepare a summary, in the background.
    pub fn prepare_summary(self: &Arc<Self>, preparation: Preparation) {
        let views = self.clone();
        let work = async move {
            let lineage = preparation.lineage;
            if !views.staging.has(lineage) {
                views.stage(preparation, false).await;
            }
        };
        self.tasks.spawn_on(work, &self.background);
    }

    /// Begins a flight, or boards one; what is waited for then. `must` if a
    /// request cannot be sent without.
    async fn stage(&self, preparation: Preparation, must: bool) -> Option<Boarding> {
        let compactor = self.summarizer()?.clone();
        let archives = self.config.journal.enabled;
        let settings = self.digest(preparation.instructions.as_deref());
        let (max_segments, pins) = (self.config.policy.max_segments, self.pins());
        let planned = tokio::task::spawn_blocking(move || {
            let named = name(&preparation, must, max_segments, pins, &settings);
            (preparation, named)
        });
        let (preparation, named) = planned.await.ok()?;
        let Preparation {
            recognised,
            lineage,
            permit,
            ..
        } = &preparation;
        // What was not asked for needs no outcome: a trial is lost in time.
        let named = named?;
        let mut staged = Staged {
            span: named.wanted.span.clone(),
            end: named.end,
            heals: named.wanted.heals,
            instructions: preparation.instructions.clone(),
            permit: Some(*permit),
            boarding: Boarding::landed(Err(Failure::Shut)),
        };
        let all: Vec<SegmentId> = std::iter::once(named.id)
            .chain(named.as_good.iter().copied())
            .collect();
        if let Some((_, finished)) = compactor.stored(&all).await {
            staged.span.end = finished.to as usize;
            staged.end = *recognised.swifts.get(staged.span.end.checked_sub(1)?)?;
            staged.boarding = Boarding::landed(Ok(finished));
        } else {
            let shown = preparation
                .overlay
                .as_ref()
                .map_or(0, |overlay| overlay.cut as usize);
            let cached = (!must && named.wanted.span.start >= shown).then(|| Cached {
                pieces: preparation.pieces.clone(),
                beta: preparation.beta,
                tokens: preparation.tokens,
            });
            let errand = Errand {
                id: named.id,
                bytes: recognised.bytes.clone(),
                body: recognised.body.clone(),
                span: named.wanted.span.clone(),
                earlier: named.earlier,
                cached,
                model: recognised.facts.model.clone(),
                instructions: preparation.instructions.clone(),
                sender: preparation.sender.clone(),
                pins: named.pins,
                archives,
            };
            let (boarded, boarding) = compactor.board(errand, &named.as_good)?;
            let good = named.as_good.iter().position(|id| *id == boarded);
            if let Some(end) = good.and_then(|at| named.wanted.as_good.get(at)) {
                staged.span.end = *end;
                staged.end = *recognised.swifts.get(end.checked_sub(1)?)?;
            }
            staged.boarding = boarding;
        }
        let boarding = staged.boarding.clone();
        self.staging.put(*lineage, staged, must);
        Some(boarding)
    }

    /// Waits for a summary without which a request would lose its memory, as
    /// long as one request may wait at all. Whether that changes anything: there
    /// is one now, or there is too little to be summed up.
    pub(super) async fn wait_for_summary(&self, prepared: &mut Prepared) -> bool {
        if self.summarizer().is_none() {
            return false;
        }
        let deadline = self.config.summarizer.deadline;
        let until = Instant::from_std(prepared.begun) + deadline;
        if let Some(wished) = Self::instructions(prepared) {
            self.staging.unless(prepared.lineage, &wished);
        }
        let (stage, permit) = self
            .staging
            .look(prepared.lineage, &prepared.recognised.swifts);
        if let Some(permit) = permit {
            self.note_outcome(prepared, Event::Withdrawn(permit));
        }
        let boarding = match stage {
            Stage::Ready(..) => return true,
            Stage::Flying(boarding) => Some(boarding),
            Stage::None | Stage::Failed(_) | Stage::Astray => {
                let situation = self.situation(prepared, None);
                let Some(preparation) = self.prepare_with(prepared, situation) else {
                    return false;
                };
                let boarding = self.stage(preparation, true).await;
                prepared.spares = boarding.is_none();
                boarding
            }
        };
        let Some(mut boarding) = boarding else {
            return true;
        };
        // What is finished already is waited for by nobody.
        if let Some(landed) = boarding.outcome() {
            return landed.is_ok();
        }
        self.metrics.turn_delayed();
        tracing::info!(session = %prepared.lineage, "a request waits for a summary");
        let landed = boarding.wait(until).await;
        matches!(landed, Some(Ok(_)))
    }

    /// A conversation was told to slow down: nothing else is asked beside it.
    pub(super) fn hush(&self, prepared: &Prepared, answer: &HeaderMap) {
        if let (Some(compactor), Some(sender)) = (&self.compactor, &prepared.sender) {
            let asked = left_alone(answer);
            compactor.gates.hush(sender.digest(), asked);
        }
    }

    /// The settings that a summary depends on.
    fn digest(&self, instructions: Option<&str>) -> [u8; 32] {
        let (summarizer, pin) = (&self.config.summarizer, &self.config.pin);
        let mut hasher = blake3::Hasher::new();
        let parts = [
            summarizer.instructions.as_str(),
            instructions.unwrap_or_default(),
            if summarizer.replace_prompt {
                "replaces"
            } else {
                ""
            },
            if self.config.journal.enabled {
                "archives"
            } else {
                ""
            },
        ];
        for part in parts {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        for number in [pin.user_tokens, pin.files as u64, pin.errors as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.finalize().into()
    }

    /// The state of a session's breaker, where it is worth telling.
    pub(super) fn breaker_word(prepared: &Prepared) -> Option<&'static str> {
        let phase = prepared.figures.breaker.phase();
        (phase != Phase::Closed).then(|| phase.label())
    }
}

/// The segment that shows a finished summary.
pub(super) fn segment(finished: &Finished) -> Segment {
    Segment {
        block: finished.block.clone(),
        from: finished.from,
        to: finished.to,
        origin: Origin::Summary,
        pinned: finished.pinned,
    }
}

/// Chooses the span and gives it its name.
fn name(
    preparation: &Preparation,
    must: bool,
    max_segments: usize,
    pins: pinned::Settings,
    settings: &[u8; 32],
) -> Option<Named> {
    let Preparation {
        recognised,
        overlay,
        situation,
        tiers,
        split,
        base,
        ..
    } = preparation;
    let conversation = recognised.conversation();
    let none = Overlay::default();
    let overlay = overlay.as_deref().unwrap_or(&none);
    let tenant = crate::engine::chain::start(&recognised.tenant);
    let tokens = situation.size.saturating_sub(*base);
    let survey = Survey::new(&conversation, overlay, tenant, tiers, tokens);
    let clearable = survey.clearable();
    let needed = must || situation.prepares(clearable);
    let floor = situation.watermarks.floor.saturating_sub(*base);
    let look = Look {
        weights: survey.weights(),
        room: needed.then_some(floor),
        split,
        manual_thinking: recognised.facts.manual_thinking,
        max_segments,
        user_tokens: pins.user_tokens,
    };
    let wanted = wanted(&conversation, overlay, &look)?;
    let chain = recognised.whole_chain();
    let named = |end: usize| {
        let hash: &ChainHash = chain.get(end.checked_sub(1)?)?;
        Some(id(*hash, &(wanted.span.start..end), settings))
    };
    let before = overlay.segments.iter();
    let mut before = before.filter(|held| (held.to as usize) <= wanted.span.start);
    let words: u64 = before.clone().map(|held| held.pinned).sum();
    // The newest says where things stand; all of them would make each summary
    // dearer than the one before.
    let earlier = before.next_back().map_or_else(String::new, |held| {
        let block: serde_json::Value = serde_json::from_str(&held.block).unwrap_or_default();
        let text = block.get("text").and_then(serde_json::Value::as_str);
        text.unwrap_or_default().to_owned()
    });
    let left = pins.user_tokens.saturating_sub(words);
    Some(Named {
        id: named(wanted.span.end)?,
        as_good: wanted
            .as_good
            .iter()
            .filter_map(|end| named(*end))
            .collect(),
        end: *recognised.swifts.get(wanted.span.end.checked_sub(1)?)?,
        earlier,
        pins: pinned::Settings {
            user_tokens: left.max(pins.user_tokens / 4),
            ..pins
        },
        wanted,
    })
}
