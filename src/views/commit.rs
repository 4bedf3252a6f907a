//! Makes a plan hold: the overlay and the pointer to it in one durable step.
//!
//! Only what is committed may be sent, and of two who commit at the same place
//! the first one's plan holds for both. The one exception is a request whose
//! credential is not accepted yet: its plan is put in place for the request alone
//! and committed with the answer.

use super::build::{Built, Plan};
use super::prepare::Prepared;
use super::{Fault, Views};
use crate::engine::figures::Figures;
use crate::engine::ids::OverlayId;
use crate::engine::measure;
use crate::store::{Commit, Committed, MarkRow, StoreError};

impl Views {
    /// Makes a plan hold from this request on; `false` if somebody else was there
    /// first, and theirs holds.
    pub(super) async fn commit(
        &self,
        prepared: &mut Prepared,
        plan: Plan,
        stored: Option<(OverlayId, Vec<u8>)>,
    ) -> Result<bool, Fault> {
        let recognised = prepared.recognised.clone();
        let messages = recognised.len();
        let parent = prepared.overlay.as_ref().map(|(id, _)| *id);
        // The view that is known is another overlay's.
        let from = Some((messages, None));
        let tried = prepared.tried.clone();
        let built = self.build(recognised.clone(), plan, from, &tried).await?;
        let old = self.put(prepared, built);
        if !prepared.credential.is_accepted {
            prepared.deferred.put_plan(parent);
            return Ok(true);
        }
        let settled = match self.write_plan(prepared, parent, stored).await {
            Ok(Committed::Done) => return Ok(true),
            Ok(Committed::Lost(row)) => self.yield_to(prepared, &row).await.map(|()| false),
            Err(fault) => Err(fault),
        };
        if settled.is_err() {
            // Nothing that is not committed may be sent.
            self.put(prepared, old);
        }
        settled
    }

    /// Writes the plan of a request, durably, unless another one holds there.
    pub(super) async fn write_plan(
        &self,
        prepared: &mut Prepared,
        parent: Option<OverlayId>,
        stored: Option<(OverlayId, Vec<u8>)>,
    ) -> Result<Committed, Fault> {
        let mut mark = prepared
            .row(false, self.now())
            .ok_or(Fault::Bug("no mark"))?;
        // What follows a refusal is later than what was refused.
        mark.seen_at.0 = mark.seen_at.0.saturating_add(i64::from(prepared.refused));
        // Whatever comes of it: it may come about after all.
        prepared.committed_at = mark.seen_at;
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
        if let (Ok(Committed::Done), Some((id, overlay))) = (&outcome, &prepared.overlay) {
            self.overlays.put(*id, overlay.clone());
        }
        outcome
    }

    /// Somebody else was first: their view is the one.
    async fn yield_to(&self, prepared: &mut Prepared, row: &MarkRow) -> Result<(), Fault> {
        prepared.kinds.clear();
        prepared.committed_at = prepared.committed_at.max(row.seen_at);
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
}
