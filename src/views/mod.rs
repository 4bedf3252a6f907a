//! From a request to the view of it that goes upstream, and back to what is
//! remembered of it.
//!
//! The steps are [`recognise`] (what conversation is it), [`standing`] (what is
//! remembered of it), [`adopt`] (if it was edited where nobody looks), [`pass`]
//! (make it smaller, if that is asked for), [`prepare`] (the steps in order) with
//! `build` (render and count),
//! [`refused`] (upstream does not take it) and [`observe`] (what upstream said).
//! Deciding and rendering are pure and stand in `engine`; here is what needs the
//! store, the clock or another thread. Whatever fails here, the request goes on:
//! with the view its conversation has, or as the client sent it.

pub mod adopt;
mod archived;
mod bill;
mod build;
mod census;
mod commit;
mod compute;
mod consider;
pub mod credentials;
mod deferred;
mod elsewhere;
mod feed;
#[cfg(test)]
mod forgetful;
mod former_plan;
mod journal;
mod journal_limit;
pub mod known;
pub mod learned;
pub mod observe;
pub mod overlays;
pub mod pass;
mod patience;
pub mod preparation;
pub mod prepare;
mod provisional;
pub mod recognise;
pub mod refused;
mod rereads;
mod settings;
mod shared_base;
mod staging;
pub mod standing;
pub mod summarise;
mod take_over;
pub mod tally;
pub mod tenants;
mod windows;
pub mod wishes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::compactor::Compactor;
use crate::config::Config;
use crate::engine::ids::{LineageId, OverlayId};
use crate::engine::overlay::Unreadable;
use crate::engine::swift::Key;
use crate::engine::view::NoView;
use crate::metrics::Metrics;
use crate::store::writer::Writer;
use crate::store::{Answer, Collected, Keep, Moment, Store, StoreError};
use archived::Archived;
use census::Census;
use compute::{LARGE, compute};
use credentials::Credentials;
use feed::Feed;
use journal_limit::JournalLimit;
use known::Known;
use learned::{Learned, Note};
use overlays::Overlays;
use patience::Patience;
use rereads::Removed;
use shared_base::SharedBase;
use staging::Staging;
use tally::Tally;
use tenants::Tenants;
use wishes::Wishes;

/// How many large bodies are made smaller at once: each takes several times its
/// size meanwhile.
const LARGE_AT_ONCE: usize = 2;

/// The most that marks, overlays and segments may take on disk.
const STATE_BYTES: u64 = 4 << 30;

/// What was used within this time is not removed for want of room.
const IDLE: Duration = Duration::from_hours(1);

/// The same where the journal is full and something is to be written into it.
const BUSY: Duration = Duration::from_mins(1);

/// The part of the room for request bodies that those may take which are held for
/// summaries, after they have been forwarded.
const HELD: u64 = 4;

/// The turn of a large body; a small one needs none.
type Turn<'a> = Option<SemaphorePermit<'a>>;

/// What goes wrong on the way to a view. None of it reaches a client.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An overlay that a mark points to is not there.
    #[error("overlay {0} is lost")]
    LostOverlay(OverlayId),
    /// An overlay cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A view cannot be made.
    #[error(transparent)]
    NoView(#[from] NoView),
    /// What a pass would leave out cannot be recorded.
    #[error("nothing is left out unrecorded, and the journal cannot be written: {0}")]
    Unrecorded(Box<Fault>),
    /// Our own mistake.
    #[error("a step failed: {0}")]
    Bug(&'static str),
}

impl Fault {
    /// The label of the metric.
    fn stage(&self) -> &'static str {
        match self {
            Self::Store(_) => "store",
            Self::LostOverlay(_) | Self::Unreadable(_) => "overlay",
            Self::NoView(_) => "render",
            Self::Unrecorded(_) => "journal",
            Self::Bug(_) => "bug",
        }
    }
}

/// Everything that is needed to make views.
pub struct Views {
    store: Arc<dyn Store>,
    writer: Writer,
    known: Arc<Known>,
    overlays: Overlays,
    removed: Removed,
    archived: Archived,
    journal_limit: JournalLimit,
    patience: Patience,
    feed: Feed,
    bases: SharedBase,
    staging: Staging,
    census: Census,
    tally: Arc<Tally>,
    compactor: Option<Arc<Compactor>>,
    learned: Learned,
    credentials: Credentials,
    wishes: Wishes,
    /// Whose requests are whose.
    pub tenants: Tenants,
    key: Key,
    config: Config,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Where what nobody waits for is done; workers may end before it.
    background: Handle,
    tasks: TaskTracker,
    large: Semaphore,
    holding: Arc<Semaphore>,
    /// Large bodies are told to the journal one after the other.
    telling: Arc<Semaphore>,
}

impl Views {
    /// Views kept in a store. `secret` must be random, and new for each process.
    /// What nobody waits for is done on the runtime this is called on.
    pub async fn new(
        store: Arc<dyn Store>,
        writer: Writer,
        config: Config,
        metrics: Arc<Metrics>,
        clock: Clock,
        secret: [u8; 32],
    ) -> Self {
        let held = config.limits.buffered_bytes / HELD / 1024;
        let held = usize::try_from(held)
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        let tenants = Tenants::new(&config.tenant.by, config.listen.is_loopback());
        let (settings, now) = (config.clone(), clock.clone());
        let keep = move |bytes: u64| Keep {
            blob_bytes: bytes,
            ..kept(&settings, moment(&now), BUSY)
        };
        let limit = config.journal.max_bytes;
        let journal_limit =
            JournalLimit::new(store.clone(), metrics.clone(), limit, Box::new(keep));
        let feed = Feed::new(store.clone(), metrics.clone(), journal_limit.clone());
        Handle::current().spawn(feed.clone().run());
        let views = Self {
            store,
            writer,
            known: Arc::default(),
            overlays: Overlays::default(),
            removed: Removed::default(),
            archived: Archived::default(),
            journal_limit,
            patience: Patience::default(),
            feed,
            bases: SharedBase::default(),
            staging: Staging::default(),
            census: Census::default(),
            tally: Arc::default(),
            compactor: None,
            learned: Learned::default(),
            credentials: Credentials::default(),
            wishes: Wishes::default(),
            tenants,
            key: Key::new(secret),
            config,
            clock,
            metrics,
            background: Handle::current(),
            tasks: TaskTracker::new(),
            large: Semaphore::new(LARGE_AT_ONCE),
            holding: Arc::new(Semaphore::new(held)),
            telling: Arc::new(Semaphore::new(1)),
        };
        match views.timed("learned", views.store.learned()).await {
            Ok(notes) => {
                views.learned.restore(&notes);
                views.tenants.restore(&notes);
                views.credentials.restore(&notes, views.now());
            }
            Err(error) => tracing::warn!(%error, "what was learned before cannot be read"),
        }
        views
    }

    /// The same, with summaries.
    #[must_use]
    pub fn with_compactor(mut self, compactor: Arc<Compactor>) -> Self {
        self.compactor = Some(compactor);
        self
    }

    /// What the process-wide settings are.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What has gone by in this process.
    pub fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// How many lineages are in memory.
    pub fn lineages(&self) -> usize {
        self.known.lineages()
    }

    /// Counts what can only be counted by looking: sessions, and breakers that
    /// are not closed.
    pub fn take_stock(&self) {
        let stock = self.census.stock(self.now());
        self.metrics.sessions_active(stock.active);
        let lasting = !self.store.is_away() && !self.store.is_forgetful();
        self.metrics.store_up(lasting);
        self.metrics
            .breakers("session", stock.open, stock.half_open);
        if let Some(compactor) = &self.compactor {
            let (open, half_open) = compactor.gates.shut();
            self.metrics.breakers("summarizer", open, half_open);
        }
    }

    /// Whether a pass can be wished for in a session that has been seen.
    pub fn takes_wishes(&self, lineage: LineageId) -> bool {
        self.known.has(lineage) || self.store.is_shared()
    }

    /// How the store is: `away` if requests are served without it, `settling` if
    /// it lacks something that was done meanwhile, `memory` if its files cannot be
    /// used, or `ready`.
    pub fn store_state(&self) -> &'static str {
        let store = &self.store;
        match (store.is_away(), store.is_settling(), store.is_forgetful()) {
            (true, ..) => "away",
            (_, true, _) => "settling",
            (.., true) => "memory",
            _ => "ready",
        }
    }

    /// Whether a pass is wished for at the next request of a session.
    pub fn is_wished(&self, lineage: LineageId) -> bool {
        self.wishes.has(lineage)
    }

    /// Learns from upstream's answer whose a credential is.
    pub fn learn_tenant(&self, digest: &str, answer: &HeaderMap) -> Arc<str> {
        self.tenants.learn(digest, answer)
    }

    /// Whether nothing goes on in the background.
    pub fn is_idle(&self) -> bool {
        let compactor = self.compactor.as_ref();
        self.tasks.is_empty() && compactor.is_none_or(|compactor| compactor.is_idle())
    }

    /// Removes what is no longer kept.
    pub async fn collect(&self) {
        let keep = kept(&self.config, self.now(), IDLE);
        match self.timed("collect", self.store.collect(keep)).await {
            Ok(gone) if gone != Collected::default() => {
                tracing::info!(
                    ?gone,
                    "old marks, overlays, segments and content were removed"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the store could not be tidied up"),
        }
    }

    /// Writes everything out.
    pub async fn close(&self) {
        if let Some(compactor) = &self.compactor {
            compactor.close().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
        self.feed.flush().await;
        self.feed.close();
        if let Err(error) = self.writer.flush().await {
            tracing::warn!(%error, "the last figures could not be written");
        }
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "the store could not be closed");
        }
    }

    /// The moment it is.
    pub fn now(&self) -> Moment {
        moment(&self.clock)
    }

    /// Waits for the turn of a large body to be made smaller.
    async fn turn(&self, size: usize) -> Turn<'_> {
        if size < LARGE {
            return None;
        }
        self.large.acquire().await.ok()
    }

    /// Asks the store, and counts how long that takes.
    async fn timed<T>(&self, what: &'static str, answer: Answer<'_, T>) -> Result<T, Fault> {
        let begun = Instant::now();
        let answer = answer.await;
        self.metrics.store(what, begun.elapsed(), answer.is_err());
        Ok(answer?)
    }

    /// Writes down what was learned, without waiting.
    fn note(&self, notes: impl IntoIterator<Item = Note>) {
        for (key, value) in notes {
            let (store, metrics) = (self.store.clone(), self.metrics.clone());
            let learn = async move {
                let begun = Instant::now();
                let learned = store.learn(&key, &value).await;
                metrics.store("learn", begun.elapsed(), learned.is_err());
                if let Err(error) = learned {
                    tracing::warn!(%error, "what was learned could not be written down");
                }
            };
            self.tasks.spawn_on(learn, &self.background);
        }
    }
}

/// The moment it is by a clock.
fn moment(clock: &Clock) -> Moment {
    Moment(i64::try_from(clock.now().as_millis()).unwrap_or(i64::MAX))
}

/// What is kept by the settings, where nothing goes that was used within `busy`.
fn kept(config: &Config, now: Moment, busy: Duration) -> Keep {
    let ago = |time: Duration| {
        let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Moment(now.0.saturating_sub(time))
    };
    Keep {
        since: ago(config.store.retention),
        state_bytes: STATE_BYTES,
        blobs_since: ago(config.journal.retention),
        blob_bytes: config.journal.max_bytes,
        idle_since: ago(busy),
    }
}
