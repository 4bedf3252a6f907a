//! The memory that all request bodies share, and one body's part of it.
//!
//! Who waits for room waits in turn. A body whose whole size is known takes all of
//! its room at once, and then waits for nothing else. One that will need more
//! later (its length is not declared, or it has to be unfolded) holds some room
//! while it waits for the rest; if such bodies could hold all of the room, each
//! would wait for the others. So together they hold at most a part of it, and what
//! remains is enough for one of them after the other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::respond::Failure;

/// Room is counted in pieces of this many bytes.
pub(super) const ROOM_UNIT: usize = 16 * 1024;
/// The part of the room that bodies may hold which will need more: one in this many.
const UNFINISHED_PART: usize = 4;

/// The memory that all bodies share.
#[derive(Clone)]
pub struct Room {
    units: Arc<Semaphore>,
    total: usize,
    /// What may be held by bodies that will need more.
    unfinished: Arc<Semaphore>,
    held: IntGauge,
}

impl Room {
    /// Room for `bytes` in all; `held` shows how much of it is in use.
    pub fn new(bytes: u64, held: IntGauge) -> Self {
        let units = usize::try_from(bytes).unwrap_or(usize::MAX) / ROOM_UNIT;
        let total = units.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(total)),
            total,
            unfinished: Arc::new(Semaphore::new(unfinished_part(total))),
            held,
        }
    }

    /// A body's part of the room, empty at first; `wait` is how long the body may
    /// wait for room in all.
    pub(super) fn share(&self, wait: Duration) -> Share {
        Share {
            room: self.clone(),
            permit: None,
            unfinished: None,
            units: 0,
            wait,
            left: wait,
        }
    }

    /// How many bytes are in use.
    #[cfg(test)]
    pub(super) fn held(&self) -> i64 {
        self.held.get()
    }
}

fn unfinished_part(total: usize) -> usize {
    (total / UNFINISHED_PART).max(1)
}

/// One body's part of the room. It is given back when this is dropped.
pub(super) struct Share {
    room: Room,
    permit: Option<OwnedSemaphorePermit>,
    unfinished: Option<OwnedSemaphorePermit>,
    units: usize,
    wait: Duration,
    /// What remains of `wait`.
    left: Duration,
}

impl Share {
    /// Makes sure that the share covers `bytes`.
    pub(super) async fn cover(&mut self, bytes: usize) -> Result<(), Failure> {
        let wanted = bytes.div_ceil(ROOM_UNIT);
        let missing = wanted.saturating_sub(self.units);
        if missing == 0 {
            return Ok(());
        }
        if wanted > self.room.total {
            return Err(Failure::NoRoom(self.wait));
        }
        let permit = self.acquire(self.room.units.clone(), missing).await?;
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        self.units += missing;
        self.room.held.add(gauge_bytes(missing));
        Ok(())
    }

    /// The same for a body that will need more room while it holds this.
    pub(super) async fn cover_for_now(&mut self, bytes: usize) -> Result<(), Failure> {
        let most = unfinished_part(self.room.total);
        let wanted = bytes.div_ceil(ROOM_UNIT).min(most);
        let held = self
            .unfinished
            .as_ref()
            .map_or(0, tokio::sync::OwnedSemaphorePermit::num_permits);
        if wanted > held {
            let unfinished = self.room.unfinished.clone();
            let permit = self.acquire(unfinished, wanted - held).await?;
            match &mut self.unfinished {
                Some(held) => held.merge(permit),
                None => self.unfinished = Some(permit),
            }
        }
        self.cover(bytes).await
    }

    /// The body needs no more room than it has.
    pub(super) fn finish(&mut self) {
        self.unfinished = None;
    }

    /// Gives back what is more than `bytes`.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let spare = self.units.saturating_sub(bytes.div_ceil(ROOM_UNIT));
        let permit = self.permit.as_mut().and_then(|held| held.split(spare));
        if permit.is_some() {
            self.units -= spare;
            self.room.held.sub(gauge_bytes(spare));
        }
    }

    /// A buffer that holds this share as long as it is referred to.
    pub(super) fn hold(self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held {
            buffer,
            _share: self,
        })
    }

    async fn acquire(
        &mut self,
        from: Arc<Semaphore>,
        count: usize,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        let none = Failure::NoRoom(self.wait);
        let Ok(count) = u32::try_from(count) else {
            return Err(none);
        };
        let begun = Instant::now();
        let acquired = timeout(self.left, from.acquire_many_owned(count)).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        acquired.ok().and_then(Result::ok).ok_or(none)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.held.sub(gauge_bytes(self.units));
    }
}

/// A buffer and the room it occupies.
struct Held {
    buffer: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

pub(super) fn gauge_bytes(units: usize) -> i64 {
    i64::try_from(units * ROOM_UNIT).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn room(units: usize) -> Room {
        let bytes = u64::try_from(units * ROOM_UNIT).unwrap();
        Room::new(bytes, IntGauge::new("held", "held").unwrap())
    }

    #[tokio::test]
    async fn what_is_not_needed_is_given_back() {
        let room = room(8);
        let mut share = room.share(LONG);
        share.cover(8 * ROOM_UNIT).await.unwrap();
        share.shrink(3 * ROOM_UNIT - 1);
        assert_eq!(room.held(), gauge_bytes(3));
        room.share(LONG).cover(5 * ROOM_UNIT).await.unwrap();
        drop(share);
        assert_eq!(room.held(), 0);
    }

    #[tokio::test]
    async fn what_never_fits_is_refused_without_waiting() {
        let room = room(8);
        let mut share = room.share(Duration::MAX);
        let outcome = share.cover(9 * ROOM_UNIT).await;
        assert!(matches!(outcome, Err(Failure::NoRoom(_))));
    }

    /// Each needs three quarters of the room in a second step. They would wait for
    /// each other for ever if four of them could hold all of it in the first.
    #[tokio::test]
    async fn bodies_that_need_more_later_do_not_lock_each_other_out() {
        let room = room(16);
        let one = |room: Room| async move {
            let mut share = room.share(LONG);
            share.cover_for_now(4 * ROOM_UNIT).await?;
            tokio::task::yield_now().await;
            let mut more = room.share(LONG);
            more.cover(12 * ROOM_UNIT).await?;
            share.finish();
            tokio::task::yield_now().await;
            Ok::<_, Failure>(())
        };
        let all: Vec<_> = (0..20).map(|_| tokio::spawn(one(room.clone()))).collect();
        for done in all {
            done.await.unwrap().unwrap();
        }
        assert_eq!(room.held(), 0);
    }
}
