//! Writing to the branch to which a conversation belongs, in one message.
//!
//! Mostly the chain tells which branch that is: it has been at this place, or
//! the place it came from is the tip of a branch of the same session. Then one message finds it, locks it, notes
//! how far it has come and writes what is to be written, which is kept from
//! doing anything if no branch was found. In that case the rule decides, and the
//! message goes again with the number of the branch.
//!
//! The number is handed from statement to statement as a setting that ends with
//! the transaction.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, maybe};
use super::super::rows::number;
use crate::engine::ids::LineageId;
use crate::store::journal::growth::{self, PLACES, SLACK};
use crate::store::journal::{Trace, room};
use crate::store::{Moment, StoreError};

/// The number of the branch that is written to, in any statement of a message.
pub(super) const BRANCH: &str = "current_setting('longhaul.branch')::bigint";

/// Its name.
pub(super) const NAME: &str = "(SELECT id FROM longhaul.branches \
    WHERE number = current_setting('longhaul.branch')::bigint)";

/// How often a branch may be gone or farther by the time it is written to.
pub(super) const ATTEMPTS: u32 = 8;

/// What is to be written to a branch.
pub(super) struct Message {
    pub(super) purpose: Purpose,
    /// Statements that come first, whatever the branch; they give nothing back.
    pub(super) first: Option<String>,
    /// What must hold after these; else nothing else is written.
    pub(super) ready: String,
    /// Statements that write nothing if there is no branch of the number
    /// [`BRANCH`]. The last one, and no other, gives back a number and [`NAME`].
    pub(super) write: String,
}

/// What a message wrote.
pub(super) struct Written {
    /// The branch's name.
    pub(super) branch: LineageId,
    /// What its last statement says.
    pub(super) count: i64,
}

/// What a statement of a message gives back.
struct Line(i64, Option<Vec<u8>>);

fn line(row: &PgRow) -> Result<Line, sqlx::Error> {
    Ok(Line(row.try_get(0)?, row.try_get(1)?))
}

impl PostgresStore {
    /// Writes to the branch of a conversation; nothing if what must hold does
    /// not.
    pub(super) async fn write_to_branch(
        &self,
        trace: &Trace,
        now: Moment,
        message: &Message,
    ) -> Result<Option<Written>, StoreError> {
        let mut known = by_chain(trace);
        let first = message.first.as_deref();
        let first = first.map_or_else(String::new, |first| format!("{first}; "));
        let (arrive, ready) = (arrive(trace, now), &message.ready);
        for _ in 0..ATTEMPTS {
            // No branch has the number 0 or less.
            let sql = format!(
                "SELECT set_config('longhaul.locked', coalesce(max(number), 0)::text, true)::bigint, \
                 NULL::bytea FROM (SELECT number FROM longhaul.branches \
                 WHERE number IN ({}) ORDER BY number FOR UPDATE) AS locked; {first}\
                 SELECT set_config('longhaul.branch', \
                 CASE WHEN {ready} THEN coalesce(({}), 0) ELSE -1 END::text, true)::bigint, \
                 NULL::bytea; {arrive}; {}",
                known.candidates, known.chosen, message.write,
            );
            let lines = self.lane.ask(message.purpose, &sql, line).await?;
            let [_, Line(found, _), Line(count, name)] = lines.as_slice() else {
                return Err(unread());
            };
            match *found {
                0 => known = by_number(trace, self.settle(trace, now).await?),
                -1 => return Ok(None),
                _ => {
                    let name = name.as_deref().and_then(LineageId::from_slice);
                    return Ok(Some(Written {
                        branch: name.ok_or_else(unread)?,
                        count: *count,
                    }));
                }
            }
        }
        Err(StoreError::Failed(
            "a conversation's place in the journal changes all the time".to_owned(),
        ))
    }
}

fn unread() -> StoreError {
    StoreError::Failed("what was written to the journal did not come back".to_owned())
}

/// How a branch is found.
struct Known {
    /// The branches that it may be, to be locked.
    candidates: String,
    /// The branch, or nothing.
    chosen: String,
}

/// By the newest known of the places that a conversation has been at.
fn by_chain(trace: &Trace) -> Known {
    let (here, messages) = (bytes(trace.here.0.as_bytes()), trace.here.1);
    let tenant = bytes(trace.tenant.as_bytes());
    let lineage = bytes(trace.lineage.as_bytes());
    let before = trace.before().into_iter();
    let before = before.map(|(chain, _)| bytes(chain.as_bytes()));
    let places: Vec<String> = std::iter::once(here.clone()).chain(before).collect();
    let places = places.join(", ");
    let newest = format!(
        "SELECT b.number, p.chain = {here} OR \
         (b.messages = p.messages AND p.messages <= {messages} AND b.lineage = {lineage}) \
         AS goes_on FROM unnest(ARRAY[{places}]) WITH ORDINALITY AS been (chain, rank) \
         JOIN longhaul.places p ON p.chain = been.chain \
         JOIN longhaul.branches b ON b.number = p.branch \
         WHERE b.tenant = {tenant} AND b.id IS NOT NULL ORDER BY been.rank LIMIT 1"
    );
    Known {
        candidates: format!("SELECT number FROM ({newest}) AS newest"),
        // The newest may be another one by the time the lock is had.
        chosen: format!(
            "SELECT number FROM ({newest}) AS newest \
             WHERE goes_on AND number = current_setting('longhaul.locked')::bigint"
        ),
    }
}

/// By its number, unless it has gone on since that was found.
fn by_number(trace: &Trace, number: i64) -> Known {
    let (here, messages) = (bytes(trace.here.0.as_bytes()), trace.here.1);
    Known {
        candidates: number.to_string(),
        chosen: format!(
            "SELECT number FROM longhaul.branches WHERE number = {number} AND id IS NOT NULL \
             AND (messages <= {messages} OR EXISTS (SELECT 1 FROM longhaul.places \
             WHERE chain = {here} AND branch = {number}))"
        ),
    }
}

/// Notes that the branch has come to a place, and lets go of its oldest ones.
pub(super) fn arrive(trace: &Trace, now: Moment) -> String {
    let here = bytes(trace.here.0.as_bytes());
    let before = trace.from.into_iter().chain(trace.through.iter().copied());
    let before = before.filter(|(_, messages)| *messages <= trace.here.1);
    let places: Vec<String> = before
        .chain([trace.here])
        .zip(0..)
        .map(|((chain, messages), order)| {
            format!("({order}, {}, {messages}::bigint)", bytes(chain.as_bytes()))
        })
        .collect();
    let label = growth::label(trace);
    format!(
        "WITH moved AS (SELECT number FROM longhaul.branches WHERE number = {BRANCH} \
         AND NOT EXISTS (SELECT 1 FROM longhaul.places WHERE chain = {here} \
         AND branch = {BRANCH})), \
         arrived AS (INSERT INTO longhaul.places (chain, branch, messages) \
         SELECT new.chain, moved.number, new.messages FROM moved, \
         (VALUES {}) AS new (rank, chain, messages) ORDER BY new.rank \
         ON CONFLICT (chain) DO NOTHING RETURNING 1), \
         counted AS (SELECT count(*) AS places FROM arrived) \
         UPDATE longhaul.branches AS b SET messages = greatest(b.messages, {}), \
         seen_at = greatest(b.seen_at, {}), label = coalesce({}, b.label), \
         began_at = CASE WHEN b.forgotten AND EXISTS (SELECT 1 FROM moved) THEN {} \
         ELSE b.began_at END, \
         forgotten = b.forgotten AND NOT EXISTS (SELECT 1 FROM moved), \
         places = b.places + counted.places, size = b.size + {} * counted.places \
         FROM counted WHERE b.number = {BRANCH}; \
         WITH full_ones AS (SELECT number, places FROM longhaul.branches \
         WHERE number = {BRANCH} AND places > {}), \
         gone AS (DELETE FROM longhaul.places WHERE chain IN (SELECT old.chain FROM full_ones, \
         LATERAL (SELECT chain FROM longhaul.places WHERE branch = full_ones.number \
         ORDER BY number LIMIT full_ones.places - {PLACES}) AS old) RETURNING 1), \
         counted AS (SELECT count(*) AS places FROM gone) \
         UPDATE longhaul.branches AS b SET places = b.places - counted.places, \
         size = b.size - {} * counted.places FROM counted \
         WHERE b.number = {BRANCH} AND counted.places > 0",
        places.join(", "),
        trace.here.1,
        number(now.0),
        maybe(label.as_ref().map(String::as_bytes)),
        number(now.0),
        room::PLACE,
        PLACES + SLACK,
        room::PLACE,
    )
}
