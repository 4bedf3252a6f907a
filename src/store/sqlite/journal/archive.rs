//! Putting away what a pass leaves out, in one durable transaction.

use std::collections::{BTreeMap, HashMap};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::Journal;
use super::branches::settle;
use super::many::{Rows, count};
use super::pieces::{self, joined, link};
use crate::engine::ids::{BlobId, LineageId};
use crate::store::journal::{Archive, Kept, Promise, Trace, room};
use crate::store::pack::fold;
use crate::store::sqlite::database::Purpose;
use crate::store::sqlite::rows::number;
use crate::store::sqlite::write::BEGIN;
use crate::store::{Moment, StoreError};

/// What is kept of every message that a conversation has: of those branches that
/// its own grew from as far and as late as they have in common, the farthest
/// first; then all that is its own.
const STATES: &str = "WITH RECURSIVE line (branch, before, step) AS (\
        SELECT ?1, ?2, 0 UNION ALL \
        SELECT b.parent, min(line.before, b.common), line.step + 1 \
        FROM line JOIN branches b ON b.number = line.branch \
        WHERE b.parent IS NOT NULL AND line.step < 1000) \
    SELECT m.message, m.since, m.size, m.parts, line.step FROM line CROSS JOIN messages m \
    ON m.branch = line.branch WHERE line.step = 0 \
    OR (m.message < line.before AND m.since <= line.before) \
    ORDER BY line.step DESC, m.message, m.since";

const KEEP: Rows = Rows {
    before: "INSERT INTO messages (branch, message, since, size, parts, blobs) VALUES",
    row: "(?, ?, ?, ?, ?, ?)",
    after: "ON CONFLICT (branch, message, since) DO UPDATE SET \
            size = excluded.size, parts = excluded.parts, blobs = excluded.blobs",
};

const PROMISE: Rows = Rows {
    before: "INSERT INTO promises (reference, branch, first, behind, block, blob) VALUES",
    row: "(?, ?, ?, ?, ?, ?)",
    after: "ON CONFLICT (reference, branch) DO UPDATE SET first = excluded.first, \
            behind = excluded.behind, block = excluded.block, blob = excluded.blob",
};

const PROMISED: &str = "SELECT count(*) FROM promises WHERE branch = ?1";

const SIZE: &str = "UPDATE branches SET size = size + ?2 WHERE number = ?1";

/// A message, its parts as they are stored.
struct Folded {
    kept: Kept,
    parts: Vec<u8>,
}

/// What is kept already.
#[derive(Default)]
struct States {
    /// The parts of each message as the conversation has it.
    parts: HashMap<u32, Vec<u8>>,
    /// The branch's own states of each message, with their sizes.
    own: HashMap<u32, HashMap<u32, i64>>,
}

impl Journal {
    pub(super) async fn put_away(
        &self,
        trace: &Trace,
        archive: &Archive,
        now: Moment,
    ) -> Result<LineageId, StoreError> {
        let folded = |kept: &Kept| {
            Ok(Folded {
                parts: fold(&kept.parts)?,
                kept: kept.clone(),
            })
        };
        let messages: Result<Vec<_>, StoreError> = archive.messages.iter().map(folded).collect();
        let (trace, messages) = (trace.clone(), messages?);
        let (blobs, promises) = (archive.blobs.clone(), archive.promises.clone());
        self.lane
            .run(Purpose::Durable, async move |connection| {
                let pieces = pieces::prepare(connection, blobs).await?;
                let mut transaction = connection.begin_with(BEGIN).await?;
                let settled = settle(&mut transaction, &trace, now).await?;
                let branch = settled.number;
                let mut size = keep(&mut transaction, branch, trace.here.1, messages).await?;
                size += promise(&mut transaction, branch, &promises).await?;
                let sized = sqlx::query(SIZE).bind(branch).bind(size);
                sized.execute(&mut *transaction).await?;
                pieces::put(&mut transaction, pieces, now).await?;
                transaction.commit().await?;
                Ok(settled.branch.id)
            })
            .await
    }
}

/// Keeps the messages that are not kept yet as they are now; the room it takes.
async fn keep(
    connection: &mut SqliteConnection,
    branch: i64,
    here: u32,
    messages: Vec<Folded>,
) -> Result<i64, Error> {
    if messages.is_empty() {
        return Ok(0);
    }
    let mut states = states(connection, branch, here).await?;
    let mut needed: BTreeMap<BlobId, u32> = BTreeMap::new();
    let mut new = Vec::new();
    let mut room = 0;
    for Folded { kept, parts } in messages {
        if states.parts.get(&kept.message) == Some(&parts) {
            continue;
        }
        for blob in &kept.blobs {
            let first = needed.entry(*blob).or_insert(kept.message);
            *first = kept.message.min(*first);
        }
        let own = states.own.entry(kept.message).or_default();
        // What another branch has kept of it counts until here.
        let is_first = own.is_empty() && !states.parts.contains_key(&kept.message);
        let since = if is_first { 0 } else { here };
        let size = number(room::message(&kept, parts.len()));
        room += size - own.insert(since, size).unwrap_or(0);
        states.parts.insert(kept.message, parts.clone());
        new.push((kept, since, size, parts));
    }
    KEEP.write(connection, &new, |write, (kept, since, size, parts)| {
        write
            .bind(branch)
            .bind(kept.message)
            .bind(*since)
            .bind(*size)
            .bind(parts.clone())
            .bind(joined(&kept.blobs))
    })
    .await?;
    Ok(room + link(connection, branch, &needed).await?)
}

async fn states(
    connection: &mut SqliteConnection,
    branch: i64,
    here: u32,
) -> Result<States, Error> {
    let mut states = States::default();
    let rows = sqlx::query(STATES).bind(branch).bind(here);
    for row in rows.fetch_all(&mut *connection).await? {
        let (message, since): (u32, u32) = (row.try_get(0)?, row.try_get(1)?);
        if row.try_get::<i64, _>(4)? == 0 {
            let own = states.own.entry(message).or_default();
            own.insert(since, row.try_get(2)?);
        }
        if since <= here {
            states.parts.insert(message, row.try_get(3)?);
        }
    }
    Ok(states)
}

/// Notes what the references of a view stand for; the room it takes.
async fn promise(
    connection: &mut SqliteConnection,
    branch: i64,
    promises: &[Promise],
) -> Result<i64, Error> {
    if promises.is_empty() {
        return Ok(0);
    }
    let mut needed: BTreeMap<BlobId, u32> = BTreeMap::new();
    for (blob, message) in promises
        .iter()
        .filter_map(|made| Some((made.blob?, made.messages.0)))
    {
        let first = needed.entry(blob).or_insert(message);
        *first = message.min(*first);
    }
    let before = count(connection, sqlx::query(PROMISED).bind(branch)).await?;
    PROMISE
        .write(connection, promises, |write, promise| {
            write
                .bind(promise.reference.as_bytes().to_vec())
                .bind(branch)
                .bind(promise.messages.0)
                .bind(promise.messages.1)
                .bind(promise.block)
                .bind(promise.blob.map(|blob| blob.as_bytes().to_vec()))
        })
        .await?;
    let after = count(connection, sqlx::query(PROMISED).bind(branch)).await?;
    let room = (after - before) * number(room::PROMISE);
    Ok(room + link(connection, branch, &needed).await?)
}
