//! Pieces of content: keeping each once, and which branch needs which.
//!
//! A piece says whether any branch needs it, so that those which nobody needs
//! can be found without looking at the others.

use std::collections::{BTreeMap, HashSet};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::many::{Rows, count, names};
use crate::engine::ids::BlobId;
use crate::store::journal::room;
use crate::store::pack::pack;
use crate::store::sqlite::rows::{digest, number};
use crate::store::sqlite::write::BEGIN;
use crate::store::{Moment, rule};

/// Names in one statement.
const BATCH: usize = 1_024;

const PRESENT: &str = concat!("SELECT id FROM blobs WHERE id IN ", names!(32));

const PUT: &str = "INSERT INTO blobs (id, used_at, size, body, linked) \
    VALUES (?1, ?2, ?3, ?4, EXISTS (SELECT 1 FROM links WHERE blob = ?1)) \
    ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)";

const TOUCH: &str = concat!(
    "UPDATE blobs SET used_at = ?2 WHERE used_at < ?2 AND id IN ",
    names!(32)
);

const NEEDED: &str = concat!(
    "UPDATE blobs SET linked = 1 WHERE linked = 0 AND id IN ",
    names!(32)
);

const LINKED: &str = concat!(
    "SELECT count(*) FROM links WHERE branch = ?2 AND blob IN ",
    names!(32)
);

const LINK: Rows = Rows {
    before: "INSERT INTO links (branch, blob, message) VALUES",
    row: "(?, ?, ?)",
    after: "ON CONFLICT (branch, blob) DO UPDATE SET message = excluded.message \
            WHERE excluded.message < links.message",
};

/// Content, and its packed form unless it was there when that was looked up.
pub(super) struct Piece {
    id: BlobId,
    content: Vec<u8>,
    packed: Option<Vec<u8>>,
}

/// Packs what is not there yet. It takes longer than anything else, so it is
/// done before others are locked out.
pub(super) async fn prepare(
    connection: &mut SqliteConnection,
    blobs: Vec<(BlobId, Vec<u8>)>,
) -> Result<Vec<Piece>, Error> {
    let ids: Vec<_> = blobs.iter().map(|(id, _)| *id).collect();
    let mut present = present(connection, &ids).await?;
    let mut pieces = Vec::with_capacity(blobs.len());
    for (id, content) in blobs {
        let packed = present.insert(id).then(|| packed(&content)).transpose()?;
        pieces.push(Piece {
            id,
            content,
            packed,
        });
    }
    Ok(pieces)
}

/// Keeps pieces, or marks them as used. To be called inside a transaction.
pub(super) async fn put(
    connection: &mut SqliteConnection,
    pieces: Vec<Piece>,
    now: Moment,
) -> Result<(), Error> {
    let ids: Vec<_> = pieces.iter().map(|piece| piece.id).collect();
    let mut present = present(connection, &ids).await?;
    for batch in ids.chunks(BATCH) {
        let touch = sqlx::query(TOUCH).bind(joined(batch)).bind(now.0);
        touch.execute(&mut *connection).await?;
    }
    for piece in pieces {
        if !present.insert(piece.id) {
            continue;
        }
        let body = match piece.packed {
            Some(packed) => packed,
            // It was collected in between.
            None => packed(&piece.content)?,
        };
        sqlx::query(PUT)
            .bind(piece.id.as_bytes().as_slice())
            .bind(now.0)
            .bind(number(rule::packed_bytes(body.len())))
            .bind(body)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Keeps content that no branch needs yet.
pub(super) async fn put_alone(
    connection: &mut SqliteConnection,
    blobs: Vec<(BlobId, Vec<u8>)>,
    now: Moment,
) -> Result<(), Error> {
    let pieces = prepare(connection, blobs).await?;
    let mut transaction = connection.begin_with(BEGIN).await?;
    put(&mut transaction, pieces, now).await?;
    transaction.commit().await
}

/// Notes that a branch needs pieces, each with the first message that does; the
/// room that takes. To be called inside a transaction.
pub(super) async fn link(
    connection: &mut SqliteConnection,
    branch: i64,
    needed: &BTreeMap<BlobId, u32>,
) -> Result<i64, Error> {
    let ids: Vec<_> = needed.keys().copied().collect();
    let mut new = number(ids.len() as u64);
    for batch in ids.chunks(BATCH) {
        let linked = sqlx::query(LINKED).bind(joined(batch)).bind(branch);
        new -= count(connection, linked).await?;
    }
    let links: Vec<_> = needed.iter().collect();
    LINK.write(connection, &links, |write, (blob, message)| {
        let write = write.bind(branch);
        write
            .bind(blob.as_bytes().as_slice().to_vec())
            .bind(**message)
    })
    .await?;
    for batch in ids.chunks(BATCH) {
        let mark = sqlx::query(NEEDED).bind(joined(batch));
        mark.execute(&mut *connection).await?;
    }
    Ok(new * number(room::LINK))
}

async fn present(
    connection: &mut SqliteConnection,
    ids: &[BlobId],
) -> Result<HashSet<BlobId>, Error> {
    let mut present = HashSet::new();
    for batch in ids.chunks(BATCH) {
        let rows = sqlx::query(PRESENT).bind(joined(batch));
        for row in rows.fetch_all(&mut *connection).await? {
            present.insert(digest(row.try_get(0)?, BlobId::from_slice)?);
        }
    }
    Ok(present)
}

fn packed(content: &[u8]) -> Result<Vec<u8>, Error> {
    pack(content).map_err(|error| Error::Encode(error.into()))
}

/// Names one after the other.
pub(super) fn joined(ids: &[BlobId]) -> Vec<u8> {
    ids.iter().flat_map(|id| *id.as_bytes()).collect()
}
