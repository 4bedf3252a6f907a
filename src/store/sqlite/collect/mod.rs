//! Removing what is no longer kept, in steps small enough not to be noticed.
//!
//! What may go is found by reading, which blocks nobody. It goes a hundred rows
//! at a time, each step a transaction of its own that checks again and takes
//! the overlays along that lose their last mark, and between two steps whoever
//! else wants to write gets a turn. Free pages are given back the same way.

mod journal;
mod pieces;
mod state;

pub(super) use journal::journal;
pub(super) use state::{forget, state};

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row};

use super::database::{Purpose, UNHURRIED};
use super::lane::Lane;
use crate::store::StoreError;

/// Rows a step removes: some milliseconds' worth.
const ROWS: i64 = 100;

/// Pages a step gives back.
const PAGES: i64 = 256;

/// Makes a file as small as its content.
async fn give_back(lane: &Lane) -> Result<(), StoreError> {
    loop {
        let free = lane
            .run_within(
                UNHURRIED,
                Purpose::Plain,
                async |connection: &mut SqliteConnection| {
                    let vacuum = AssertSqlSafe(format!("PRAGMA incremental_vacuum({PAGES})"));
                    sqlx::raw_sql(vacuum).execute(&mut *connection).await?;
                    let free = sqlx::query("PRAGMA freelist_count")
                        .fetch_one(connection)
                        .await?;
                    free.try_get::<i64, _>(0)
                },
            )
            .await?;
        if free == 0 {
            break;
        }
    }
    // The file itself shrinks when the log is written back.
    lane.run_within(
        UNHURRIED,
        Purpose::Plain,
        async |connection: &mut SqliteConnection| {
            sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)")
                .execute(connection)
                .await?;
            Ok(())
        },
    )
    .await
}
