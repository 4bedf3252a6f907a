//! The tree of branches, read.

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes};
use super::super::rows::{count, digest, number, text};
use crate::engine::ids::{ChainHash, LineageId};
use crate::store::journal::{Branch, Extent};
use crate::store::{Moment, StoreError};

/// The columns of a branch `b`, with those of its `parents`.
pub(super) const BRANCHES: &str = "b.number, b.id, b.lineage, b.tenant, b.label, parents.id, \
    b.common, b.messages, b.began_at, b.seen_at";

/// Where they come from.
pub(super) const TREE: &str = "longhaul.branches b \
    LEFT JOIN longhaul.branches parents ON parents.number = b.parent";

/// A branch, and the number under which it is kept.
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) branch: Branch,
}

/// The branch in a row.
pub(super) fn branch(row: &PgRow) -> Result<Numbered, Error> {
    let label: Option<Vec<u8>> = row.try_get(4)?;
    let parent: Option<Vec<u8>> = row.try_get(5)?;
    let parent =
        parent.map(|_| Ok::<_, Error>((digest(row, 5, LineageId::from_slice)?, count(row, 6)?)));
    Ok(Numbered {
        number: row.try_get(0)?,
        branch: Branch {
            id: digest(row, 1, LineageId::from_slice)?,
            lineage: digest(row, 2, LineageId::from_slice)?,
            tenant: digest(row, 3, ChainHash::from_slice)?,
            label: label.map(|_| text(row, 4)).transpose()?,
            parent: parent.transpose()?,
            messages: count(row, 7)?,
            began_at: Moment(row.try_get(8)?),
            seen_at: Moment(row.try_get(9)?),
        },
    })
}

impl PostgresStore {
    async fn branches_that(&self, rest: &str) -> Result<Vec<Branch>, StoreError> {
        let sql = format!("SELECT {BRANCHES} FROM {TREE} WHERE {rest}");
        let read = |row: &_| Ok(branch(row)?.branch);
        self.lane.ask(Purpose::Reading, &sql, read).await
    }

    pub(super) async fn find_branch(&self, id: LineageId) -> Result<Option<Branch>, StoreError> {
        let id = bytes(id.as_bytes());
        let which = format!(
            "b.id = {id} OR (b.lineage = {id} AND NOT b.forgotten AND b.id IS NOT NULL) \
             ORDER BY b.id = {id} DESC, b.seen_at DESC, b.id LIMIT 1"
        );
        Ok(self.branches_that(&which).await?.pop())
    }

    pub(super) async fn find_alive(
        &self,
        session: LineageId,
    ) -> Result<Option<Branch>, StoreError> {
        let id = bytes(session.as_bytes());
        let which = format!(
            "b.lineage = {id} AND NOT b.forgotten AND b.id IS NOT NULL \
             ORDER BY b.id = {id} DESC, b.seen_at DESC, b.id LIMIT 1"
        );
        Ok(self.branches_that(&which).await?.pop())
    }

    pub(super) async fn find_children(
        &self,
        id: LineageId,
        behind: u32,
        limit: u32,
    ) -> Result<Vec<Branch>, StoreError> {
        self.branches_that(&format!(
            "b.parent = (SELECT number FROM longhaul.branches WHERE id = {}) \
             AND b.common > {behind} AND b.id IS NOT NULL \
             ORDER BY b.seen_at DESC, b.id LIMIT {limit}",
            bytes(id.as_bytes())
        ))
        .await
    }

    pub(super) async fn newest_branches(
        &self,
        before: Option<Moment>,
        limit: u32,
    ) -> Result<Vec<Branch>, StoreError> {
        // Whatever has been seen at the end of time is not listed.
        let before = before.map_or(i64::MAX, |before| before.0);
        self.branches_that(&format!(
            "NOT b.forgotten AND b.seen_at < {} AND b.id IS NOT NULL \
             ORDER BY b.seen_at DESC, b.id LIMIT {limit}",
            number(before)
        ))
        .await
    }

    pub(super) async fn find_extent(&self) -> Result<Extent, StoreError> {
        let sql = "SELECT ((SELECT coalesce(sum(blobs), 0) FROM longhaul.totals) \
            + coalesce(sum(size), 0))::bigint, coalesce(sum(branches), 0)::bigint, \
            coalesce(sum(entries), 0)::bigint FROM longhaul.extents";
        let read = |row: &PgRow| {
            let [bytes, branches, entries] = [0, 1, 2].map(|at| row.try_get::<i64, _>(at));
            Ok(Extent {
                bytes: bytes?.unsigned_abs(),
                branches: branches?.unsigned_abs(),
                entries: entries?.unsigned_abs(),
            })
        };
        let found = self.lane.ask(Purpose::Reading, sql, read).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }
}
