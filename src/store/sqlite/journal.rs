//! `journal.db`: content that views have left out, packed.
//!
//! A file of its own, so that its load and its size, which are far larger, do
//! not touch the marks, and damage to one is not damage to both.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::database::{Database, Purpose};
use super::lane::Lane;
use super::readers::Readers;
use super::rows::{digest, number};
use super::write::BEGIN;
use crate::engine::ids::BlobId;
use crate::store::pack::{pack, unpack};
use crate::store::{Moment, StoreError, rule};

/// Content is read when somebody asks for it back, which is rare.
const READERS: usize = 2;

const PRESENT: &str = "SELECT id FROM blobs WHERE id = ?1";

const PUT: &str = "INSERT INTO blobs (id, used_at, size, body) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)";

const TOUCH: &str = "UPDATE blobs SET used_at = max(used_at, ?2) WHERE id = ?1";

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
                put(connection, &blobs, now).await
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

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.database.close();
        self.readers.close().await;
        self.lane.close().await
    }
}

async fn put(
    connection: &mut SqliteConnection,
    blobs: &[(BlobId, Vec<u8>)],
    now: Moment,
) -> Result<(), Error> {
    // Packing takes longer than anything else here, so it is done before others
    // are locked out, and only for what is new.
    let mut present = HashSet::new();
    for (id, _) in blobs {
        let question = sqlx::query(PRESENT).bind(id.as_bytes().as_slice());
        if let Some(row) = question.fetch_optional(&mut *connection).await? {
            present.insert(digest(row.try_get(0)?, BlobId::from_slice)?);
        }
    }
    let mut packed = Vec::with_capacity(blobs.len());
    for (id, content) in blobs {
        let body = if present.contains(id) {
            None
        } else {
            let body = pack(content).map_err(|error| Error::Encode(error.into()))?;
            Some(body)
        };
        packed.push((id, content, body));
    }
    let mut transaction = connection.begin_with(BEGIN).await?;
    for (id, content, body) in packed {
        let touched = sqlx::query(TOUCH)
            .bind(id.as_bytes().as_slice())
            .bind(now.0)
            .execute(&mut *transaction)
            .await?;
        if touched.rows_affected() > 0 {
            continue;
        }
        let body = match body {
            Some(body) => body,
            // It was collected in between.
            None => pack(content).map_err(|error| Error::Encode(error.into()))?,
        };
        sqlx::query(PUT)
            .bind(id.as_bytes().as_slice())
            .bind(now.0)
            .bind(number(rule::packed_bytes(body.len())))
            .bind(body)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
