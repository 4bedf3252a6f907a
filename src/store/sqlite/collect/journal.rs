//! Old branches, and what nobody needs; past the limit those least recently
//! seen.

use sqlx::{Error, Row};

use super::super::database::{Purpose, UNHURRIED};
use super::super::journal::Journal;
use super::give_back;
use super::pieces::BLOBS;
use crate::engine::ids::LineageId;
use crate::store::journal::Forgotten;
use crate::store::{Collected, Keep, Moment, StoreError};

const LEAST_SEEN: &str = "SELECT id FROM branches \
    WHERE forgotten = 0 AND seen_at < ?1 ORDER BY seen_at, id LIMIT 1";

const BYTES: &str = "SELECT (SELECT blobs FROM totals) + coalesce(sum(size), 0) FROM branches";

/// Lets the index take up what was removed from it.
const MERGE: &str = "INSERT INTO words (words, rank) VALUES ('merge', 64)";

/// How often that is done after a collection, each time for a few milliseconds.
const MERGES: u64 = 64;

pub(in super::super) async fn journal(
    journal: &Journal,
    keep: Keep,
    done: &mut Collected,
) -> Result<(), StoreError> {
    let mut gone = Forgotten::default();
    journal
        .finish_forgetting(keep.idle_since, &mut gone)
        .await?;
    while let Some(id) = least_seen(journal, keep.blobs_since).await? {
        forget(journal, id, keep.blobs_since, keep, &mut gone).await?;
    }
    let old = keep.blobs_since.min(keep.idle_since);
    done.blobs += BLOBS.remove_older(&journal.lane, old).await?;
    let excess = bytes(journal).await?.saturating_sub(keep.blob_bytes);
    let (removed, _) = BLOBS.free(&journal.lane, excess, keep.idle_since).await?;
    done.blobs += removed;
    while bytes(journal).await? > keep.blob_bytes {
        let Some(id) = least_seen(journal, keep.idle_since).await? else {
            break;
        };
        forget(journal, id, keep.idle_since, keep, &mut gone).await?;
    }
    done.blobs += gone.blobs;
    done.branches += gone.branches;
    done.entries += gone.entries;
    if gone.entries > 0 {
        merge(journal).await?;
    }
    give_back(&journal.lane).await
}

async fn forget(
    journal: &Journal,
    id: LineageId,
    unseen_since: Moment,
    keep: Keep,
    gone: &mut Forgotten,
) -> Result<(), StoreError> {
    let more = journal
        .forget_branch(id, unseen_since, keep.idle_since)
        .await?;
    gone.branches += more.branches;
    gone.entries += more.entries;
    gone.blobs += more.blobs;
    Ok(())
}

async fn least_seen(journal: &Journal, since: Moment) -> Result<Option<LineageId>, StoreError> {
    let question = sqlx::query(LEAST_SEEN).bind(since.0);
    let rows = journal.readers.rows_within(UNHURRIED, question).await?;
    let id = rows.first().map(|row| row.try_get::<&[u8], _>(0));
    let id: Result<_, Error> = id.transpose();
    Ok(id.ok().flatten().and_then(LineageId::from_slice))
}

async fn bytes(journal: &Journal) -> Result<u64, StoreError> {
    let question = sqlx::query(BYTES);
    let rows = journal.readers.rows_within(UNHURRIED, question).await?;
    let sum = rows.first().and_then(|row| row.try_get::<i64, _>(0).ok());
    Ok(sum.map_or(0, i64::unsigned_abs))
}

async fn merge(journal: &Journal) -> Result<(), StoreError> {
    for _ in 0..MERGES {
        let work = async |connection: &mut sqlx::sqlite::SqliteConnection| {
            sqlx::query(MERGE).execute(connection).await?;
            Ok(())
        };
        let lane = &journal.lane;
        lane.run_within(UNHURRIED, Purpose::Plain, work).await?;
    }
    Ok(())
}
