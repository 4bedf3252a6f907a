//! A pass: from a draft to an overlay that holds, or to nothing.
//!
//! The order is fixed. What the draft leaves out goes into the archive; then the
//! overlay and the pointer to it become durable in one step; only then can a
//! byte of the new view be sent. If anything fails on the way the old overlay
//! still holds, and the request goes with it.

use std::sync::Arc;

use super::build::Plan;
use super::consider::Checked;
use super::learned::Quirk;
use super::prepare::Prepared;
use super::summarise::instructions;
use super::{Fault, Views, deferred};
use crate::compactor::errand::Finished;
use crate::config::Mode;
use crate::engine::cache_marks::Stable;
use crate::engine::ids::OverlayId;
use crate::engine::passed::Passed;
use crate::engine::policy::{Ask, Cache, Closes, Decision, Rest, Urge};
use crate::engine::reduce::Freed;
use crate::engine::span;

impl Views {
    /// Makes the view of a request smaller, if the policy finds that it should
    /// be. Whatever goes wrong, the request keeps the view it has.
    pub(super) async fn pass(&self, prepared: &mut Prepared, asked: Option<Ask>) {
        if let Err(fault) = self.try_pass(prepared, asked).await {
            self.metrics.fail_open(fault.stage());
            tracing::error!(error = %fault, "a pass failed, the view stays as it is");
            // What upstream would refuse is made smaller for once: nothing can
            // be made to last while nothing can be written.
            if prepared.may_pass && prepared.sent.tokens > self.room(prepared) {
                self.reduce_once(prepared).await;
            }
        }
    }

    async fn try_pass(&self, prepared: &mut Prepared, asked: Option<Ask>) -> Result<(), Fault> {
        if !self.allows_pass(prepared, asked) {
            return Ok(());
        }
        let is_accepted = prepared.credential.is_accepted;
        let archives = self.telling(prepared);
        if let (Some(Ask::Manual), Some(wished)) = (asked, instructions(prepared))
            && is_accepted
        {
            self.staging.unless(prepared.lineage, &wished);
        }
        let mut ready = None;
        if is_accepted {
            ready = self.staged(prepared);
        }
        if is_accepted && ready.is_none() {
            ready = self.finished_elsewhere(prepared).await;
        }
        let considered = self.consider(prepared, asked, archives.clone(), ready.as_ref());
        let mut considered = considered.await?;
        if prepared.waits && prepared.figures.course.wants_summary() && ready.is_none() {
            drop(considered);
            if Box::pin(self.wait_for_summary(prepared, false)).await {
                ready = self.staged(prepared);
            }
            let again = self.consider(prepared, asked, archives.clone(), ready.as_ref());
            considered = Box::pin(again).await?;
        }
        let Some((mut checked, mut turn)) = considered else {
            return Ok(());
        };
        // A summary is worth a wait; others should not wait for it too.
        if checked.draft.freed.truncated.is_some() {
            drop(turn.take());
            if ready.is_none() && self.wait_for_summary(prepared, true).await {
                ready = self.staged(prepared);
                let considered = self.consider(prepared, asked, archives, ready.as_ref());
                let Some(again) = considered.await? else {
                    return Ok(());
                };
                (checked, turn) = again;
            }
        }
        let _turn = turn;
        let taken = checked.draft.freed.summed_up.is_some();
        let before = prepared.sent.tokens;
        let (trigger, freed) = (checked.trigger.label(), checked.draft.freed);
        let made = deferred::Pass {
            trigger,
            freed,
            before,
            on_arrival: matches!(checked.decision, Decision::Rest(_)),
        };
        let outcome = if self.config.policy.mode == Mode::Observe {
            let freed: u64 = kinds(freed).map(|(_, tokens)| tokens).sum();
            tracing::info!(session = %prepared.lineage, trigger, before, freed, "a pass would be made here");
            Ok("abandoned")
        } else {
            match self
                .recorded(prepared, asked, checked, ready.as_ref())
                .await
            {
                Ok(Some((checked, summary))) => self.carry_out(prepared, checked, summary).await,
                Ok(None) => Ok("abandoned"),
                Err(fault) => Err(fault),
            }
        };
        let label = *outcome.as_ref().unwrap_or(&"failed");
        if label == "committed" {
            prepared.kinds = kinds(freed).map(|(kind, _)| kind).collect();
        }
        if is_accepted || label != "committed" {
            self.count_pass(&made, label);
        } else {
            prepared.deferred.add_pass(made);
        }
        if taken || (ready.is_some() && freed.truncated.is_some()) {
            // Taken, or of no more use: what is hidden now is something else.
            self.staging.forget(prepared.lineage);
        }
        outcome.map(|_| ())
    }

    /// Counts a pass once, by how it ended, and everything it did by its kind.
    pub(super) fn count_pass(&self, made: &deferred::Pass, outcome: &'static str) {
        let committed = outcome == "committed";
        if !made.on_arrival {
            self.metrics.pass(made.trigger, outcome);
            if committed {
                self.tally.passed();
            }
        }
        for (kind, tokens) in kinds(made.freed) {
            self.metrics.compaction(kind, made.trigger, outcome);
            if committed {
                self.metrics.removed(kind, tokens, made.before);
            }
        }
    }

    /// What lies ready, and whether it heals something, as things are now: more
    /// may have been left out while it was written.
    pub(super) fn still_fits(
        &self,
        prepared: &Prepared,
        finished: Arc<Finished>,
    ) -> Option<(Arc<Finished>, bool)> {
        let span = finished.from as usize..finished.to as usize;
        let head = prepared.recognised.conversation().head();
        let heals = match &prepared.overlay {
            // The API's own stands for everything before its end.
            _ if finished.native.is_some() => {
                // A view with one was refused since.
                let model = &prepared.recognised.facts.model;
                (!self.learned.has(Quirk::NoNative, &self.at_upstream(model))).then_some(false)
            }
            Some((_, overlay)) => span::heals(overlay, head, &span),
            None => Some(false),
        };
        if heals.is_none() {
            // Else it would stand in the way of one that fits.
            self.staging.forget(prepared.lineage);
            self.metrics.compaction("summary", "budget", "abandoned");
        }
        heals.map(|heals| (finished, heals))
    }

    /// The draft, when what it leaves out is in the journal. Without that there
    /// is none, as long as the request can be sent as it is; else one that
    /// promises nothing.
    async fn recorded(
        &self,
        prepared: &mut Prepared,
        asked: Option<Ask>,
        checked: Checked,
        ready: Option<&(Arc<Finished>, bool)>,
    ) -> Result<Option<(Checked, Option<Arc<Finished>>)>, Fault> {
        let of = |checked: &Checked| {
            let taken = checked.draft.freed.summed_up.is_some();
            ready
                .filter(|_| taken)
                .map(|(finished, _)| finished.clone())
        };
        let summary = of(&checked);
        let evicted = &checked.draft.evicted;
        let kept = self.archive(prepared, evicted, summary.as_deref()).await;
        // The store may have gone over it.
        let urge = self.situation(prepared, asked).urge();
        let must = matches!(urge, Ok((_, Urge::Must(_))));
        let kept = match kept {
            Err(_) if must => {
                let again = self.archive_patiently(prepared, evicted, summary.as_deref());
                again.await
            }
            kept => kept,
        };
        let Err(fault) = kept else {
            let waits = self.store.is_away() && urge == Err(Rest::Waits);
            return Ok((!waits).then_some((checked, summary)));
        };
        if !must {
            return Err(Fault::Unrecorded(Box::new(fault)));
        }
        prepared.is_unrecorded = true;
        self.metrics.fail_open("journal");
        tracing::error!(
            error = %fault,
            session = %prepared.lineage,
            "the journal cannot be written, and the request no longer fits: what it leaves out is not recorded and cannot be recalled"
        );
        // A summary that says where its messages are would promise them.
        let ready = ready.filter(|(finished, _)| finished.reference().is_none());
        let of = |checked: &Checked| {
            let taken = checked.draft.freed.summed_up.is_some();
            ready
                .filter(|_| taken)
                .map(|(finished, _)| finished.clone())
        };
        let again = self.consider(prepared, asked, None, ready).await?;
        Ok(again.map(|(checked, _turn)| {
            let summary = of(&checked);
            (checked, summary)
        }))
    }

    /// Tokens that the request of a pass should write into the cache; none: nothing
    /// is cached, or what was trimmed was never sent.
    fn expected_writes(&self, prepared: &Prepared, checked: &Checked) -> Option<u64> {
        let Decision::Pass(pass) = &checked.decision else {
            return None;
        };
        let situation = self.situation(prepared, None);
        match situation.cache {
            Cache::Unused => None,
            _ if situation.is_free() => Some(checked.tokens.saturating_sub(prepared.sending.alive)),
            _ => Some(pass.numbers.rewrites.min(checked.tokens)),
        }
    }

    /// Commits, and puts the new view in place.
    async fn carry_out(
        &self,
        prepared: &mut Prepared,
        checked: Checked,
        summary: Option<Arc<Finished>>,
    ) -> Result<&'static str, Fault> {
        let before = prepared.sent.tokens;
        // What was never sent cannot be in anybody's cache.
        let breaks = prepared
            .grew_from
            .is_none_or(|sent| checked.draft.first < sent);
        let mut figures = prepared.figures.clone();
        if breaks {
            figures.swap = true;
            figures.trail.breaks_at(checked.draft.first);
            figures.previous = figures.trail.before(checked.draft.first);
        }
        figures.unfit |= checked.draft.leaves_unfit_thinking;
        figures.drop_block |= figures.unfit && self.should_drop(&prepared.recognised);
        if let Decision::Pass(pass) = &checked.decision {
            figures
                .course
                .passed(checked.tokens <= self.floor(prepared));
            let within = self.base_tokens(prepared) + self.config.policy.keep_tokens();
            let removed = before.saturating_sub(checked.tokens);
            let outside = checked.tokens.saturating_sub(within);
            figures.course.accounts.removed(removed, outside);
            let cleared = u32::try_from(pass.take.len()).unwrap_or(u32::MAX);
            figures.course.cleared = figures.course.cleared.saturating_add(cleared);
            figures.course.compacting &= pass.closes != Closes::Summary;
            if self.config.policy.clear_at.is_none() {
                figures.stable = Stable::of(&checked.draft.overlay);
                figures.hold_no_place();
            }
            let situation = self.situation(prepared, None);
            tracing::info!(
                session = %prepared.lineage,
                trigger = pass.trigger.label(),
                projected = situation.projected(),
                hard_at = situation.watermarks.hard_at,
                store_is_away = situation.waits,
                numbers = ?pass.numbers,
                thrash = pass.thrash,
                tokens = checked.tokens,
                "a pass"
            );
        }
        // What is trimmed as it arrives is no pass of the policy's.
        let trigger = match &checked.decision {
            Decision::Pass(pass) => pass.trigger.label(),
            Decision::Rest(_) => Passed::ARRIVAL,
        };
        figures.passed = Some(Passed {
            expected_writes: self.expected_writes(prepared, &checked),
            ..Passed::new(
                trigger,
                kinds(checked.draft.freed),
                (before, checked.tokens),
            )
        });
        let dropped = checked.draft.thinking_dropped;
        let told = told(&checked, before);
        let evicted = checked.draft.evicted;
        let place = prepared.recognised.last().ok_or(Fault::Bug("no chain"))?;
        let stored = checked.draft.overlay.store(place);
        let (id, bytes) = stored.ok_or(Fault::Bug("an overlay cannot be stored"))?;
        let overlay = Some((id, Arc::new(checked.draft.overlay)));
        let plan = Plan {
            overlay,
            figures,
            view: Some((checked.hash, checked.size)),
        };
        if !self.commit(prepared, plan, Some((id, bytes))).await? {
            return Ok("abandoned");
        }
        let crowded = self.is_crowded(prepared.overlay.as_ref().map(|(_, o)| o.as_ref()));
        if crowded && !std::mem::replace(&mut prepared.crowded, crowded) {
            self.metrics.handoff_due();
            tracing::warn!(
                session = %prepared.lineage,
                "the session has policy.max_segments segments: older ones are merged from now on, and a fresh session is better; longhaul sessions handoff writes the text to start it with"
            );
        }
        if prepared.credential.is_accepted {
            self.index_pass(prepared, evicted, summary.as_deref(), told);
        } else {
            prepared.deferred.leave_out(evicted, told);
        }
        self.metrics.thinking_dropped("view", dropped);
        if breaks {
            prepared.sending.unchanged.get_or_insert(before);
        }
        Ok("committed")
    }

    /// Goes back to the history as the client sends it.
    pub(super) async fn reset(&self, prepared: &mut Prepared) -> Result<(), Fault> {
        let mut figures = prepared.figures.clone();
        figures.swap = false;
        figures.passed = None;
        figures.previous = None;
        figures.unfit = false;
        figures.keep_no_place();
        figures.course.compacting = false;
        figures.course.preparing = false;
        self.staging.forget(prepared.lineage);
        // The client wants it so.
        prepared.sending.client_edited = true;
        let plan = Plan {
            overlay: None,
            figures,
            view: None,
        };
        self.commit(prepared, plan, None).await.map(|_| ())
    }

    /// Makes a view smaller for once: nothing is committed or remembered.
    pub(super) async fn reduce_once(&self, prepared: &mut Prepared) {
        let reduced = match self
            .consider(prepared, Some(Ask::Reactive), None, None)
            .await
        {
            Ok(Some((checked, _turn))) => {
                prepared.kinds = kinds(checked.draft.freed).map(|(kind, _)| kind).collect();
                let overlay = Arc::new(checked.draft.overlay);
                let plan = Plan {
                    overlay: Some((OverlayId::from_bytes([0; 32]), overlay)),
                    figures: prepared.figures.clone(),
                    view: Some((checked.hash, checked.size)),
                };
                let recognised = prepared.recognised.clone();
                self.build(recognised, plan, None, &prepared.tried).await
            }
            Ok(None) => return,
            Err(fault) => Err(fault),
        };
        match reduced {
            Ok(built) => {
                prepared.remembers = false;
                prepared.is_unrecorded |= self.config.journal.enabled;
                self.put(prepared, built);
            }
            Err(fault) => {
                prepared.kinds.clear();
                self.metrics.fail_open(fault.stage());
                tracing::error!(error = %fault, "a view could not be reduced");
            }
        }
    }
}

/// What a pass did, in a line of the journal.
fn told(checked: &Checked, before: u64) -> String {
    let kinds: Vec<&str> = kinds(checked.draft.freed).map(|(kind, _)| kind).collect();
    format!(
        "A pass ({}, {}) made the view smaller: {before} tokens before, {} after. The history \
         before it can be exported.",
        checked.trigger.label(),
        kinds.join("+"),
        checked.tokens
    )
}

/// What was done, and the tokens it freed.
fn kinds(freed: Freed) -> impl Iterator<Item = (&'static str, u64)> {
    let kinds = [
        ("clear", freed.cleared),
        ("trim", freed.trimmed),
        ("summary", freed.summed_up),
        ("journal", freed.journaled),
        ("truncate", freed.truncated),
    ];
    kinds
        .into_iter()
        .filter_map(|(kind, tokens)| Some((kind, tokens?)))
}
