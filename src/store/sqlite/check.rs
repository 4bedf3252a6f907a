//! Whether a file can be trusted, found out before it is used.
//!
//! SQLite's quick check walks every page, at a few hundred megabytes a second
//! from memory and far slower from a cold disk, and nothing is served before
//! the store is open. So it has a budget: files of the usual size are checked
//! whole, a large one as far as the budget goes. What is missed that way shows
//! up later as an error of a single look-up, which a request survives; it is
//! noted then, and a file with such a note must pass the whole check in a much
//! larger budget or is set aside.
//!
//! The index of words is checked by walking every word of it, which takes ten
//! times as long as all the rest; so that is left to the whole check, and
//! without a note only the tables are looked at, its own among them.

use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Error, Row};

use super::database::{Nature, nature};

/// How long a start may be delayed by a file that nothing is known against.
pub(super) const USUAL: Duration = Duration::from_millis(1_500);

/// The same for a file that has shown damage.
pub(super) const SUSPECTED: Duration = Duration::from_secs(30);

/// The tables of a file that has an index of words; none if it has not.
const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 \
    AND EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage = 0)";

/// What SQLite says if it was stopped while it walked the words.
const UNFINISHED: &str = "unable to validate the inverted index";

/// How often the clock is looked at, in SQLite's own steps.
const STEPS: i32 = 1_000;

/// What the check came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Everything is in order.
    Sound,
    /// The budget was used up before anything was found wrong.
    Partly,
    /// This is wrong.
    Damaged(String),
}

/// Looks for damage for at most as long as the budget says; at everything, or
/// at all but the words.
pub(super) async fn check(
    connection: &mut SqliteConnection,
    budget: Duration,
    everything: bool,
) -> Result<Checked, Error> {
    let until = Instant::now() + budget;
    connection
        .lock_handle()
        .await?
        .set_progress_handler(STEPS, move || Instant::now() < until);
    let found = look(connection, everything).await;
    connection.lock_handle().await?.remove_progress_handler();
    match found {
        Ok(None) => Ok(Checked::Sound),
        Ok(Some(why)) if why.contains(UNFINISHED) => Ok(Checked::Partly),
        Ok(Some(why)) => Ok(Checked::Damaged(why)),
        Err(error) => match nature(&error) {
            Nature::Interrupted => Ok(Checked::Partly),
            Nature::Damage => Ok(Checked::Damaged(error.to_string())),
            _ => Err(error),
        },
    }
}

/// The first thing that is wrong.
async fn look(
    connection: &mut SqliteConnection,
    everything: bool,
) -> Result<Option<String>, Error> {
    let mut checks = Vec::new();
    if !everything {
        for row in sqlx::query(TABLES).fetch_all(&mut *connection).await? {
            let name: String = row.try_get(0)?;
            let name = name.replace('\'', "''");
            checks.push(format!("PRAGMA quick_check('{name}')"));
        }
    }
    if checks.is_empty() {
        checks.push("PRAGMA quick_check(1)".to_owned());
    }
    for check in checks {
        let row = sqlx::query(AssertSqlSafe(check))
            .fetch_one(&mut *connection)
            .await?;
        let word: String = row.try_get(0)?;
        if word != "ok" {
            return Ok(Some(word));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    #[tokio::test]
    async fn a_check_ends_with_its_budget_and_leaves_the_connection_usable() {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("large.db"))
            .create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let fill = "CREATE TABLE rows (row BLOB); INSERT INTO rows \
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT 20000) \
            SELECT randomblob(400) FROM numbers";
        sqlx::raw_sql(fill).execute(&mut connection).await.unwrap();
        let none = check(&mut connection, Duration::ZERO, false).await.unwrap();
        assert_eq!(none, Checked::Partly);
        let enough = check(&mut connection, Duration::from_mins(1), false).await;
        assert_eq!(enough.unwrap(), Checked::Sound);
    }
}
