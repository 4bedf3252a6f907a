//! Figures on their way to the store, so that no request waits for them.
//!
//! A request hands over a mark and goes on. A thread of its own writes what has
//! come together, every so often or when there is much of it. Until it is
//! written, whoever looks for a mark must look here too. The room is bounded:
//! if the store cannot keep up, the oldest figures are forgotten and counted,
//! since they can be had again at the price of an estimate.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::pending::Pending;
use super::{Found, MarkRow, Store, StoreError, rule};
use crate::engine::ids::{ChainHash, Hint, LineageId};

/// How long figures are gathered.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a store that failed is left alone.
const REST: Duration = Duration::from_secs(1);

/// As many as this are written at once, and without a pause.
const BATCH: usize = 256;

/// The most that wait.
const ROOM: usize = 16_384;

/// Is told how long each attempt to write took, and whether it failed.
pub type Witness = Box<dyn Fn(Duration, bool) + Send + Sync>;

/// The background writer. Clones are the same one; it ends with the last.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
    rounds: watch::Receiver<Round>,
    _end: Arc<End>,
}

struct Shared {
    store: Arc<dyn Store>,
    witness: Witness,
    waiting: Mutex<Waiting>,
    /// There is something to write.
    wake: Notify,
    /// It should be written now.
    hurry: Notify,
}

struct Waiting {
    pending: Pending,
    /// Counts those who asked for everything to be written.
    asked: u64,
    /// Counts what has been written.
    written: u64,
    ending: bool,
}

/// The last attempt to write everything.
#[derive(Debug, Clone, Default)]
struct Round {
    /// How many had asked when it began.
    asked: u64,
    failure: Option<String>,
}

/// Ends the thread when nobody can hand anything over any more.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.waiting().ending = true;
        self.0.hurry();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hurry(&self) {
        self.hurry.notify_one();
        self.wake.notify_one();
    }
}

impl Writer {
    /// Starts the thread.
    pub fn start(store: Arc<dyn Store>) -> io::Result<Self> {
        Self::begin(store, ROOM, Box::new(|_, _| {}))
    }

    /// Starts the thread, with room for so many marks.
    pub fn with_room(store: Arc<dyn Store>, room: usize) -> io::Result<Self> {
        Self::begin(store, room, Box::new(|_, _| {}))
    }

    /// Starts the thread under the eyes of a witness.
    pub fn witnessed(store: Arc<dyn Store>, witness: Witness) -> io::Result<Self> {
        Self::begin(store, ROOM, witness)
    }

    fn begin(store: Arc<dyn Store>, room: usize, witness: Witness) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            store,
            witness,
            waiting: Mutex::new(Waiting {
                pending: Pending::new(room),
                asked: 0,
                written: 0,
                ending: false,
            }),
            wake: Notify::new(),
            hurry: Notify::new(),
        });
        let (sender, rounds) = watch::channel(Round::default());
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let works_on = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || runtime.block_on(work(&works_on, &sender)))?;
        Ok(Self {
            _end: Arc::new(End(Arc::clone(&shared))),
            shared,
            rounds,
        })
    }

    /// Takes a mark; it is written soon. Never waits.
    pub fn record(&self, mark: MarkRow) {
        let mut waiting = self.shared.waiting();
        waiting.pending.push(mark);
        let count = waiting.pending.len();
        drop(waiting);
        match count {
            1 => self.shared.wake.notify_one(),
            BATCH => self.shared.hurry(),
            _ => {}
        }
    }

    /// What is not written yet at these places, the oldest first. To be asked
    /// before the store is, since afterwards it may have got there.
    pub fn pending(&self, places: &[ChainHash]) -> Vec<MarkRow> {
        self.shared.waiting().pending.at(places)
    }

    /// The marks at these places as they will be once everything is written.
    pub async fn marks(&self, places: &[ChainHash]) -> Result<Vec<MarkRow>, StoreError> {
        let pending = self.pending(places);
        let marks = self.shared.store.marks(places).await?.into_iter();
        let mut found = marks.map(|mark| Found { mark, newest: None }).collect();
        take_in(&mut found, pending);
        Ok(found.into_iter().map(|found| found.mark).collect())
    }

    /// The same with what their sessions will have come to by then.
    pub async fn find(&self, places: &[ChainHash]) -> Result<Vec<Found>, StoreError> {
        let (pending, written) = {
            let waiting = self.shared.waiting();
            (waiting.pending.at(places), waiting.written)
        };
        let mut found = self.shared.store.find(places).await?;
        take_in(&mut found, pending);
        let waiting = self.shared.waiting();
        for found in &mut found {
            // What has been written meanwhile may have come too late to be seen,
            // and waits no longer.
            let newest = found.newest.filter(|_| waiting.written == written);
            found.newest = newest.map(|newest| {
                newest.max(waiting.pending.farthest(found.mark.lineage).unwrap_or(0))
            });
        }
        Ok(found)
    }

    /// The marks of a session's that have one of these views, written or not.
    pub async fn marks_by_view(
        &self,
        hint: Hint,
        views: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let mut pending = self.shared.waiting().pending.with_view(hint, views);
        let mut marks = self.shared.store.marks_by_view(hint, views).await?;
        marks.append(&mut pending);
        Ok(marks)
    }

    /// The most messages of what is not written yet of a session. To be asked
    /// before the store is.
    pub fn farthest(&self, lineage: LineageId) -> Option<u32> {
        self.shared.waiting().pending.farthest(lineage)
    }

    /// How many marks were forgotten because the store could not keep up.
    pub fn dropped(&self) -> u64 {
        self.shared.waiting().pending.dropped()
    }

    /// Waits until everything handed over so far is written.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let asked = {
            let mut waiting = self.shared.waiting();
            waiting.asked += 1;
            waiting.asked
        };
        self.shared.hurry();
        let mut rounds = self.rounds.clone();
        let round = rounds.wait_for(|round| round.asked >= asked).await;
        match round.map(|round| round.failure.clone()) {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(StoreError::Failed(failure)),
            Err(_) => Err(StoreError::Failed("the writer has ended".to_owned())),
        }
    }
}

/// Makes what was found what it will be with what is pending.
fn take_in(found: &mut Vec<Found>, pending: Vec<MarkRow>) {
    for mark in pending {
        let held = found
            .iter_mut()
            .map(|found| &mut found.mark)
            .find(|held| held.chain == mark.chain && held.model == mark.model);
        match held {
            Some(held) => _ = rule::renew(held, &mark),
            None => found.push(Found { mark, newest: None }),
        }
    }
}

async fn work(shared: &Shared, rounds: &watch::Sender<Round>) {
    let mut failing = false;
    loop {
        shared.wake.notified().await;
        // Either way it is time.
        let _ = timeout(PAUSE, shared.hurry.notified()).await;
        let asked = shared.waiting().asked;
        let failure = write(shared).await.err().map(|error| error.to_string());
        let failed = failure.is_some();
        match (&failure, std::mem::replace(&mut failing, failed)) {
            (Some(failure), false) => {
                tracing::warn!("figures are not written yet: {failure}");
            }
            (None, true) => tracing::info!("figures are written again"),
            _ => {}
        }
        rounds.send_replace(Round { asked, failure });
        let is_over = {
            let waiting = shared.waiting();
            waiting.ending && (failed || waiting.pending.len() == 0)
        };
        if is_over {
            return;
        }
        if failed {
            let _ = timeout(REST, shared.hurry.notified()).await;
        }
        let waiting = shared.waiting();
        // Who asked while this round was under way has not been heard.
        if waiting.asked > asked || waiting.ending {
            shared.hurry();
        } else if waiting.pending.len() > 0 {
            shared.wake.notify_one();
        }
    }
}

/// Writes what there is by now, and not what comes in meanwhile: else whoever
/// waits for it would wait for as long as others have something to write.
async fn write(shared: &Shared) -> Result<(), StoreError> {
    let mut left = shared.waiting().pending.len();
    while left > 0 {
        let batch = shared.waiting().pending.begin(BATCH);
        if batch.is_empty() {
            break;
        }
        left = left.saturating_sub(batch.len());
        let begun = Instant::now();
        let written = shared.store.record(&batch).await;
        (shared.witness)(begun.elapsed(), written.is_err());
        let mut waiting = shared.waiting();
        match written {
            Ok(lost) => {
                waiting.pending.done();
                waiting.written += 1;
                for mark in lost.into_iter().filter_map(MarkRow::beside) {
                    waiting.pending.push(mark);
                    left += 1;
                }
            }
            Err(error) => {
                waiting.pending.failed();
                return Err(error);
            }
        }
    }
    Ok(())
}
