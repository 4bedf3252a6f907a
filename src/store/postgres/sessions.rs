//! The sessions that marks tell of.
//!
//! Nobody's request waits for these: an operator looks.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::ask::{Purpose, bytes};
use super::collect::UNHURRIED;
use super::rows::{MARK, digest, mark, number};
use crate::engine::ids::LineageId;
use crate::store::sessions::{Behind, SessionRow, Sessions};
use crate::store::{Answer, Collected, MarkRow, StoreError, rule};

/// What orders the marks of a session, the newest first.
const NEWEST: &str = "seen_at DESC, messages DESC, chain DESC, model DESC";

impl Sessions for PostgresStore {
    fn list(&self, behind: Option<Behind>, limit: u32) -> Answer<'_, Vec<SessionRow>> {
        Box::pin(self.list_sessions(behind, limit))
    }

    fn marks_of(&self, lineage: LineageId, limit: u32) -> Answer<'_, Vec<MarkRow>> {
        Box::pin(self.find_marks_of(lineage, limit))
    }

    fn named<'a>(&'a self, beginning: &'a str, limit: u32) -> Answer<'a, Vec<LineageId>> {
        Box::pin(self.find_named(beginning, limit))
    }

    fn forget(&self, lineage: LineageId) -> Answer<'_, u64> {
        Box::pin(async move {
            let mut done = Collected::default();
            self.remove_session(lineage, &mut done).await?;
            Ok(done.marks)
        })
    }
}

impl PostgresStore {
    async fn list_sessions(
        &self,
        behind: Option<Behind>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let only = behind.map_or_else(String::new, |(last, lineage)| {
            let lineage = bytes(lineage.as_bytes());
            let last = number(last.0);
            format!("HAVING (max(seen_at), lineage) < ({last}::bigint, {lineage})")
        });
        let sql = format!(
            "SELECT newest.*, sessions.marks FROM (SELECT lineage, max(seen_at) AS last, \
             count(*) AS marks FROM longhaul.marks GROUP BY lineage {only} \
             ORDER BY last DESC, lineage DESC LIMIT {limit}) AS sessions, \
             LATERAL (SELECT {MARK} FROM longhaul.marks WHERE lineage = sessions.lineage \
             ORDER BY {NEWEST} LIMIT 1) AS newest \
             ORDER BY sessions.last DESC, sessions.lineage DESC"
        );
        let read = |row: &PgRow| {
            Ok(SessionRow {
                newest: mark(row)?,
                marks: row.try_get::<i64, _>(10)?.unsigned_abs(),
            })
        };
        let purpose = Purpose::Reading;
        self.lane.ask_within(UNHURRIED, purpose, &sql, read).await
    }

    async fn find_marks_of(
        &self,
        lineage: LineageId,
        limit: u32,
    ) -> Result<Vec<MarkRow>, StoreError> {
        let sql = format!(
            "SELECT {MARK} FROM longhaul.marks WHERE lineage = {} ORDER BY {NEWEST} LIMIT {limit}",
            bytes(lineage.as_bytes())
        );
        let purpose = Purpose::Reading;
        self.lane.ask_within(UNHURRIED, purpose, &sql, mark).await
    }

    async fn find_named(&self, beginning: &str, limit: u32) -> Result<Vec<LineageId>, StoreError> {
        let Some((first, last)) = rule::named(beginning) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT DISTINCT lineage FROM longhaul.marks WHERE lineage BETWEEN {} AND {} \
             LIMIT {limit}",
            bytes(first.as_bytes()),
            bytes(last.as_bytes())
        );
        let read = |row: &_| digest(row, 0, LineageId::from_slice);
        let purpose = Purpose::Reading;
        self.lane.ask_within(UNHURRIED, purpose, &sql, read).await
    }
}
