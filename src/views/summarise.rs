//! Summaries for a session: prepared while it goes on, waited for only when a
//! request could not be sent otherwise.
//!
//! After a reply the next request is thought of: if the conversation is about to
//! need a summary and nothing lighter will do, a flight is begun, or one boarded
//! that somebody else has begun for the same messages. Its outcome is noted in
//! the session's breaker with the next request. Whatever goes wrong, the session
//! goes on with the tiers that need no model.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Views;
use super::bill::charge;
use super::learned::Quirk;
use super::preparation::{Named, Preparation, name};
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::staging::{Asked, Stage, Staged};
use crate::compactor::client::left_alone;
use crate::compactor::errand::{Cached, Errand, Finished};
use crate::compactor::{Boarding, Compactor, Spent};
use crate::config::{Mode, Style, SummarizerMode};
use crate::engine::breaker::{Event, Permit, Phase, Settings, Transition};
use crate::engine::ids::LineageId;
use crate::engine::overlay::Origin;
use crate::engine::policy::Situation;
use crate::engine::recovery::Failure;
use crate::engine::request::Treatment;

/// Requests after which a trial whose outcome never came counts as lost.
const TRIAL: u64 = 20;
/// How long it takes to begin a flight, about.
const BEGINNING: Duration = Duration::from_millis(10);

impl Views {
    /// The compactor, where summaries are made at all, and not while what they
    /// would be stored in is away.
    pub(super) fn summarizer(&self) -> Option<&Arc<Compactor>> {
        let config = &self.config;
        let on = config.policy.mode == Mode::On
            && config.policy.style == Style::Compact
            && config.summarizer.mode != SummarizerMode::Off;
        self.compactor
            .as_ref()
            .filter(|_| on && !self.store.is_away())
    }

    pub(super) fn breaker_settings(&self) -> Settings {
        let breaker = &self.config.breaker;
        Settings {
            max_failures: breaker.max_failures,
            cooldown: breaker.cooldown_turns.into(),
            trial: TRIAL,
        }
    }

    /// Notes what has become of the session's summary, and takes what lies ready.
    pub(super) fn staged(&self, prepared: &mut Prepared) -> Option<(Arc<Finished>, bool)> {
        self.note_refusers();
        let spent = self.staging.take_spent(prepared.lineage);
        let (stage, permit) = self.look_at_stage(prepared);
        if let Some(permit) = permit {
            self.note_outcome(prepared, stage.event(permit));
        }
        charge(prepared, spent, matches!(stage, Stage::Failed(_)));
        match stage {
            Stage::Ready(finished) => self.still_fits(prepared, finished),
            Stage::Failed(failure) => {
                prepared.figures.course.preparing = false;
                if failure == Failure::StillTooLarge {
                    let size = prepared.sent.tokens;
                    self.staging.found_nothing(prepared.lineage, size);
                }
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

    fn look_at_stage(&self, prepared: &Prepared) -> (Stage, Option<Permit>) {
        let overlay = prepared.overlay.as_ref();
        let overlay = overlay.map(|(id, overlay)| (*id, overlay.as_ref()));
        let swifts = &prepared.recognised.swifts;
        self.staging.look(prepared.lineage, swifts, overlay)
    }

    /// Remembers which models do not sum up by themselves.
    fn note_refusers(&self) {
        let refusers = self.compactor.as_ref().map(|c| c.refusers.take());
        for model in refusers.into_iter().flatten() {
            let place = self.at_upstream(&model);
            self.note(self.learned.shown(Quirk::NoNative, &place));
        }
    }

    /// Whether the API itself is asked: where a summary of ours would spoil
    /// thinking that the model still has.
    pub(super) fn asks_the_api(&self, recognised: &Recognised) -> bool {
        let facts = &recognised.facts;
        let place = self.at_upstream(&facts.model);
        let can = self.config.has_compaction()
            && self.config.summarizer.upstream.is_none()
            && !self.learned.has(Quirk::NoNative, &place);
        let binds = || self.config.models.lookup(&facts.model).binds_thinking;
        can && match self.config.summarizer.mode {
            SummarizerMode::Native => true,
            SummarizerMode::Auto => binds() && recognised.conversation().thinks(),
            SummarizerMode::Fork | SummarizerMode::Model | SummarizerMode::Off => false,
        }
    }

    pub(super) fn note_outcome(&self, prepared: &mut Prepared, event: Event) {
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
        let situation = self.due(prepared)?;
        self.prepare_with(prepared, situation)
    }

    /// Where the session stands, if it is time for a summary and there is none.
    pub(super) fn due(&self, prepared: &Prepared) -> Option<Situation> {
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
        let size = situation.size;
        let wanted = prepared.figures.course.wants_summary();
        let due = (situation.is_due() || wanted)
            && self
                .staging
                .is_worth_a_look(prepared.lineage, size, self.config.clear.at_least);
        (truncated || due).then_some(situation)
    }

    fn prepare_with(&self, prepared: &mut Prepared, situation: Situation) -> Option<Preparation> {
        let sender = prepared.sender.as_ref()?;
        let compactor = self.summarizer()?;
        if compactor.gates.is_hushed(&sender.digest()) {
            return None;
        }
        let mut preparation = self.snapshot(prepared, situation)?;
        preparation.permit = Some(self.permit(prepared)?);
        Some(preparation)
    }

    /// What a summary would be made from, without leave to ask anybody for it.
    pub(super) fn snapshot(
        &self,
        prepared: &Prepared,
        situation: Situation,
    ) -> Option<Preparation> {
        let sender = prepared.sender.clone()?;
        let room = self.hold(&prepared.recognised.bytes)?;
        let archives = self.telling(prepared);
        let (tiers, base) = self.tiers(prepared, &situation, archives);
        Some(Preparation {
            recognised: prepared.recognised.clone(),
            overlay: prepared
                .overlay
                .as_ref()
                .map(|(_, overlay)| overlay.clone()),
            lineage: prepared.lineage,
            base,
            pieces: prepared.view.pieces.clone(),
            overlay_id: prepared.overlay.as_ref().map(|(id, _)| *id),
            native: self.asks_the_api(&prepared.recognised),
            wanted: prepared.figures.course.wants_summary(),
            betas: prepared.view.betas(),
            tokens: prepared.sent.tokens,
            instructions: instructions(prepared),
            situation,
            tiers,
            sender,
            permit: None,
            room,
        })
    }

    /// Room to hold a request in memory, while its reply comes and while it is
    /// summed up; `None` if there is none now, and the next request may try.
    pub(super) fn hold(&self, bytes: &Bytes) -> Option<Arc<OwnedSemaphorePermit>> {
        let kilobytes = u32::try_from(bytes.len() / 1024 + 1).ok()?;
        let held = self.holding.clone().try_acquire_many_owned(kilobytes);
        held.ok().map(Arc::new)
    }

    /// Begins to prepare a summary, in the background.
    pub fn prepare_summary(self: &Arc<Self>, preparation: Preparation) {
        let views = self.clone();
        let work = async move {
            views.stage(preparation, false).await;
        };
        self.tasks.spawn_on(work, &self.background);
    }

    /// Begins a flight, or boards one; what is waited for then. `must` if a
    /// request cannot be sent without.
    async fn stage(&self, preparation: Preparation, must: bool) -> Option<Boarding> {
        let compactor = self.summarizer()?.clone();
        let Some(_beginning) = self.staging.begin(preparation.lineage) else {
            self.staging
                .give_back(preparation.lineage, preparation.permit);
            return None;
        };
        let archives = preparation.tiers.archives.clone();
        let (preparation, named) = self.named(preparation, must).await?;
        let Preparation {
            recognised,
            lineage,
            permit,
            ..
        } = &preparation;
        let Some(named) = named else {
            let size = preparation.situation.size;
            self.staging.found_nothing(*lineage, size);
            self.staging.give_back(*lineage, *permit);
            return None;
        };
        let mut staged = Staged {
            span: named.wanted.span.clone(),
            end: named.end,
            hidden: preparation
                .overlay
                .as_ref()
                .map_or(0, |overlay| overlay.cut),
            asked: match named.native {
                Some(_) => Asked::Api(preparation.overlay_id),
                None => Asked::Model,
            },
            instructions: preparation.instructions.clone(),
            permit: *permit,
            boarding: Boarding::landed(Err(Failure::Shut)),
        };
        if let Some((_, finished)) = compactor.stored(&named.all()).await {
            staged.span.end = finished.to as usize;
            staged.end = *recognised.swifts.get(staged.span.end.checked_sub(1)?)?;
            staged.boarding = Boarding::landed(Ok(finished));
        } else {
            let shown = preparation
                .overlay
                .as_ref()
                .map_or(0, |overlay| overlay.cut as usize);
            let native = named.native;
            let in_view = native.is_some() || named.wanted.span.start >= shown;
            let cached = (!must && in_view).then(|| Cached {
                pieces: preparation.pieces.clone(),
                betas: preparation.betas.clone(),
                tokens: preparation.tokens,
            });
            let errand = Errand {
                id: named.id,
                as_good: named.earlier_ends(),
                bytes: recognised.bytes.clone(),
                body: recognised.body.clone(),
                span: named.wanted.span.clone(),
                earlier: named.earlier,
                cached,
                model: recognised.facts.model.clone(),
                instructions: preparation.instructions.clone(),
                sender: preparation.sender.clone(),
                room: Some(preparation.room.clone()),
                native,
                spent: Spent::default(),
                pins: named.pins,
                archives,
                claimed: Arc::default(),
            };
            let Some((boarded, boarding)) = compactor.board(errand, &named.as_good) else {
                self.staging.give_back(*lineage, *permit);
                return None;
            };
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

    /// Chooses the span that a summary is wanted of and gives it its name, away
    /// from the streams.
    pub(super) async fn named(
        &self,
        mut preparation: Preparation,
        must: bool,
    ) -> Option<(Preparation, Option<Named>)> {
        // It may have been refused since the request was sent.
        self.note_refusers();
        let model = &preparation.recognised.facts.model;
        let place = self.at_upstream(model);
        preparation.native &= !self.learned.has(Quirk::NoNative, &place);
        let archives = preparation.tiers.archives.as_ref();
        let settings = self.digest(preparation.instructions.as_deref(), archives);
        let max_segments = self.config.policy.max_segments;
        let pins = preparation.tiers.pins.as_ref();
        let former = pins.and_then(|pins| pins.former_plan.clone());
        let pins = self.pins(self.floor_of(&preparation.recognised), former);
        let planned = tokio::task::spawn_blocking(move || {
            let named = name(&preparation, must, max_segments, pins, &settings);
            (preparation, named)
        });
        planned.await.ok()
    }

    /// Waits for a summary without which a request would lose its memory (`must`),
    /// or which the client would rather wait for, as long as one request may wait
    /// at all. Whether that changes anything: there is one now, or there is too
    /// little to be summed up.
    pub(super) async fn wait_for_summary(&self, prepared: &mut Prepared, must: bool) -> bool {
        if self.summarizer().is_none() || !prepared.credential.is_accepted {
            return false;
        }
        let deadline = self.config.summarizer.deadline;
        let until = Instant::from_std(prepared.begun) + deadline;
        if let Some(wished) = instructions(prepared) {
            self.staging.unless(prepared.lineage, &wished);
        }
        let Some(mut boarding) = self.boarding(prepared, until, must).await else {
            return prepared.spares || self.staging.has(prepared.lineage);
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

    /// A place on the flight that a request has to wait for; `None` if there is
    /// none to be had, or if it has landed.
    async fn boarding(
        &self,
        prepared: &mut Prepared,
        until: Instant,
        must: bool,
    ) -> Option<Boarding> {
        loop {
            let (stage, permit) = self.look_at_stage(prepared);
            if let Some(permit) = permit {
                self.note_outcome(prepared, stage.event(permit));
            }
            match stage {
                Stage::Ready(..) => return None,
                Stage::Flying(boarding) => return Some(boarding),
                Stage::None | Stage::Failed(_) | Stage::Astray => {}
            }
            if !self.staging.is_beginning(prepared.lineage) {
                let situation = self.situation(prepared, None);
                let preparation = self.prepare_with(prepared, situation)?;
                let boarding = self.stage(preparation, must).await;
                prepared.spares = must && boarding.is_none();
                return boarding;
            }
            // Somebody is about to begin one: that is the one to wait for.
            tokio::time::sleep(BEGINNING).await;
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// A conversation was told to slow down: nothing else is asked beside it.
    pub(super) fn hush(&self, prepared: &Prepared, answer: &HeaderMap) {
        if let (Some(compactor), Some(sender)) = (&self.compactor, &prepared.sender) {
            let asked = left_alone(answer);
            compactor.gates.hush(sender.digest(), asked);
        }
    }

    /// The state of a session's breaker, where it is worth telling.
    pub(super) fn breaker_word(prepared: &Prepared) -> Option<&'static str> {
        let phase = prepared.figures.breaker.phase();
        (phase != Phase::Closed).then(|| phase.label())
    }
}

/// What is wished of a summary, by whoever asked for one, or with the request.
pub(super) fn instructions(prepared: &Prepared) -> Option<String> {
    let wished = prepared.wished.as_ref();
    let wished = wished.and_then(|wished| wished.instructions.clone());
    wished.or_else(|| prepared.instructions.clone())
}
