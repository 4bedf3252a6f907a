//! Carries out what summaries need: calls, deadlines, one flight for each span.
//!
//! Whoever wants a span summed up brings an errand and gets a boarding card:
//! many may wait for one flight, with patience of their own, and the flight goes
//! on when they leave. It ends as a stored summary or as a failure of a known
//! kind. What becomes of a view is not decided here.
//!
//! | question | module |
//! |---|---|
//! | what is to be summed up | `errand` |
//! | in whose name | `sender` |
//! | one call | `client` |
//! | one attempt | `asking` |
//! | the API's own summary | `native` |
//! | attempts until one holds | `flight` |
//! | whose turn it is | `turn` |
//! | may anybody be asked | `gates`, and `shared` among replicas |

mod asking;
pub mod client;
pub mod errand;
mod flight;
pub mod gates;
mod native;
pub mod sender;
mod shared;
mod turn;
pub mod windows;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Config;
use crate::engine::ids::SegmentId;
use crate::engine::policy::Pico;
use crate::engine::recovery::Failure;
use crate::metrics::Metrics;
use crate::store::Store;
use asking::Way;
use client::Client;
use errand::{Errand, Finished};
use gates::{Gate, Gates};
use native::Refusers;
use sender::{Elsewhere, window_key};
use turn::Turn;
use windows::Windows;

/// The most flights at a time; each holds a request in memory.
const FLIGHTS: usize = 64;
/// Bytes of a request from which its flight takes several times as much, so that
/// such ones go one after the other, once it is their turn.
const LARGE: usize = 4 << 20;

/// How a flight ended.
pub type Landed = Result<Arc<Finished>, Failure>;

/// What a compactor is made of.
pub struct Parts {
    /// The client that makes calls.
    pub client: Client,
    /// The main upstream.
    pub base: Uri,
    /// The summarizer's own upstream, if it has one.
    pub elsewhere: Option<(Uri, HeaderValue)>,
    /// The settings.
    pub config: Config,
    /// Where finished summaries are kept.
    pub store: Arc<dyn Store>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The clock that breakers go by.
    pub clock: Clock,
}

/// Makes summaries.
pub struct Compactor {
    client: Client,
    base: Uri,
    elsewhere: Option<Elsewhere>,
    config: Config,
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    clock: Clock,
    /// Who may be asked.
    pub gates: Gates,
    windows: Windows,
    /// The models that do not sum up by themselves.
    pub refusers: Refusers,
    large: Semaphore,
    flights: Mutex<HashMap<SegmentId, Boarding>>,
    background: Handle,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// A place on a flight.
#[derive(Debug, Clone)]
pub struct Boarding(watch::Receiver<Option<Landed>>, Spent);

/// What the calls of a flight have cost, in pico-dollars.
#[derive(Debug, Clone, Default)]
pub struct Spent(Arc<AtomicU64>);

impl Spent {
    /// Another call was paid for.
    pub fn add(&self, cost: Pico) {
        let cost = u64::try_from(cost.max(0)).unwrap_or(u64::MAX);
        self.0.fetch_add(cost, Ordering::Relaxed);
    }

    /// What nobody has been charged with yet; somebody is now.
    pub fn take(&self) -> Pico {
        self.0.swap(0, Ordering::Relaxed).into()
    }
}

impl Boarding {
    /// A flight that has landed already.
    pub fn landed(outcome: Landed) -> Self {
        Self(watch::channel(Some(outcome)).1, Spent::default())
    }

    /// What it has cost and nobody has been charged with yet.
    pub fn take_spent(&self) -> Pico {
        self.1.take()
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Landed> {
        match &*self.0.borrow() {
            Some(landed) => Some(landed.clone()),
            // Whoever flew it is gone.
            None if self.0.has_changed().is_err() => Some(Err(Failure::Shut)),
            None => None,
        }
    }

    /// Waits for it to end, but no longer than that.
    pub async fn wait(&mut self, until: Instant) -> Option<Landed> {
        let landed = self.0.wait_for(Option::is_some);
        match tokio::time::timeout_at(until, landed).await {
            Ok(Ok(landed)) => landed.clone(),
            Ok(Err(_)) => Some(Err(Failure::Shut)),
            Err(_) => None,
        }
    }
}

impl Compactor {
    /// A compactor; its flights go on the runtime this is called on.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            client,
            base,
            elsewhere,
            config,
            store,
            metrics,
            clock,
        } = parts;
        let breaker = &config.breaker;
        let gates = Gates::new(
            breaker.max_failures,
            breaker.summarizer_cooldown,
            flight::patience(config.summarizer.timeout),
            clock.clone(),
            metrics.clone(),
        );
        Self {
            client,
            base,
            elsewhere: elsewhere.map(|(base, key)| Elsewhere { base, key }),
            config,
            store,
            metrics,
            windows: Windows::new(clock.clone()),
            clock,
            gates,
            refusers: Refusers::default(),
            large: Semaphore::new(1),
            flights: Mutex::default(),
            background: Handle::current(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<SegmentId, Boarding>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a flight, or boards one that does just as well: the first of the
    /// ids that is under way. `None`: too many are.
    pub fn board(
        self: &Arc<Self>,
        errand: Errand,
        as_good: &[SegmentId],
    ) -> Option<(SegmentId, Boarding)> {
        let mut flights = self.flights();
        let known = std::iter::once(&errand.id).chain(as_good);
        for id in known {
            if let Some(boarding) = flights.get(id) {
                return Some((*id, boarding.clone()));
            }
        }
        if flights.len() >= FLIGHTS || self.stopping.is_cancelled() {
            return None;
        }
        let id = errand.id;
        let (landing, boarding) = watch::channel(None);
        let boarding = Boarding(boarding, errand.spent.clone());
        flights.insert(id, boarding.clone());
        drop(flights);
        let (compactor, errand) = (self.clone(), Arc::new(errand));
        let flight = async move {
            let patience = flight::patience(compactor.config.summarizer.timeout);
            let until = Instant::now() + patience;
            let turn = Turn::at(compactor.store.clone(), &errand);
            let flying = compactor.fly(&errand, &turn, until);
            let landed = tokio::select! {
                landed = flying => landed.map(Arc::new),
                () = compactor.stopping.cancelled() => Err(Failure::Shut),
            };
            // Stored by now: whoever looks from here on finds it there.
            compactor.flights().remove(&id);
            turn.tell_end(id, landed.is_ok());
            landing.send_replace(Some(landed));
            // Last: nobody here waits for what only others need to know.
            turn.end().await;
        };
        self.tasks.spawn_on(flight, &self.background);
        Some((id, boarding))
    }

    /// A finished summary, if one of these is stored: the first that is.
    pub async fn stored(&self, ids: &[SegmentId]) -> Option<(SegmentId, Arc<Finished>)> {
        let begun = Instant::now();
        let found = self.store.segments(ids).await;
        self.metrics
            .store("segments", begun.elapsed(), found.is_err());
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "finished summaries are out of reach");
                return None;
            }
        };
        let read = |id: &SegmentId| {
            let (_, bytes) = found.iter().find(|(held, _)| held == id)?;
            Some((*id, Arc::new(Finished::read(bytes)?)))
        };
        ids.iter().find_map(read)
    }

    /// Where a call of our own goes, and with which headers.
    fn own_call(&self, errand: &Errand) -> (Uri, HeaderMap) {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.own(),
            None => errand.sender.own(&self.base),
        }
    }

    /// The window of a model that writes summaries, in tokens.
    fn window(&self, errand: &Errand, model: &str) -> u64 {
        let summarizer = &self.config.summarizer;
        let configured = summarizer
            .window
            .filter(|_| *model == summarizer.model)
            .unwrap_or_else(|| self.config.models.lookup(model).window);
        let (to, headers) = self.own_call(errand);
        let key = window_key(&to, &headers, model);
        self.windows.window(&key, configured, &errand.claimed)
    }

    /// Tells a summarizer: where it is, which model, at whose expense.
    fn gate(&self, errand: &Errand, way: &Way) -> Gate {
        let own = matches!(way, Way::Fork | Way::Native);
        let mut hasher = blake3::Hasher::new();
        match self.elsewhere.as_ref().filter(|_| !own) {
            Some(elsewhere) => hasher.update(elsewhere.base.to_string().as_bytes()),
            None => hasher.update(&errand.sender.digest()),
        };
        hasher.update(b"\n");
        hasher.update(way.model(errand).as_bytes());
        hasher.finalize().into()
    }

    /// Whether no flight is under way.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Ends all flights.
    pub async fn close(&self) {
        self.stopping.cancel();
        self.tasks.close();
        // A call that is cancelled ends at once; nobody waits for the rest.
        let ended = tokio::time::timeout(Duration::from_secs(5), self.tasks.wait());
        if ended.await.is_err() {
            tracing::warn!("flights did not end in time");
        }
    }
}
