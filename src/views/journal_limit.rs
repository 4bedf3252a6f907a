//! Keeps the journal within `journal.max_bytes` as it is written.
//!
//! Every write asks for room first. Where there is none, what was not used for
//! longest goes, whichever home the journal has; what was used a moment ago
//! stays, because an overlay may be about to be committed that needs it. If that
//! is not enough the write is refused: a pass then waits, or says that what it
//! leaves out is not recorded. The regular collection keeps far more; this is for
//! when more is written than it can make up for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::engine::journal_quota::{Quota, Reserved};
use crate::metrics::Metrics;
use crate::store::{Keep, Store, StoreError};

/// How long a write waits for room to be made.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long nobody looks for room again after none was found.
const PAUSE: Duration = Duration::from_secs(5);

/// What is to be kept when room is made for so many bytes in the journal.
type ToKeep = Box<dyn Fn(u64) -> Keep + Send + Sync>;

/// The limit of the journal. Clones are the same one.
#[derive(Clone)]
pub struct JournalLimit(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    quota: Mutex<Quota>,
    /// Only one measures and makes room at a time. When none was found last.
    making_room: tokio::sync::Mutex<Option<Instant>>,
    keep: ToKeep,
    background: Handle,
}

impl JournalLimit {
    /// A limit in bytes. `keep` says what is kept, given the most bytes that the
    /// journal may hold afterwards.
    pub fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, limit: u64, keep: ToKeep) -> Self {
        Self(Arc::new(Shared {
            store,
            metrics,
            quota: Mutex::new(Quota::new(limit)),
            making_room: tokio::sync::Mutex::default(),
            keep,
            background: Handle::current(),
        }))
    }

    fn quota(&self) -> MutexGuard<'_, Quota> {
        self.0.quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for content of this size, making room if there is none.
    pub async fn reserve(&self, content: u64) -> Result<Reservation, StoreError> {
        if let Some(reservation) = self.try_reserve(content) {
            return Ok(reservation);
        }
        let limit = self.clone();
        // It goes on even if nobody waits for it any more.
        let work = self
            .0
            .background
            .spawn(async move { limit.make_room(content).await });
        match timeout(PATIENCE, work).await {
            Ok(Ok(made)) => made,
            Ok(Err(_)) | Err(_) => Err(StoreError::Slow(PATIENCE)),
        }
    }

    fn try_reserve(&self, content: u64) -> Option<Reservation> {
        let reserved = self.quota().reserve(content)?;
        Some(Reservation(Some((self.clone(), reserved))))
    }

    async fn make_room(&self, content: u64) -> Result<Reservation, StoreError> {
        let mut full_since = self.0.making_room.lock().await;
        // Whoever had the turn before may have made room for all.
        if let Some(reservation) = self.try_reserve(content) {
            return Ok(reservation);
        }
        let Some(held) = self.measure().await else {
            // A store that cannot be asked says itself what it does not take.
            return Ok(Reservation(None));
        };
        if let Some(reservation) = self.try_reserve(content) {
            return Ok(reservation);
        }
        let (limit, target) = {
            let quota = self.quota();
            (quota.limit(), quota.target(content))
        };
        if full_since.is_some_and(|since| since.elapsed() < PAUSE) {
            return Err(StoreError::Full { held, limit });
        }
        tracing::warn!(
            bytes = held,
            limit,
            "the journal is full: what was not used for longest is removed; raise journal.max_bytes to keep more"
        );
        if let Err(error) = self.0.store.collect((self.0.keep)(target)).await {
            tracing::warn!(%error, "no room could be made in the journal");
        }
        let held = self.measure().await.unwrap_or(held);
        let reservation = self.try_reserve(content);
        *full_since = reservation.is_none().then(Instant::now);
        reservation.ok_or(StoreError::Full { held, limit })
    }

    async fn measure(&self) -> Option<u64> {
        let written = self.quota().written();
        let extent = self.0.store.journal().extent().await.ok()?;
        self.0.metrics.journal_bytes(extent.bytes);
        self.quota().measure(extent.bytes, written);
        Some(extent.bytes)
    }
}

/// Room in the journal, taken until this is dropped: by then what it was for is
/// written, and counts as that.
#[must_use]
pub struct Reservation(Option<(JournalLimit, Reserved)>);

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some((limit, reserved)) = self.0.take() {
            limit.quota().finish(reserved);
        }
    }
}
