//! Old blobs, and past the limit those least recently used.

use sqlx::Row;

use super::super::database::UNHURRIED;
use super::super::journal::Journal;
use super::give_back;
use super::pieces::BLOBS;
use crate::store::{Collected, Keep, StoreError};

pub(in super::super) async fn journal(
    journal: &Journal,
    keep: Keep,
    done: &mut Collected,
) -> Result<(), StoreError> {
    done.blobs += BLOBS.remove_older(&journal.lane, keep.blobs_since).await?;
    let sums = journal
        .readers
        .rows_within(
            UNHURRIED,
            sqlx::query("SELECT coalesce(sum(size), 0) FROM blobs"),
        )
        .await?;
    let sum = sums.first().and_then(|row| row.try_get::<i64, _>(0).ok());
    let excess = sum
        .map_or(0, i64::unsigned_abs)
        .saturating_sub(keep.blob_bytes);
    let (removed, _) = BLOBS.free(&journal.lane, excess).await?;
    done.blobs += removed;
    give_back(&journal.lane).await
}
