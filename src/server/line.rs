//! What the parts of one client connection know of each other.
//!
//! A response is made in one place and written in another, with hyper between
//! the two. Two questions cross that gap: is a response on its way at all, and
//! has everything that was handed over really been written? A `Flight` stands
//! for one request while it is being answered.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// One client connection.
#[derive(Default)]
pub struct Line {
    begun: AtomicUsize,
    active: AtomicUsize,
    flushes: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
    ends_by_closing: AtomicBool,
    /// How many flushes it takes until what was handed over before them is
    /// certainly written.
    takes: u64,
    asked: Notify,
}

impl Line {
    /// A connection whose socket tells when everything has been written.
    pub fn telling() -> Self {
        Self {
            takes: 1,
            ..Self::default()
        }
    }

    /// A connection that tells when it has been looked after, and may just have
    /// been when something is handed over.
    pub fn looked_after() -> Self {
        Self {
            takes: 2,
            ..Self::default()
        }
    }

    /// Waits until somebody wants to know what has been written.
    pub async fn is_asked(&self) {
        self.asked.notified().await;
    }

    /// A request has arrived.
    pub fn begin(self: &Arc<Self>, version: http::Version) -> Flight {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        let old = version < http::Version::HTTP_11;
        self.ends_by_closing.store(old, Ordering::Relaxed);
        Flight(Arc::new(Guard(self.clone())))
    }

    /// Whether a response is on its way.
    pub fn is_busy(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    /// How many requests there have been.
    pub fn requests(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether the client takes the end of the connection for the end of the
    /// response, so that a proper close would hide a cut.
    pub fn ends_by_closing(&self) -> bool {
        self.ends_by_closing.load(Ordering::Relaxed)
    }

    /// Everything handed over so far has been written.
    pub fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
#[derive(Clone)]
pub struct Flight(Arc<Guard>);

struct Guard(Arc<Line>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Flight {
    /// How often everything has been written so far.
    pub fn flushes(&self) -> u64 {
        self.0.0.flushes.load(Ordering::Relaxed)
    }

    /// The same, where it must be known before the last piece is handed over: the
    /// socket may have told of that one before anybody asks, and tells no more.
    pub fn flushes_at_once(&self) -> Option<u64> {
        (self.0.0.takes == 1).then(|| self.flushes())
    }

    /// Ready once everything has been written that was handed over when there
    /// were `before` flushes.
    pub fn poll_flushed(&self, before: u64, context: &mut Context<'_>) -> Poll<()> {
        let Guard(line) = &*self.0;
        let mut waiting = line.waiting();
        if !waiting.iter().any(|held| held.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        drop(waiting);
        if self.flushes() >= before.saturating_add(line.takes) {
            return Poll::Ready(());
        }
        line.asked.notify_one();
        Poll::Pending
    }
}
