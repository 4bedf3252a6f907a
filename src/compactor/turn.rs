//! Whose turn it is to make a summary, among all processes that share the store.
//!
//! Inside a process whoever wants a summary boards the flight that is under way.
//! Between processes a lease does the same: whoever has it flies, the others look
//! now and then whether the summary is there. A lease is extended while its
//! flight goes on and expires soon after its process has died, so that another
//! takes over. It spares money and proves nothing: if the store is away everybody
//! flies, and the first summary that is stored is still everybody's.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Compactor;
use super::errand::Finished;
use crate::engine::ids::SegmentId;
use crate::engine::recovery::Failure;
use crate::store::{Holder, Store};

/// How long a lease outlives its process at the most.
const LEASE: Duration = Duration::from_secs(30);
/// How soon those who wait look again, at first and in the end.
const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(2);

/// A turn, or the wait for one.
pub(super) struct Turn {
    store: Arc<dyn Store>,
    name: String,
    holder: Holder,
}

impl Turn {
    pub(super) fn at(store: Arc<dyn Store>, id: SegmentId) -> Self {
        Self {
            store,
            name: format!("segment/{id}"),
            holder: Holder::random(),
        }
    }

    /// Whether it is had. A store that does not answer keeps nobody waiting.
    async fn take(&self) -> bool {
        let taken = self.store.lease(&self.name, self.holder, LEASE).await;
        taken.unwrap_or_else(|error| {
            tracing::warn!(%error, "a summary is made without knowing whether another replica makes it");
            true
        })
    }

    /// Keeps the turn, for as long as this is waited for.
    pub(super) async fn keep(&self) -> ! {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            // One that is lost meanwhile is no reason to throw away what is half
            // paid for.
            let _ = self.store.lease(&self.name, self.holder, LEASE).await;
        }
    }

    /// Lets the next one have it.
    pub(super) async fn end(&self) {
        if let Err(error) = self.store.release(&self.name, self.holder).await {
            tracing::debug!(%error, "a lease is left to expire");
        }
    }
}

impl Compactor {
    /// Waits until it is this process's turn to make a summary, or until there
    /// is one.
    pub(super) async fn await_turn(
        &self,
        turn: &Turn,
        id: SegmentId,
        until: Instant,
    ) -> Result<Option<Arc<Finished>>, Failure> {
        // At first both at once, because somebody may be waiting and mostly
        // nobody else is at it.
        let ids = [id];
        let (mut taken, mut found) = tokio::join!(turn.take(), self.stored(&ids));
        let mut pause = FIRST;
        loop {
            if let Some((_, finished)) = found {
                return Ok(Some(finished));
            }
            if taken {
                return Ok(None);
            }
            if Instant::now() + pause > until {
                return Err(Failure::Shut);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LAST);
            // Looked for after the lease is had: whoever had it before has either
            // stored a summary by now or failed.
            taken = turn.take().await;
            found = self.stored(&ids).await;
        }
    }
}
