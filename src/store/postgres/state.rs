//! Marks, overlays and what was learned: reading them.
//!
//! Finding the marks at a few places is on the path of every request, and is one
//! message. An overlay's bytes carry a proof, because a flipped bit must not
//! become another view.

use sqlx::Row;

use super::PostgresStore;
use super::ask::{Purpose, bytes, list};
use super::rows::{self, MARK, digest, text};
use crate::engine::ids::{ChainHash, Hint, OverlayId};
use crate::store::{Found, MarkRow, StoreError, rule};

/// Places or segments asked for at once.
pub(super) const BATCH: usize = 1_024;

impl PostgresStore {
    pub(super) async fn find_marks(
        &self,
        places: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let found = self.look_for("chain", "", "NULL", places).await?;
        Ok(found.into_iter().map(|found| found.mark).collect())
    }

    /// Where the newest of several marks stands in a history is where its session
    /// may have gone on from, so only there it is looked how far that has come.
    pub(super) async fn find_with_newest(
        &self,
        places: &[ChainHash],
    ) -> Result<Vec<Found>, StoreError> {
        let newest = "CASE WHEN messages = max(messages) OVER () THEN (SELECT later.messages \
            FROM longhaul.marks AS later WHERE later.lineage = marks.lineage \
            ORDER BY later.seen_at DESC, later.messages DESC LIMIT 1) END";
        self.look_for("chain", "", newest, places).await
    }

    pub(super) async fn find_by_view(
        &self,
        hint: Hint,
        views: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let session = format!("hint = {} AND ", bytes(hint.as_bytes()));
        let found = self.look_for("view", &session, "NULL", views).await?;
        Ok(found.into_iter().map(|found| found.mark).collect())
    }

    /// The marks with one of these hashes in a column, and of each what else is
    /// asked for.
    async fn look_for(
        &self,
        column: &str,
        session: &str,
        newest: &str,
        hashes: &[ChainHash],
    ) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::new();
        for batch in hashes.chunks(BATCH) {
            let list = list(batch.iter().map(|hash| hash.as_bytes().as_slice()));
            let sql = format!(
                "SELECT {MARK}, ({newest})::bigint FROM longhaul.marks \
                 WHERE {session}{column} IN ({list})"
            );
            let read = |row: &_| {
                Ok(Found {
                    mark: rows::mark(row)?,
                    newest: rows::maybe_count(row, 10)?,
                })
            };
            found.extend(self.lane.ask(Purpose::Reading, &sql, read).await?);
        }
        // What was asked for twice may have stood in two batches.
        if hashes.len() > BATCH {
            let place = |found: &Found| (found.mark.chain, found.mark.model.clone());
            found.sort_unstable_by_key(place);
            found.dedup_by_key(|found| place(found));
        }
        Ok(found)
    }

    pub(super) async fn find_overlays_of(
        &self,
        hint: Hint,
        limit: u32,
    ) -> Result<Vec<OverlayId>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        // From one to the next: a session may have many marks, and overlays.
        let its = format!("hint = {} AND overlay IS NOT NULL", bytes(hint.as_bytes()));
        let newest = "ORDER BY seen_at DESC, overlay LIMIT 1";
        let sql = format!(
            "WITH RECURSIVE latest AS ((SELECT overlay, seen_at, ARRAY[overlay] AS found \
             FROM longhaul.marks WHERE {its} {newest}) \
             UNION ALL SELECT earlier.overlay, earlier.seen_at, latest.found || earlier.overlay \
             FROM latest, LATERAL (SELECT overlay, seen_at FROM longhaul.marks WHERE {its} \
             AND seen_at <= latest.seen_at AND overlay <> ALL (latest.found) {newest}) AS earlier \
             WHERE cardinality(latest.found) < {limit}) \
             SELECT overlay FROM latest ORDER BY seen_at DESC, overlay"
        );
        let read = |row: &_| digest(row, 0, OverlayId::from_slice);
        self.lane.ask(Purpose::Reading, &sql, read).await
    }

    pub(super) async fn find_overlay(&self, id: OverlayId) -> Result<Option<Vec<u8>>, StoreError> {
        let id = bytes(id.as_bytes());
        let sql = format!("SELECT body, proof FROM longhaul.overlays WHERE id = {id}");
        let read = |row: &sqlx::postgres::PgRow| {
            let (body, proof): (Vec<u8>, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
            Ok((rule::proof(&body) == *proof).then_some(body))
        };
        let found = self.lane.ask(Purpose::Reading, &sql, read).await?;
        match found.into_iter().next() {
            None => Ok(None),
            Some(Some(body)) => Ok(Some(body)),
            Some(None) => Err(StoreError::Failed(
                "an overlay is not what was stored".to_owned(),
            )),
        }
    }

    pub(super) async fn read_learned(&self) -> Result<Vec<(String, String)>, StoreError> {
        let sql = "SELECT key, value FROM longhaul.learned ORDER BY key";
        let read = |row: &_| Ok((text(row, 0)?, text(row, 1)?));
        self.lane.ask(Purpose::Reading, sql, read).await
    }

    pub(super) async fn read_learned_of(
        &self,
        keys: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let list = list(keys.iter().map(String::as_bytes));
        let sql = format!("SELECT key, value FROM longhaul.learned WHERE key IN ({list})");
        let read = |row: &_| Ok((text(row, 0)?, text(row, 1)?));
        self.lane.ask(Purpose::Reading, &sql, read).await
    }

    pub(super) async fn write_learned(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT INTO longhaul.learned (key, value) VALUES ({}, {}) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            bytes(key.as_bytes()),
            bytes(value.as_bytes())
        );
        self.lane.ask(Purpose::Plain, &sql, |_| Ok(())).await?;
        Ok(())
    }
}
