//! Packed pieces, blobs and segments alike: old ones go, and past a limit those
//! least recently used.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::super::PostgresStore;
use super::super::ask::Purpose;
use super::super::rows::{number, size};
use super::{ROWS, UNHURRIED};
use crate::store::{Moment, StoreError};

/// A table of pieces, and which of them may go.
pub(super) struct Pieces {
    table: &'static str,
    only: &'static str,
}

/// Those that no branch needs. One that came while a branch was noting that it
/// needs it may not say so itself.
pub(super) const BLOBS: Pieces = Pieces {
    table: "longhaul.blobs",
    only: "NOT linked AND NOT EXISTS (SELECT 1 FROM longhaul.links WHERE blob = blobs.id)",
};
pub(super) const SEGMENTS: Pieces = Pieces {
    table: "longhaul.segments",
    only: "true",
};

impl PostgresStore {
    /// Removes those not used since a moment; how many.
    pub(super) async fn remove_older(
        &self,
        Pieces { table, only }: &Pieces,
        since: Moment,
    ) -> Result<u64, StoreError> {
        let sql = format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {only} \
             AND used_at < {} ORDER BY used_at, id LIMIT {ROWS} FOR UPDATE SKIP LOCKED) \
             RETURNING size",
            number(since.0)
        );
        let mut all = 0;
        loop {
            let (removed, _) = self.remove_pieces(&sql).await?;
            all += removed;
            if removed < ROWS as u64 {
                return Ok(all);
            }
        }
    }

    /// Removes those not used for longest, nor since a moment, until so many
    /// bytes are free, as far as there are any; how many, and the bytes that
    /// freed.
    pub(super) async fn free(
        &self,
        Pieces { table, only }: &Pieces,
        excess: u64,
        since: Moment,
    ) -> Result<(u64, u64), StoreError> {
        let (mut all, mut bytes) = (0, 0);
        while bytes < excess {
            // Of the oldest, each that is needed with those before it.
            let sql = format!(
                "WITH oldest AS (SELECT id, used_at, size FROM {table} WHERE {only} \
                 AND used_at < {} ORDER BY used_at, id LIMIT {ROWS} FOR UPDATE SKIP LOCKED), \
                 counted AS (SELECT id, sum(size) OVER (ORDER BY used_at, id) - size AS before \
                 FROM oldest) \
                 DELETE FROM {table} WHERE id IN (SELECT id FROM counted WHERE before < {}) \
                 RETURNING size",
                number(since.0),
                size(excess - bytes)
            );
            let (removed, freed) = self.remove_pieces(&sql).await?;
            all += removed;
            bytes += freed;
            if removed == 0 {
                break;
            }
        }
        Ok((all, bytes))
    }

    async fn remove_pieces(&self, sql: &str) -> Result<(u64, u64), StoreError> {
        let read = |row: &PgRow| row.try_get::<i64, _>(0);
        let purpose = Purpose::Plain;
        let removed = self.lane.ask_within(UNHURRIED, purpose, sql, read).await?;
        let bytes = removed.iter().map(|size| size.unsigned_abs()).sum();
        Ok((removed.len() as u64, bytes))
    }
}
