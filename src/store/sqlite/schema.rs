//! The formats of the files, each version a step from the one before.
//!
//! A file says in `user_version` which one it has. Steps are taken inside one
//! transaction that nobody else can write during, so two processes that start
//! at once take each step once, and a process that dies leaves the format it
//! found. A released step is never edited: a change is a new step.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Error, Row};

/// Marks, overlays, what was learned; then segments; then leases.
pub(super) const STATE: &[&str] = &[
    include_str!("schema/state_1.sql"),
    include_str!("schema/state_2.sql"),
    include_str!("schema/state_3.sql"),
];

/// Content that views have left out; then the branches it belongs to, and what
/// it is found by.
pub(super) const JOURNAL: &[&str] = &[
    include_str!("schema/journal_1.sql"),
    include_str!("schema/journal_2.sql"),
];

/// How a file's format compares.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// It is the newest one, now if not before.
    Known,
    /// A newer version of this program wrote it.
    Newer(i64),
}

/// Brings a file to the newest format.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    steps: &[&'static str],
) -> Result<Format, Error> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    // Mostly there is nothing to do, and nothing to lock for it.
    match version(connection).await? {
        found if found > known => return Ok(Format::Newer(found)),
        found if found == known => return Ok(Format::Known),
        _ => {}
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let found = version(&mut transaction).await?;
    if found > known {
        return Ok(Format::Newer(found));
    }
    let taken = usize::try_from(found).unwrap_or(0);
    for step in steps.iter().skip(taken) {
        sqlx::raw_sql(*step).execute(&mut *transaction).await?;
    }
    let stamp = AssertSqlSafe(format!("PRAGMA user_version = {known}"));
    sqlx::raw_sql(stamp).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(Format::Known)
}

/// The format a file says it has.
pub(super) async fn version(connection: &mut SqliteConnection) -> Result<i64, Error> {
    let row = sqlx::query("PRAGMA user_version")
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}
