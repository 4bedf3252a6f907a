//! Leases. Time is the database's, so that it does not matter how wrong the
//! clocks of replicas are.

use std::time::Duration;

use super::PostgresStore;
use super::ask::{Purpose, bytes, list};
use crate::store::{Holder, StoreError};

impl PostgresStore {
    pub(super) async fn take_lease(
        &self,
        name: &str,
        holder: Holder,
        time: Duration,
    ) -> Result<bool, StoreError> {
        let sql = format!(
            "INSERT INTO longhaul.leases AS held (name, holder, until) \
             VALUES ({}, {}, clock_timestamp() + {} * interval '1 millisecond') \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
             WHERE held.until < clock_timestamp() OR held.holder = excluded.holder \
             RETURNING true",
            bytes(name.as_bytes()),
            bytes(holder.as_bytes()),
            time.as_millis(),
        );
        // Whoever has one must have it when the database comes back from a crash.
        let taken = self.lane.ask(Purpose::Durable, &sql, |_| Ok(())).await?;
        Ok(!taken.is_empty())
    }

    pub(super) async fn has_lease(&self, names: &[String]) -> Result<bool, StoreError> {
        if names.is_empty() {
            return Ok(false);
        }
        let sql = format!(
            "SELECT 1 FROM longhaul.leases \
             WHERE until >= clock_timestamp() AND name IN ({}) LIMIT 1",
            list(names.iter().map(String::as_bytes)),
        );
        let held = self.lane.ask(Purpose::Reading, &sql, |_| Ok(())).await?;
        Ok(!held.is_empty())
    }

    pub(super) async fn give_back_lease(
        &self,
        name: &str,
        holder: Holder,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "DELETE FROM longhaul.leases WHERE name = {} AND holder = {}",
            bytes(name.as_bytes()),
            bytes(holder.as_bytes()),
        );
        self.lane.ask(Purpose::Plain, &sql, |_| Ok(())).await?;
        Ok(())
    }

    /// Removes those that expired long ago, whose holders have died.
    pub(super) async fn forget_leases(&self) -> Result<(), StoreError> {
        let sql = "DELETE FROM longhaul.leases \
            WHERE until < clock_timestamp() - interval '1 hour'";
        self.lane.ask(Purpose::Plain, sql, |_| Ok(())).await?;
        Ok(())
    }
}
