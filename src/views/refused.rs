//! Upstream does not take a request: carries out what is to be tried next.
//!
//! What that is, and what a refusal teaches, is decided in
//! [`crate::engine::fallback`]. What helped is remembered for the model. What was
//! tried holds only once an answer confirms it; if nothing helped, the refusal was
//! not for what we changed, and the plan is again what it was. A request that we
//! did not change is the client's own matter.

use std::sync::Arc;

use super::build::Plan;
use super::learned::Quirk;
use super::prepare::Prepared;
use super::provisional::Before;
use super::recognise::Recognised;
use super::{Fault, Views};
use crate::engine::chain;
use crate::engine::fallback::{self, Fallback, Refused};
use crate::engine::ids::LineageId;
use crate::engine::measure;
use crate::engine::overlay::Overlay;
use crate::engine::policy::Ask;
use crate::engine::reduce::without_thinking;
use crate::engine::request::Treatment;
use crate::engine::view::can_ask_to_drop;
use crate::wire::refusal::Refusal;

impl Views {
    /// Changes a refused request into what is to be tried next; `false` if there
    /// is nothing left to try, and the refusal is the client's to see.
    pub async fn refused(&self, prepared: &mut Prepared, refusal: &Refusal) -> bool {
        self.learn_sizes(prepared, refusal).await;
        let before = Before::of(prepared);
        prepared.before.get_or_insert_with(|| Box::new(before));
        prepared.refused = true;
        // What was left out on the very same refusal did not help.
        prepared.lessons.retain(|(_, answers)| answers != refusal);
        // What we changed is ours to put right, however long a summary has kept
        // us: the client's own request might have been taken. The tries are few.
        let late = prepared.begun.elapsed() > self.config.summarizer.deadline;
        if late && !prepared.view.edited {
            return false;
        }
        let Some(next) = self.next_fallback(prepared, refusal) else {
            return false;
        };
        tracing::warn!(session = %prepared.lineage, ?refusal, ?next, "upstream refused a request");
        let quirk = match next {
            Fallback::NoMarks => Some(Quirk::NoMarks),
            Fallback::NoDrop => Some(Quirk::NoDrop),
            Fallback::NoNative => Some(Quirk::NoNative),
            Fallback::Again
            | Fallback::Drop
            | Fallback::Bare
            | Fallback::Own
            | Fallback::Smaller => None,
        };
        if let Some(quirk) = quirk {
            prepared.tried.push(quirk);
            prepared.lessons.push((quirk, refusal.clone()));
        }
        let outcome = self.fall_back(prepared, next).await;
        self.metrics
            .reactive(if outcome.is_ok() { "retried" } else { "failed" });
        if let Err(fault) = &outcome {
            tracing::error!(error = %fault, "a refused request cannot be changed");
        }
        outcome.is_ok()
    }

    /// No try has helped: the plan is again what it was before the first.
    pub async fn give_up(&self, prepared: &mut Prepared) {
        let Some(before) = prepared.before.take().filter(|_| prepared.replaced) else {
            return;
        };
        prepared.kinds.clear();
        if let Err(fault) = self.commit(prepared, before.plan, None).await {
            // No harm is done: nobody takes what no answer has confirmed.
            self.metrics.fail_open(fault.stage());
            tracing::error!(error = %fault, session = %prepared.lineage, "a plan made for a refusal could not be taken back in the store; later requests ignore it");
        }
    }

    async fn learn_sizes(&self, prepared: &mut Prepared, refusal: &Refusal) {
        let sizes = fallback::sizes(refusal, prepared.recognised.facts.max_tokens);
        // Upstream counts better than we do.
        prepared.sent.tokens = sizes.prompt.unwrap_or(0).max(prepared.sent.tokens);
        if sizes.at_most.is_some() {
            prepared.at_most = sizes.at_most;
        }
        let Some(window) = sizes.window else {
            return;
        };
        prepared.claimed = Some(window);
        // From a request that anybody may have sent nothing is learned before it
        // is answered.
        if prepared.credential.is_accepted {
            self.learn_claim(prepared, window).await;
        }
    }

    fn next_fallback(&self, prepared: &Prepared, refusal: &Refusal) -> Option<Fallback> {
        let Prepared {
            view,
            recognised,
            tried,
            figures,
            ..
        } = prepared;
        let model = &recognised.facts.model;
        let about_size = fallback::is_about_size(refusal);
        let binds_thinking = self.config.models.lookup(model).binds_thinking;
        let bound = fallback::is_about_binding(refusal, binds_thinking);
        if bound && prepared.credential.is_accepted {
            self.note(self.learned.shown(Quirk::Enforces, &account(recognised)));
        }
        let no_drop = self.learned.has(Quirk::NoDrop, model) || tried.contains(&Quirk::NoDrop);
        let key = &recognised.window_key;
        let request = Refused {
            edited: view.edited,
            overlaid: prepared.overlay.is_some(),
            added_marks: view.added_marks,
            added_drop: view.added_drop,
            added_native: view.added_native,
            passed: !prepared.kinds.is_empty(),
            binds_thinking,
            can_ask_to_drop: bound
                && !no_drop
                && !figures.drop_block
                && can_ask_to_drop(&recognised.conversation()),
            can_go_bare: !about_size && !prepared.bare && bared(prepared).is_some(),
            own_fits: self.own_fits(prepared),
            may_shrink: prepared.may_pass,
            shrunk: prepared.shrunk,
            repeated: prepared.repeated,
            answered_before: self.learned.was_answered_at(key, prepared.sent.tokens),
        };
        fallback::next(refusal, &request)
    }

    /// Whether upstream is to be asked to drop thinking that does not fit: it is
    /// known to refuse that here, and is not known to refuse the question.
    pub(super) fn should_drop(&self, recognised: &Recognised) -> bool {
        self.learned.has(Quirk::Enforces, &account(recognised))
            && !self.learned.has(Quirk::NoDrop, &recognised.facts.model)
    }

    /// A model at the configured upstream: another one may do what this one
    /// refuses.
    pub(super) fn at_upstream(&self, model: &str) -> String {
        let upstream = blake3::hash(self.config.upstream.to_string().as_bytes());
        format!("{}/{model}", LineageId::beginning(upstream.as_bytes()))
    }

    /// Whether the client's own request fits the window.
    fn own_fits(&self, prepared: &Prepared) -> bool {
        let model = &prepared.recognised.facts.model;
        let (history, _) = prepared.figures.sizes().unwrap_or_default();
        let size = measure::measure(None, &history, &self.learned.factor(model));
        size.tokens <= self.window(prepared)
    }

    async fn fall_back(&self, prepared: &mut Prepared, next: Fallback) -> Result<(), Fault> {
        let mut figures = prepared.figures.clone();
        let overlay = prepared.overlay.clone();
        let known = figures.sizes().map(|(_, size)| (prepared.view_hash, size));
        match next {
            Fallback::Again => {
                prepared.repeated = true;
                Ok(())
            }
            Fallback::Drop | Fallback::NoDrop | Fallback::NoMarks => {
                match next {
                    Fallback::Drop => figures.drop_block = true,
                    Fallback::NoDrop => figures.drop_block = false,
                    _ => {}
                }
                let plan = Plan {
                    overlay,
                    figures,
                    view: known,
                };
                let recognised = prepared.recognised.clone();
                let from = Some((recognised.len(), Some(prepared.view_hash)));
                let built = self.build(recognised, plan, from, &prepared.tried).await?;
                self.put(prepared, built);
                Ok(())
            }
            Fallback::Bare => {
                prepared.bare = true;
                figures.unfit = false;
                let bare = bared(prepared).ok_or(Fault::Bug("no thinking"))?;
                if let Err(fault) = self.archive(prepared, &[], None).await {
                    // A request that is refused is worse than thinking that is
                    // not recorded.
                    prepared.is_unrecorded = true;
                    self.metrics.fail_open("journal");
                    tracing::error!(error = %fault, session = %prepared.lineage, "the journal cannot be written: thinking that is left out is not recorded");
                }
                let place = prepared.recognised.last().ok_or(Fault::Bug("no chain"))?;
                let stored = bare.store(place);
                let (id, bytes) = stored.ok_or(Fault::Bug("an overlay cannot be stored"))?;
                let plan = Plan {
                    overlay: Some((id, Arc::new(bare))),
                    figures,
                    view: None,
                };
                self.settle(prepared, plan, Some((id, bytes))).await
            }
            Fallback::Smaller => self.shrink(prepared).await,
            Fallback::Own | Fallback::NoNative => {
                figures.drop_block = false;
                figures.unfit = false;
                figures.swap = false;
                figures.passed = None;
                let plan = Plan {
                    overlay: None,
                    figures,
                    view: None,
                };
                self.settle(prepared, plan, None).await?;
                if next == Fallback::NoNative && !self.fits(prepared) {
                    return self.shrink(prepared).await;
                }
                Ok(())
            }
        }
    }

    /// Makes a request smaller that upstream finds too long.
    async fn shrink(&self, prepared: &mut Prepared) -> Result<(), Fault> {
        prepared.shrunk += 1;
        let before = prepared.view_hash;
        if prepared.remembers && prepared.recognised.treatment == Treatment::Ordinary {
            self.pass(prepared, Some(Ask::Reactive)).await;
        } else {
            self.reduce_once(prepared).await;
        }
        if prepared.view_hash == before {
            return Err(Fault::Bug("nothing can be given away"));
        }
        Ok(())
    }

    /// Another overlay from here on, if the request is one that is remembered.
    async fn settle(
        &self,
        prepared: &mut Prepared,
        plan: Plan,
        stored: Option<(crate::engine::ids::OverlayId, Vec<u8>)>,
    ) -> Result<(), Fault> {
        if prepared.remembers {
            return self.commit(prepared, plan, stored).await.map(|_| ());
        }
        let recognised = prepared.recognised.clone();
        let built = self.build(recognised, plan, None, &prepared.tried).await?;
        self.put(prepared, built);
        Ok(())
    }
}

/// Whose account it is, and which model: what an API enforces may differ from one
/// to the next.
fn account(recognised: &Recognised) -> String {
    let Recognised { tenant, facts, .. } = recognised;
    let tenant = LineageId::beginning(chain::start(tenant).as_bytes());
    format!("{tenant}/{}", facts.model)
}

/// The overlay without the thinking that it may have spoilt, if there is any
/// and it may be left out.
fn bared(prepared: &Prepared) -> Option<Overlay> {
    let (_, overlay) = prepared.overlay.as_ref()?;
    let conversation = prepared.recognised.conversation();
    if conversation.is_in_tool_loop() {
        return None;
    }
    without_thinking(&conversation, overlay, prepared.recognised.seed())
}
