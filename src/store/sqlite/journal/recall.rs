//! What references stand for, and messages as they were.

use std::collections::{BTreeMap, btree_map};

use sqlx::{Error, Row};

use super::Journal;
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::store::StoreError;
use crate::store::journal::{Extent, Kept, Referred, Scope};
use crate::store::pack::unfold;
use crate::store::sqlite::rows::digest;

const PROMISES: &str = "SELECT b.id, p.first, p.behind, p.block, p.blob FROM promises p \
    JOIN branches b ON b.number = p.branch \
    WHERE p.reference = ?1 AND b.id IS NOT NULL ORDER BY p.number";

const ENTRIES: &str = "SELECT b.id, e.message, e.block, e.blob, min(e.number) FROM entries e \
    JOIN branches b ON b.number = e.branch WHERE e.reference = ?1 AND b.id IS NOT NULL \
    GROUP BY e.branch, e.message, e.block ORDER BY min(e.number) LIMIT 64";

/// All states of the messages of a branch that count as of some moment, the
/// latest last.
const KEPT: &str = "SELECT message, parts, blobs FROM messages \
    WHERE branch = ?1 AND message >= ?2 AND message < ?3 AND since <= ?4 ORDER BY message, since";

const EXTENT: &str = "SELECT (SELECT blobs FROM totals) + coalesce(sum(size), 0), \
    count(id), coalesce(sum(iif(id IS NULL, 0, entries)), 0) FROM branches";

impl Journal {
    pub(super) async fn stands_for(
        &self,
        reference: Reference,
    ) -> Result<Vec<Referred>, StoreError> {
        let reference = reference.as_bytes().to_vec();
        let promises = sqlx::query(PROMISES).bind(reference.clone());
        let promises = self.read(promises, |row| {
            Ok(Referred {
                branch: digest(row.try_get(0)?, LineageId::from_slice)?,
                messages: (row.try_get(1)?, row.try_get(2)?),
                block: row.try_get(3)?,
                blob: maybe(row.try_get(4)?)?,
                entry: None,
            })
        });
        let mut found = promises.await?;
        let entries = sqlx::query(ENTRIES).bind(reference);
        let entries = self.read(entries, |row| {
            let message: u32 = row.try_get(1)?;
            Ok(Referred {
                branch: digest(row.try_get(0)?, LineageId::from_slice)?,
                messages: (message, message.saturating_add(1)),
                block: Some(row.try_get(2)?),
                blob: maybe(row.try_get(3)?)?,
                entry: Some(row.try_get(4)?),
            })
        });
        found.extend(entries.await?);
        Ok(found)
    }

    pub(super) async fn messages(
        &self,
        scope: &Scope,
        (from, to): (u32, u32),
        as_of: Option<u32>,
    ) -> Result<Vec<Kept>, StoreError> {
        let as_of = as_of.unwrap_or(u32::MAX);
        let numbers = self.numbers(scope).await?;
        let mut found: BTreeMap<u32, Kept> = BTreeMap::new();
        for stretch in &scope.0 {
            let Some(branch) = numbers.get(&stretch.branch) else {
                continue;
            };
            let question = sqlx::query(KEPT)
                .bind(*branch)
                .bind(from)
                .bind(to.min(as_of).min(stretch.before))
                .bind(as_of.min(stretch.before));
            let rows = self.read(question, |row| {
                let parts = unfold(row.try_get(1)?);
                Ok(Kept {
                    message: row.try_get(0)?,
                    parts: parts.map_err(|error| Error::Decode(error.into()))?,
                    blobs: names(row.try_get(2)?)?,
                })
            });
            let mut here: BTreeMap<u32, Kept> = BTreeMap::new();
            for kept in rows.await? {
                here.insert(kept.message, kept);
            }
            for (message, kept) in here {
                if let btree_map::Entry::Vacant(gap) = found.entry(message) {
                    gap.insert(kept);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    pub(super) async fn size(&self) -> Result<Extent, StoreError> {
        let sizes = self.read(sqlx::query(EXTENT), |row| {
            let [bytes, branches, entries] = [0, 1, 2].map(|at| row.try_get::<i64, _>(at));
            Ok(Extent {
                bytes: bytes?.unsigned_abs(),
                branches: branches?.unsigned_abs(),
                entries: entries?.unsigned_abs(),
            })
        });
        Ok(sizes.await?.pop().unwrap_or_default())
    }
}

fn maybe(blob: Option<&[u8]>) -> Result<Option<BlobId>, Error> {
    blob.map(|blob| digest(blob, BlobId::from_slice))
        .transpose()
}

/// Names that stand one after the other.
fn names(joined: &[u8]) -> Result<Vec<BlobId>, Error> {
    let names = joined.chunks(32);
    names.map(|name| digest(name, BlobId::from_slice)).collect()
}
