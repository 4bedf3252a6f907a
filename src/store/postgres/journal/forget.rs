//! Forgetting a branch, in steps small enough not to be noticed.
//!
//! The first step makes sure that nothing finds it any more, or nothing beyond
//! what others have in common with it; what belonged to it then goes some rows
//! at a time. Whoever dies in between leaves rows that nothing leads to, and the
//! next collection goes on with them. Each step is a message, and locks the
//! branch before it looks at anything: whoever writes to a branch, or lets
//! another one leave it, holds that lock too.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes};
use super::super::collect::UNHURRIED;
use super::super::rows::{maybe_count, maybe_digest, number};
use crate::engine::ids::LineageId;
use crate::store::journal::{Forgotten, room};
use crate::store::{Moment, StoreError};

/// Rows of a kind that a step removes.
const ROWS: i64 = 200;

/// Branches that nothing finds any more, and those that are there for others but
/// have more than these need.
const UNFINISHED: &str = "SELECT number, parent, id FROM longhaul.branches b \
    WHERE forgotten AND (id IS NULL \
    OR NOT EXISTS (SELECT 1 FROM longhaul.branches c \
        WHERE c.parent = b.number AND c.id IS NOT NULL) \
    OR EXISTS (SELECT 1 FROM longhaul.entries WHERE branch = b.number AND message >= b.messages) \
    OR EXISTS (SELECT 1 FROM longhaul.messages WHERE branch = b.number AND message >= b.messages) \
    OR EXISTS (SELECT 1 FROM longhaul.promises WHERE branch = b.number AND behind > b.messages) \
    OR EXISTS (SELECT 1 FROM longhaul.links WHERE branch = b.number AND message >= b.messages)) \
    LIMIT 100";

/// A branch of which something goes.
#[derive(Clone, Copy)]
struct Going {
    number: i64,
    parent: Option<i64>,
    /// The messages of which everything stays, if others need it.
    common: Option<u32>,
}

impl PostgresStore {
    /// Forgets a branch that was not seen since a moment, and the pieces that
    /// only it needed and nobody used since another.
    pub(in super::super) async fn forget_branch(
        &self,
        id: LineageId,
        unseen_since: Moment,
        idle_since: Moment,
    ) -> Result<Forgotten, StoreError> {
        let mut done = Forgotten::default();
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let Some((going, new)) = self.hide(id, unseen_since).await? else {
                break;
            };
            done.branches += u64::from(new);
            next = self.clear(going, idle_since, &mut done).await?;
        }
        Ok(done)
    }

    /// Goes on with what somebody else began.
    pub(in super::super) async fn finish_forgetting(
        &self,
        idle_since: Moment,
        done: &mut Forgotten,
    ) -> Result<(), StoreError> {
        let read = |row: &PgRow| {
            let id = maybe_digest(row, 2, LineageId::from_slice)?;
            Ok((row.try_get::<i64, _>(0)?, row.try_get(1)?, id))
        };
        let purpose = Purpose::Reading;
        let unfinished = self.lane.ask_within(UNHURRIED, purpose, UNFINISHED, read);
        for (number, parent, id) in unfinished.await? {
            let next = if id.is_some() {
                id
            } else {
                let going = Going {
                    number,
                    parent,
                    common: None,
                };
                self.clear(going, idle_since, done).await?
            };
            if let Some(id) = next {
                let more = self.forget_branch(id, Moment(i64::MIN), idle_since).await?;
                done.entries += more.entries;
                done.blobs += more.blobs;
            }
        }
        Ok(())
    }

    /// Makes sure that nothing finds a branch any more, as far as others do not
    /// need it, and whether it was not forgotten before.
    async fn hide(
        &self,
        id: LineageId,
        unseen_since: Moment,
    ) -> Result<Option<(Going, bool)>, StoreError> {
        let which = format!(
            "b.id = {} AND (b.forgotten OR b.seen_at < {})",
            bytes(id.as_bytes()),
            number(unseen_since.0)
        );
        let sql = format!(
            "SELECT NULL::bigint, NULL::bigint, NULL::boolean, NULL::bigint FROM (\
             SELECT number FROM longhaul.branches b WHERE {which} FOR UPDATE) AS locked; \
             WITH found AS (SELECT b.number, b.parent, b.forgotten, (SELECT max(c.common) \
             FROM longhaul.branches c WHERE c.parent = b.number AND c.id IS NOT NULL) AS common \
             FROM longhaul.branches b WHERE {which}), \
             lost AS (DELETE FROM longhaul.places USING found WHERE places.branch = found.number \
             AND places.messages > coalesce(found.common, -1) RETURNING 1), \
             counted AS (SELECT count(*) AS places FROM lost), \
             cut AS (UPDATE longhaul.branches b SET forgotten = true, label = NULL, \
             id = CASE WHEN found.common IS NULL THEN NULL ELSE b.id END, \
             messages = least(b.messages, coalesce(found.common, b.messages)), \
             places = b.places - counted.places, size = b.size - {} * counted.places \
             FROM found, counted WHERE b.number = found.number) \
             SELECT number, parent, NOT forgotten, common FROM found",
            room::PLACE
        );
        let read = |row: &PgRow| {
            let Some(number) = row.try_get(0)? else {
                return Ok(None);
            };
            let going = Going {
                number,
                parent: row.try_get(1)?,
                common: maybe_count(row, 3)?,
            };
            Ok(Some((going, row.try_get(2)?)))
        };
        let purpose = Purpose::Plain;
        let found = self.lane.ask_within(UNHURRIED, purpose, &sql, read).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// Removes what belonged to a branch; the one it left, if that is only there
    /// for others and this was one of them.
    async fn clear(
        &self,
        going: Going,
        idle_since: Moment,
        done: &mut Forgotten,
    ) -> Result<Option<LineageId>, StoreError> {
        let sql = step(going, idle_since);
        let read = |row: &PgRow| Ok((row.try_get::<i64, _>(0)?, row.try_get::<i64, _>(1)?));
        loop {
            let purpose = Purpose::Plain;
            let gone = self.lane.ask_within(UNHURRIED, purpose, &sql, read).await?;
            // The first one is what was locked.
            if let [_, (entries, _), .., (_, blobs)] = gone.as_slice() {
                done.entries += entries.unsigned_abs();
                done.blobs += blobs.unsigned_abs();
            }
            if gone.iter().skip(1).all(|(rows, _)| *rows < ROWS) {
                break;
            }
        }
        if going.common.is_some() {
            return Ok(None);
        }
        let parent = going.parent.map_or_else(|| "NULL".to_owned(), number);
        let sql = format!(
            "DELETE FROM longhaul.branches WHERE number = {} AND id IS NULL; \
             SELECT id FROM longhaul.branches WHERE number = {parent} AND forgotten \
             AND id IS NOT NULL",
            going.number
        );
        let read = |row: &PgRow| maybe_digest(row, 0, LineageId::from_slice);
        let purpose = Purpose::Plain;
        let parent = self.lane.ask_within(UNHURRIED, purpose, &sql, read).await?;
        Ok(parent.into_iter().flatten().next())
    }
}

/// Removes some rows of each kind, unless the conversation has gone on. Each
/// statement says how many it removed, the last one also how many pieces.
fn step(going: Going, idle_since: Moment) -> String {
    let branch = going.number;
    let from = going.common.unwrap_or(0);
    // The largest number of messages of which a branch still has a place.
    let last = going.common.map_or(-1, i64::from);
    let idle = number(idle_since.0);
    let still =
        format!("EXISTS (SELECT 1 FROM longhaul.branches WHERE number = {branch} AND forgotten)");
    let links = format!(
        "SELECT blob FROM longhaul.links WHERE branch = {branch} AND message >= {from} \
         AND {still} ORDER BY blob LIMIT {ROWS}"
    );
    format!(
        "SELECT count(*), 0::bigint FROM (SELECT 1 FROM longhaul.branches \
         WHERE number = {branch} FOR UPDATE) AS locked; \
         WITH gone AS (DELETE FROM longhaul.entries WHERE number IN (SELECT number \
         FROM longhaul.entries WHERE branch = {branch} AND message >= {from} AND {still} \
         LIMIT {ROWS}) RETURNING number, size), \
         wordless AS (DELETE FROM longhaul.words WHERE number IN (SELECT number FROM gone)), \
         counted AS (UPDATE longhaul.branches SET \
         entries = entries - (SELECT count(*) FROM gone), \
         size = size - (SELECT coalesce(sum(size), 0) FROM gone) WHERE number = {branch}) \
         SELECT count(*), 0::bigint FROM gone; \
         WITH gone AS (DELETE FROM longhaul.messages WHERE (branch, message, since) IN (SELECT \
         branch, message, since FROM longhaul.messages WHERE branch = {branch} \
         AND (message >= {from} OR since > {from}) AND {still} LIMIT {ROWS}) RETURNING size), \
         counted AS (UPDATE longhaul.branches SET \
         size = size - (SELECT coalesce(sum(size), 0) FROM gone) WHERE number = {branch}) \
         SELECT count(*), 0::bigint FROM gone; \
         WITH gone AS (DELETE FROM longhaul.promises WHERE number IN (SELECT number \
         FROM longhaul.promises WHERE branch = {branch} AND behind > {last} AND {still} \
         LIMIT {ROWS}) RETURNING 1), \
         counted AS (UPDATE longhaul.branches SET \
         size = size - {} * (SELECT count(*) FROM gone) WHERE number = {branch}) \
         SELECT count(*), 0::bigint FROM gone; \
         SELECT 0::bigint, count(*) FROM (SELECT 1 FROM longhaul.blobs WHERE id IN ({links}) \
         ORDER BY id FOR UPDATE) AS locked; \
         WITH gone AS (DELETE FROM longhaul.links WHERE branch = {branch} AND blob IN ({links}) \
         RETURNING blob), \
         alone AS (SELECT blob FROM gone WHERE NOT EXISTS (SELECT 1 FROM longhaul.links other \
         WHERE other.blob = gone.blob AND other.branch <> {branch})), \
         removed AS (DELETE FROM longhaul.blobs WHERE id IN (SELECT blob FROM alone) \
         AND used_at < {idle} RETURNING 1), \
         left_over AS (UPDATE longhaul.blobs SET linked = false \
         WHERE id IN (SELECT blob FROM alone) AND used_at >= {idle}), \
         counted AS (UPDATE longhaul.branches SET \
         size = size - {} * (SELECT count(*) FROM gone) WHERE number = {branch}) \
         SELECT count(*), (SELECT count(*) FROM removed) FROM gone",
        room::PROMISE,
        room::LINK,
    )
}
