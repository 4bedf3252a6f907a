//! The plan of the session before, for a history that its client has summed up.
//!
//! Such a history shares no message with the one before it. If the client says
//! which session it is, the newest overlay of that session has the old plan. That
//! proves nothing, as with every hint, so that the plan is quoted as data; and it
//! is only looked for where the history itself says that it continues another.

use super::Views;
use super::prepare::Prepared;
use crate::engine::ids::{Hint, OverlayId};
use crate::engine::pinned::{FormerPlan, begins_with_summary};

/// How many overlays are looked at.
const TRIED: u32 = 4;

impl Views {
    /// Finds the plan that the first segment of a new history starts from, and
    /// later ones go on from.
    pub(super) async fn find_former_plan(&self, prepared: &mut Prepared) {
        let Some(hint) = prepared.hint else {
            return;
        };
        if !begins_with_summary(&prepared.recognised.conversation()) {
            return;
        }
        let own = prepared.overlay.as_ref();
        prepared.former_plan = match own.filter(|(_, overlay)| FormerPlan::is_in(overlay)) {
            Some((_, overlay)) => FormerPlan::carried_in(overlay),
            None => self.newest_plan(hint, own.map(|(id, _)| *id)).await,
        };
    }

    /// The newest plan of a hinted session, but for that of one overlay.
    async fn newest_plan(&self, hint: Hint, but: Option<OverlayId>) -> Option<FormerPlan> {
        let overlays = self.store.overlays_of(hint, TRIED);
        let overlays = self.timed("overlays_of", overlays).await;
        let overlays = overlays.inspect_err(
            |error| tracing::warn!(%error, "the plan of a session before is out of reach"),
        );
        for id in overlays.ok()?.into_iter().filter(|id| Some(*id) != but) {
            let Ok(overlay) = self.overlay(id).await else {
                continue;
            };
            if let Some(plan) = FormerPlan::of(&overlay) {
                return Some(plan);
            }
        }
        None
    }
}
