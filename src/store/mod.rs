//! What is remembered from one request to the next, and across restarts.
//!
//! One contract, several homes: memory, which is also the model for tests,
//! SQLite, and PostgreSQL for replicas that share what they remember. The store
//! knows nothing of what an overlay says or what a mark's figures mean: it keeps
//! bytes under keys and settles races. Two kinds of writing exist. What a request
//! must be able to rely on after a power cut, an overlay and the pointer to it, is
//! durable when [`Store::commit`] returns, and so is a segment, which was paid
//! for, when [`Store::put_segment`] does. What can be had again at the price of an
//! estimate, a mark's figures, follows when it can.

pub mod copy;
mod guarded;
pub mod journal;
mod lease;
mod memory;
mod moment;
mod pack;
mod patience;
mod pending;
pub mod postgres;
mod report;
mod rule;
pub mod sessions;
mod shelf;
pub mod sqlite;
pub mod writer;

pub use guarded::Guarded;
pub use lease::Holder;
pub use memory::Memory;
pub use report::{Opened, Report};
pub use sessions::Sessions;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use self::journal::Journal;
use crate::engine::bound;
use crate::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, SegmentId};

/// What a store answers, later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub i64);

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It took too long.
    #[error("the store did not answer within {0:?}: is the disk or the database overloaded?")]
    Slow(Duration),
    /// It cannot be reached, and may be again later.
    #[error("the store is out of reach: {0}")]
    Away(String),
    /// The journal has no room.
    #[error(
        "the journal holds {held} bytes and may hold {limit}: raise journal.max_bytes, or shorten journal.retention"
    )]
    Full {
        /// The bytes it holds.
        held: u64,
        /// The most it may hold.
        limit: u64,
    },
    /// It failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// What is remembered at a place in a conversation, for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkRow {
    /// The conversation up to its last message. The tenant is part of it.
    pub chain: ChainHash,
    /// The model that was asked.
    pub model: String,
    /// The session it belongs to.
    pub lineage: LineageId,
    /// How many messages the conversation had.
    pub messages: u32,
    /// The overlay by which it was rendered; none: as the client sent it.
    pub overlay: Option<OverlayId>,
    /// The view that was sent, as a chain of its own.
    pub view: ChainHash,
    /// Which session the client said it was.
    pub hint: Option<Hint>,
    /// Some of the reply reached the client: the plan stands for ever.
    pub sealed: bool,
    /// Usage and all the rest, in a form of its own.
    pub figures: Vec<u8>,
    /// When it was last used.
    pub seen_at: Moment,
}

impl MarkRow {
    /// Whether it goes before another one of its place that was only committed.
    pub fn outdoes(&self, held: &Self) -> bool {
        rule::gives_way(held, self)
    }

    /// Where another view holds this one still has its reply, and a place of its
    /// own by it, if anything tells the reply.
    fn beside(self) -> Option<Self> {
        let (chain, figures) = bound::beside(self.chain, &self.figures)?;
        // That it has a reply says that it was answered.
        Some(Self {
            chain,
            figures,
            sealed: true,
            ..self
        })
    }
}

/// A mark that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The mark.
    pub mark: MarkRow,
    /// How many messages its session had when it was last used, if whoever
    /// found the mark knows; else [`Sessions::marks_of`] tells.
    pub newest: Option<u32>,
}

/// A new overlay and the place from which it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The overlay's bytes and their name; none if an existing one, or none at
    /// all, is taken.
    pub overlay: Option<(OverlayId, Vec<u8>)>,
    /// The place, pointing to the overlay.
    pub mark: MarkRow,
    /// The overlay that holds there so far: whoever knows another one loses.
    pub parent: Option<OverlayId>,
    /// Upstream has refused what holds there, so that it gives way even if it is
    /// sealed.
    pub refused: bool,
}

/// How a commit went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It is durable.
    Done,
    /// Somebody else was there first; this is what holds.
    Lost(Box<MarkRow>),
}

/// What garbage collection goes by.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Marks seen and segments put since then are live; older ones go, each for
    /// itself.
    pub since: Moment,
    /// The most bytes that marks, overlays and segments may take. Beyond it
    /// segments go, those put longest ago first, since overlays hold their own
    /// copy of what they show; if that is not enough whole lineages go, least
    /// recently used first.
    pub state_bytes: u64,
    /// Branches of the journal seen since then stay, as far as there is room,
    /// and so do blobs used since then that no branch needs; older ones go. A
    /// branch that others left keeps what they have in common with it, and goes
    /// with the last of them.
    pub blobs_since: Moment,
    /// The most bytes that the journal may take, packed. Beyond it blobs that no
    /// branch needs go, those least recently used first; if that is not enough
    /// whole branches go, least recently seen first.
    pub blob_bytes: u64,
    /// Want of room takes nothing that was used or seen since then, and a blob
    /// used since then outlives the last branch that needed it: somebody may be
    /// about to need it.
    pub idle_since: Moment,
}

/// What garbage collection did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Marks that went.
    pub marks: u64,
    /// Overlays that went, because no mark pointed to them any more.
    pub overlays: u64,
    /// Segments that went.
    pub segments: u64,
    /// Blobs that went.
    pub blobs: u64,
    /// Branches of the journal that went, or were cut back to what others have
    /// in common with them.
    pub branches: u64,
    /// Entries of the journal that went.
    pub entries: u64,
}

/// Where things are remembered.
pub trait Store: Send + Sync {
    /// The marks at these places, of every model, in no particular order.
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>>;

    /// The same with what their sessions have come to, where that costs no more
    /// than the marks do.
    fn find<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<Found>> {
        Box::pin(async move {
            let marks = self.marks(places).await?.into_iter();
            Ok(marks.map(|mark| Found { mark, newest: None }).collect())
        })
    }

    /// The marks of a hinted session with one of these views.
    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>>;

    /// The overlays that a hinted session used last, newest first.
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>>;

    /// The bytes of an overlay.
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>>;

    /// Makes an overlay hold at a place, durably and whole or not at all. It is
    /// refused if the place has an overlay other than `parent`, or is sealed;
    /// but what is already there word for word is done. It fails if the mark
    /// points to an overlay that is neither brought along nor in the store.
    /// After [`StoreError::Slow`] it may still happen: asking again is safe.
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed>;

    /// Notes marks, in their order: a new place, or newer figures for a place
    /// with the same overlay. A place with another overlay keeps what it has,
    /// unless that was only committed, and not later than this one was answered:
    /// the view that a client has had an answer to holds. `sealed` is only ever
    /// set, never cleared; older figures than those that are there do nothing
    /// else. A mark that points to an overlay that is not in the store is left
    /// out. Not necessarily durable. The answer is those marks at whose places
    /// another overlay holds afterwards, or none because their own is not there.
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>>;

    /// Those of these segments that exist, in no particular order. Reading does
    /// not count as use, because it must not write on the path of a request:
    /// whoever goes on using a segment puts it again. One that is damaged is
    /// left out, as if it had never been made.
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>>;

    /// Keeps a finished segment, durably, and answers with the one that holds
    /// under this name: the first that was put, for the loser of a race too. It
    /// is never replaced, unless it is damaged; putting it again only makes it
    /// young again. After [`StoreError::Slow`] it may still happen: asking again
    /// is safe.
    fn put_segment<'a>(&'a self, id: SegmentId, body: &'a [u8], now: Moment)
    -> Answer<'a, Vec<u8>>;

    /// Everything that was learned, by key.
    fn learned(&self) -> Answer<'_, Vec<(String, String)>>;

    /// What was learned under these keys.
    fn learned_of<'a>(&'a self, keys: &'a [String]) -> Answer<'a, Vec<(String, String)>> {
        Box::pin(async move {
            let mut learned = self.learned().await?;
            learned.retain(|(key, _)| keys.contains(key));
            Ok(learned)
        })
    }

    /// Remembers something learned.
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()>;

    /// Keeps content, each piece once, and marks it as used at `now`. Durable.
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()>;

    /// A piece of content.
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>>;

    /// What views have left out, to be found again.
    fn journal(&self) -> &dyn Journal;

    /// The sessions it knows.
    fn sessions(&self) -> &dyn Sessions;

    /// Itself as its tables, if it has any that outlast the process.
    fn tables(&self) -> Option<&dyn copy::Tables> {
        None
    }

    /// Takes a lease, for work that only one of all who share the store should
    /// do: for so long nobody else gets it. Whoever has it already has it for so
    /// long from now. `false`: somebody else has it. It expires by itself, so
    /// that nobody who dies keeps it, and is therefore no proof that nobody else
    /// is at work: what is worked at must settle its own races. A store that
    /// nobody else shares may let everybody have it.
    fn lease<'a>(&'a self, _name: &'a str, _holder: Holder, _time: Duration) -> Answer<'a, bool> {
        Box::pin(async { Ok(true) })
    }

    /// Whether somebody has one of these leases.
    fn is_leased<'a>(&'a self, _names: &'a [String]) -> Answer<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Gives a lease back, if it is still this holder's.
    fn release<'a>(&'a self, _name: &'a str, _holder: Holder) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether others may be asked about the same conversations within
    /// milliseconds. What must not be done twice is then written before anybody
    /// can act on it; for a store of one process its memory is enough.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether what it is to share or to outlast this process is out of reach at
    /// the moment: what can wait should.
    fn is_away(&self) -> bool {
        false
    }

    /// Whether it still lacks something that was done while it was away.
    fn is_settling(&self) -> bool {
        false
    }

    /// Whether it was to outlast this process and does not, because a file cannot
    /// be used.
    fn is_forgetful(&self) -> bool {
        false
    }

    /// Removes what is no longer kept. Of several that share the store one does
    /// so at a time; for the others there is nothing to do.
    fn collect(&self, keep: Keep) -> Answer<'_, Collected>;

    /// Writes everything out and closes.
    fn close(&self) -> Answer<'_, ()>;
}
