//! A summary that somebody else has prepared for a session.
//!
//! Summaries are prepared where a request was answered, and the next one may
//! land on another replica, or on the same after a restart. It must send what
//! the first would have sent. So when a session that others have answered is due
//! for a summary, the store is asked whether one is finished: once, because from
//! then on this process prepares its own, or waits for theirs. A session that
//! stays where it is never pays for that.

use std::sync::Arc;

use super::Views;
use super::prepare::Prepared;
use super::staging::{Asked, Staged};
use crate::compactor::Boarding;
use crate::compactor::errand::Finished;
use crate::engine::breaker::Event;

impl Views {
    /// What lies ready for the session by the work of others, and whether it
    /// heals something.
    pub(super) async fn finished_elsewhere(
        &self,
        prepared: &mut Prepared,
    ) -> Option<(Arc<Finished>, bool)> {
        let own = prepared.recognised.remembered.as_ref();
        let own = own.map(|mark| mark.row.messages as usize);
        if prepared.grew_from.is_some() && own < prepared.grew_from {
            self.staging.comes_from_elsewhere(prepared.lineage);
        }
        let situation = self.due(prepared)?;
        if !self.staging.came_from_elsewhere(prepared.lineage) {
            return None;
        }
        let preparation = self.snapshot(prepared, situation)?;
        let (preparation, named) = self.named(preparation, false).await?;
        let named = named?;
        let (_, finished) = self.summarizer()?.stored(&named.all()).await?;
        let last = (finished.to as usize).checked_sub(1)?;
        let staged = Staged {
            span: finished.from as usize..finished.to as usize,
            end: *preparation.recognised.swifts.get(last)?,
            hidden: preparation
                .overlay
                .as_ref()
                .map_or(0, |overlay| overlay.cut),
            asked: match named.native {
                Some(_) => Asked::Api(preparation.overlay_id),
                None => Asked::Model,
            },
            instructions: preparation.instructions,
            permit: None,
            boarding: Boarding::landed(Ok(finished)),
        };
        self.staging.put(prepared.lineage, staged, false);
        self.note_outcome(prepared, Event::Succeeded);
        self.staged(prepared)
    }
}
