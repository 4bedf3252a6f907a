//! Waits for a journal that is only busy.
//!
//! A store gives up on a write after `store.timeout`, which is short, because an
//! ordinary request must not wait for it. A pass that a request cannot do without
//! is another matter: what it leaves out without having recorded it cannot be had
//! back. So it tries for some seconds, since what is put away twice is kept once.
//! If that was in vain, the others do not wait as well until something could be
//! written again, or some time has passed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::prepare::Prepared;
use super::{Fault, Views};
use crate::compactor::errand::Finished;
use crate::engine::reduce::Evicted;
use crate::store::StoreError;

/// How long a request waits for a busy journal.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody waits after somebody has waited in vain.
const PAUSE: Duration = Duration::from_mins(1);
/// The time between two attempts.
const BETWEEN: Duration = Duration::from_millis(20);

/// Whether waiting is any use, as far as is known.
#[derive(Default)]
pub struct Patience(Mutex<Option<Instant>>);

impl Patience {
    fn in_vain_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a request may wait now.
    fn time(&self, now: Instant) -> Duration {
        match *self.in_vain_since() {
            Some(since) if now.duration_since(since) < PAUSE => Duration::ZERO,
            _ => PATIENCE,
        }
    }

    fn note(&self, was_in_vain: bool, now: Instant) {
        *self.in_vain_since() = was_in_vain.then_some(now);
    }
}

impl Views {
    /// Puts away what a view leaves out, trying again for a while if the store is
    /// only busy.
    pub(super) async fn archive_patiently(
        &self,
        prepared: &Prepared,
        evicted: &[Evicted],
        summary: Option<&Finished>,
    ) -> Result<(), Fault> {
        let until = Instant::now() + self.patience.time(Instant::now());
        loop {
            let archived = self.archive(prepared, evicted, summary).await;
            let is_busy = matches!(archived, Err(Fault::Store(StoreError::Slow(_))));
            if !is_busy || self.store.is_away() {
                if archived.is_ok() {
                    self.patience.note(false, Instant::now());
                }
                return archived;
            }
            if Instant::now() >= until {
                self.patience.note(true, Instant::now());
                return archived;
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_after_somebody_has_waited_in_vain() {
        let (patience, now) = (Patience::default(), Instant::now());
        assert_eq!(patience.time(now), PATIENCE);
        patience.note(true, now);
        assert_eq!(patience.time(now), Duration::ZERO);
        assert_eq!(patience.time(now + PAUSE), PATIENCE);
        patience.note(false, now);
        assert_eq!(patience.time(now), PATIENCE, "it could be written again");
    }
}
