//! A pass: from a draft to an overlay that holds, or to nothing.
//!
//! The order is fixed. What the draft leaves out goes into the archive; then the
//! overlay and the pointer to it become durable in one step; only then can a
//! byte of the new view be sent. If anything fails on the way the old overlay
//! still holds, and the request goes with it.

use std::sync::Arc;

use super::build::{Built, COUNTING, Plan, of_body, taken_apart};
use super::learned::Quirk;
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::{Fault, Views, compute};
use crate::config::Mode;
use crate::engine::cache_marks::Basis;
use crate::engine::chain;
use crate::engine::conversation::Conversation;
use crate::engine::figures::Figures;
use crate::engine::ids::{ChainHash, OverlayId};
use crate::engine::legal::{faults, keeps_newest};
use crate::engine::measure::{self, Size};
use crate::engine::overlay::Overlay;
use crate::engine::reduce::{Draft, Evicted, Settings, reduce};
use crate::engine::view::{Recipe, View};
use crate::store::{Commit, Committed, MarkRow, StoreError};

/// A draft whose view has been looked at.
struct Checked {
    draft: Draft,
    hash: ChainHash,
    size: Size,
}

impl Views {
    /// Makes the view of a request smaller. Whatever goes wrong, the request
    /// keeps the view it has.
    pub(super) async fn pass(&self, prepared: &mut Prepared) {
        let outcome = match self.try_pass(prepared).await {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.metrics.fail_open(fault.stage());
                tracing::error!(error = %fault, "a pass failed, the view stays as it is");
                "failed"
            }
        };
        for kind in prepared.kinds.iter().copied() {
            self.metrics.compaction(kind, "manual", outcome);
        }
        if outcome != "committed" {
            prepared.kinds.clear();
        }
    }

    async fn try_pass(&self, prepared: &mut Prepared) -> Result<&'static str, Fault> {
        let Some(checked) = self.draft(prepared, self.config.journal.enabled).await? else {
            return Ok("abandoned");
        };
        prepared.kinds = kinds(&checked.draft);
        if self.config.policy.mode == Mode::Observe {
            tracing::info!(kinds = ?prepared.kinds, "a pass would be made here");
            return Ok("abandoned");
        }
        self.archive(prepared, &checked.draft.evicted).await?;
        let model = &prepared.recognised.facts.model;
        let mut figures = prepared.figures.clone();
        figures.swap = true;
        figures.previous = None;
        figures.drop_block |= checked.draft.leaves_unfit_thinking
            && self.learned.has(Quirk::Enforces, &prepared.account())
            && !self.learned.has(Quirk::NoDrop, model);
        let dropped = checked.draft.thinking_dropped;
        let place = prepared.recognised.last().ok_or(Fault::Bug("no chain"))?;
        let stored = checked.draft.overlay.store(place);
        let (id, bytes) = stored.ok_or(Fault::Bug("an overlay cannot be stored"))?;
        let overlay = Some((id, Arc::new(checked.draft.overlay)));
        let plan = Plan {
            overlay,
            figures,
            view: Some((checked.hash, checked.size)),
        };
        self.commit(prepared, plan, Some((id, bytes))).await?;
        self.metrics.thinking_dropped("view", dropped);
        Ok("committed")
    }

    /// Goes back to the history as the client sends it.
    pub(super) async fn reset(&self, prepared: &mut Prepared) -> Result<(), Fault> {
        let mut figures = prepared.figures.clone();
        figures.swap = false;
        figures.previous = None;
        let plan = Plan {
            overlay: None,
            figures,
            view: None,
        };
        self.commit(prepared, plan, None).await
    }

    /// Makes a plan hold from this request on; whoever was there first wins.
    pub(super) async fn commit(
        &self,
        prepared: &mut Prepared,
        plan: Plan,
        stored: Option<(OverlayId, Vec<u8>)>,
    ) -> Result<(), Fault> {
        let recognised = prepared.recognised.clone();
        let messages = recognised.len();
        let parent = prepared.overlay.as_ref().map(|(id, _)| *id);
        // The view that is known is another overlay's.
        let from = Some((messages, None));
        let tried = prepared.tried.clone();
        let built = self.build(recognised.clone(), plan, from, &tried).await?;
        let old = self.put(prepared, built);
        let mark = prepared
            .row(false, self.now())
            .ok_or(Fault::Bug("no mark"))?;
        let commit = Commit {
            overlay: stored,
            mark,
            parent,
            refused: prepared.refused,
        };
        let mut outcome = self.timed("commit", self.store.commit(&commit)).await;
        if let Err(Fault::Store(StoreError::Slow(_))) = &outcome {
            // It may still come about; to ask again is to know.
            outcome = self.timed("commit", self.store.commit(&commit)).await;
        }
        let settled = match outcome {
            Ok(Committed::Done) => {
                if let Some((id, overlay)) = &prepared.overlay {
                    self.overlays.put(*id, overlay.clone());
                }
                return Ok(());
            }
            Ok(Committed::Lost(row)) => self.yield_to(prepared, &row).await,
            Err(fault) => Err(fault),
        };
        if settled.is_err() {
            // Nothing that is not committed may be sent.
            self.put(prepared, old);
        }
        settled
    }

    /// Somebody else was first: their view is the one.
    async fn yield_to(&self, prepared: &mut Prepared, row: &MarkRow) -> Result<(), Fault> {
        prepared.kinds.clear();
        let overlay = match row.overlay {
            Some(id) => Some((id, self.overlay(id).await?)),
            None => None,
        };
        let plan = Plan {
            overlay,
            figures: Figures::read(&row.figures),
            view: None,
        };
        let recognised = prepared.recognised.clone();
        let from = Some((recognised.len(), Some(row.view)));
        let tried = prepared.tried.clone();
        let built = self.build(recognised, plan, from, &tried).await?;
        self.put(prepared, built);
        Ok(())
    }

    /// Puts another view in place; gives back the one that was there.
    pub(super) fn put(&self, prepared: &mut Prepared, built: Built) -> Built {
        let factor = self.learned.factor(&prepared.recognised.facts.model);
        let (history, size) = prepared.figures.sizes().unwrap_or_default();
        prepared.sent = measure::measure(prepared.anchor.as_ref(), &built.size, &factor);
        Built {
            view: std::mem::replace(&mut prepared.view, built.view),
            overlay: std::mem::replace(&mut prepared.overlay, built.overlay),
            figures: std::mem::replace(&mut prepared.figures, built.figures),
            hash: std::mem::replace(&mut prepared.view_hash, built.hash),
            size,
            history,
        }
    }

    /// Makes a view smaller for once: nothing is committed or remembered.
    pub(super) async fn reduce_once(&self, prepared: &mut Prepared) {
        let reduced = match self.draft(prepared, false).await {
            Ok(Some(checked)) => {
                prepared.kinds = kinds(&checked.draft);
                let plan = Plan {
                    overlay: Some((
                        OverlayId::from_bytes([0; 32]),
                        Arc::new(checked.draft.overlay),
                    )),
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
                self.put(prepared, built);
            }
            Err(fault) => {
                prepared.kinds.clear();
                self.metrics.fail_open(fault.stage());
                tracing::error!(error = %fault, "a view could not be reduced");
            }
        }
    }

    /// A smaller view, looked at as the API would.
    async fn draft(&self, prepared: &Prepared, archives: bool) -> Result<Option<Checked>, Fault> {
        let recognised = prepared.recognised.clone();
        let current = prepared
            .overlay
            .as_ref()
            .map(|(_, overlay)| overlay.clone());
        let model = self.config.models.lookup(&recognised.facts.model);
        let floor = self.floor(&recognised.facts.model);
        let factor = self.learned.factor(&recognised.facts.model);
        let (_, size) = prepared.figures.sizes().unwrap_or_default();
        let base = factor.tokens(size.base.raw);
        let settings = Settings {
            keep_tool_uses: self.config.clear.keep_tool_uses,
            exclude_tools: self.config.clear.exclude_tools.clone(),
            clear: self.config.clear.enabled,
            tail_messages: self.config.policy.tail_messages,
            target_bytes: 0,
            binds_thinking: model.binds_thinking,
            manual_thinking: recognised.facts.manual_thinking,
            archives,
        };
        let room = floor.saturating_sub(base);
        let tokens = prepared.sent.tokens.saturating_sub(base);
        // All of the new view is counted.
        compute(recognised.bytes.len() * COUNTING, "draft", move || {
            check(&recognised, current.as_deref(), settings, room, tokens)
        })
        .await?
    }

    /// Archives what an overlay leaves out, before it is committed.
    pub(super) async fn archive(
        &self,
        prepared: &Prepared,
        evicted: &[Evicted],
    ) -> Result<(), Fault> {
        if !self.config.journal.enabled {
            return Ok(());
        }
        let bytes = &prepared.recognised.bytes;
        let content = |range: &std::ops::Range<usize>| bytes.get(range.clone()).unwrap_or(&[]);
        let blobs: Vec<_> = evicted
            .iter()
            .map(|(id, range)| (*id, content(range).to_vec()))
            .collect();
        self.timed("blobs", self.store.put_blobs(&blobs, self.now()))
            .await
    }
}

fn kinds(draft: &Draft) -> Vec<&'static str> {
    let kinds = [(draft.cleared, "clear"), (draft.truncated, "truncate")];
    kinds
        .iter()
        .filter(|(did, _)| *did)
        .map(|(_, kind)| *kind)
        .collect()
}

/// Drafts a view, and makes sure that the API will take it.
fn check(
    recognised: &Recognised,
    current: Option<&Overlay>,
    settings: Settings,
    room: u64,
    tokens: u64,
) -> Result<Option<Checked>, Fault> {
    let conversation = recognised.conversation();
    let none = Overlay::default();
    let current = current.unwrap_or(&none);
    let messages = recognised.body.messages().iter().enumerate();
    let shown: usize = messages
        .filter(|(at, _)| current.shows(*at))
        .map(|(_, message)| message.span.len())
        .sum();
    // Bytes stand for tokens here: nothing is counted again.
    let share = u128::from(room) * shown as u128 / u128::from(tokens.max(1));
    let settings = Settings {
        target_bytes: usize::try_from(share).unwrap_or(usize::MAX),
        ..settings
    };
    let tenant = chain::start(&recognised.tenant);
    let Some(draft) = reduce(&conversation, current, tenant, &settings) else {
        return Ok(None);
    };
    let recipe = Recipe {
        overlay: Some(&draft.overlay),
        marks: Some(Basis {
            swap: true,
            previous: None,
        }),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(&recognised.bytes, &conversation, recipe)?;
    let (bytes, body) = taken_apart(&view)?;
    let theirs = faults(&recognised.bytes, &recognised.body);
    let shown = Conversation::new(&bytes, &body);
    if !faults(&bytes, &body).is_subset(&theirs) || !keeps_newest(&conversation, &shown) {
        return Err(Fault::Bug("a view breaks the rules of the API"));
    }
    let (hash, size) = of_body(&bytes, &body, &recognised.tenant)?;
    Ok(Some(Checked { draft, hash, size }))
}
