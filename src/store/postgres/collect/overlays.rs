//! Overlays that no mark points to any more.
//!
//! An overlay is locked before it is looked whether anything points to it.
//! Whoever lets a mark point to an overlay holds on to it until that is
//! committed, so once the lock is had, the look sees every such mark and no new
//! one can come.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, fetch, list};
use super::super::rows::digest;
use super::super::trouble::Trouble;
use super::{ROWS, UNHURRIED};
use crate::engine::ids::OverlayId;
use crate::store::{Collected, StoreError, rule};

/// What a step removed.
#[derive(Default, Clone, Copy)]
pub(super) struct Step {
    pub marks: u64,
    pub overlays: u64,
    pub bytes: u64,
}

impl PostgresStore {
    /// Removes those that have lost a place, if it was their last.
    pub(super) async fn remove_unplaced(&self, done: &mut Collected) -> Result<(), StoreError> {
        let sql = format!(
            "DELETE FROM longhaul.unplaced WHERE id IN (SELECT id FROM longhaul.unplaced \
             ORDER BY id LIMIT {ROWS} FOR UPDATE SKIP LOCKED) RETURNING id"
        );
        loop {
            let sql = sql.clone();
            let work = async move |connection: &mut PgConnection| {
                let mut transaction = connection.begin_with(begin()).await?;
                let rows = fetch(&mut transaction, sql.clone()).await?;
                let ids: Result<Vec<_>, _> = rows
                    .iter()
                    .map(|row| digest(row, 0, OverlayId::from_slice))
                    .collect();
                let step = remove_overlays(&mut transaction, ids?).await?;
                transaction.commit().await?;
                Ok((rows.len(), step))
            };
            let (looked_at, step) = self.lane.run(UNHURRIED, work).await?;
            done.overlays += step.overlays;
            if looked_at < ROWS {
                return Ok(());
            }
        }
    }
}

/// How a step begins.
pub(super) fn begin() -> AssertSqlSafe<String> {
    AssertSqlSafe(Purpose::Plain.begin(UNHURRIED))
}

/// Removes those that no mark points to, inside a transaction.
pub(super) async fn remove_overlays(
    connection: &mut PgConnection,
    mut ids: Vec<OverlayId>,
) -> Result<Step, Trouble> {
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(Step::default());
    }
    let ids = list(ids.iter().map(|id| id.as_bytes().as_slice()));
    let lock =
        format!("SELECT id FROM longhaul.overlays WHERE id IN ({ids}) ORDER BY id FOR UPDATE");
    fetch(connection, lock).await?;
    let remove = format!(
        "DELETE FROM longhaul.overlays WHERE id IN ({ids}) AND NOT EXISTS \
         (SELECT 1 FROM longhaul.marks WHERE marks.overlay = overlays.id) \
         RETURNING length(body)"
    );
    let mut step = Step::default();
    for row in fetch(connection, remove).await? {
        let length: i32 = row.try_get(0)?;
        step.overlays += 1;
        step.bytes += rule::overlay_bytes(length.unsigned_abs() as usize);
    }
    Ok(step)
}
