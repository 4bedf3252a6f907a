//! The sessions that marks tell of.
//!
//! Nobody's request waits for these: an operator looks. So the list is made by
//! walking the index of lineages, which holds all that it is ordered by, and only
//! the marks that are shown are read.

use std::collections::HashMap;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::collect;
use super::database::UNHURRIED;
use super::readers::Question;
use super::rows::{digest, marks, select_marks};
use super::state::State;
use crate::engine::ids::LineageId;
use crate::store::sessions::{Behind, SessionRow, Sessions};
use crate::store::{Answer, MarkRow, Moment, StoreError, rule};

const LIST: &str = "SELECT lineage, max(seen_at) AS last, count(*) FROM marks GROUP BY lineage \
    HAVING (last, lineage) < (?1, ?2) ORDER BY last DESC, lineage DESC LIMIT ?3";

const FIRST: &str = "SELECT lineage, max(seen_at) AS last, count(*) FROM marks GROUP BY lineage \
    ORDER BY last DESC, lineage DESC LIMIT ?1";

/// The newest mark of each of some lineages, given as one string of bytes.
const NEWEST: &str = select_marks!(
    "rowid IN (WITH RECURSIVE keys (at) AS (\
        SELECT 1 UNION ALL SELECT at + 16 FROM keys WHERE at + 16 < length(?1)) \
        SELECT (SELECT rowid FROM marks WHERE lineage = substr(?1, at, 16) \
            ORDER BY seen_at DESC, messages DESC, chain DESC, model DESC LIMIT 1) FROM keys)"
);

const OF: &str = select_marks!(
    "rowid IN (SELECT rowid FROM marks WHERE lineage = ?1 \
        ORDER BY seen_at DESC, messages DESC, chain DESC, model DESC LIMIT ?2)"
);

const NAMED: &str = "SELECT DISTINCT lineage FROM marks WHERE lineage BETWEEN ?1 AND ?2 LIMIT ?3";

/// Sessions whose marks are read at once.
const BATCH: usize = 64;

impl Sessions for State {
    fn list(&self, behind: Option<Behind>, limit: u32) -> Answer<'_, Vec<SessionRow>> {
        Box::pin(list(self, behind, limit))
    }

    fn marks_of(&self, lineage: LineageId, limit: u32) -> Answer<'_, Vec<MarkRow>> {
        Box::pin(async move {
            let question = sqlx::query(OF)
                .bind(lineage.as_bytes().to_vec())
                .bind(limit);
            let mut found = many(self, question).await?;
            found.sort_by(|a, b| rule::recency(b).cmp(&rule::recency(a)));
            Ok(found)
        })
    }

    fn named<'a>(&'a self, beginning: &'a str, limit: u32) -> Answer<'a, Vec<LineageId>> {
        Box::pin(async move {
            let Some((first, last)) = rule::named(beginning) else {
                return Ok(Vec::new());
            };
            let question = sqlx::query(NAMED)
                .bind(first.as_bytes().to_vec())
                .bind(last.as_bytes().to_vec())
                .bind(limit);
            let name = |row: &SqliteRow| digest(row.try_get(0)?, LineageId::from_slice);
            self.read(question, name).await
        })
    }

    fn forget(&self, lineage: LineageId) -> Answer<'_, u64> {
        Box::pin(collect::forget(self, lineage))
    }
}

async fn list(
    state: &State,
    behind: Option<Behind>,
    limit: u32,
) -> Result<Vec<SessionRow>, StoreError> {
    let question = match behind {
        None => sqlx::query(FIRST).bind(limit),
        Some((Moment(last), lineage)) => sqlx::query(LIST)
            .bind(last)
            .bind(lineage.as_bytes().to_vec())
            .bind(limit),
    };
    let listed = state
        .read_within(UNHURRIED, question, |row| {
            let lineage = digest(row.try_get(0)?, LineageId::from_slice)?;
            Ok((lineage, row.try_get::<i64, _>(2)?.unsigned_abs()))
        })
        .await?;
    let mut sessions = Vec::new();
    for batch in listed.chunks(BATCH) {
        let names = batch.iter().flat_map(|(lineage, _)| *lineage.as_bytes());
        let question = sqlx::query(NEWEST).bind(names.collect::<Vec<u8>>());
        let newest = many(state, question).await?.into_iter();
        let mut newest: HashMap<_, _> = newest.map(|mark| (mark.lineage, mark)).collect();
        // One that was collected meanwhile is no session any more.
        sessions.extend(batch.iter().filter_map(|(lineage, marks)| {
            let newest = newest.remove(lineage)?;
            let marks = *marks;
            Some(SessionRow { newest, marks })
        }));
    }
    Ok(sessions)
}

async fn many(state: &State, question: Question) -> Result<Vec<MarkRow>, StoreError> {
    let rows = state.readers.rows_within(UNHURRIED, question).await?;
    marks(rows.first()).map_err(|error| state.database.damaged(&error.to_string()))
}
