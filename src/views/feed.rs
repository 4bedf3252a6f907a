//! Entries on their way into the journal, so that no request waits for them.
//!
//! Whoever has something to tell hands it over and goes on; a task of its own
//! appends it, in the order in which it came, because a conversation's place in
//! the journal follows from the one before. The room is bounded: while the
//! journal cannot be written what is oldest is let go and counted, and a warning
//! says what is not being recorded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::journal_limit::JournalLimit;
use crate::metrics::Metrics;
use crate::store::journal::{Entry, Text, Trace};
use crate::store::{Moment, Store, StoreError};

/// The most bytes that wait, about.
const ROOM: usize = 64 << 20;
/// How often it is looked how large the journal is, at most.
const MEASURED: Duration = Duration::from_mins(1);
/// How long a journal that failed is left alone.
const REST: Duration = Duration::from_secs(1);
/// How long to wait for the rest when the process ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// Entries that are appended at once: a batch must not hold others up.
const BATCH: usize = 256;

/// Items that are looked through for the one that another goes on from.
const LOOKED_AT: usize = 1_024;

/// What is to be written of a conversation.
struct Item {
    trace: Trace,
    entries: Vec<Entry>,
    at: Moment,
    size: usize,
}

impl Item {
    /// Whether another one tells more of the same place, or how the same
    /// conversation went on from there.
    fn is_followed_by(&self, other: &Self) -> bool {
        let (here, next) = (self.trace.here, &other.trace);
        let goes_on = next.here == here || next.from == Some(here);
        goes_on && next.lineage == self.trace.lineage
    }

    /// Takes in how the conversation went on. What waits is told as one: the
    /// journal may have heard in between where the conversation is now, and a
    /// place on the way would look to it like another one's.
    fn takes(&mut self, mut next: Self) {
        let mut through = std::mem::take(&mut self.trace.through);
        if self.trace.here != next.trace.here {
            through.push(self.trace.here);
            through.append(&mut next.trace.through);
        }
        next.trace.through = through;
        next.trace.goes_on_from(&self.trace);
        self.trace = next.trace;
        self.entries.append(&mut next.entries);
        self.at = next.at;
        self.size += next.size;
    }
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    size: usize,
    /// What is being written.
    flying: Option<Trace>,
    /// What is still being gathered, by number.
    announced: BTreeMap<u64, Trace>,
    next: u64,
    closed: bool,
}

/// Something will be handed over that is still being gathered; until then, or
/// until this is dropped, those who come later know that it comes before them.
pub struct Announced {
    feed: Feed,
    number: u64,
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.feed.waiting().announced.remove(&self.number);
    }
}

impl Waiting {
    /// The newest first.
    fn traces(&self) -> impl Iterator<Item = &Trace> {
        let newest = self.items.iter().rev().take(LOOKED_AT);
        newest.map(|item| &item.trace)
    }
}

/// The way into the journal. Clones are the same one.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    limit: JournalLimit,
    waiting: Mutex<Waiting>,
    /// There is something to write, or nothing more will come.
    wake: Notify,
    /// Everything is written.
    idle: Notify,
}

impl Feed {
    /// A feed whose task is still to be started, with [`Self::run`].
    pub fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, limit: JournalLimit) -> Self {
        Self(Arc::new(Shared {
            store,
            metrics,
            limit,
            waiting: Mutex::default(),
            wake: Notify::new(),
            idle: Notify::new(),
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        let waiting = self.0.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that something of a conversation will come.
    pub fn announce(&self, trace: &Trace) -> Announced {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.announced.insert(number, trace.clone());
        Announced {
            feed: self.clone(),
            number,
        }
    }

    /// Takes entries of a conversation; none at all still tell how far it has
    /// come. Never waits.
    pub fn push(&self, mut trace: Trace, entries: Vec<Entry>, at: Moment) {
        let places = trace.behind.len() * 40;
        let size = entries.iter().map(bytes).sum::<usize>() + places + 200;
        let mut waiting = self.waiting();
        // It may have overtaken what comes before it.
        lead(&mut trace, || waiting.announced.values());
        waiting.size += size;
        let item = Item {
            trace,
            entries,
            at,
            size,
        };
        let goes_on = |held: &&mut Item| held.is_followed_by(&item);
        // Only the newest are looked through: others have been passed by.
        match waiting.items.iter_mut().rev().take(LOOKED_AT).find(goes_on) {
            Some(held) => held.takes(item),
            None => waiting.items.push_back(item),
        }
        let mut lost = 0;
        while waiting.size > ROOM && waiting.items.len() > 1 {
            let Some(oldest) = waiting.items.pop_front() else {
                break;
            };
            waiting.size -= oldest.size;
            lost += oldest.entries.len();
        }
        drop(waiting);
        self.0.wake.notify_one();
        if lost > 0 {
            self.0.metrics.fail_open("journal");
            tracing::warn!(
                lost,
                "the journal cannot keep up: entries about turns are not recorded, and will not be found by searching"
            );
        }
    }

    /// Writes what comes, until the feed is closed and everything is written.
    pub async fn run(self) {
        let mut failing = false;
        let mut measured: Option<Instant> = None;
        loop {
            let Some(item) = self.next() else {
                self.0.idle.notify_waiters();
                if self.is_closed() {
                    return;
                }
                if measured.is_none_or(|at| at.elapsed() >= MEASURED) {
                    measured = Some(Instant::now());
                    if let Ok(extent) = self.0.store.journal().extent().await {
                        self.0.metrics.journal_bytes(extent.bytes);
                    }
                }
                self.0.wake.notified().await;
                continue;
            };
            match self.write(&item).await {
                Ok(()) if failing => {
                    failing = false;
                    tracing::info!("the journal is written again");
                }
                Ok(()) => {}
                Err(error) => {
                    self.0.metrics.fail_open("journal");
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(
                            %error,
                            "the journal cannot be written: what turns decided, touched and failed at is not being recorded"
                        );
                    }
                    // Nobody waits for it any more when the process ends, and
                    // what there is no room for would hold up all the others.
                    let is_full = matches!(error, StoreError::Full { .. });
                    if !self.is_closed() && !is_full {
                        self.put_back(item);
                        tokio::time::sleep(REST).await;
                    }
                }
            }
        }
    }

    fn next(&self) -> Option<Item> {
        let mut waiting = self.waiting();
        let next = waiting.items.pop_front();
        waiting.flying = next.as_ref().map(|item| item.trace.clone());
        waiting.size -= next.as_ref().map_or(0, |item| item.size);
        next
    }

    /// Adds to a trace the places before it that still wait to be told.
    pub fn lead_to(&self, trace: &mut Trace) {
        let waiting = self.waiting();
        let written = || waiting.flying.iter().chain(waiting.traces());
        lead(trace, || written().chain(waiting.announced.values()));
    }

    fn put_back(&self, item: Item) {
        let mut waiting = self.waiting();
        waiting.size += item.size;
        let goes_on = |held: &&mut Item| item.is_followed_by(held);
        match waiting.items.iter_mut().find(goes_on) {
            Some(held) => {
                let next = std::mem::replace(held, item);
                held.takes(next);
            }
            None => waiting.items.push_front(item),
        }
    }

    fn is_closed(&self) -> bool {
        self.waiting().closed
    }

    async fn write(&self, item: &Item) -> Result<(), StoreError> {
        let begun = Instant::now();
        let journal = self.0.store.journal();
        let mut batches = item.entries.chunks(BATCH);
        let first = batches.next().unwrap_or(&[]);
        for batch in std::iter::once(first).chain(batches) {
            let size: usize = batch.iter().map(bytes).sum();
            let _room = self.0.limit.reserve(size as u64).await?;
            let appended = journal.append(&item.trace, batch, item.at).await;
            let failed = appended.is_err();
            self.0.metrics.store("append", begun.elapsed(), failed);
            let added = usize::try_from(appended?).unwrap_or(usize::MAX);
            self.0.metrics.appended(added);
        }
        Ok(())
    }

    /// Waits until everything handed over so far is written, or it takes too
    /// long.
    pub async fn flush(&self) {
        let written = async {
            loop {
                let idle = self.0.idle.notified();
                let mut idle = std::pin::pin!(idle);
                idle.as_mut().enable();
                {
                    let waiting = self.waiting();
                    if waiting.items.is_empty() && waiting.flying.is_none() {
                        return;
                    }
                }
                idle.await;
            }
        };
        if tokio::time::timeout(PATIENCE, written).await.is_err() {
            tracing::warn!("the last entries of the journal could not be written");
        }
    }

    /// Lets the task end when it has written what is there.
    pub fn close(&self) {
        self.waiting().closed = true;
        self.0.wake.notify_one();
    }
}

/// Adds to a trace the places before it, as far as these tell of them.
fn lead<'a, I: Iterator<Item = &'a Trace>>(trace: &mut Trace, known: impl Fn() -> I) {
    for _ in 0..LOOKED_AT {
        let ends = |held: &&Trace| Some(held.here) == trace.from && held.from != trace.from;
        let Some(held) = known().find(ends) else {
            break;
        };
        let places = held.through.iter().copied().chain(trace.from);
        trace.through.splice(..0, places);
        trace.goes_on_from(held);
    }
}

/// About what an entry takes in memory.
fn bytes(entry: &Entry) -> usize {
    let text = match &entry.text {
        Text::Inline(text) => text.len(),
        Text::Content { .. } => 0,
    };
    let terms: usize = entry.terms.iter().map(|term| term.len() + 24).sum();
    200 + text + terms + entry.tool.len() + entry.path.len()
}
