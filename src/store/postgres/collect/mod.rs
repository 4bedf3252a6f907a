//! Removing what is no longer kept, in steps small enough not to be noticed.
//!
//! A step is one message or one short transaction of a hundred rows, found by an
//! index, oldest first. No step reads a whole table: how much room is taken is
//! only counted where the tables on disk are large enough that it could be too
//! much. Rows that somebody else is just using are passed over and go another
//! time.

mod clock;
mod journal;
mod overlays;
mod pieces;
mod state;

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::ask::Purpose;
use crate::store::{Collected, Holder, Keep, Moment, StoreError};
use pieces::SEGMENTS;

/// How long one step may take: nobody waits for it.
pub(super) const UNHURRIED: Duration = Duration::from_mins(1);

/// Rows a step removes: some milliseconds' worth.
const ROWS: usize = 100;

/// What keeps replicas from tidying up together.
const LEASE: &str = "collect";

/// How long one may take before another may join in, which does no harm.
const TURN: Duration = Duration::from_mins(15);

impl PostgresStore {
    /// Removes what is no longer kept, unless another replica is at it.
    pub(super) async fn tidy(&self, keep: Keep) -> Result<Collected, StoreError> {
        let holder = Holder::random();
        if !self.take_lease(LEASE, holder, TURN).await? {
            return Ok(Collected::default());
        }
        let done = self.tidy_all(keep).await;
        self.give_back_lease(LEASE, holder).await?;
        done
    }

    async fn tidy_all(&self, keep: Keep) -> Result<Collected, StoreError> {
        let keep = self.by_its_clock(keep).await?;
        let mut done = Collected::default();
        self.forget_leases().await?;
        self.tidy_state(keep, &mut done).await?;
        self.tidy_journal(keep, &mut done).await?;
        Ok(done)
    }

    async fn tidy_state(&self, keep: Keep, done: &mut Collected) -> Result<(), StoreError> {
        self.remove_old_marks(keep.since, done).await?;
        self.remove_unplaced(done).await?;
        done.segments += self.remove_older(&SEGMENTS, keep.since).await?;
        let tables = ["marks", "overlays", "segments"];
        let taken = self.taken(&tables, state::ROOM, keep.state_bytes).await?;
        let mut excess = taken.saturating_sub(keep.state_bytes);
        let any = Moment(i64::MAX);
        let (removed, freed) = self.free(&SEGMENTS, excess, any).await?;
        done.segments += removed;
        excess = excess.saturating_sub(freed);
        self.remove_lineages(excess, done).await
    }

    /// The room that some tables are taken to need, or nothing if they are too
    /// small on disk for it to matter.
    async fn taken(&self, tables: &[&str], room: &str, limit: u64) -> Result<u64, StoreError> {
        let sizes: Vec<String> = tables
            .iter()
            .map(|table| format!("pg_total_relation_size('longhaul.{table}')"))
            .collect();
        let sql = format!("SELECT {}", sizes.join(" + "));
        // Half: a row's room is a rule, and its place on disk a little less.
        if self.number(&sql).await? < limit / 2 {
            return Ok(0);
        }
        self.number(room).await
    }

    async fn number(&self, sql: &str) -> Result<u64, StoreError> {
        let read = |row: &PgRow| row.try_get::<i64, _>(0);
        let purpose = Purpose::Reading;
        let found = self.lane.ask_within(UNHURRIED, purpose, sql, read).await?;
        Ok(found.first().map_or(0, |number| number.unsigned_abs()))
    }
}
