//! Notices when the agent fetches again what a pass has removed.
//!
//! What an overlay has removed is worked out once, when the first call after it
//! might fetch something of that; after that a request costs a look at its own
//! new calls.

use std::collections::HashSet;
use std::sync::Arc;

use super::prepare::Prepared;
use super::{Fault, Views, compute};
use crate::bounded::Bounded;
use crate::engine::ids::OverlayId;
use crate::engine::rereads::{fetched, removed};

/// The most overlays of which it is remembered.
const OVERLAYS: usize = 256;
/// The most things that are remembered to have been fetched again.
const FETCHED: usize = 64;

/// What overlays have removed.
pub struct Removed(Bounded<OverlayId, Arc<HashSet<u64>>>);

impl Default for Removed {
    fn default() -> Self {
        Self(Bounded::new(OVERLAYS))
    }
}

impl Views {
    /// Counts what the newest calls fetch of what the overlay has removed.
    /// If that fails a figure is wrong, and nothing else.
    pub(super) async fn note_rereads(&self, prepared: &mut Prepared) {
        if let Err(fault) = self.try_note(prepared).await {
            tracing::error!(error = %fault, "what is fetched again could not be counted");
        }
    }

    async fn try_note(&self, prepared: &mut Prepared) -> Result<(), Fault> {
        let Some((id, overlay)) = prepared.overlay.clone() else {
            return Ok(());
        };
        let recognised = prepared.recognised.clone();
        let again = fetched(&recognised.conversation());
        if again.is_empty() {
            return Ok(());
        }
        let gone = if let Some(gone) = self.removed.0.get(&id) {
            gone
        } else {
            let size = recognised.bytes.len();
            let gone = compute(size, "rereads", move || {
                Arc::new(removed(&recognised.conversation(), &overlay))
            })
            .await?;
            self.removed.0.insert(id, gone.clone());
            gone
        };
        let known = &mut prepared.figures.fetched;
        let before = known.len();
        for key in again {
            if gone.contains(&key) && !known.contains(&key) && known.len() < FETCHED {
                known.push(key);
            }
        }
        self.metrics.rereads(known.len() - before);
        Ok(())
    }
}
