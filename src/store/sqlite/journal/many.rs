//! Statements about many things at once: the way to SQLite's thread and back
//! costs as much as the work for several.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Error, Row};

use super::Question;

/// Rows that one statement writes.
const TOGETHER: [usize; 6] = [32, 16, 8, 4, 2, 1];

/// A statement that writes several rows.
pub(super) struct Rows {
    /// What stands before the rows.
    pub(super) before: &'static str,
    /// One row, in brackets.
    pub(super) row: &'static str,
    /// What stands behind them.
    pub(super) after: &'static str,
}

impl Rows {
    /// Writes rows; how many were changed.
    pub(super) async fn write<T>(
        &self,
        connection: &mut SqliteConnection,
        rows: &[T],
        bind: impl Fn(Question, &T) -> Question,
    ) -> Result<u64, Error> {
        let mut left = rows;
        let mut changed = 0;
        for size in TOGETHER {
            if left.len() < size {
                continue;
            }
            let values = vec![self.row; size].join(", ");
            let sql = format!("{} {values} {}", self.before, self.after);
            while let Some((together, rest)) = left.split_at_checked(size) {
                let write = sqlx::query(AssertSqlSafe(sql.clone()));
                let write = together.iter().fold(write, &bind);
                changed += write.execute(&mut *connection).await?.rows_affected();
                left = rest;
            }
        }
        Ok(changed)
    }
}

/// The part of a statement that makes a table of names out of one string of
/// bytes, `?1`, in which they stand one after the other.
macro_rules! names {
    ($size:literal) => {
        concat!(
            "(WITH RECURSIVE keys (at) AS (SELECT 1 UNION ALL SELECT at + ",
            $size,
            " FROM keys WHERE at + ",
            $size,
            " <= length(?1)) SELECT substr(?1, at, ",
            $size,
            ") FROM keys)"
        )
    };
}
pub(super) use names;

/// A number that a statement finds.
pub(super) async fn count(
    connection: &mut SqliteConnection,
    question: Question,
) -> Result<i64, Error> {
    question.fetch_one(connection).await?.try_get(0)
}
