//! The order in which things happened.
//!
//! Requests and troubles are on different threads; what counts afterwards is only
//! whether one fell into the other. So everything that begins or ends takes the
//! next number, and is judged by these numbers.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What may excuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// All connections broke, or nobody was there.
    Broken,
    /// A proxy has lost its memory.
    Forgotten,
    /// The store did not do as it was told.
    Store,
}

#[derive(Debug)]
struct Span {
    trouble: Trouble,
    from: u64,
    to: u64,
}

/// Hands out numbers, and remembers troubles.
#[derive(Debug, Default)]
pub struct Moments {
    next: AtomicU64,
    spans: Mutex<Vec<Span>>,
    /// Requests that the weather broke, on either side of a proxy.
    broken_off: Mutex<BTreeSet<String>>,
}

impl Moments {
    pub fn now(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// The connection that carried this request broke.
    pub fn broke_off(&self, tag: String) {
        self.broken_off.lock().unwrap().insert(tag);
    }

    /// Whether the connection broke that carried a request, or all did while it
    /// was on its way.
    pub fn broke_for(&self, tag: &str, from: u64, to: u64) -> bool {
        self.broken_off.lock().unwrap().contains(tag) || self.had(Trouble::Broken, from, to)
    }

    /// A connection broke, and nobody knows whose.
    pub fn broke(&self) {
        self.happened(Trouble::Broken);
    }

    pub fn happened(&self, trouble: Trouble) {
        let now = self.now();
        self.lasted(trouble, now, now);
    }

    /// A trouble begins; it ends when its number is given back.
    pub fn begins(&self, trouble: Trouble) -> usize {
        let now = self.now();
        let mut spans = self.spans.lock().unwrap();
        spans.push(Span {
            trouble,
            from: now,
            to: u64::MAX,
        });
        spans.len() - 1
    }

    pub fn ends(&self, number: usize) {
        let now = self.now();
        self.spans.lock().unwrap()[number].to = now;
    }

    fn lasted(&self, trouble: Trouble, from: u64, to: u64) {
        let span = Span { trouble, from, to };
        self.spans.lock().unwrap().push(span);
    }

    /// Whether there was such a trouble between two moments.
    pub fn had(&self, trouble: Trouble, from: u64, to: u64) -> bool {
        let spans = self.spans.lock().unwrap();
        let mut spans = spans.iter().filter(|span| span.trouble == trouble);
        spans.any(|span| span.from <= to && from <= span.to)
    }

    /// How often something was lost between two moments.
    pub fn losses(&self, from: u64, to: u64) -> usize {
        let spans = self.spans.lock().unwrap();
        let lost = spans.iter().filter(|span| span.trouble != Trouble::Broken);
        lost.filter(|span| span.from <= to && from <= span.to)
            .count()
    }
}
