//! `journal.db`: what views have left out, packed and with its index.
//!
//! A file of its own, so that its load and its size, which are far larger, do
//! not touch the marks, and damage to one is not damage to both. All that is
//! written goes through one lane, and every transaction locks other processes
//! out before it looks at anything, so that a branch is found and grown in one.

mod append;
mod archive;
mod branches;
mod forget;
mod many;
mod pieces;
mod recall;
mod search;

pub(super) use search::word_of;

use std::io;
use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row};

use super::database::{Database, Purpose};
use super::lane::Lane;
use super::readers::{Question, Readers};
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::store::journal::{
    self as contract, Archive, Branch, Entry, EntryRow, Extent, Forgotten, Kept, Listing, Match,
    Referred, Scope, Trace,
};
use crate::store::pack::unpack;
use crate::store::{Answer, Moment, StoreError};

/// Content is read when somebody asks for it back, which is rare.
const READERS: usize = 2;

/// The file, open.
pub(super) struct Journal {
    pub(super) database: Arc<Database>,
    pub(super) readers: Readers,
    pub(super) lane: Lane,
}

impl Journal {
    pub(super) fn start(database: Database) -> io::Result<Self> {
        let database = Arc::new(database);
        Ok(Self {
            readers: Readers::new(Arc::clone(&database), READERS),
            lane: Lane::start("store-journal", Arc::clone(&database))?,
            database,
        })
    }

    pub(super) async fn put(
        &self,
        blobs: &[(BlobId, Vec<u8>)],
        now: Moment,
    ) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let blobs = blobs.to_vec();
        self.lane
            .run(Purpose::Durable, async move |connection| {
                pieces::put_alone(connection, blobs, now).await
            })
            .await
    }

    pub(super) async fn get(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        let question =
            sqlx::query("SELECT body FROM blobs WHERE id = ?1").bind(id.as_bytes().as_slice());
        let Some(row) = self.readers.row(question).await? else {
            return Ok(None);
        };
        let packed: &[u8] = row
            .try_get(0)
            .map_err(|error| self.database.damaged(&error.to_string()))?;
        unpack(packed)
            .map(Some)
            .map_err(|error| self.database.damaged(&error.to_string()))
    }

    /// What a question finds, each row as what it stands for.
    async fn read<T>(
        &self,
        question: Question,
        from: impl Fn(&SqliteRow) -> Result<T, Error>,
    ) -> Result<Vec<T>, StoreError> {
        let patience = self.database.timeout();
        let rows = self.readers.rows_within(patience, question).await?;
        let read: Result<_, _> = rows.iter().map(from).collect();
        read.map_err(|error| self.database.damaged(&error.to_string()))
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.database.close();
        self.readers.close().await;
        self.lane.close().await
    }
}

impl contract::Journal for Journal {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        Box::pin(self.put_away(trace, archive, now))
    }

    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        Box::pin(self.append_all(trace, entries, now))
    }

    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        Box::pin(self.stands_for(reference))
    }

    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(self.of_session(session))
    }

    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(self.named(id))
    }

    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.left(id, behind, limit))
    }

    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.newest(before, limit))
    }

    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        Box::pin(self.find(scope, terms))
    }

    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.rows(numbers))
    }

    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.listed(scope, listing))
    }

    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        Box::pin(self.messages(scope, messages, as_of))
    }

    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        let always = Moment(i64::MAX);
        Box::pin(self.forget_branch(id, always, always))
    }

    fn extent(&self) -> Answer<'_, Extent> {
        Box::pin(self.size())
    }
}
