//! Packed pieces, segments and those blobs that no branch needs alike: old ones
//! go, and past a limit those least recently used.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::super::database::{Purpose, UNHURRIED};
use super::super::lane::Lane;
use super::super::rows::number;
use super::super::write::BEGIN;
use super::ROWS;
use crate::store::{Moment, StoreError};

/// A table of pieces, as the statements that empty it.
pub(super) struct Pieces {
    remove_old: &'static str,
    oldest: &'static str,
    remove: &'static str,
}

macro_rules! pieces {
    ($table:literal, $only:literal) => {
        Pieces {
            remove_old: concat!(
                "DELETE FROM ",
                $table,
                " WHERE rowid IN (SELECT rowid FROM ",
                $table,
                " WHERE used_at < ?1",
                $only,
                " ORDER BY used_at LIMIT ?2)"
            ),
            oldest: concat!(
                "SELECT id, size FROM ",
                $table,
                " WHERE used_at < ?2",
                $only,
                " ORDER BY used_at, id LIMIT ?1"
            ),
            remove: concat!("DELETE FROM ", $table, " WHERE id = ?1"),
        }
    };
}

pub(super) static BLOBS: Pieces = pieces!("blobs", " AND linked = 0");
pub(super) static SEGMENTS: Pieces = pieces!("segments", "");

impl Pieces {
    /// Removes those not used since a moment; how many.
    pub(super) async fn remove_older(
        &'static self,
        lane: &Lane,
        since: Moment,
    ) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let work = async move |connection: &mut SqliteConnection| {
                let removed = sqlx::query(self.remove_old)
                    .bind(since.0)
                    .bind(ROWS)
                    .execute(connection)
                    .await?;
                Ok(removed.rows_affected())
            };
            let removed = lane.run_within(UNHURRIED, Purpose::Plain, work).await?;
            all += removed;
            if number(removed) < ROWS {
                return Ok(all);
            }
        }
    }

    /// Removes those not used for longest, nor since a moment, until so many
    /// bytes are free, as far as there are any; how many, and the bytes that
    /// freed.
    pub(super) async fn free(
        &'static self,
        lane: &Lane,
        excess: u64,
        since: Moment,
    ) -> Result<(u64, u64), StoreError> {
        let (mut all, mut bytes) = (0, 0);
        while bytes < excess {
            let left = excess - bytes;
            let work = async move |connection: &mut SqliteConnection| {
                self.step(connection, left, since).await
            };
            let (removed, freed) = lane.run_within(UNHURRIED, Purpose::Plain, work).await?;
            all += removed;
            bytes += freed;
            if removed == 0 {
                break;
            }
        }
        Ok((all, bytes))
    }

    /// Removes the oldest, as many as a step may and the excess asks for.
    async fn step(
        &self,
        connection: &mut SqliteConnection,
        excess: u64,
        since: Moment,
    ) -> Result<(u64, u64), Error> {
        let mut transaction = connection.begin_with(BEGIN).await?;
        let oldest = sqlx::query(self.oldest)
            .bind(ROWS)
            .bind(since.0)
            .fetch_all(&mut *transaction)
            .await?;
        let (mut removed, mut freed) = (0, 0);
        for row in oldest {
            if freed >= excess {
                break;
            }
            sqlx::query(self.remove)
                .bind(row.try_get::<&[u8], _>(0)?)
                .execute(&mut *transaction)
                .await?;
            freed += row.try_get::<i64, _>(1)?.unsigned_abs();
            removed += 1;
        }
        transaction.commit().await?;
        Ok((removed, freed))
    }
}
