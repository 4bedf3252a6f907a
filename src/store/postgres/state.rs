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
use crate::store::{MarkRow, StoreError, rule};

/// Places or segments asked for at once.
pub(super) const BATCH: usize = 1_024;

impl PostgresStore {
    pub(super) async fn find_marks(
        &self,
        places: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        self.find("", "chain", places).await
    }

    pub(super) async fn find_by_view(
        &self,
        hint: Hint,
        views: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let session = format!("hint = {} AND ", bytes(hint.as_bytes()));
        self.find(&session, "view", views).await
    }

    async fn find(
        &self,
        session: &str,
        column: &str,
        hashes: &[ChainHash],
    ) -> Result<Vec<MarkRow>, StoreError> {
        let mut found = Vec::new();
        for batch in hashes.chunks(BATCH) {
            let list = list(batch.iter().map(|hash| hash.as_bytes().as_slice()));
            let sql =
                format!("SELECT {MARK} FROM longhaul.marks WHERE {session}{column} IN ({list})");
            found.extend(self.lane.ask(Purpose::Reading, &sql, rows::mark).await?);
        }
        // What was asked for twice may have stood in two batches.
        if hashes.len() > BATCH {
            found.sort_unstable_by(|a, b| (a.chain, &a.model).cmp(&(b.chain, &b.model)));
            found.dedup_by(|a, b| a.chain == b.chain && a.model == b.model);
        }
        Ok(found)
    }

    pub(super) async fn find_overlays_of(
        &self,
        hint: Hint,
        limit: u32,
    ) -> Result<Vec<OverlayId>, StoreError> {
        let sql = format!(
            "SELECT overlay FROM longhaul.marks WHERE hint = {} AND overlay IS NOT NULL \
             GROUP BY overlay ORDER BY max(seen_at) DESC, overlay LIMIT {limit}",
            bytes(hint.as_bytes())
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
