//! `state.db`: marks, overlays and what was learned. What concerns segments
//! stands in `segments`.
//!
//! Finding the marks at a few places is on the path of every request, so it is
//! one prepared statement for up to four of them. Many places are asked for in
//! one statement too, as one string of bytes that SQLite cuts up, because each
//! statement costs two changes of thread and each bound value an allocation.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::database::{Database, Purpose, UNHURRIED};
use super::lane::Lane;
use super::readers::{Question, Readers};
use super::rows::{digest, marks, number, select_marks};
use super::write;
use crate::engine::ids::{ChainHash, Hint, OverlayId};
use crate::store::{Commit, Committed, MarkRow, StoreError, rule};

/// Threads that read. Look-ups take microseconds; more would only queue for
/// the same processors.
const READERS: usize = 4;

/// Places or segments asked for at once.
pub(super) const BATCH: usize = 1_024;

const FEW: &str = select_marks!("chain IN (?1, ?2, ?3, ?4)");

const MANY: &str = select_marks!(
    "chain IN (WITH RECURSIVE keys (at) AS (\
        SELECT 1 UNION ALL SELECT at + 32 FROM keys WHERE at + 32 < length(?1)) \
        SELECT substr(?1, at, 32) FROM keys)"
);

const BY_VIEW: &str = select_marks!(
    "hint = ?2 AND view IN (WITH RECURSIVE keys (at) AS (\
        SELECT 1 UNION ALL SELECT at + 32 FROM keys WHERE at + 32 < length(?1)) \
        SELECT substr(?1, at, 32) FROM keys)"
);

const OVERLAYS_OF: &str = "SELECT overlay FROM marks \
    WHERE hint = ?1 AND overlay IS NOT NULL \
    GROUP BY overlay ORDER BY max(seen_at) DESC, overlay LIMIT ?2";

/// The file, open.
pub(super) struct State {
    pub(super) database: Arc<Database>,
    pub(super) readers: Readers,
    pub(super) lane: Lane,
}

impl State {
    pub(super) fn start(database: Database) -> io::Result<Self> {
        let database = Arc::new(database);
        Ok(Self {
            readers: Readers::new(Arc::clone(&database), READERS),
            lane: Lane::start("store-state", Arc::clone(&database))?,
            database,
        })
    }

    pub(super) async fn marks(&self, places: &[ChainHash]) -> Result<Vec<MarkRow>, StoreError> {
        if let ([first, rest @ ..], 1..=4) = (places, places.len()) {
            let mut few = sqlx::query(FEW).bind(first.as_bytes().as_slice());
            for at in 0..3 {
                let place = rest.get(at).unwrap_or(first);
                few = few.bind(place.as_bytes().as_slice());
            }
            return self.found(few).await;
        }
        let mut found = Vec::new();
        for batch in places.chunks(BATCH) {
            found.extend(self.found(sqlx::query(MANY).bind(joined(batch))).await?);
        }
        // A place asked for twice may have stood in two batches.
        if places.len() > BATCH {
            found.sort_unstable_by(|a, b| (a.chain, &a.model).cmp(&(b.chain, &b.model)));
            found.dedup_by(|a, b| a.chain == b.chain && a.model == b.model);
        }
        Ok(found)
    }

    pub(super) async fn marks_by_view(
        &self,
        hint: Hint,
        views: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let mut found: Vec<MarkRow> = Vec::new();
        for batch in views.chunks(BATCH) {
            let question = sqlx::query(BY_VIEW)
                .bind(joined(batch))
                .bind(hint.as_bytes().as_slice());
            found.extend(self.found(question).await?);
        }
        if views.len() > BATCH {
            found.sort_unstable_by(|a, b| (a.chain, &a.model).cmp(&(b.chain, &b.model)));
            found.dedup_by(|a, b| a.chain == b.chain && a.model == b.model);
        }
        Ok(found)
    }

    async fn found(&self, question: Question) -> Result<Vec<MarkRow>, StoreError> {
        let row = self.readers.row(question).await?;
        marks(row.as_ref()).map_err(|error| self.database.damaged(&error.to_string()))
    }

    /// What a question finds, each row as what it stands for.
    pub(super) async fn read<T>(
        &self,
        question: Question,
        from: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.read_within(self.database.timeout(), question, from)
            .await
    }

    /// The same with another limit.
    pub(super) async fn read_within<T>(
        &self,
        patience: Duration,
        question: Question,
        from: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.readers.rows_within(patience, question).await?;
        let read: Result<_, _> = rows.iter().map(from).collect();
        read.map_err(|error| self.database.damaged(&error.to_string()))
    }

    pub(super) async fn overlays_of(
        &self,
        hint: Hint,
        limit: u32,
    ) -> Result<Vec<OverlayId>, StoreError> {
        let question = sqlx::query(OVERLAYS_OF)
            .bind(hint.as_bytes().as_slice())
            .bind(limit);
        self.read(question, |row| {
            digest(row.try_get(0)?, OverlayId::from_slice)
        })
        .await
    }

    pub(super) async fn overlay(&self, id: OverlayId) -> Result<Option<Vec<u8>>, StoreError> {
        let question = sqlx::query("SELECT body, proof FROM overlays WHERE id = ?1")
            .bind(id.as_bytes().as_slice());
        let Some(row) = self.readers.row(question).await? else {
            return Ok(None);
        };
        let body: Result<Vec<u8>, _> = row.try_get(0);
        let proof: Result<&[u8], _> = row.try_get(1);
        match (body, proof) {
            (Ok(body), Ok(proof)) if rule::proof(&body) == *proof => Ok(Some(body)),
            _ => Err(self.database.damaged("an overlay is not what was stored")),
        }
    }

    pub(super) async fn commit(&self, commit: &Commit) -> Result<Committed, StoreError> {
        rule::check(commit)?;
        let commit = commit.clone();
        let outcome = self
            .lane
            .run(Purpose::Durable, async move |connection| {
                write::commit(connection, &commit).await
            })
            .await?;
        outcome.ok_or_else(rule::unknown_overlay)
    }

    pub(super) async fn record(&self, marks: &[MarkRow]) -> Result<Vec<MarkRow>, StoreError> {
        let marks = marks.to_vec();
        self.lane
            .run(Purpose::Plain, async move |connection| {
                write::record(connection, &marks).await
            })
            .await
    }

    pub(super) async fn learned(&self) -> Result<Vec<(String, String)>, StoreError> {
        let question = sqlx::query("SELECT key, value FROM learned ORDER BY key");
        self.read(question, |row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .await
    }

    pub(super) async fn learned_of(
        &self,
        keys: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut found = Vec::new();
        for key in keys {
            let question = sqlx::query("SELECT key, value FROM learned WHERE key = ?1");
            let rows = self.read(question.bind(key.clone()), |row| {
                Ok((row.try_get(0)?, row.try_get(1)?))
            });
            found.extend(rows.await?);
        }
        Ok(found)
    }

    pub(super) async fn learn(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.lane
            .run(Purpose::Plain, async move |connection| {
                write::learn(connection, &key, &value).await
            })
            .await
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.database.close();
        self.readers.close().await;
        self.lane.close().await
    }

    /// The room everything is taken to need.
    pub(super) async fn bytes(&self) -> Result<u64, StoreError> {
        let question = sqlx::query(
            "SELECT (SELECT coalesce(sum(size), 0) FROM marks) \
             + (SELECT coalesce(sum(length(body) + ?1), 0) FROM overlays) \
             + (SELECT coalesce(sum(size), 0) FROM segments)",
        )
        .bind(number(rule::overlay_bytes(0)));
        let sums = self
            .read_within(UNHURRIED, question, |row| row.try_get::<i64, _>(0))
            .await?;
        Ok(sums.first().map_or(0, |sum| sum.unsigned_abs()))
    }
}

fn joined(places: &[ChainHash]) -> Vec<u8> {
    places.iter().flat_map(|place| *place.as_bytes()).collect()
}
