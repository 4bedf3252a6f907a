//! Old blobs, and past the limit those least recently used.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::super::database::{Purpose, UNHURRIED};
use super::super::journal::Journal;
use super::super::rows::number;
use super::super::write::BEGIN;
use super::{ROWS, give_back};
use crate::store::{Collected, Keep, StoreError};

const REMOVE_OLD_BLOBS: &str = "DELETE FROM blobs WHERE rowid IN (\
        SELECT rowid FROM blobs WHERE used_at < ?1 ORDER BY used_at LIMIT ?2)";

const OLDEST_BLOBS: &str = "SELECT id, size FROM blobs ORDER BY used_at, id LIMIT ?1";

pub(in super::super) async fn journal(
    journal: &Journal,
    keep: Keep,
    done: &mut Collected,
) -> Result<(), StoreError> {
    loop {
        let work = async move |connection: &mut SqliteConnection| {
            let removed = sqlx::query(REMOVE_OLD_BLOBS)
                .bind(keep.blobs_since.0)
                .bind(ROWS)
                .execute(connection)
                .await?;
            Ok(removed.rows_affected())
        };
        let removed = journal
            .lane
            .run_within(UNHURRIED, Purpose::Plain, work)
            .await?;
        done.blobs += removed;
        if number(removed) < ROWS {
            break;
        }
    }
    let sums = journal
        .readers
        .rows_within(
            UNHURRIED,
            sqlx::query("SELECT coalesce(sum(size), 0) FROM blobs"),
        )
        .await?;
    let sum = sums.first().and_then(|row| row.try_get::<i64, _>(0).ok());
    let mut excess = sum
        .map_or(0, i64::unsigned_abs)
        .saturating_sub(keep.blob_bytes);
    while excess > 0 {
        let work =
            async move |connection: &mut SqliteConnection| remove_blobs(connection, excess).await;
        let (removed, freed) = journal
            .lane
            .run_within(UNHURRIED, Purpose::Plain, work)
            .await?;
        done.blobs += removed;
        excess = excess.saturating_sub(freed);
        if removed == 0 {
            break;
        }
    }
    give_back(&journal.lane).await
}

/// Removes the oldest blobs, as many as a step may and the excess asks for.
async fn remove_blobs(connection: &mut SqliteConnection, excess: u64) -> Result<(u64, u64), Error> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let oldest = sqlx::query(OLDEST_BLOBS)
        .bind(ROWS)
        .fetch_all(&mut *transaction)
        .await?;
    let (mut removed, mut freed) = (0, 0);
    for row in oldest {
        if freed >= excess {
            break;
        }
        sqlx::query("DELETE FROM blobs WHERE id = ?1")
            .bind(row.try_get::<&[u8], _>(0)?)
            .execute(&mut *transaction)
            .await?;
        freed += row.try_get::<i64, _>(1)?.unsigned_abs();
        removed += 1;
    }
    transaction.commit().await?;
    Ok((removed, freed))
}
