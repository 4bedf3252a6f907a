//! How wrong the clock of this replica is, and what that means for what goes.
//!
//! What is no longer kept is reckoned from now, and a replica whose clock is far
//! ahead would take everybody's sessions for old. So the database's time counts:
//! moments that lie some time ago here are moved to where they lie as long ago
//! there. A difference as small as any two clocks have changes nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::super::PostgresStore;
use super::super::ask::Purpose;
use super::UNHURRIED;
use crate::store::{Keep, Moment, StoreError};

/// How far apart clocks may be before it matters.
const APART: Duration = Duration::from_mins(1);

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl PostgresStore {
    /// What is kept, by the database's time.
    pub(super) async fn by_its_clock(&self, keep: Keep) -> Result<Keep, StoreError> {
        let read = |row: &PgRow| row.try_get::<i64, _>(0);
        let before = millis();
        let told = self
            .lane
            .ask_within(UNHURRIED, Purpose::Reading, NOW, read)
            .await?;
        let after = millis();
        let Some(there) = told.first() else {
            return Ok(keep);
        };
        // Somewhere in between it looked at its clock.
        let ahead = if *there < before {
            before - there
        } else {
            there.saturating_sub(after).max(0).saturating_neg()
        };
        if u128::from(ahead.unsigned_abs()) <= APART.as_millis() {
            return Ok(keep);
        }
        tracing::warn!(
            seconds_ahead = ahead / 1_000,
            "this machine's clock and the database's differ: what is old goes by the database's, \
             what is noted here by this one; let both follow the same time"
        );
        Ok(moved(keep, ahead))
    }
}

fn moved(keep: Keep, ahead: i64) -> Keep {
    let moved = |moment: Moment| Moment(moment.0.saturating_sub(ahead));
    Keep {
        since: moved(keep.since),
        blobs_since: moved(keep.blobs_since),
        idle_since: moved(keep.idle_since),
        ..keep
    }
}

/// The time on this machine.
fn millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}
