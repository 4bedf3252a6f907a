//! Connections for reading, shared by all requests.
//!
//! A connection is a thread that runs one statement at a time. A reader whose
//! request went away is simply given to the next one: a statement outside a
//! transaction leaves nothing behind, and keeping the connection keeps the
//! number of threads fixed even when the disk hangs. A connection that failed
//! is dropped and opened anew when it is next needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use tokio::sync::{Mutex, MutexGuard};

use super::database::{Database, Purpose};
use crate::store::StoreError;
use crate::store::patience::within;

/// A statement and what it is asked with.
pub(super) type Question = Query<'static, Sqlite, SqliteArguments>;

/// The connections; opened when first needed.
pub(super) struct Readers {
    database: Arc<Database>,
    slots: Vec<Slot>,
    turn: AtomicUsize,
}

type Slot = Mutex<Option<Reader>>;

/// A connection, and the generation of the file it is to.
struct Reader {
    connection: SqliteConnection,
    generation: u64,
}

impl Readers {
    pub(super) fn new(database: Arc<Database>, count: usize) -> Self {
        Self {
            database,
            slots: (0..count.max(1)).map(|_| Slot::default()).collect(),
            turn: AtomicUsize::new(0),
        }
    }

    /// What a statement finds, if it does so in time.
    pub(super) async fn rows_within(
        &self,
        patience: Duration,
        question: Question,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let rows = async {
            let mut slot = self.slot().await?;
            let found = question.fetch_all(self.connection(&mut slot).await?).await;
            if found.is_err() {
                *slot = None;
            }
            found
        };
        self.answer(patience, rows).await
    }

    /// The first row that a statement finds, which comes in one piece: the
    /// quickest way to have an answer.
    pub(super) async fn row(&self, question: Question) -> Result<Option<SqliteRow>, StoreError> {
        let row = async {
            let mut slot = self.slot().await?;
            let connection = self.connection(&mut slot).await?;
            let found = question.fetch_optional(connection).await;
            if found.is_err() {
                *slot = None;
            }
            found
        };
        self.answer(self.database.timeout(), row).await
    }

    async fn answer<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        within(patience, answer)
            .await?
            .map_err(|error| self.database.failure(&error))
    }

    async fn connection<'s>(
        &self,
        slot: &'s mut Option<Reader>,
    ) -> Result<&'s mut SqliteConnection, sqlx::Error> {
        let generation = self.database.generation();
        slot.take_if(|reader| reader.generation != generation);
        let reader = match slot {
            Some(reader) => reader,
            empty => empty.insert(Reader {
                connection: self.database.connect(Purpose::Reading).await?,
                generation,
            }),
        };
        Ok(&mut reader.connection)
    }

    /// The first that is free, since its cache is the warmest; else one in turn.
    async fn slot(&self) -> Result<MutexGuard<'_, Option<Reader>>, sqlx::Error> {
        if let Some(free) = self.slots.iter().find_map(|slot| slot.try_lock().ok()) {
            return Ok(free);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        match self.slots.get(turn) {
            Some(slot) => Ok(slot.lock().await),
            None => Err(sqlx::Error::PoolClosed),
        }
    }

    /// Closes them all.
    pub(super) async fn close(&self) {
        for slot in &self.slots {
            if let Some(reader) = slot.lock().await.take() {
                // A failure to close leaves nothing unwritten: it only reads.
                let _ = sqlx::Connection::close(reader.connection).await;
            }
        }
    }
}
