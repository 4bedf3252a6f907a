//! The tree of branches: finding the one to which a conversation belongs, and
//! reading them.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Error, Row};

use super::Journal;
use crate::engine::ids::{ChainHash, LineageId};
use crate::store::journal::growth::{self, Belongs, Found, PLACES, SLACK};
use crate::store::journal::{Branch, Trace, room};
use crate::store::sqlite::rows::{digest, number};
use crate::store::{Moment, StoreError};

/// A question about branches `b`, whose rows [`branch`] reads.
macro_rules! select_branches {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT b.number, b.id, b.lineage, b.tenant, b.label, parents.id, b.common, \
             b.messages, b.began_at, b.seen_at",
            $more,
            " FROM branches b LEFT JOIN branches parents ON parents.number = b.parent ",
            $rest
        )
    };
}

/// The first of these places that is known, and the messages there.
const AT: &str = select_branches!(
    ", places.messages",
    "JOIN places ON places.branch = b.number JOIN json_each(?1) AS been \
     ON places.chain = unhex(been.value) WHERE b.tenant = ?2 AND b.id IS NOT NULL \
     ORDER BY been.key LIMIT 1"
);

const ALIVE: &str = select_branches!(
    "",
    "WHERE b.lineage = ?1 AND b.forgotten = 0 AND b.id IS NOT NULL \
     ORDER BY b.id = ?1 DESC, b.seen_at DESC, b.id LIMIT 1"
);

const NAMED: &str = select_branches!(
    "",
    "WHERE b.id = ?1 OR (b.lineage = ?1 AND b.forgotten = 0 AND b.id IS NOT NULL) \
     ORDER BY b.id = ?1 DESC, b.seen_at DESC, b.id LIMIT 1"
);

const CHILDREN: &str = select_branches!(
    "",
    "WHERE b.parent = (SELECT number FROM branches WHERE id = ?1) AND b.common > ?2 \
     AND b.id IS NOT NULL ORDER BY b.seen_at DESC, b.id LIMIT ?3"
);

const NEWEST: &str = select_branches!(
    "",
    "WHERE b.forgotten = 0 AND b.seen_at < ?1 AND b.id IS NOT NULL \
     ORDER BY b.seen_at DESC, b.id LIMIT ?2"
);

const BEGIN: &str = "INSERT INTO branches \
    (id, lineage, tenant, label, parent, common, messages, began_at, seen_at, size) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING RETURNING number";

/// One that was forgotten, and of which little was left, begins anew.
const RENEW: &str = "UPDATE branches SET label = ?2, messages = ?3, seen_at = ?4, \
    began_at = CASE WHEN forgotten AND ?5 THEN ?6 ELSE began_at END, \
    forgotten = forgotten AND NOT ?5 WHERE number = ?1";

const ARRIVE: &str = "INSERT INTO places (chain, branch, messages) VALUES (?1, ?2, ?3) \
    ON CONFLICT (chain) DO NOTHING";

const COUNT: &str = "UPDATE branches SET places = places + ?2, size = size + ?3 \
    WHERE number = ?1 RETURNING places";

const THIN: &str = "DELETE FROM places WHERE rowid IN \
    (SELECT rowid FROM places WHERE branch = ?1 ORDER BY rowid LIMIT ?2)";

/// A branch, and the number under which it is kept.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) branch: Branch,
}

/// The branch in a row.
fn branch(row: &SqliteRow) -> Result<Numbered, Error> {
    let parent: Option<&[u8]> = row.try_get(5)?;
    let parent = parent.map(|id| digest(id, LineageId::from_slice));
    let common: u32 = row.try_get(6)?;
    Ok(Numbered {
        number: row.try_get(0)?,
        branch: Branch {
            id: digest(row.try_get(1)?, LineageId::from_slice)?,
            lineage: digest(row.try_get(2)?, LineageId::from_slice)?,
            tenant: digest(row.try_get(3)?, ChainHash::from_slice)?,
            label: row.try_get(4)?,
            parent: parent.transpose()?.map(|parent| (parent, common)),
            messages: row.try_get(7)?,
            began_at: Moment(row.try_get(8)?),
            seen_at: Moment(row.try_get(9)?),
        },
    })
}

/// The branch to which a conversation belongs, now if not before. To be called
/// inside a transaction.
pub(super) async fn settle(
    connection: &mut SqliteConnection,
    trace: &Trace,
    now: Moment,
) -> Result<Numbered, Error> {
    let here = at(connection, trace, &[trace.here]).await?;
    let from = match &here {
        Some(_) => None,
        None => at(connection, trace, &trace.before()).await?,
    };
    let candidates = [
        here.as_ref().map(|(found, _)| found.clone()),
        from.as_ref().map(|(found, _)| found.clone()),
    ];
    let known = |id: LineageId| {
        let mut known = candidates.iter().flatten();
        known.find(|found| found.branch.id == id).cloned()
    };
    let found = Found {
        here: here.map(|(found, _)| found.branch),
        from: from.map(|(found, messages)| (found.branch, messages)),
    };
    let (settled, moved) = match growth::belongs(trace, found) {
        Belongs::There(branch) => (known(branch.id), false),
        Belongs::Grows(branch) => (known(branch.id), true),
        Belongs::Begins(parent) => {
            let left = parent.and_then(|(id, _)| known(id));
            let left = left.map(|parent| parent.number);
            (begin(connection, trace, parent, left, now).await?, true)
        }
    };
    let mut settled = settled.ok_or(Error::RowNotFound)?;
    growth::renew(&mut settled.branch, trace, now);
    sqlx::query(RENEW)
        .bind(settled.number)
        .bind(settled.branch.label.clone())
        .bind(settled.branch.messages)
        .bind(settled.branch.seen_at.0)
        .bind(moved)
        .bind(now.0)
        .execute(&mut *connection)
        .await?;
    if moved {
        arrive(connection, settled.number, trace).await?;
    }
    Ok(settled)
}

async fn at(
    connection: &mut SqliteConnection,
    trace: &Trace,
    places: &[(ChainHash, u32)],
) -> Result<Option<(Numbered, u32)>, Error> {
    let names = places.iter().map(|(chain, _)| format!("\"{chain}\""));
    let names: Vec<String> = names.collect();
    let row = sqlx::query(AT)
        .bind(format!("[{}]", names.join(",")))
        .bind(trace.tenant.as_bytes().as_slice())
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok((branch(&row)?, row.try_get(10)?)))
        .transpose()
}

/// Makes a new branch, under the first of its names that is free.
async fn begin(
    connection: &mut SqliteConnection,
    trace: &Trace,
    parent: Option<(LineageId, u32)>,
    left: Option<i64>,
    now: Moment,
) -> Result<Option<Numbered>, Error> {
    for id in growth::names(trace) {
        let branch = growth::begin(trace, id, parent, now);
        let made = sqlx::query(BEGIN)
            .bind(branch.id.as_bytes().as_slice())
            .bind(branch.lineage.as_bytes().as_slice())
            .bind(branch.tenant.as_bytes().as_slice())
            .bind(branch.label.clone())
            .bind(left)
            .bind(parent.map_or(0, |(_, common)| common))
            .bind(branch.messages)
            .bind(now.0)
            .bind(now.0)
            .bind(number(room::BRANCH))
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(row) = made {
            let number = row.try_get(0)?;
            return Ok(Some(Numbered { number, branch }));
        }
    }
    Ok(None)
}

/// Notes the places that a branch has come to, and lets go of the oldest.
async fn arrive(
    connection: &mut SqliteConnection,
    branch: i64,
    trace: &Trace,
) -> Result<(), Error> {
    let before = trace.from.into_iter().chain(trace.through.iter().copied());
    let before = before.filter(|(_, messages)| *messages <= trace.here.1);
    let mut new = 0;
    for (chain, messages) in before.chain([trace.here]) {
        let put = sqlx::query(ARRIVE)
            .bind(chain.as_bytes().as_slice())
            .bind(branch)
            .bind(messages)
            .execute(&mut *connection)
            .await?;
        new += put.rows_affected();
    }
    let places = count_places(connection, branch, number(new)).await?;
    if places > number(PLACES + SLACK) {
        let thinned = sqlx::query(THIN)
            .bind(branch)
            .bind(places - number(PLACES))
            .execute(&mut *connection)
            .await?;
        count_places(connection, branch, -number(thinned.rows_affected())).await?;
    }
    Ok(())
}

/// Counts places that came or went; how many there are now.
pub(super) async fn count_places(
    connection: &mut SqliteConnection,
    branch: i64,
    change: i64,
) -> Result<i64, Error> {
    let row = sqlx::query(COUNT)
        .bind(branch)
        .bind(change)
        .bind(change * number(room::PLACE))
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}

impl Journal {
    async fn found(&self, question: super::Question) -> Result<Vec<Branch>, StoreError> {
        self.read(question, |row| Ok(branch(row)?.branch)).await
    }

    pub(super) async fn of_session(
        &self,
        session: LineageId,
    ) -> Result<Option<Branch>, StoreError> {
        let question = sqlx::query(ALIVE).bind(session.as_bytes().as_slice());
        Ok(self.found(question).await?.pop())
    }

    pub(super) async fn named(&self, id: LineageId) -> Result<Option<Branch>, StoreError> {
        let question = sqlx::query(NAMED).bind(id.as_bytes().as_slice());
        Ok(self.found(question).await?.pop())
    }

    pub(super) async fn left(
        &self,
        id: LineageId,
        behind: u32,
        limit: u32,
    ) -> Result<Vec<Branch>, StoreError> {
        let question = sqlx::query(CHILDREN)
            .bind(id.as_bytes().as_slice())
            .bind(behind)
            .bind(limit);
        self.found(question).await
    }

    pub(super) async fn newest(
        &self,
        before: Option<Moment>,
        limit: u32,
    ) -> Result<Vec<Branch>, StoreError> {
        // Whatever has been seen at the end of time is not listed.
        let before = before.map_or(i64::MAX, |before| before.0);
        self.found(sqlx::query(NEWEST).bind(before).bind(limit))
            .await
    }
}
