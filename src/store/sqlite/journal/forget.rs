//! Forgetting a branch, in steps small enough not to be noticed.
//!
//! The first step makes sure that nothing finds it any more, or nothing beyond
//! what others have in common with it; what belonged to it then goes some rows
//! at a time. Whoever dies in between leaves rows that nothing leads to, and the
//! next collection goes on with them.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::Journal;
use super::branches::count_places;
use crate::engine::ids::LineageId;
use crate::store::journal::{Forgotten, room};
use crate::store::sqlite::database::{Purpose, UNHURRIED};
use crate::store::sqlite::rows::number;
use crate::store::sqlite::write::BEGIN;
use crate::store::{Moment, StoreError};

/// Rows of a kind that a step removes.
const ROWS: i64 = 200;

const FIND: &str = "SELECT number, parent, forgotten FROM branches \
    WHERE id = ?1 AND (forgotten <> 0 OR seen_at < ?2)";

const COMMON: &str = "SELECT max(common) FROM branches WHERE parent = ?1 AND id IS NOT NULL";

const HIDE: &str = "UPDATE branches SET id = NULL, forgotten = 1, label = NULL WHERE number = ?1";

const CUT: &str = "UPDATE branches SET forgotten = 1, label = NULL, messages = min(messages, ?2) \
    WHERE number = ?1";

const PLACES: &str = "DELETE FROM places WHERE branch = ?1 AND messages > ?2";

const STILL: &str = "SELECT 1 FROM branches WHERE number = ?1 AND forgotten <> 0";

const ENTRIES: &str = "DELETE FROM entries WHERE number IN \
    (SELECT number FROM entries WHERE branch = ?1 AND message >= ?2 LIMIT ?3) \
    RETURNING number, size";

const WORDS: &str = "DELETE FROM words WHERE rowid IN (SELECT value FROM json_each(?1))";

const MESSAGES: &str = "DELETE FROM messages WHERE rowid IN \
    (SELECT rowid FROM messages WHERE branch = ?1 AND (message >= ?2 OR since > ?2) LIMIT ?3) \
    RETURNING size";

const PROMISES: &str = "DELETE FROM promises WHERE number IN \
    (SELECT number FROM promises WHERE branch = ?1 AND behind > ?2 LIMIT ?3) RETURNING 1";

const LINKS: &str = "DELETE FROM links WHERE branch = ?1 AND blob IN \
    (SELECT blob FROM links WHERE branch = ?1 AND message >= ?2 LIMIT ?3) RETURNING blob";

const BLOB: &str = "DELETE FROM blobs WHERE id = ?1 AND used_at < ?2 \
    AND NOT EXISTS (SELECT 1 FROM links WHERE blob = ?1)";

const ALONE: &str = "UPDATE blobs SET linked = 0 WHERE id = ?1 \
    AND NOT EXISTS (SELECT 1 FROM links WHERE blob = ?1)";

const COUNT: &str =
    "UPDATE branches SET entries = entries - ?2, size = size - ?3 WHERE number = ?1";

const REMOVE: &str = "DELETE FROM branches WHERE number = ?1 AND id IS NULL";

const PARENT: &str =
    "SELECT id FROM branches WHERE number = ?1 AND forgotten <> 0 AND id IS NOT NULL";

/// Branches that nothing finds any more, and those that are there for others but
/// have more than these need.
const UNFINISHED: &str = "SELECT number, parent, id FROM branches b WHERE forgotten <> 0 AND (\
    id IS NULL \
    OR NOT EXISTS (SELECT 1 FROM branches c WHERE c.parent = b.number AND c.id IS NOT NULL) \
    OR EXISTS (SELECT 1 FROM entries WHERE branch = b.number AND message >= b.messages) \
    OR EXISTS (SELECT 1 FROM messages WHERE branch = b.number AND message >= b.messages) \
    OR EXISTS (SELECT 1 FROM promises WHERE branch = b.number AND behind > b.messages) \
    OR EXISTS (SELECT 1 FROM links WHERE branch = b.number AND message >= b.messages)) LIMIT 100";

/// A branch of which something goes.
#[derive(Clone, Copy)]
struct Going {
    number: i64,
    parent: Option<i64>,
    /// The messages of which everything stays, if others need it.
    common: Option<u32>,
}

/// What a step did.
#[derive(Default)]
struct Step {
    gone: Forgotten,
    more: bool,
}

impl Journal {
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
            let work = async move |connection: &mut SqliteConnection| {
                let mut transaction = connection.begin_with(BEGIN).await?;
                let hidden = hide(&mut transaction, id, unseen_since).await?;
                transaction.commit().await?;
                Ok(hidden)
            };
            let hidden = self
                .lane
                .run_within(UNHURRIED, Purpose::Plain, work)
                .await?;
            let Some((going, new)) = hidden else {
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
        let rows = self.readers.rows_within(UNHURRIED, sqlx::query(UNFINISHED));
        let read = |row: &sqlx::sqlite::SqliteRow| {
            let id: Option<&[u8]> = row.try_get(2)?;
            let id = id.and_then(LineageId::from_slice);
            Ok((row.try_get(0)?, row.try_get(1)?, id))
        };
        let unfinished: Result<Vec<(i64, Option<i64>, _)>, Error> =
            rows.await?.iter().map(read).collect();
        let unfinished = unfinished.map_err(|error| self.database.damaged(&error.to_string()))?;
        for (number, parent, id) in unfinished {
            let next = match id {
                Some(id) => Some(id),
                None => {
                    let going = Going {
                        number,
                        parent,
                        common: None,
                    };
                    self.clear(going, idle_since, done).await?
                }
            };
            if let Some(id) = next {
                let more = self.forget_branch(id, Moment(i64::MIN), idle_since).await?;
                done.entries += more.entries;
                done.blobs += more.blobs;
            }
        }
        Ok(())
    }

    /// Removes what belonged to a branch; the one it left, if that is only there
    /// for others and this was one of them.
    async fn clear(
        &self,
        going: Going,
        idle_since: Moment,
        done: &mut Forgotten,
    ) -> Result<Option<LineageId>, StoreError> {
        loop {
            let work = async move |connection: &mut SqliteConnection| {
                let mut transaction = connection.begin_with(BEGIN).await?;
                let step = step(&mut transaction, going, idle_since).await?;
                transaction.commit().await?;
                Ok(step)
            };
            let step = self
                .lane
                .run_within(UNHURRIED, Purpose::Plain, work)
                .await?;
            done.entries += step.gone.entries;
            done.blobs += step.gone.blobs;
            if !step.more {
                break;
            }
        }
        if going.common.is_some() {
            return Ok(None);
        }
        let work = async move |connection: &mut SqliteConnection| {
            let remove = sqlx::query(REMOVE).bind(going.number);
            remove.execute(&mut *connection).await?;
            let parent = sqlx::query(PARENT).bind(going.parent);
            let parent = parent.fetch_optional(connection).await?;
            parent.map(|row| row.try_get::<Vec<u8>, _>(0)).transpose()
        };
        let parent = self
            .lane
            .run_within(UNHURRIED, Purpose::Plain, work)
            .await?;
        Ok(parent.and_then(|id| LineageId::from_slice(&id)))
    }
}

/// Makes sure that nothing finds a branch any more, as far as others do not need
/// it, and whether it was not forgotten before.
async fn hide(
    connection: &mut SqliteConnection,
    id: LineageId,
    unseen_since: Moment,
) -> Result<Option<(Going, bool)>, Error> {
    let found = sqlx::query(FIND)
        .bind(id.as_bytes().to_vec())
        .bind(unseen_since.0)
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let branch: i64 = row.try_get(0)?;
    let common = sqlx::query(COMMON).bind(branch);
    let common: Option<u32> = common.fetch_one(&mut *connection).await?.try_get(0)?;
    let hide = match common {
        Some(common) => sqlx::query(CUT).bind(branch).bind(common),
        None => sqlx::query(HIDE).bind(branch),
    };
    hide.execute(&mut *connection).await?;
    let places = sqlx::query(PLACES).bind(branch).bind(last(common));
    let places = places.execute(&mut *connection).await?.rows_affected();
    count_places(connection, branch, -number(places)).await?;
    let going = Going {
        number: branch,
        parent: row.try_get(1)?,
        common,
    };
    Ok(Some((going, row.try_get::<i64, _>(2)? == 0)))
}

/// Removes some rows of each kind.
async fn step(
    connection: &mut SqliteConnection,
    going: Going,
    idle_since: Moment,
) -> Result<Step, Error> {
    let (branch, common) = (going.number, going.common);
    let mut done = Step::default();
    let still = sqlx::query(STILL).bind(branch);
    if still.fetch_optional(&mut *connection).await?.is_none() {
        // The conversation went on in the meantime.
        return Ok(done);
    }
    let from = i64::from(common.unwrap_or(0));
    let rows = |sql: &'static str, at: i64| sqlx::query(sql).bind(branch).bind(at).bind(ROWS);
    let (mut numbers, mut size) = (Vec::new(), 0);
    for row in rows(ENTRIES, from).fetch_all(&mut *connection).await? {
        numbers.push(row.try_get::<i64, _>(0)?);
        size += row.try_get::<i64, _>(1)?;
    }
    if !numbers.is_empty() {
        let words = serde_json::to_string(&numbers).map_err(|error| Error::Encode(error.into()))?;
        let words = sqlx::query(WORDS).bind(words);
        words.execute(&mut *connection).await?;
    }
    let messages = rows(MESSAGES, from).fetch_all(&mut *connection).await?;
    for row in &messages {
        size += row.try_get::<i64, _>(0)?;
    }
    let promises = rows(PROMISES, last(common))
        .fetch_all(&mut *connection)
        .await?
        .len();
    let links = rows(LINKS, from).fetch_all(&mut *connection).await?;
    for row in &links {
        let blob: Vec<u8> = row.try_get(0)?;
        let remove = sqlx::query(BLOB).bind(blob.clone()).bind(idle_since.0);
        let removed = remove.execute(&mut *connection).await?.rows_affected();
        done.gone.blobs += removed;
        if removed == 0 {
            let alone = sqlx::query(ALONE).bind(blob);
            alone.execute(&mut *connection).await?;
        }
    }
    size += number_of(promises) * number(room::PROMISE);
    size += number_of(links.len()) * number(room::LINK);
    let count = sqlx::query(COUNT)
        .bind(branch)
        .bind(number_of(numbers.len()))
        .bind(size);
    count.execute(connection).await?;
    done.gone.entries = numbers.len() as u64;
    let most = [numbers.len(), messages.len(), promises, links.len()];
    done.more = most.into_iter().any(|count| number_of(count) >= ROWS);
    Ok(done)
}

fn number_of(count: usize) -> i64 {
    number(count as u64)
}

/// The largest number of messages of which a branch still has a place.
fn last(common: Option<u32>) -> i64 {
    common.map_or(-1, i64::from)
}
