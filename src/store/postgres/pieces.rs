//! Packed pieces: finished segments, and content that views have left out.
//!
//! The first piece under a name stays, putting it again only makes it young
//! again. Whoever puts one gets back what holds, so the loser of a race learns
//! of the winner in the same message.

use std::collections::HashSet;

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::ask::{Purpose, bytes, list};
use super::rows::{digest, number, size};
use super::state::BATCH;
use crate::engine::ids::{BlobId, SegmentId};
use crate::store::pack::{pack, unpack};
use crate::store::{Moment, StoreError, rule};

/// About how many bytes of content go in one message.
const MESSAGE: usize = 4 << 20;

const DAMAGED: &str = "a segment in the database is not what was stored";

fn body(row: &PgRow) -> Result<Vec<u8>, sqlx::Error> {
    row.try_get(0)
}

impl PostgresStore {
    pub(super) async fn find_segments(
        &self,
        ids: &[SegmentId],
    ) -> Result<Vec<(SegmentId, Vec<u8>)>, StoreError> {
        let mut seen = HashSet::new();
        let ids: Vec<_> = ids.iter().filter(|id| seen.insert(**id)).collect();
        let mut found = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH) {
            let list = list(batch.iter().map(|id| id.as_bytes().as_slice()));
            let sql = format!("SELECT body, id FROM longhaul.segments WHERE id IN ({list})");
            let read = |row: &_| Ok((digest(row, 1, SegmentId::from_slice)?, body(row)?));
            for (id, packed) in self.lane.ask(Purpose::Reading, &sql, read).await? {
                if let Ok(body) = unpack(&packed) {
                    found.push((id, body));
                } else {
                    // As if it had never been made.
                    tracing::error!("{DAMAGED}");
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn write_segment(
        &self,
        id: SegmentId,
        content: &[u8],
        now: Moment,
    ) -> Result<Vec<u8>, StoreError> {
        let packed = pack(content)?;
        let row = row(id.as_bytes(), now, &packed);
        let sql = format!(
            "INSERT INTO longhaul.segments AS held (id, used_at, size, body) VALUES {row} \
             ON CONFLICT (id) DO UPDATE SET used_at = greatest(held.used_at, excluded.used_at) \
             RETURNING body"
        );
        let held = self.lane.ask(Purpose::Durable, &sql, body).await?;
        let held = held.into_iter().next().ok_or_else(nothing)?;
        if let Ok(first) = unpack(&held) {
            return Ok(first);
        }
        tracing::error!("{DAMAGED}, and gives way");
        // Of several that find it damaged, the first one to say so is the first.
        let sql = format!(
            "UPDATE longhaul.segments SET size = {}, body = {} WHERE id = {} AND body = {}; \
             SELECT body FROM longhaul.segments WHERE id = {}",
            size(rule::packed_bytes(packed.len())),
            bytes(&packed),
            bytes(id.as_bytes()),
            bytes(&held),
            bytes(id.as_bytes()),
        );
        let held = self.lane.ask(Purpose::Durable, &sql, body).await?;
        unpack(&held.into_iter().next().ok_or_else(nothing)?)
    }

    pub(super) async fn write_blobs(
        &self,
        blobs: &[(BlobId, Vec<u8>)],
        now: Moment,
    ) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let new = self.missing(blobs, now).await?;
        for rows in pack_all(new, now).await? {
            self.put(&rows).await?;
        }
        Ok(())
    }

    /// Those that are not there yet; the others are young again.
    pub(super) async fn missing(
        &self,
        blobs: &[(BlobId, Vec<u8>)],
        now: Moment,
    ) -> Result<Vec<(BlobId, Vec<u8>)>, StoreError> {
        let mut new = once(blobs);
        let mut present = HashSet::new();
        for batch in new.chunks(BATCH) {
            present.extend(self.touch(batch, now).await?);
        }
        new.retain(|(id, _)| !present.contains(id));
        Ok(new.into_iter().cloned().collect())
    }

    /// Those that are there already, which are now young again.
    async fn touch(
        &self,
        blobs: &[&(BlobId, Vec<u8>)],
        now: Moment,
    ) -> Result<Vec<BlobId>, StoreError> {
        let ids = list(blobs.iter().map(|(id, _)| id.as_bytes().as_slice()));
        let sql = format!(
            "WITH held AS (SELECT id, used_at FROM longhaul.blobs WHERE id IN ({ids}) \
             ORDER BY id FOR UPDATE), \
             young AS (UPDATE longhaul.blobs SET used_at = {now} FROM held \
             WHERE blobs.id = held.id AND held.used_at < {now}) \
             SELECT id FROM held",
            now = number(now.0),
        );
        let read = |row: &_| digest(row, 0, BlobId::from_slice);
        self.lane.ask(Purpose::Durable, &sql, read).await
    }

    /// Puts rows of content.
    pub(super) async fn put(&self, rows: &[String]) -> Result<(), StoreError> {
        let sql = insert(rows);
        self.lane.ask(Purpose::Durable, &sql, |_| Ok(())).await?;
        Ok(())
    }

    pub(super) async fn find_blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        let id = bytes(id.as_bytes());
        let sql = format!("SELECT body FROM longhaul.blobs WHERE id = {id}");
        let found = self.lane.ask(Purpose::Reading, &sql, body).await?;
        found.first().map(|packed| unpack(packed)).transpose()
    }
}

/// Each piece once. Everybody goes in the same order, so nobody waits for each
/// other.
pub(super) fn once(blobs: &[(BlobId, Vec<u8>)]) -> Vec<&(BlobId, Vec<u8>)> {
    let mut once: Vec<_> = blobs.iter().collect();
    once.sort_unstable_by_key(|(id, _)| *id);
    once.dedup_by_key(|(id, _)| *id);
    once
}

/// The statement that puts rows of content.
pub(super) fn insert(rows: &[String]) -> String {
    format!(
        "INSERT INTO longhaul.blobs AS held (id, used_at, size, body, linked) \
         SELECT new.*, EXISTS (SELECT 1 FROM longhaul.links WHERE blob = new.id) \
         FROM (VALUES {}) AS new (id, used_at, size, body) \
         ON CONFLICT (id) DO UPDATE SET used_at = greatest(held.used_at, excluded.used_at)",
        rows.join(", ")
    )
}

/// The statement that keeps others from removing content until the transaction
/// has ended.
pub(super) fn hold(blobs: &[&(BlobId, Vec<u8>)], now: Moment) -> String {
    let ids = list(blobs.iter().map(|(id, _)| id.as_bytes().as_slice()));
    format!(
        "WITH held AS (SELECT id FROM longhaul.blobs WHERE id IN ({ids}) ORDER BY id FOR UPDATE) \
         UPDATE longhaul.blobs SET used_at = greatest(blobs.used_at, {}) FROM held \
         WHERE blobs.id = held.id",
        number(now.0)
    )
}

/// Content as rows, not too many for a message.
pub(super) async fn pack_all(
    blobs: Vec<(BlobId, Vec<u8>)>,
    now: Moment,
) -> Result<Vec<Vec<String>>, StoreError> {
    if blobs.is_empty() {
        return Ok(Vec::new());
    }
    // Packing takes longer than anything else here: away from the streams.
    let packing = tokio::task::spawn_blocking(move || messages(&blobs, now));
    packing.await.map_err(|_| nothing())?
}

fn messages(blobs: &[(BlobId, Vec<u8>)], now: Moment) -> Result<Vec<Vec<String>>, StoreError> {
    let mut messages: Vec<Vec<String>> = Vec::new();
    let mut left = 0;
    for (id, content) in blobs {
        let row = row(id.as_bytes(), now, &pack(content)?);
        if left == 0 {
            messages.push(Vec::new());
            left = MESSAGE;
        }
        left = left.saturating_sub(row.len());
        if let Some(rows) = messages.last_mut() {
            rows.push(row);
        }
    }
    Ok(messages)
}

fn row(id: &[u8; 32], now: Moment, packed: &[u8]) -> String {
    let room = size(rule::packed_bytes(packed.len()));
    format!(
        "({}, {}::bigint, {room}::bigint, {})",
        bytes(id),
        number(now.0),
        bytes(packed)
    )
}

fn nothing() -> StoreError {
    StoreError::Failed("what was to be stored did not come back".to_owned())
}
