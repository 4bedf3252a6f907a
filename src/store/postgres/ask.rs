//! Questions to the database, each one message.
//!
//! A message is plain text: some settings for this transaction only, then the
//! statement with its values written into it. That is one round trip, and it
//! works behind a pooler that may serve each transaction by another session: no
//! statement is prepared and no setting outlives the message. Values are digits
//! and hexadecimal only, so nothing in them can be taken for SQL. With every
//! message the database says whether it is a standby, since a name may lead to
//! another server from one day to the next and a standby would answer, wrongly.

use std::fmt::Write;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};

use super::lane::Lane;
use super::trouble::Trouble;
use crate::store::StoreError;

/// How long a transaction may lie between two of its messages, in milliseconds.
/// By then whoever began it has vanished, and its locks stand in everybody's way.
const ABANDONED: u32 = 5_000;

/// What a message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It writes what must survive a power cut.
    Durable,
    /// It writes what may be lost in one.
    Plain,
    /// It reads.
    Reading,
}

impl Purpose {
    /// What holds for one transaction, to stand before its first statement.
    pub(super) fn settings(self, patience: Duration) -> String {
        let limit = patience.as_millis().max(1);
        let lasts = match self {
            Self::Durable => "; SET LOCAL synchronous_commit = on",
            Self::Plain => "; SET LOCAL synchronous_commit = off",
            Self::Reading => "",
        };
        format!("SET LOCAL statement_timeout = {limit}; SET LOCAL bytea_output = hex{lasts}")
    }

    /// How a transaction of several messages begins.
    pub(super) fn begin(self, patience: Duration) -> String {
        let settings = self.settings(patience);
        format!("BEGIN; {settings}; SET LOCAL idle_in_transaction_session_timeout = {ABANDONED}")
    }
}

impl Lane {
    /// Sends one statement; the rows that it gives back, read.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        purpose: Purpose,
        sql: &str,
        read: fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.ask_within(self.patience(), purpose, sql, read).await
    }

    /// The same with another limit.
    pub(super) async fn ask_within<T: Send + 'static>(
        &self,
        patience: Duration,
        purpose: Purpose,
        sql: &str,
        read: fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let settings = purpose.settings(patience);
        let message = format!("{settings}; SELECT pg_is_in_recovery(); {sql}");
        let work = async move |connection: &mut PgConnection| {
            let rows = fetch(connection, message.clone()).await?;
            let mut rows = rows.iter();
            let standby = rows.next().map(|row| row.try_get(0)).transpose()?;
            if standby != Some(false) {
                return Err(Trouble::Standby);
            }
            let read: Result<Vec<T>, sqlx::Error> = rows.map(read).collect();
            Ok(read?)
        };
        self.run(patience, work).await
    }
}

/// Sends a message; all rows that its statements give back.
pub(super) async fn fetch(
    connection: &mut PgConnection,
    message: String,
) -> Result<Vec<PgRow>, Trouble> {
    let message = sqlx::raw_sql(AssertSqlSafe(message));
    Ok(message.fetch_all(connection).await?)
}

/// Bytes as SQL, the same whatever a database takes a backslash for.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let digit = |half: u8| {
        char::from(if half < 10 {
            b'0' + half
        } else {
            b'a' - 10 + half
        })
    };
    let mut sql = String::with_capacity(bytes.len() * 2 + 16);
    sql.push_str(r"E'\\x");
    for byte in bytes {
        sql.push(digit(byte >> 4));
        sql.push(digit(byte & 15));
    }
    sql.push_str("'::bytea");
    sql
}

/// Bytes or nothing as SQL.
pub(super) fn maybe(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "NULL::bytea".to_owned(), bytes)
}

/// Several digests as the list of an `IN`; there must be at least one.
pub(super) fn list<'a>(digests: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sql = String::new();
    for digest in digests {
        let before = if sql.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(sql, "{before}{}", bytes(digest));
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_value_can_be_taken_for_sql() {
        assert_eq!(bytes(b"'; \0\xff\\"), r"E'\\x273b2000ff5c'::bytea");
        assert_eq!(bytes(b""), r"E'\\x'::bytea");
        assert_eq!(maybe(None), "NULL::bytea");
        let two: [&[u8]; 2] = [b"\x01", b"\x2a"];
        assert_eq!(list(two), r"E'\\x01'::bytea, E'\\x2a'::bytea");
    }
}
