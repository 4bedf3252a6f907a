//! Whose turn it is to make a summary, among all processes that share the store.
//!
//! Inside a process whoever wants a summary boards the flight that is under way.
//! Between processes a lease does the same: whoever has it flies, the others look
//! now and then whether the summary is there. One that ends a little earlier does
//! as well: a session's next request, on another replica, wants a little more
//! than the one before. A lease is extended while its flight goes on and expires
//! soon after its process has died, so that another takes over. It spares money
//! and proves nothing: the first summary that is stored is everybody's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Compactor;
use super::errand::{Errand, Finished};
use crate::engine::ids::SegmentId;
use crate::engine::recovery::Failure;
use crate::store::{Holder, Store, StoreError};

/// How long a lease outlives its process at the most.
const LEASE: Duration = Duration::from_secs(10);
/// How soon those who wait look again, at first and in the end.
const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(2);

/// A turn, or the wait for one.
pub(super) struct Turn {
    store: Arc<dyn Store>,
    name: String,
    /// What those are called who are at something that would do as well.
    others: Vec<String>,
    holder: Holder,
    held: Mutex<Held>,
}

/// For how long a lease may have gone without being extended.
#[derive(Debug, Default)]
struct Held {
    /// When the last extension that succeeded was asked for.
    asked: Option<Instant>,
    /// The longest time between asking for one extension and having the next.
    longest: Duration,
}

impl Held {
    /// An extension that was asked for then has succeeded by now.
    fn extend(&mut self, asked: Instant, now: Instant) {
        self.longest = self.unextended(now).unwrap_or_default();
        self.asked = Some(asked);
    }

    /// The longest time without an extension up to now; `None`: it was never held.
    /// Counted from when an extension was asked for, so rather too long.
    fn unextended(&self, now: Instant) -> Option<Duration> {
        let since = now.saturating_duration_since(self.asked?);
        Some(self.longest.max(since))
    }
}

fn name(id: SegmentId) -> String {
    format!("segment/{id}")
}

impl Turn {
    pub(super) fn at(store: Arc<dyn Store>, errand: &Errand) -> Self {
        Self {
            store,
            name: name(errand.id),
            others: errand.as_good.iter().copied().map(name).collect(),
            holder: Holder::random(),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lease, or extends it.
    async fn lease(&self) -> Result<bool, StoreError> {
        let asked = Instant::now();
        let taken = self.store.lease(&self.name, self.holder, LEASE).await;
        if matches!(taken, Ok(true)) {
            self.held().extend(asked, Instant::now());
        }
        taken
    }

    /// Says in the log how a summary ended that this process made itself, and
    /// whether another may have been made meanwhile.
    pub(super) fn tell_end(&self, id: SegmentId, finished: bool) {
        let Some(unextended) = self.held().unextended(Instant::now()) else {
            return;
        };
        let lapsed = unextended >= LEASE;
        tracing::info!(segment = %id, finished, lapsed, "a summary has ended");
        if lapsed {
            tracing::warn!(
                segment = %id,
                "the lease of a summary was not extended for {unextended:?}: another replica may \
                 have asked for the same one; is this machine or its store overloaded?"
            );
        }
    }

    /// Whether it is had. A store that fails keeps nobody waiting; one that is
    /// away keeps everybody from asking a model, because what all wait for cannot
    /// be told from what nobody is at.
    async fn take(&self) -> Result<bool, Failure> {
        let taken = match self.lease().await {
            Ok(taken) => taken,
            Err(_) if self.store.is_away() => return Err(Failure::Shut),
            Err(error) => {
                tracing::warn!(%error, "a summary is made without knowing whether another replica makes it");
                true
            }
        };
        // Looked for when this one is had, so that of two who begin at once the
        // one that wants more sees the other.
        if !taken || self.others.is_empty() {
            return Ok(taken);
        }
        let elsewhere = self.store.is_leased(&self.others).await.unwrap_or(false);
        if elsewhere {
            self.end().await;
            *self.held() = Held::default();
        }
        Ok(!elsewhere)
    }

    /// Whether it is still had, to be asked before a model is: that it was had a
    /// moment ago does not mean that the store is still there to take what comes
    /// of it.
    pub(super) async fn holds(&self) -> bool {
        match self.lease().await {
            Ok(held) => held,
            Err(_) => !self.store.is_away(),
        }
    }

    /// Keeps the turn, for as long as this is waited for.
    pub(super) async fn keep(&self) -> ! {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            // One that is lost meanwhile is no reason to throw away what is half
            // paid for.
            let _ = self.lease().await;
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
        errand: &Errand,
        until: Instant,
    ) -> Result<Option<Arc<Finished>>, Failure> {
        // At first both at once, because somebody may be waiting and mostly
        // nobody else is at it.
        let as_good = errand.as_good.iter().copied();
        let ids: Vec<SegmentId> = std::iter::once(errand.id).chain(as_good).collect();
        let (mut taken, mut found) = tokio::join!(turn.take(), self.stored(&ids));
        let mut pause = FIRST;
        loop {
            if let Some((_, finished)) = found {
                return Ok(Some(finished));
            }
            if taken? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_when_an_extension_was_asked_for() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut held = Held::default();
        assert_eq!(held.unextended(at(50)), None, "it was never held");
        held.extend(at(50), at(52));
        assert_eq!(held.unextended(at(53)), Some(Duration::from_secs(3)));
        // Asked for in time, but had late.
        held.extend(at(54), at(61));
        assert_eq!(held.unextended(at(62)), Some(Duration::from_secs(11)));
        held.extend(at(63), at(63));
        assert_eq!(held.unextended(at(64)), Some(Duration::from_secs(11)));
    }
}
