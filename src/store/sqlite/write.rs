//! Writing marks and overlays: the commit of a new overlay, and the figures.
//!
//! A commit reads what is there, lets the rule decide and writes, all inside
//! one transaction that excludes every other writer, also of other processes.
//! Figures go in many at once, by statements that apply the same rule.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Error};

use super::rows::{bind, marks, select_marks};
use crate::store::rule::{self, Verdict};
use crate::store::{Commit, Committed, MarkRow};

/// Writers of all processes queue for the lock here and not half way.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

const PUT: &str = "INSERT OR REPLACE INTO marks \
    (chain, model, lineage, messages, overlay, view, hint, sealed, figures, seen_at, size) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Marks written by one statement: the way to SQLite's thread and back costs as
/// much as writing several.
const TOGETHER: [usize; 3] = [32, 8, 1];

/// The statement that notes so many figures, by the rule of `rule::renew`.
fn record_sql(rows: usize) -> String {
    let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let rows = vec![row; rows].join(", ");
    let renewed = [
        "lineage", "messages", "view", "hint", "figures", "seen_at", "size",
    ]
    .map(|column| {
        format!(
            "{column} = iif(excluded.seen_at >= marks.seen_at, excluded.{column}, marks.{column})"
        )
    })
    .join(", ");
    format!(
        "WITH new (chain, model, lineage, messages, overlay, view, hint, sealed, figures, seen_at, size) \
         AS (VALUES {rows}) \
         INSERT INTO marks (chain, model, lineage, messages, overlay, view, hint, sealed, figures, seen_at, size) \
         SELECT * FROM new WHERE overlay IS NULL OR EXISTS (SELECT 1 FROM overlays WHERE id = new.overlay) \
         ON CONFLICT (chain, model) DO UPDATE SET {renewed}, \
         overlay = excluded.overlay, sealed = marks.sealed OR excluded.sealed \
         WHERE marks.overlay IS excluded.overlay \
         OR (excluded.sealed AND NOT marks.sealed AND excluded.seen_at >= marks.seen_at)"
    )
}

/// How a commit ended, or that it points to nothing.
pub(super) type Outcome = Option<Committed>;

/// Makes an overlay hold at a place; nothing if the overlay is not to be found.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    commit: &Commit,
) -> Result<Outcome, Error> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let row = sqlx::query(select_marks!("chain = ?1 AND model = ?2"))
        .bind(commit.mark.chain.as_bytes().as_slice())
        .bind(commit.mark.model.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
    let held = marks(row.as_ref())?.pop();
    match (rule::judge(held.as_ref(), commit), held) {
        (Verdict::Lost, Some(held)) => {
            transaction.rollback().await?;
            return Ok(Some(Committed::Lost(Box::new(held))));
        }
        // What is there already may have come by figures, which are not
        // durable: it is written again.
        (Verdict::There | Verdict::Write | Verdict::Lost, _) => {}
    }
    if !bring_overlay(&mut transaction, commit).await? {
        transaction.rollback().await?;
        return Ok(None);
    }
    let put = bind(sqlx::query(PUT), &commit.mark);
    put.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(Some(Committed::Done))
}

/// Writes the overlay unless it is there; whether it is there now.
async fn bring_overlay(connection: &mut SqliteConnection, commit: &Commit) -> Result<bool, Error> {
    if let Some((id, body)) = &commit.overlay {
        sqlx::query(
            "INSERT INTO overlays (id, proof, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )
        .bind(id.as_bytes().as_slice())
        .bind(rule::proof(body).as_slice())
        .bind(body.as_slice())
        .execute(connection)
        .await?;
        return Ok(true);
    }
    let Some(id) = commit.mark.overlay else {
        return Ok(true);
    };
    let found = sqlx::query("SELECT 1 FROM overlays WHERE id = ?1")
        .bind(id.as_bytes().as_slice())
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

/// Notes figures; those whose overlay does not hold afterwards.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    marks: &[MarkRow],
) -> Result<Vec<MarkRow>, Error> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let (mut left, mut taken) = (marks, 0);
    for size in TOGETHER {
        let sql = record_sql(size);
        while let Some((together, rest)) = left.split_at_checked(size) {
            let record = sqlx::query(AssertSqlSafe(sql.clone()));
            let record = together.iter().fold(record, bind);
            taken += record.execute(&mut *transaction).await?.rows_affected();
            left = rest;
        }
    }
    let places: HashSet<_> = marks.iter().map(|mark| (mark.chain, &mark.model)).collect();
    // Mostly all are taken, each at a place of its own: nobody need ask which.
    let all = taken == marks.len() as u64 && places.len() == marks.len();
    let lost = if all {
        Vec::new()
    } else {
        not_holding(&mut transaction, marks).await?
    };
    transaction.commit().await?;
    Ok(lost)
}

/// Those of some marks at whose places another overlay holds, or none at all.
async fn not_holding(
    connection: &mut SqliteConnection,
    marks: &[MarkRow],
) -> Result<Vec<MarkRow>, Error> {
    let mut lost = Vec::new();
    for mark in marks {
        let overlay = mark.overlay.map(|id| id.as_bytes().to_vec());
        let found =
            sqlx::query("SELECT 1 FROM marks WHERE chain = ?1 AND model = ?2 AND overlay IS ?3")
                .bind(mark.chain.as_bytes().as_slice())
                .bind(mark.model.as_str())
                .bind(overlay)
                .fetch_optional(&mut *connection)
                .await?;
        if found.is_none() {
            lost.push(mark.clone());
        }
    }
    Ok(lost)
}

/// Remembers something learned.
pub(super) async fn learn(
    connection: &mut SqliteConnection,
    key: &str,
    value: &str,
) -> Result<(), Error> {
    sqlx::query("INSERT OR REPLACE INTO learned (key, value) VALUES (?1, ?2)")
        .bind(key)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}
