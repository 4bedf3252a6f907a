//! Old branches, and what nobody needs; past the limit those least recently
//! seen.

use super::super::PostgresStore;
use super::super::ask::Purpose;
use super::super::rows::{digest, number};
use super::UNHURRIED;
use super::pieces::BLOBS;
use crate::engine::ids::LineageId;
use crate::store::journal::{Forgotten, Journal};
use crate::store::{Collected, Keep, Moment, StoreError};

/// Makes one sum of all the changes that have come so far.
const SUM_UP: &str = "WITH gone AS (DELETE FROM longhaul.totals RETURNING blobs) \
    INSERT INTO longhaul.totals SELECT coalesce(sum(blobs), 0) FROM gone; \
    WITH gone AS (DELETE FROM longhaul.extents RETURNING size, branches, entries) \
    INSERT INTO longhaul.extents SELECT coalesce(sum(size), 0), coalesce(sum(branches), 0), \
    coalesce(sum(entries), 0) FROM gone";

impl PostgresStore {
    pub(super) async fn tidy_journal(
        &self,
        keep: Keep,
        done: &mut Collected,
    ) -> Result<(), StoreError> {
        let mut gone = Forgotten::default();
        self.finish_forgetting(keep.idle_since, &mut gone).await?;
        while let Some(id) = self.least_seen(keep.blobs_since).await? {
            self.let_go(id, keep.blobs_since, keep, &mut gone).await?;
        }
        let old = keep.blobs_since.min(keep.idle_since);
        done.blobs += self.remove_older(&BLOBS, old).await?;
        self.lane
            .ask_within(UNHURRIED, Purpose::Plain, SUM_UP, |_| Ok(()))
            .await?;
        let excess = self.extent().await?.bytes.saturating_sub(keep.blob_bytes);
        done.blobs += self.free(&BLOBS, excess, keep.idle_since).await?.0;
        while self.extent().await?.bytes > keep.blob_bytes {
            let Some(id) = self.least_seen(keep.idle_since).await? else {
                break;
            };
            self.let_go(id, keep.idle_since, keep, &mut gone).await?;
        }
        done.blobs += gone.blobs;
        done.branches += gone.branches;
        done.entries += gone.entries;
        Ok(())
    }

    async fn let_go(
        &self,
        id: LineageId,
        unseen_since: Moment,
        keep: Keep,
        gone: &mut Forgotten,
    ) -> Result<(), StoreError> {
        let forgotten = self.forget_branch(id, unseen_since, keep.idle_since);
        let more = forgotten.await?;
        gone.branches += more.branches;
        gone.entries += more.entries;
        gone.blobs += more.blobs;
        Ok(())
    }

    /// The branch that was not seen for longest, if not since a moment.
    async fn least_seen(&self, since: Moment) -> Result<Option<LineageId>, StoreError> {
        let sql = format!(
            "SELECT id FROM longhaul.branches WHERE NOT forgotten AND seen_at < {} \
             ORDER BY seen_at, id LIMIT 1",
            number(since.0)
        );
        let read = |row: &_| digest(row, 0, LineageId::from_slice);
        let purpose = Purpose::Reading;
        let found = self.lane.ask_within(UNHURRIED, purpose, &sql, read).await?;
        Ok(found.into_iter().next())
    }
}
