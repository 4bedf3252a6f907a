//! What references stand for, and messages as they were.

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes};
use super::super::rows::{count, digest, maybe_count, maybe_digest};
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::store::StoreError;
use crate::store::journal::{Kept, Referred, Scope, Stretch};
use crate::store::pack::unfold;

impl PostgresStore {
    pub(super) async fn stands_for(
        &self,
        reference: Reference,
    ) -> Result<Vec<Referred>, StoreError> {
        let reference = bytes(reference.as_bytes());
        let sql = format!(
            "SELECT b.id, p.first, p.behind, p.block, p.blob, NULL::bigint \
             FROM longhaul.promises p JOIN longhaul.branches b ON b.number = p.branch \
             WHERE p.reference = {reference} AND b.id IS NOT NULL ORDER BY p.number; \
             SELECT id, message, least(message + 1, 4294967295), block, blob, number FROM (\
             SELECT DISTINCT ON (e.branch, e.message, e.block) b.id, e.message, e.block, e.blob, \
             e.number FROM longhaul.entries e JOIN longhaul.branches b ON b.number = e.branch \
             WHERE e.reference = {reference} AND b.id IS NOT NULL \
             ORDER BY e.branch, e.message, e.block, e.number) AS one ORDER BY number LIMIT 64"
        );
        let read = |row: &PgRow| {
            Ok(Referred {
                branch: digest(row, 0, LineageId::from_slice)?,
                messages: (count(row, 1)?, count(row, 2)?),
                block: maybe_count(row, 3)?,
                blob: maybe_digest(row, 4, BlobId::from_slice)?,
                entry: row.try_get(5)?,
            })
        };
        self.lane.ask(Purpose::Reading, &sql, read).await
    }

    pub(super) async fn find_messages(
        &self,
        scope: &Scope,
        (from, to): (u32, u32),
        as_of: Option<u32>,
    ) -> Result<Vec<Kept>, StoreError> {
        if scope.0.is_empty() {
            return Ok(Vec::new());
        }
        let as_of = as_of.unwrap_or(u32::MAX);
        let part = |(stretch, step): (&Stretch, u32)| {
            format!(
                "({step}, {}, {}::bigint, {}::bigint)",
                bytes(stretch.branch.as_bytes()),
                to.min(as_of).min(stretch.before),
                as_of.min(stretch.before),
            )
        };
        let parts: Vec<String> = scope.0.iter().zip(0..).map(part).collect();
        let sql = format!(
            "SELECT DISTINCT ON (m.message) m.message, m.parts, m.blobs \
             FROM (VALUES {}) AS q (step, id, below, latest) \
             JOIN longhaul.branches b ON b.id = q.id JOIN longhaul.messages m \
             ON m.branch = b.number AND m.message >= {from} AND m.message < q.below \
             AND m.since <= q.latest ORDER BY m.message, q.step, m.since DESC",
            parts.join(", ")
        );
        self.lane.ask(Purpose::Reading, &sql, kept).await
    }
}

/// The message in a row.
pub(super) fn kept(row: &PgRow) -> Result<Kept, Error> {
    let parts: Vec<u8> = row.try_get(1)?;
    let names: Vec<u8> = row.try_get(2)?;
    let name = |name| {
        let wrong = || Error::Decode("a digest has a wrong length".into());
        BlobId::from_slice(name).ok_or_else(wrong)
    };
    let blobs: Result<_, Error> = names.chunks(32).map(name).collect();
    Ok(Kept {
        message: count(row, 0)?,
        parts: unfold(&parts).map_err(|error| Error::Decode(error.into()))?,
        blobs: blobs?,
    })
}
