//! Upstream does not take a request: what to try next.
//!
//! A refusal of thinking that does not fit its conversation is answered by
//! asking upstream to drop it. Any other refusal of a request that we changed is
//! ours until proven otherwise: first goes what we added, then the thinking that
//! our change may have spoilt, then the whole change, if the client's own
//! request fits. What helped is remembered for the model. A request that we did
//! not change is the client's own matter.

use std::sync::Arc;

use super::learned::Quirk;
use super::prepare::{Plan, Prepared};
use super::{Fault, Views};
use crate::engine::chain;
use crate::engine::measure;
use crate::engine::overlay::Overlay;
use crate::engine::reduce::without_thinking;
use crate::engine::view::may_ask_to_drop;
use crate::wire::refusal::Refusal;

/// What is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    /// Ask upstream to drop thinking that does not fit.
    Drop,
    /// Without our cache marks.
    NoMarks,
    /// Without asking upstream to drop anything.
    NoDrop,
    /// Without the thinking behind our change.
    Bare,
    /// As the client sent it.
    Own,
}

impl Views {
    /// Changes a refused request into what is to be tried next; `false` if there
    /// is nothing left to try, and the refusal is the client's to see.
    pub async fn refused(&self, prepared: &mut Prepared, refusal: &Refusal) -> bool {
        self.learn_window(prepared, refusal);
        if prepared.begun.elapsed() > self.config.summarizer.deadline {
            return false;
        }
        let Some(rung) = self.rung(prepared, refusal) else {
            return false;
        };
        tracing::warn!(session = %prepared.lineage, ?refusal, ?rung, "upstream refused a request");
        let outcome = self.climb(prepared, rung).await;
        self.metrics
            .reactive(if outcome.is_ok() { "retried" } else { "failed" });
        if let Err(fault) = &outcome {
            tracing::error!(error = %fault, "a refused request cannot be changed");
        }
        outcome.is_ok()
    }

    fn learn_window(&self, prepared: &Prepared, refusal: &Refusal) {
        let said = match refusal {
            Refusal::ContextExceeded { window, .. }
            | Refusal::OutputExceedsWindow { window, .. } => *window,
            _ => None,
        };
        let model = &prepared.recognised.facts.model;
        self.note(said.and_then(|window| self.learned.window_is(model, window)));
    }

    fn rung(&self, prepared: &Prepared, refusal: &Refusal) -> Option<Rung> {
        let Prepared {
            view,
            recognised,
            tried,
            figures,
            ..
        } = prepared;
        let model = &recognised.facts.model;
        match refusal {
            Refusal::ContextExceeded { .. }
            | Refusal::OutputExceedsWindow { .. }
            | Refusal::MaxTokensTooLarge { .. }
            | Refusal::RequestTooLarge => return None,
            Refusal::BoundThinking(_) => {
                self.note(self.learned.shown(Quirk::Enforces, model));
                let refused =
                    self.learned.has(Quirk::NoDrop, model) || tried.contains(&Quirk::NoDrop);
                let asks = !figures.drop_block && !refused;
                if asks && may_ask_to_drop(&recognised.conversation()) {
                    return Some(Rung::Drop);
                }
                // What we added besides is not at fault.
                return self.undo(prepared).filter(|_| view.edited);
            }
            Refusal::UnknownBeta(_) | Refusal::ExtraField(_) if view.added_drop => {
                return Some(Rung::NoDrop);
            }
            _ => {}
        }
        match () {
            () if !view.edited => None,
            () if view.added_marks => Some(Rung::NoMarks),
            () if view.added_drop => Some(Rung::NoDrop),
            () => self.undo(prepared),
        }
    }

    /// The change itself is at fault: what of it is to be taken back.
    fn undo(&self, prepared: &Prepared) -> Option<Rung> {
        let changed = prepared.overlay.is_some();
        let in_loop = prepared.recognised.conversation().is_in_tool_loop();
        match () {
            () if changed && !prepared.bare && !in_loop => Some(Rung::Bare),
            () if changed && self.own_fits(prepared) => Some(Rung::Own),
            () => None,
        }
    }

    /// Whether the client's own request fits the window.
    fn own_fits(&self, prepared: &Prepared) -> bool {
        let model = &prepared.recognised.facts.model;
        let known = self.config.models.lookup(model);
        let (history, _) = prepared.figures.sizes();
        let size = measure::measure(None, &history, &self.learned.factor(model));
        size.tokens <= self.learned.window(model, known.window)
    }

    async fn climb(&self, prepared: &mut Prepared, rung: Rung) -> Result<(), Fault> {
        let mut figures = prepared.figures.clone();
        let overlay = prepared.overlay.clone();
        let known = Some((prepared.view_hash, figures.sizes().1));
        if matches!(rung, Rung::Bare | Rung::Own) {
            // What was tried before has not helped, and says nothing of upstream.
            prepared.tried.clear();
        }
        match rung {
            Rung::Drop | Rung::NoDrop => {
                figures.drop_block = rung == Rung::Drop;
                if rung == Rung::NoDrop {
                    prepared.tried.push(Quirk::NoDrop);
                }
                let plan = Plan {
                    overlay,
                    figures,
                    view: known,
                };
                self.replan(prepared, plan, true).await
            }
            Rung::NoMarks => {
                prepared.tried.push(Quirk::NoMarks);
                let plan = Plan {
                    overlay,
                    figures,
                    view: known,
                };
                self.replan(prepared, plan, false).await
            }
            Rung::Bare => {
                prepared.bare = true;
                let none = Overlay::default();
                let current = overlay.as_ref().map_or(&none, |(_, overlay)| overlay);
                let tenant = chain::start(&prepared.recognised.tenant);
                let bare = without_thinking(&prepared.recognised.conversation(), current, tenant);
                let Some((bare, evicted)) = bare else {
                    return Box::pin(self.climb(prepared, Rung::Own)).await;
                };
                self.archive(prepared, &evicted).await?;
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
            Rung::Own => {
                figures.drop_block = false;
                figures.swap = false;
                let plan = Plan {
                    overlay: None,
                    figures,
                    view: None,
                };
                self.settle(prepared, plan, None).await
            }
        }
    }

    /// The same overlay, sent differently.
    async fn replan(&self, prepared: &mut Prepared, plan: Plan, marks: bool) -> Result<(), Fault> {
        let recognised = prepared.recognised.clone();
        let from = Some((recognised.len(), Some(prepared.view_hash)));
        let built = match marks && !prepared.tried.contains(&Quirk::NoMarks) {
            true => self.build(recognised, plan, from).await?,
            false => super::prepare::Built::make(&recognised, plan, from, false)?,
        };
        self.put(prepared, built);
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
            return self.commit(prepared, plan, stored).await;
        }
        let built = self.build(prepared.recognised.clone(), plan, None).await?;
        self.put(prepared, built);
        Ok(())
    }
}
