//! Upstream does not take a request: what to try next.
//!
//! A refusal as too long is answered by making the request smaller. One of
//! thinking that does not fit its conversation is answered by asking upstream to
//! drop it. Any other refusal of a request that we changed is
//! ours until proven otherwise: first goes what we added, then the thinking that
//! our change may have spoilt, then the whole change, if the client's own
//! request fits. What helped is remembered for the model; if nothing did, the
//! refusal was not for what we changed, and the plan is again what it was. A
//! request that we did not change is the client's own matter.

use std::sync::Arc;

use super::build::Plan;
use super::learned::Quirk;
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::{Fault, Views};
use crate::engine::chain;
use crate::engine::ids::LineageId;
use crate::engine::measure;
use crate::engine::overlay::Overlay;
use crate::engine::policy::Ask;
use crate::engine::reduce::without_thinking;
use crate::engine::request::Treatment;
use crate::engine::view::can_ask_to_drop;
use crate::wire::refusal::Refusal;

/// How often a request is made smaller because upstream finds it too long.
const SHRINKS: u32 = 2;

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
    /// Made smaller: it is too long.
    Smaller,
}

impl Views {
    /// Changes a refused request into what is to be tried next; `false` if there
    /// is nothing left to try, and the refusal is the client's to see.
    pub async fn refused(&self, prepared: &mut Prepared, refusal: &Refusal) -> bool {
        self.learn_window(prepared, refusal);
        prepared.refused = true;
        // What was left out on the very same refusal did not help.
        prepared.lessons.retain(|(_, answers)| answers != refusal);
        // What we changed is ours to put right, however long a summary has kept
        // us: the client's own request might have been taken. The tries are few.
        let late = prepared.begun.elapsed() > self.config.summarizer.deadline;
        if late && !prepared.view.edited {
            return false;
        }
        let Some(rung) = self.rung(prepared, refusal) else {
            return false;
        };
        tracing::warn!(session = %prepared.lineage, ?refusal, ?rung, "upstream refused a request");
        let quirk = match rung {
            Rung::NoMarks => Some(Quirk::NoMarks),
            Rung::NoDrop => Some(Quirk::NoDrop),
            Rung::Drop | Rung::Bare | Rung::Own | Rung::Smaller => None,
        };
        if let Some(quirk) = quirk {
            prepared.tried.push(quirk);
            prepared.lessons.push((quirk, refusal.clone()));
        }
        let outcome = self.climb(prepared, rung).await;
        self.metrics
            .reactive(if outcome.is_ok() { "retried" } else { "failed" });
        if let Err(fault) = &outcome {
            tracing::error!(error = %fault, "a refused request cannot be changed");
        }
        outcome.is_ok()
    }

    /// No try has helped: the plan is again what it was before the first.
    pub async fn give_up(&self, prepared: &mut Prepared) {
        let Some(plan) = prepared.before.take() else {
            return;
        };
        if let Err(fault) = self.commit(prepared, *plan, None).await {
            self.metrics.fail_open(fault.stage());
            tracing::error!(error = %fault, "an overlay that was set aside stays so");
        }
    }

    fn learn_window(&self, prepared: &mut Prepared, refusal: &Refusal) {
        let said = match refusal {
            Refusal::ContextExceeded { window, tokens } => {
                // It was counted by whoever knows.
                prepared.sent.tokens = tokens.unwrap_or(0).max(prepared.sent.tokens);
                *window
            }
            Refusal::OutputExceedsWindow {
                window,
                output,
                tokens,
            } => {
                prepared.sent.tokens = tokens.unwrap_or(0).max(prepared.sent.tokens);
                let output = output.or(prepared.recognised.facts.max_tokens);
                let room = |window: u64| window.saturating_sub(output.unwrap_or(0));
                prepared.at_most = window.map(room).filter(|room| *room > 0);
                *window
            }
            _ => None,
        };
        if !prepared.credential.is_accepted {
            // Nothing is learned by what may be anybody's request, but this one
            // goes by it.
            let below = said.map(|window| window / 4 * 3);
            prepared.at_most = prepared.at_most.or(below);
            return;
        }
        let model = &prepared.recognised.facts.model;
        self.note(said.and_then(|window| self.learned.window_is(model, window)));
    }

    fn rung(&self, prepared: &Prepared, refusal: &Refusal) -> Option<Rung> {
        let Prepared {
            view,
            overlay,
            recognised,
            tried,
            bare,
            figures,
            ..
        } = prepared;
        let model = &recognised.facts.model;
        let bound = match refusal {
            Refusal::BoundThinking(_) => true,
            // In fewer words; where nothing is bound it is the client's matter.
            Refusal::InvalidThinking(_) => self.config.models.lookup(model).binds_thinking,
            _ => false,
        };
        match refusal {
            Refusal::ContextExceeded { .. }
            | Refusal::OutputExceedsWindow { .. }
            | Refusal::RequestTooLarge => {
                let may = prepared.may_pass && prepared.shrunk < SHRINKS;
                return may.then_some(Rung::Smaller);
            }
            Refusal::MaxTokensTooLarge { .. } => return None,
            _ if bound => {
                if prepared.credential.is_accepted {
                    self.note(self.learned.shown(Quirk::Enforces, &account(recognised)));
                }
                let refused =
                    self.learned.has(Quirk::NoDrop, model) || tried.contains(&Quirk::NoDrop);
                let can_ask = !figures.drop_block && can_ask_to_drop(&recognised.conversation());
                if can_ask && !refused {
                    return Some(Rung::Drop);
                }
            }
            Refusal::UnknownBeta(_) | Refusal::ExtraField(_) if view.added_drop => {
                return Some(Rung::NoDrop);
            }
            // It knew its own summaries once, or is another API now.
            Refusal::UnknownBeta(_) | Refusal::ExtraField(_)
                if view.added_native && prepared.may_pass && prepared.shrunk < SHRINKS =>
            {
                self.note(self.learned.shown(Quirk::NoNative, model));
                return Some(Rung::Smaller);
            }
            _ => {}
        }
        let changed = overlay.is_some();
        // Neither has anything to do with where thinking belongs.
        let additions = !bound;
        match () {
            () if !view.edited => None,
            () if view.added_marks && additions => Some(Rung::NoMarks),
            () if view.added_drop && additions => Some(Rung::NoDrop),
            () if !bare && bared(prepared).is_some() => Some(Rung::Bare),
            () if changed && self.own_fits(prepared) => Some(Rung::Own),
            () => None,
        }
    }

    /// Whether upstream is to be asked to drop thinking that does not fit: it is
    /// known to refuse that here, and is not known to refuse the question.
    pub(super) fn should_drop(&self, recognised: &Recognised) -> bool {
        self.learned.has(Quirk::Enforces, &account(recognised))
            && !self.learned.has(Quirk::NoDrop, &recognised.facts.model)
    }

    /// Whether the client's own request fits the window.
    fn own_fits(&self, prepared: &Prepared) -> bool {
        let model = &prepared.recognised.facts.model;
        let known = self.config.models.lookup(model);
        let (history, _) = prepared.figures.sizes().unwrap_or_default();
        let size = measure::measure(None, &history, &self.learned.factor(model));
        size.tokens <= self.learned.window(model, known.window)
    }

    async fn climb(&self, prepared: &mut Prepared, rung: Rung) -> Result<(), Fault> {
        let mut figures = prepared.figures.clone();
        let overlay = prepared.overlay.clone();
        let known = figures.sizes().map(|(_, size)| (prepared.view_hash, size));
        match rung {
            Rung::Drop | Rung::NoDrop | Rung::NoMarks => {
                match rung {
                    Rung::Drop => figures.drop_block = true,
                    Rung::NoDrop => figures.drop_block = false,
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
            Rung::Bare => {
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
            Rung::Smaller => self.shrink(prepared).await,
            Rung::Own => {
                figures.drop_block = false;
                figures.unfit = false;
                figures.swap = false;
                figures.passed = None;
                let plan = Plan {
                    overlay: None,
                    figures,
                    view: None,
                };
                self.settle(prepared, plan, None).await
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
            let before = Plan {
                overlay: prepared.overlay.clone(),
                figures: prepared.figures.clone(),
                view: None,
            };
            prepared.before.get_or_insert(Box::new(before));
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
