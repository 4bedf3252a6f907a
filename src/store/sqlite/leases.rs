//! Leases in `state.db`, because several processes may share the files. Time is
//! the machine's, which they share too.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row};

use super::database::Purpose;
use super::rows::number;
use super::state::State;
use crate::store::{Holder, StoreError};

macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

const TAKE: &str = concat!(
    "INSERT INTO leases (name, holder, until) VALUES (?1, ?2, ",
    now!(),
    " + ?3) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
     WHERE until < ",
    now!(),
    " OR holder = excluded.holder"
);

const FORGET: &str = concat!("DELETE FROM leases WHERE until < ", now!());

const HELD: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM leases WHERE until >= ",
    now!(),
    " AND name IN"
);

const GIVE_BACK: &str = "DELETE FROM leases WHERE name = ?1 AND holder = ?2";

impl State {
    pub(super) async fn lease(
        &self,
        name: &str,
        holder: Holder,
        time: Duration,
    ) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let time = number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.lane
            .run(Purpose::Plain, async move |connection| {
                let taken = sqlx::query(TAKE)
                    .bind(name)
                    .bind(holder.as_bytes().as_slice())
                    .bind(time)
                    .execute(connection)
                    .await?;
                Ok(taken.rows_affected() > 0)
            })
            .await
    }

    pub(super) async fn is_leased(&self, names: &[String]) -> Result<bool, StoreError> {
        let places = vec!["?"; names.len()].join(", ");
        let sql = format!("{HELD} ({places}))");
        let question = sqlx::query(AssertSqlSafe(sql));
        let question = names
            .iter()
            .fold(question, |asked, name| asked.bind(name.clone()));
        let held = self.read(question, |row| row.try_get::<bool, _>(0)).await?;
        Ok(held.contains(&true))
    }

    pub(super) async fn release(&self, name: &str, holder: Holder) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.lane
            .run(Purpose::Plain, async move |connection| {
                sqlx::query(GIVE_BACK)
                    .bind(name)
                    .bind(holder.as_bytes().as_slice())
                    .execute(connection)
                    .await?;
                Ok(())
            })
            .await
    }

    /// Removes those that have expired, whose holders have died.
    pub(super) async fn forget_leases(&self) -> Result<(), StoreError> {
        self.lane
            .run(Purpose::Plain, async |connection: &mut SqliteConnection| {
                sqlx::query(FORGET).execute(connection).await?;
                Ok(())
            })
            .await
    }
}
