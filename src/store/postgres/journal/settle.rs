//! Deciding where a conversation belongs that its chain alone does not tell: the
//! first word of it, a fork, one of which something was lost.
//!
//! Those that speak of one session go one after the other, by a lock that ends
//! with the transaction, so that a session begins once.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, fetch, maybe};
use super::super::rows::number;
use super::super::trouble::Trouble;
use super::branches::{BRANCHES, Numbered, branch};
use super::place::{ATTEMPTS, arrive};
use crate::engine::ids::LineageId;
use crate::store::journal::growth::{self, Belongs, Found};
use crate::store::journal::{Trace, room};
use crate::store::{Moment, StoreError};

impl PostgresStore {
    /// The number of the branch to which a conversation belongs, which is made
    /// if there is none.
    pub(super) async fn settle(&self, trace: &Trace, now: Moment) -> Result<i64, StoreError> {
        let patience = self.lane.patience();
        // What was begun and lost would be a branch with nothing in it, which
        // the next word of the conversation finds again by its place.
        let begin = Purpose::Plain.begin(patience);
        let trace = trace.clone();
        let work = async move |connection: &mut PgConnection| {
            let begin = AssertSqlSafe(begin.clone());
            let mut transaction = connection.begin_with(begin).await?;
            let number = decide(&mut transaction, &trace, now).await?;
            transaction.commit().await?;
            Ok(number)
        };
        self.lane.run(patience, work).await
    }
}

async fn decide(connection: &mut PgConnection, trace: &Trace, now: Moment) -> Result<i64, Trouble> {
    let mut found = look(connection, trace).await?;
    let mut take = |role: i64| {
        let at = found.iter().position(|(held, ..)| *held == role)?;
        let (_, held, messages) = found.swap_remove(at);
        Some((held, messages))
    };
    let (here, from) = (take(0), take(1));
    let candidates = [&here, &from].map(|held| {
        let held = held.as_ref();
        held.map(|(held, _)| (held.branch.id, held.number))
    });
    let known = |id: LineageId| {
        let mut known = candidates.iter().flatten();
        known
            .find(|(held, _)| *held == id)
            .map(|(_, number)| *number)
    };
    let found = Found {
        here: here.map(|(held, _)| held.branch),
        from: from.map(|(held, messages)| (held.branch, messages)),
    };
    match growth::belongs(trace, found) {
        Belongs::There(branch) | Belongs::Grows(branch) => known(branch.id),
        Belongs::Begins(parent) => {
            let left = parent.and_then(|(id, _)| known(id));
            begin(connection, trace, parent, left, now).await?
        }
    }
    .ok_or(Trouble::Sql(sqlx::Error::RowNotFound))
}

/// The branches that have been at its place and at the newest known one before:
/// which of them it is, and the messages there.
async fn look(
    connection: &mut PgConnection,
    trace: &Trace,
) -> Result<Vec<(i64, Numbered, u32)>, Trouble> {
    let tenant = bytes(trace.tenant.as_bytes());
    let here = bytes(trace.here.0.as_bytes());
    let before = trace.before().into_iter();
    let before: Vec<String> = before.map(|(chain, _)| bytes(chain.as_bytes())).collect();
    let before = before.join(", ");
    // The newest known place before it.
    let newest = format!(
        "unnest(ARRAY[{before}]::bytea[]) WITH ORDINALITY AS before (chain, rank) \
         JOIN longhaul.places p ON p.chain = before.chain \
         JOIN longhaul.branches b ON b.number = p.branch \
         LEFT JOIN longhaul.branches parents ON parents.number = b.parent \
         WHERE b.id IS NOT NULL AND b.tenant = {tenant} ORDER BY before.rank LIMIT 1"
    );
    let mut both = [trace.tenant.as_bytes().as_slice(), trace.lineage.as_bytes()].concat();
    both.extend_from_slice(b"branch");
    let lock = i64::from_le_bytes(crate::store::rule::proof(&both));
    let sql = format!(
        "SELECT pg_is_in_recovery() FROM pg_advisory_xact_lock({})",
        number(lock)
    );
    for row in fetch(connection, sql).await? {
        if row.try_get(0)? {
            return Err(Trouble::Standby);
        }
    }
    let sql = format!(
        "SELECT {BRANCHES}, 0::bigint, p.messages FROM longhaul.places p JOIN longhaul.branches b \
         ON b.number = p.branch LEFT JOIN longhaul.branches parents ON parents.number = b.parent \
         WHERE p.chain = {here} AND b.id IS NOT NULL \
         UNION ALL (SELECT {BRANCHES}, 1, p.messages FROM {newest})"
    );
    let read = |row: &PgRow| {
        let messages: i64 = row.try_get(11)?;
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        Ok((row.try_get(10)?, branch(row)?, messages))
    };
    let lock = format!(
        "SELECT number FROM longhaul.branches WHERE number IN \
         (SELECT branch FROM longhaul.places WHERE chain = {here} \
         UNION ALL (SELECT b.number FROM {newest})) ORDER BY number FOR UPDATE"
    );
    // What was found first may be gone by the time it is had.
    for _ in 0..ATTEMPTS {
        let locked = fetch(connection, lock.clone()).await?;
        let locked: Result<Vec<i64>, sqlx::Error> =
            locked.iter().map(|row| row.try_get(0)).collect();
        let locked = locked?;
        let rows = fetch(connection, sql.clone()).await?;
        let found: Result<Vec<(i64, Numbered, u32)>, sqlx::Error> = rows.iter().map(read).collect();
        let found = found?;
        if found
            .iter()
            .all(|(_, held, _)| locked.contains(&held.number))
        {
            return Ok(found);
        }
    }
    Err(Trouble::Sql(sqlx::Error::RowNotFound))
}

/// Makes a new branch, under the first of its names that is free.
async fn begin(
    connection: &mut PgConnection,
    trace: &Trace,
    parent: Option<(LineageId, u32)>,
    left: Option<i64>,
    now: Moment,
) -> Result<Option<i64>, Trouble> {
    for id in growth::names(trace) {
        let branch = growth::begin(trace, id, parent, now);
        let sql = format!(
            "INSERT INTO longhaul.branches (id, lineage, tenant, label, parent, common, messages, \
             began_at, seen_at, size) VALUES ({}, {}, {}, {}, {}, {}, {}, {now}, {now}, {}) \
             ON CONFLICT (id) DO NOTHING RETURNING number",
            bytes(branch.id.as_bytes()),
            bytes(branch.lineage.as_bytes()),
            bytes(branch.tenant.as_bytes()),
            maybe(branch.label.as_ref().map(String::as_bytes)),
            left.map_or_else(|| "NULL".to_owned(), number),
            parent.map_or(0, |(_, common)| common),
            branch.messages,
            room::BRANCH,
            now = number(now.0),
        );
        if let Some(row) = fetch(connection, sql).await?.first() {
            let number: i64 = row.try_get(0)?;
            // With its place, or the next one to come would begin it again.
            let arrive = arrive(trace, now);
            let sql = format!("SELECT set_config('longhaul.branch', '{number}', true); {arrive}");
            fetch(connection, sql).await?;
            return Ok(Some(number));
        }
    }
    Ok(None)
}
