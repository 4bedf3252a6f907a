//! Writing marks and overlays: the commit of a new overlay, and the figures.
//!
//! A commit locks the row at its place, lets the rule decide and writes, all in
//! one transaction. Where there is no row to lock, the first to insert one has
//! the place: everybody else's insertion waits for it, finds it there, and looks
//! again. Figures go in many at once, by a statement that applies the same rule.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::PostgresStore;
use super::ask::{Purpose, bytes, fetch};
use super::rows::{self, MARK, digest, maybe_digest, text, values};
use super::trouble::Trouble;
use crate::engine::ids::{ChainHash, OverlayId};
use crate::store::rule::{self, Verdict};
use crate::store::{Commit, Committed, MarkRow, StoreError};

/// How often a place may be lost to somebody who then gives it up again.
const LOOKS: u32 = 8;

impl PostgresStore {
    pub(super) async fn write_commit(&self, commit: &Commit) -> Result<Committed, StoreError> {
        rule::check(commit)?;
        let patience = self.lane.patience();
        let statements = Statements::of(commit, patience);
        let commit = commit.clone();
        let work = async move |connection: &mut PgConnection| {
            self::commit(connection, &commit, &statements).await
        };
        self.lane
            .run(patience, work)
            .await?
            .ok_or_else(rule::unknown_overlay)
    }

    pub(super) async fn write_marks(&self, marks: &[MarkRow]) -> Result<Vec<MarkRow>, StoreError> {
        let rounds = rounds(marks);
        if rounds.is_empty() {
            return Ok(Vec::new());
        }
        let sql: Vec<String> = rounds.iter().map(|round| record(round)).collect();
        let read = |row: &_| {
            let chain = digest(row, 0, ChainHash::from_slice)?;
            let overlay = maybe_digest(row, 2, OverlayId::from_slice)?;
            Ok(((chain, text(row, 1)?), overlay))
        };
        let taken = self.lane.ask(Purpose::Plain, &sql.join("; "), read).await?;
        // Of a place that was taken more than once the last one holds.
        let holds: HashMap<_, _> = taken.into_iter().collect();
        let lost = marks.iter().filter(|mark| {
            let held = holds.get(&(mark.chain, mark.model.clone()));
            held != Some(&mark.overlay)
        });
        Ok(lost.cloned().collect())
    }
}

/// What a commit says to the database.
struct Statements {
    begin: String,
    look: String,
    /// Brings the overlay, or holds on to one that is there already.
    overlay: Option<String>,
    insert: String,
    update: String,
}

impl Statements {
    fn of(commit: &Commit, patience: Duration) -> Self {
        let mark = &commit.mark;
        let place = format!(
            "chain = {} AND model = {}",
            bytes(mark.chain.as_bytes()),
            bytes(mark.model.as_bytes())
        );
        let values = values(mark);
        let overlay = match (&commit.overlay, mark.overlay) {
            (Some((id, body)), _) => Some(format!(
                "INSERT INTO longhaul.overlays (id, proof, body) VALUES ({}, {}, {}) \
                 ON CONFLICT DO NOTHING; SELECT true",
                bytes(id.as_bytes()),
                bytes(&rule::proof(body)),
                bytes(body)
            )),
            (None, Some(id)) => Some(format!(
                "SELECT true FROM longhaul.overlays WHERE id = {} FOR KEY SHARE",
                bytes(id.as_bytes())
            )),
            (None, None) => None,
        };
        Self {
            begin: Purpose::Durable.begin(patience),
            look: format!("SELECT {MARK} FROM longhaul.marks WHERE {place} FOR UPDATE"),
            overlay,
            insert: format!(
                "INSERT INTO longhaul.marks ({MARK}, size) VALUES {values} \
                 ON CONFLICT DO NOTHING RETURNING true"
            ),
            update: format!(
                "UPDATE longhaul.marks SET ({MARK}, size) = ROW {values} WHERE {place}"
            ),
        }
    }
}

/// Makes an overlay hold at a place; nothing if the overlay is not to be found.
async fn commit(
    connection: &mut PgConnection,
    commit: &Commit,
    statements: &Statements,
) -> Result<Option<Committed>, Trouble> {
    let begin = AssertSqlSafe(statements.begin.clone());
    let mut transaction = connection.begin_with(begin).await?;
    for _ in 0..LOOKS {
        let rows = fetch(&mut transaction, statements.look.clone()).await?;
        let held = rows.first().map(rows::mark).transpose()?;
        let there = held.is_some();
        if let (Verdict::Lost, Some(held)) = (rule::judge(held.as_ref(), commit), held) {
            transaction.rollback().await?;
            return Ok(Some(Committed::Lost(Box::new(held))));
        }
        if let Some(overlay) = &statements.overlay
            && fetch(&mut transaction, overlay.clone()).await?.is_empty()
        {
            transaction.rollback().await?;
            return Ok(None);
        }
        // What is there already may have come by figures, which are not
        // durable: it is written again.
        let write = if there {
            &statements.update
        } else {
            &statements.insert
        };
        let written = fetch(&mut transaction, write.clone()).await?;
        if there || !written.is_empty() {
            transaction.commit().await?;
            return Ok(Some(Committed::Done));
        }
    }
    // Deleted as often as it was written: nobody is that quick.
    Err(Trouble::Silent)
}

/// The marks in rounds, because one statement may touch a row only once. In each
/// they stand in one order, so that two replicas do not wait for each other.
fn rounds(marks: &[MarkRow]) -> Vec<Vec<&MarkRow>> {
    let mut rounds: Vec<(HashSet<_>, Vec<&MarkRow>)> = Vec::new();
    for mark in marks {
        let place = (mark.chain, mark.model.as_str());
        // The first round after the last that has the place.
        let after = rounds
            .iter()
            .rposition(|(places, _)| places.contains(&place));
        let round = after.map_or(0, |at| at + 1);
        if round == rounds.len() {
            rounds.push((HashSet::new(), Vec::new()));
        }
        if let Some((places, marks)) = rounds.get_mut(round) {
            places.insert(place);
            marks.push(mark);
        }
    }
    let sorted = rounds.into_iter().map(|(_, mut marks)| {
        marks.sort_unstable_by(|a, b| (a.chain, &a.model).cmp(&(b.chain, &b.model)));
        marks
    });
    sorted.collect()
}

/// The statement that notes figures, by the rule of `rule::renew`.
fn record(marks: &[&MarkRow]) -> String {
    let rows: Vec<String> = marks.iter().map(|mark| values(mark)).collect();
    let renewed = [
        "lineage", "messages", "view", "hint", "figures", "seen_at", "size",
    ]
    .map(|column| {
        format!(
            "{column} = CASE WHEN excluded.seen_at >= held.seen_at \
             THEN excluded.{column} ELSE held.{column} END"
        )
    })
    .join(", ");
    format!(
        "INSERT INTO longhaul.marks AS held ({MARK}, size) \
         SELECT * FROM (VALUES {}) AS new ({MARK}, size) \
         WHERE overlay IS NULL OR EXISTS (SELECT 1 FROM longhaul.overlays WHERE id = new.overlay) \
         ON CONFLICT (chain, model) DO UPDATE SET {renewed}, \
         overlay = excluded.overlay, sealed = held.sealed OR excluded.sealed \
         WHERE held.overlay IS NOT DISTINCT FROM excluded.overlay \
         OR (excluded.sealed AND NOT held.sealed AND excluded.seen_at >= held.seen_at) \
         RETURNING chain, model, overlay",
        rows.join(", ")
    )
}
