//! Old marks; past the limit the lineages least recently used. Marks take the
//! overlays along that lose their last one.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, fetch};
use super::super::rows::{digest, number};
use super::overlays::{Step, begin, remove_overlays};
use super::{ROWS, UNHURRIED};
use crate::engine::ids::{LineageId, OverlayId};
use crate::store::{Collected, Moment, StoreError};

/// The room that everything is taken to need.
pub(super) const ROOM: &str = "SELECT ((SELECT coalesce(sum(size), 0) FROM longhaul.marks) \
    + (SELECT coalesce(sum(length(body) + 100), 0) FROM longhaul.overlays) \
    + (SELECT coalesce(sum(size), 0) FROM longhaul.segments))::bigint";

impl PostgresStore {
    /// Removes the marks not seen since a moment.
    pub(super) async fn remove_old_marks(
        &self,
        since: Moment,
        done: &mut Collected,
    ) -> Result<(), StoreError> {
        let old = format!("seen_at < {}", number(since.0));
        self.remove_marks(&old, done).await.map(|_| ())
    }

    /// Removes the marks of a session.
    pub(in super::super) async fn remove_session(
        &self,
        lineage: LineageId,
        done: &mut Collected,
    ) -> Result<(), StoreError> {
        let its = format!("lineage = {}", bytes(lineage.as_bytes()));
        self.remove_marks(&its, done).await.map(|_| ())
    }

    /// Removes whole lineages, those used least recently first, until so many
    /// bytes are free.
    pub(super) async fn remove_lineages(
        &self,
        excess: u64,
        done: &mut Collected,
    ) -> Result<(), StoreError> {
        // Those marks that are the newest of their lineage, oldest first.
        let oldest = format!(
            "SELECT DISTINCT seen_at, lineage FROM longhaul.marks AS newest WHERE NOT EXISTS \
             (SELECT 1 FROM longhaul.marks AS later WHERE later.lineage = newest.lineage \
             AND later.seen_at > newest.seen_at) ORDER BY seen_at, lineage LIMIT {ROWS}"
        );
        let read = |row: &PgRow| {
            let last: i64 = row.try_get(0)?;
            Ok((Moment(last), digest(row, 1, LineageId::from_slice)?))
        };
        let mut freed = 0;
        while freed < excess {
            let purpose = Purpose::Reading;
            let lineages = self.lane.ask_within(UNHURRIED, purpose, &oldest, read);
            let before = done.marks;
            for (last, lineage) in lineages.await? {
                if freed >= excess {
                    break;
                }
                let id = bytes(lineage.as_bytes());
                // Unless it has been used meanwhile.
                let unused = format!(
                    "lineage = {id} AND NOT EXISTS (SELECT 1 FROM longhaul.marks AS later \
                     WHERE later.lineage = {id} AND later.seen_at > {})",
                    number(last.0)
                );
                freed += self.remove_marks(&unused, done).await?;
            }
            if done.marks == before {
                break;
            }
        }
        Ok(())
    }

    /// Removes the marks of which something holds, oldest first; the bytes that
    /// freed.
    async fn remove_marks(&self, which: &str, done: &mut Collected) -> Result<u64, StoreError> {
        let sql = format!(
            "DELETE FROM longhaul.marks WHERE (chain, model) IN (SELECT chain, model \
             FROM longhaul.marks WHERE {which} ORDER BY seen_at LIMIT {ROWS} \
             FOR UPDATE SKIP LOCKED) RETURNING size, overlay"
        );
        let mut bytes = 0;
        loop {
            let sql = sql.clone();
            let work = async move |connection: &mut PgConnection| {
                let mut transaction = connection.begin_with(begin()).await?;
                let removed = fetch(&mut transaction, sql.clone()).await?;
                let mut step = Step::default();
                let mut overlays = Vec::new();
                for row in &removed {
                    step.bytes += row.try_get::<i64, _>(0)?.unsigned_abs();
                    if row.try_get::<Option<Vec<u8>>, _>(1)?.is_some() {
                        overlays.push(digest(row, 1, OverlayId::from_slice)?);
                    }
                }
                let left = remove_overlays(&mut transaction, overlays).await?;
                transaction.commit().await?;
                step.marks = removed.len() as u64;
                step.overlays = left.overlays;
                step.bytes += left.bytes;
                Ok(step)
            };
            let step = self.lane.run(UNHURRIED, work).await?;
            done.marks += step.marks;
            done.overlays += step.overlays;
            bytes += step.bytes;
            if step.marks < ROWS as u64 {
                return Ok(bytes);
            }
        }
    }
}
