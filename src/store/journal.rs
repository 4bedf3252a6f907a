//! The journal: everything that views have left out, and what happened in each
//! turn, to be found again.
//!
//! Conversations form a tree, because they fork; the journal keeps it as
//! *branches*. A branch is one conversation from the message on at which it left
//! another one. What is written belongs to a branch and a message, so whoever
//! may see a conversation sees its branch and the beginnings of the branches it
//! grew from, and nobody else's. Where a conversation belongs is found out here
//! from a [`Trace`], by the chain hashes at which its requests have ended: the
//! journal trusts no name that a client gives.
//!
//! Four things are kept: content in pieces, each once in a tenant ([`BlobId`]);
//! the messages of a branch, put together from literal bytes and pieces
//! ([`Kept`]); promises, the references that stand in views, and what each of
//! them stands for ([`Promise`]); and entries, what is found by searching
//! ([`Entry`]). The first three are durable before an overlay that needs them is
//! committed; entries may follow.

pub(super) mod growth;
pub(super) mod room;
mod scope;
pub(super) mod words;

pub use scope::{Scope, Stretch, scope, scope_of_session};

use std::cmp::Reverse;

use super::{Answer, Moment};
use crate::engine::ids::{BlobId, ChainHash, LineageId, Reference};
pub use crate::engine::recall::entry::{Entry, EntryKind, Text};

/// Which conversation is spoken of, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Whose it is: the start of every chain of this tenant's.
    pub tenant: ChainHash,
    /// The session, as a header shows it.
    pub lineage: LineageId,
    /// What the client calls the session.
    pub label: Option<String>,
    /// The place it grew from, if one is known, and its messages.
    pub from: Option<(ChainHash, u32)>,
    /// Places it has come through since, the oldest first, where the journal may
    /// not have heard of it.
    pub through: Vec<(ChainHash, u32)>,
    /// Older places of its history: where the journal has not heard of the
    /// others, it left one of these.
    pub behind: Vec<(ChainHash, u32)>,
    /// The place it has reached, and its messages.
    pub here: (ChainHash, u32),
}

impl Trace {
    /// The places before the one it has reached, the newest first.
    pub fn before(&self) -> Vec<(ChainHash, u32)> {
        let told = self.through.iter().rev().copied().chain(self.from);
        let mut before: Vec<_> = told.chain(self.behind.iter().copied()).collect();
        before.sort_by_key(|(_, messages)| Reverse(*messages));
        before.dedup();
        before
    }

    /// It goes on from where another one has come to.
    pub fn goes_on_from(&mut self, other: &Self) {
        self.from = other.from;
        self.behind.extend_from_slice(&other.behind);
        self.behind.sort_by_key(|(_, messages)| Reverse(*messages));
        self.behind.dedup();
    }
}

/// A branch, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its name: as a rule the session's, another one if two branches share one.
    pub id: LineageId,
    /// The session, as a header shows it.
    pub lineage: LineageId,
    /// Whose it is.
    pub tenant: ChainHash,
    /// What the client calls it.
    pub label: Option<String>,
    /// The branch it left, and the messages they have in common.
    pub parent: Option<(LineageId, u32)>,
    /// How many messages it has come to.
    pub messages: u32,
    /// When it was first seen, and last.
    pub began_at: Moment,
    /// When it was last seen.
    pub seen_at: Moment,
}

/// What a pass puts away before its overlay is committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archive {
    /// Content, each piece once.
    pub blobs: Vec<(BlobId, Vec<u8>)>,
    /// All messages of the history, as they are now.
    pub messages: Vec<Kept>,
    /// The references that the new view shows.
    pub promises: Vec<Promise>,
}

/// A message that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Which one.
    pub message: u32,
    /// Its bytes, in the form of `engine::archive`: literals and names of pieces.
    pub parts: Vec<u8>,
    /// The pieces it needs.
    pub blobs: Vec<BlobId>,
}

/// What a reference in a view stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// The reference.
    pub reference: Reference,
    /// The first message it stands for, and the one behind the last.
    pub messages: (u32, u32),
    /// It stands for one block of that message.
    pub block: Option<u32>,
    /// What that block held.
    pub blob: Option<BlobId>,
}

/// An entry that is kept: newer ones have larger numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// Its number.
    pub number: i64,
    /// Its branch.
    pub branch: LineageId,
    /// When it was written.
    pub at: Moment,
    /// The entry, without its terms.
    pub entry: Entry,
}

/// An entry that has one of the words that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The entry's number.
    pub number: i64,
    /// Which of the words, a bit each.
    pub terms: u32,
}

/// What a reference stands for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referred {
    /// The branch.
    pub branch: LineageId,
    /// The messages, the last one excluded.
    pub messages: (u32, u32),
    /// The block, if it is one.
    pub block: Option<u32>,
    /// What it held, if it is kept as a piece.
    pub blob: Option<BlobId>,
    /// The entry, if it is one that stands for itself.
    pub entry: Option<i64>,
}

/// Which entries are listed: all of a scope, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Only these kinds; none: all.
    pub kinds: Vec<EntryKind>,
    /// Only entries with smaller numbers.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// What was forgotten with a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Branches.
    pub branches: u64,
    /// Entries.
    pub entries: u64,
    /// Pieces of content that nothing else needed.
    pub blobs: u64,
}

/// How much the journal holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of it, as [`super::Keep::blob_bytes`] counts them.
    pub bytes: u64,
    /// Branches.
    pub branches: u64,
    /// Entries.
    pub entries: u64,
}

/// Where everything that was left out is kept.
pub trait Journal: Send + Sync {
    /// Puts away what a pass leaves out, whole or not at all, durably, and
    /// answers with the branch. Pieces that are there are marked as used at
    /// `now`; a message that is kept already with the same parts is not kept
    /// again, and one with other parts is kept beside it, so that both states of
    /// the history can be rebuilt: it counts from `trace.here` on, the first one
    /// that the conversation has from the start.
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId>;

    /// Appends entries and answers with how many were new: not told yet by the
    /// branch, nor by those it grew from where they have the message in common.
    /// Not necessarily durable.
    fn append<'a>(&'a self, trace: &'a Trace, entries: &'a [Entry], now: Moment)
    -> Answer<'a, u64>;

    /// What a reference stands for: promises first, in the order in which they
    /// were made, then entries, the oldest first and of each block one, 64 at
    /// most. Empty if nobody has ever heard of it.
    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>>;

    /// The branch of a session that has its name, or else the one that was seen
    /// last; none that is forgotten.
    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>>;

    /// A branch by its name, or the one of that session which was seen last and
    /// is not forgotten.
    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>>;

    /// The branches that left this one behind a message, those seen last first.
    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>>;

    /// Branches, those seen last first, seen before some moment; none that is
    /// forgotten and only there for those that left it.
    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>>;

    /// The entries of a scope that have at least one of at most 32 words, newest
    /// first. Of those that have a word only the newest 2,048 are found by it,
    /// so that a common word hides no rare one.
    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>>;

    /// Entries by their numbers, in no particular order.
    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>>;

    /// The entries of a scope, the newest first.
    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>>;

    /// The messages of a scope within this range, in order, as they were when
    /// the history had come to `as_of` messages; none: as they were last kept.
    /// The first stretch of the scope that has a message counts. Those that are
    /// not kept are missing.
    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>>;

    /// Forgets a branch and everything that only it needs, at once. Branches
    /// that left it keep what they have in common with it, and when the last of
    /// them goes that goes too. A conversation that goes on all the same begins
    /// anew.
    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten>;

    /// How much there is.
    fn extent(&self) -> Answer<'_, Extent>;
}
