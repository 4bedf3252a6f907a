//! Finished segments in `state.db`.
//!
//! They stand beside the overlays that show them and not in the journal: they
//! are looked for on the path of a request, are as few and small as overlays,
//! and must survive a power cut like them. One that cannot be unpacked any more
//! is lost, and gives way to the next that is put under its name: overlays hold
//! their own copy, so no view changes by it.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::database::Purpose;
use super::rows::{digest, number};
use super::state::{BATCH, State};
use super::write::BEGIN;
use crate::engine::ids::SegmentId;
use crate::store::pack::{pack, unpack};
use crate::store::{Moment, StoreError, rule};

const FIND: &str = "SELECT id, body FROM segments WHERE id IN (\
    WITH RECURSIVE keys (at) AS (\
        SELECT 1 UNION ALL SELECT at + 32 FROM keys WHERE at + 32 < length(?1)) \
        SELECT substr(?1, at, 32) FROM keys)";

const PUT: &str = "INSERT INTO segments (id, used_at, size, body) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at) RETURNING body";

const REPLACE: &str = "UPDATE segments SET size = ?2, body = ?3 WHERE id = ?1";

const DAMAGED: &str = "a segment is not what was stored";

/// What became of a segment that was put.
struct Put {
    /// The body that holds.
    body: Vec<u8>,
    /// What held before could not be read.
    replaced: bool,
}

impl State {
    pub(super) async fn segments(
        &self,
        ids: &[SegmentId],
    ) -> Result<Vec<(SegmentId, Vec<u8>)>, StoreError> {
        let mut seen = HashSet::new();
        let ids: Vec<_> = ids.iter().filter(|id| seen.insert(**id)).collect();
        let mut found = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH) {
            let joined: Vec<u8> = batch.iter().flat_map(|id| *id.as_bytes()).collect();
            let question = sqlx::query(FIND).bind(joined);
            let rows = self.read(question, |row| {
                let id = digest(row.try_get(0)?, SegmentId::from_slice)?;
                Ok((id, unpack(row.try_get(1)?)))
            });
            for (id, body) in rows.await? {
                match body {
                    Ok(body) => found.push((id, body)),
                    Err(_) => drop(self.database.damaged(DAMAGED)),
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn put_segment(
        &self,
        id: SegmentId,
        body: &[u8],
        now: Moment,
    ) -> Result<Vec<u8>, StoreError> {
        let (packed, body) = (pack(body)?, body.to_vec());
        let put = self
            .lane
            .run(Purpose::Durable, async move |connection| {
                put(connection, id, packed, body, now).await
            })
            .await?;
        if put.replaced {
            drop(self.database.damaged(DAMAGED));
        }
        Ok(put.body)
    }
}

async fn put(
    connection: &mut SqliteConnection,
    id: SegmentId,
    packed: Vec<u8>,
    body: Vec<u8>,
    now: Moment,
) -> Result<Put, Error> {
    let size = number(rule::packed_bytes(packed.len()));
    let mut transaction = connection.begin_with(BEGIN).await?;
    let rows = sqlx::query(PUT)
        .bind(id.as_bytes().as_slice())
        .bind(now.0)
        .bind(size)
        .bind(packed.as_slice())
        .fetch_all(&mut *transaction)
        .await?;
    let held: Vec<u8> = rows.first().ok_or(Error::RowNotFound)?.try_get(0)?;
    let put = match unpack(&held) {
        Ok(body) => Put {
            body,
            replaced: false,
        },
        Err(_) => Put {
            body,
            replaced: true,
        },
    };
    if put.replaced {
        sqlx::query(REPLACE)
            .bind(id.as_bytes().as_slice())
            .bind(size)
            .bind(packed)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(put)
}
