//! Old marks and segments; past the limit segments that may be young, and then
//! the lineages least recently used. Marks take the overlays along that lose
//! their last one.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::super::database::{Purpose, UNHURRIED};
use super::super::rows::{digest, number};
use super::super::state::State;
use super::super::write::BEGIN;
use super::pieces::SEGMENTS;
use super::{ROWS, give_back};
use crate::engine::ids::{LineageId, OverlayId};
use crate::store::{Collected, Keep, Moment, StoreError, rule};

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

pub(in super::super) async fn state(
    state: &State,
    keep: Keep,
    done: &mut Collected,
) -> Result<(), StoreError> {
    state.forget_leases().await?;
    let lineages = state
        .read_within(UNHURRIED, sqlx::query(LINEAGES), |row| {
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
        .read_within(UNHURRIED, sqlx::query(ORPHANS), |row| {
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
        done.overlays += state
            .lane
            .run_within(UNHURRIED, Purpose::Plain, work)
            .await?
            .overlays;
    }
    done.segments += SEGMENTS.remove_older(&state.lane, keep.since).await?;
    let mut bytes = state.bytes().await?;
    let excess = bytes.saturating_sub(keep.state_bytes);
    let (removed, freed) = SEGMENTS.free(&state.lane, excess, Moment(i64::MAX)).await?;
    done.segments += removed;
    bytes = bytes.saturating_sub(freed);
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

/// Removes all marks of a lineage; how many.
pub(in super::super) async fn forget(state: &State, lineage: LineageId) -> Result<u64, StoreError> {
    let mut done = Collected::default();
    let all = Moment(i64::MAX);
    remove(state, lineage, all, all, &mut done).await?;
    Ok(done.marks)
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
        let step = state
            .lane
            .run_within(UNHURRIED, Purpose::Plain, work)
            .await?;
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
