//! The format of the tables, each version a step from the one before.
//!
//! The database says in `longhaul.format` which one it has. Steps are taken
//! inside one transaction under a lock that lasts as long as the transaction,
//! which also holds behind a pooler that gives each transaction another session.
//! So replicas that start at once take each step once, and one that dies leaves
//! the format it found. A released step is never edited: a change is a new step.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

use super::trouble::Trouble;

const STEPS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// Only the first to come may wait for as long as the steps take; whoever
/// vanishes half way holds nobody up.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 600000; \
    SET LOCAL idle_in_transaction_session_timeout = 5000; \
    SELECT pg_advisory_xact_lock(7813567290041)";

/// The schema is made only where it is missing: who may not make one can be
/// given one.
const FIRST: &str = "DO $$ BEGIN \
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'longhaul') \
    THEN CREATE SCHEMA longhaul; END IF; END $$; \
    CREATE TABLE longhaul.format (version bigint NOT NULL); \
    INSERT INTO longhaul.format VALUES (0)";

/// The first right that is missing to use the tables.
const RIGHTS: &str = "SELECT wanted || ' on longhaul.' || relname \
    FROM pg_catalog.pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS wanted \
    WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'longhaul') \
    AND relkind = 'r' AND relname <> 'format' \
    AND NOT pg_catalog.has_table_privilege(pg_class.oid, wanted) ORDER BY 1 LIMIT 1";

/// Refuses a role that may look and not write: it would seem to work until
/// something must be remembered.
pub(super) async fn check_rights(connection: &mut PgConnection) -> Result<(), Trouble> {
    let missing = sqlx::raw_sql(RIGHTS).fetch_optional(connection).await?;
    match missing {
        None => Ok(()),
        Some(row) => Err(Trouble::Denied(row.try_get(0)?)),
    }
}

/// Whether the database has the newest format; none: it has no tables yet. Mostly
/// it has, and nothing is to be locked for it.
pub(super) async fn is_newest(connection: &mut PgConnection) -> Result<Option<bool>, Trouble> {
    let found = version(connection).await?;
    let newest = is_known(found, known())?;
    Ok(found.map(|_| newest))
}

/// Brings the database to the newest format.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), Trouble> {
    let known = known();
    let mut transaction = connection.begin_with(BEGIN).await?;
    let found = version(&mut transaction).await?;
    if is_known(found, known)? {
        return Ok(transaction.rollback().await?);
    }
    if found.is_none() {
        let made = sqlx::raw_sql(FIRST).execute(&mut *transaction).await;
        made.map_err(|error| match error.as_database_error() {
            Some(refused) if refused.code().as_deref() == Some("42501") => {
                Trouble::Denied("CREATE on the database, or on its schema longhaul".to_owned())
            }
            _ => error.into(),
        })?;
    }
    let taken = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    for step in STEPS.iter().skip(taken) {
        sqlx::raw_sql(*step).execute(&mut *transaction).await?;
    }
    let stamp = AssertSqlSafe(format!("UPDATE longhaul.format SET version = {known}"));
    sqlx::raw_sql(stamp).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// The newest format.
fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

fn is_known(found: Option<i64>, known: i64) -> Result<bool, Trouble> {
    match found {
        Some(found) if found > known => Err(Trouble::Newer { found, known }),
        found => Ok(found == Some(known)),
    }
}

/// The format that the database says it has; none: it has no tables yet. A
/// session remembers which names it did not find, so the catalogue is read.
async fn version(connection: &mut PgConnection) -> Result<Option<i64>, Trouble> {
    let there = sqlx::raw_sql(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables \
         WHERE schemaname = 'longhaul' AND tablename = 'format')",
    )
    .fetch_one(&mut *connection)
    .await?;
    if !there.try_get::<bool, _>(0)? {
        return Ok(None);
    }
    let row = sqlx::raw_sql("SELECT version FROM longhaul.format")
        .fetch_one(connection)
        .await?;
    Ok(Some(row.try_get(0)?))
}
