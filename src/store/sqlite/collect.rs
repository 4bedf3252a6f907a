//! Removing what is no longer kept, in steps small enough not to be noticed.
//!
//! What may go is found by reading, which blocks nobody. It goes a hundred rows
//! at a time, each step a transaction of its own that checks again and takes
//! the overlays along that lose their last mark, and between two steps whoever
//! else wants to write gets a turn. Free pages are given back the same way.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Error, Row};

use super::database::Purpose;
use super::journal::Journal;
use super::lane::Lane;
use super::rows::{digest, number};
use super::state::State;
use super::write::BEGIN;
use crate::engine::ids::{LineageId, OverlayId};
use crate::store::{Collected, Keep, Moment, StoreError, rule};

/// Rows a step removes: some milliseconds' worth.
const ROWS: i64 = 100;

/// Pages a step gives back.
const PAGES: i64 = 256;

const LINEAGES: &str = "SELECT lineage, min(seen_at), max(seen_at) FROM marks \
    GROUP BY lineage ORDER BY max(seen_at), lineage";

const ORPHANS: &str = "SELECT id FROM overlays \
    WHERE NOT EXISTS (SELECT 1 FROM marks WHERE marks.overlay = overlays.id)";

/// A lineage's marks older than a moment, oldest first, provided that it has
/// not been used after another one.
const REMOVE_MARKS: &str = "DELETE FROM marks WHERE rowid IN (\
        SELECT rowid FROM marks WHERE lineage = ?1 AND seen_at < ?2 \
        AND NOT EXISTS (SELECT 1 FROM marks WHERE lineage = ?1 AND seen_at > ?3) \
        ORDER BY seen_at LIMIT ?4) \
    RETURNING overlay, size";

const REMOVE_OVERLAY: &str = "DELETE FROM overlays WHERE id = ?1 \
    AND NOT EXISTS (SELECT 1 FROM marks WHERE marks.overlay = ?1) \
    RETURNING length(body)";

const REMOVE_OLD_BLOBS: &str = "DELETE FROM blobs WHERE rowid IN (\
        SELECT rowid FROM blobs WHERE used_at < ?1 ORDER BY used_at LIMIT ?2)";

const OLDEST_BLOBS: &str = "SELECT id, size FROM blobs ORDER BY used_at, id LIMIT ?1";

struct Lineage {
    id: LineageId,
    first: i64,
    last: i64,
}

/// What a step removed.
#[derive(Default, Clone, Copy)]
struct Step {
    marks: u64,
    overlays: u64,
    bytes: u64,
}

pub(super) async fn state(
    state: &State,
    keep: Keep,
    done: &mut Collected,
) -> Result<(), StoreError> {
    let lineages = state
        .read(sqlx::query(LINEAGES), |row| {
            Ok(Lineage {
                id: digest(row.try_get(0)?, LineageId::from_slice)?,
                first: row.try_get(1)?,
                last: row.try_get(2)?,
            })
        })
        .await?;
    for lineage in &lineages {
        if lineage.first < keep.since.0 {
            remove(state, lineage.id, keep.since, Moment(i64::MAX), done).await?;
        }
    }
    let orphans = state
        .read(sqlx::query(ORPHANS), |row| {
            digest(row.try_get(0)?, OverlayId::from_slice)
        })
        .await?;
    for batch in orphans.chunks(100) {
        let batch: HashSet<_> = batch.iter().copied().collect();
        let work = async move |connection: &mut SqliteConnection| {
            let mut transaction = connection.begin_with(BEGIN).await?;
            let step = remove_overlays(&mut transaction, batch).await?;
            transaction.commit().await?;
            Ok(step)
        };
        done.overlays += state.lane.run(Purpose::Plain, work).await?.overlays;
    }
    let mut bytes = state.bytes().await?;
    for lineage in &lineages {
        if bytes <= keep.state_bytes {
            break;
        }
        let all = Moment(i64::MAX);
        let freed = remove(state, lineage.id, all, Moment(lineage.last), done).await?;
        bytes = bytes.saturating_sub(freed);
    }
    give_back(&state.lane).await
}

/// Removes a lineage's marks older than a moment; the bytes that freed.
async fn remove(
    state: &State,
    lineage: LineageId,
    before: Moment,
    unused_since: Moment,
    done: &mut Collected,
) -> Result<u64, StoreError> {
    let mut bytes = 0;
    loop {
        let work = async move |connection: &mut SqliteConnection| {
            remove_marks(connection, lineage, before, unused_since).await
        };
        let step = state.lane.run(Purpose::Plain, work).await?;
        done.marks += step.marks;
        done.overlays += step.overlays;
        bytes += step.bytes;
        if number(step.marks) < ROWS {
            return Ok(bytes);
        }
    }
}

async fn remove_marks(
    connection: &mut SqliteConnection,
    lineage: LineageId,
    before: Moment,
    unused_since: Moment,
) -> Result<Step, Error> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let removed = sqlx::query(REMOVE_MARKS)
        .bind(lineage.as_bytes().as_slice())
        .bind(before.0)
        .bind(unused_since.0)
        .bind(ROWS)
        .fetch_all(&mut *transaction)
        .await?;
    let mut overlays = HashSet::new();
    let mut bytes = 0;
    for row in &removed {
        if let Some(id) = row.try_get::<Option<&[u8]>, _>(0)? {
            overlays.insert(digest(id, OverlayId::from_slice)?);
        }
        bytes += row.try_get::<i64, _>(1)?.unsigned_abs();
    }
    let mut step = remove_overlays(&mut transaction, overlays).await?;
    transaction.commit().await?;
    step.marks = removed.len() as u64;
    step.bytes += bytes;
    Ok(step)
}

/// Removes those that no mark points to.
async fn remove_overlays(
    connection: &mut SqliteConnection,
    overlays: HashSet<OverlayId>,
) -> Result<Step, Error> {
    let mut step = Step::default();
    for id in overlays {
        let removed = sqlx::query(REMOVE_OVERLAY)
            .bind(id.as_bytes().as_slice())
            .fetch_all(&mut *connection)
            .await?;
        for row in &removed {
            step.overlays += 1;
            step.bytes += rule::overlay_bytes(row.try_get::<u32, _>(0)? as usize);
        }
    }
    Ok(step)
}

pub(super) async fn journal(
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
        let removed = journal.lane.run(Purpose::Plain, work).await?;
        done.blobs += removed;
        if number(removed) < ROWS {
            break;
        }
    }
    let sums = journal
        .readers
        .rows(sqlx::query("SELECT coalesce(sum(size), 0) FROM blobs"))
        .await?;
    let sum = sums.first().and_then(|row| row.try_get::<i64, _>(0).ok());
    let mut excess = sum
        .map_or(0, i64::unsigned_abs)
        .saturating_sub(keep.blob_bytes);
    while excess > 0 {
        let work =
            async move |connection: &mut SqliteConnection| remove_blobs(connection, excess).await;
        let (removed, freed) = journal.lane.run(Purpose::Plain, work).await?;
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

/// Makes a file as small as its content.
async fn give_back(lane: &Lane) -> Result<(), StoreError> {
    loop {
        let free = lane
            .run(Purpose::Plain, async |connection: &mut SqliteConnection| {
                let vacuum = AssertSqlSafe(format!("PRAGMA incremental_vacuum({PAGES})"));
                sqlx::raw_sql(vacuum).execute(&mut *connection).await?;
                let free = sqlx::query("PRAGMA freelist_count")
                    .fetch_one(connection)
                    .await?;
                free.try_get::<i64, _>(0)
            })
            .await?;
        if free == 0 {
            break;
        }
    }
    // The file itself shrinks when the log is written back.
    lane.run(Purpose::Plain, async |connection: &mut SqliteConnection| {
        sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)")
            .execute(connection)
            .await?;
        Ok(())
    })
    .await
}
