//! Finding entries: by their words, by their kind, by their numbers.
//!
//! All words of a search go into one message. A word is kept with the number of
//! its branch before it, so what a search costs depends on what it finds and not
//! on how common a word is elsewhere. Nothing is sorted before it is found: the
//! planner would rather walk all entries from the newest on.

use std::cmp::Reverse;
use std::collections::HashMap;

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, list};
use super::super::rows::{count, digest, number, text};
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::store::journal::words::{AT_ONCE, NEWEST, is_word, merged};
use crate::store::journal::{Entry, EntryKind, EntryRow, Listing, Match, Scope, Stretch, Text};
use crate::store::pack::unfold;
use crate::store::{Moment, StoreError};

/// The columns of an entry `e` of a branch `b`.
pub(super) const ENTRIES: &str = "e.number, b.id, e.message, e.block, e.kind, e.part, e.turn, \
    e.tool, e.path, e.text, e.blob, e.first, e.behind, e.bytes, e.reference, e.at";

impl PostgresStore {
    pub(super) async fn find_words(
        &self,
        scope: &Scope,
        terms: &[String],
    ) -> Result<Vec<Match>, StoreError> {
        let words = terms.iter().take(AT_ONCE).enumerate();
        let words: Vec<String> = words
            .filter(|(_, word)| is_word(word))
            .map(|(bit, word)| format!("({bit}::bigint, {})", bytes(word.as_bytes())))
            .collect();
        let (whole, cut): (Vec<_>, Vec<_>) = joined(scope)
            .into_iter()
            .partition(|stretch| stretch.before == u32::MAX);
        if words.is_empty() || whole.is_empty() && cut.is_empty() {
            return Ok(Vec::new());
        }
        let words = words.join(", ");
        let mut questions = Vec::new();
        if !whole.is_empty() {
            let branches = list(whole.iter().map(|held| held.branch.as_bytes().as_slice()));
            questions.push(format!(
                "SELECT q.bit, found.number FROM (VALUES {words}) AS q (bit, word), \
                 LATERAL (SELECT number FROM (SELECT w.number FROM longhaul.words w \
                 WHERE w.words && ARRAY(SELECT int8send(b.number) || q.word \
                 FROM longhaul.branches b WHERE b.id IN ({branches})) OFFSET 0) AS those \
                 ORDER BY number DESC LIMIT {NEWEST}) AS found"
            ));
        }
        if !cut.is_empty() {
            questions.push(format!(
                "SELECT q.bit, found.number FROM (VALUES {words}) AS q (bit, word), \
                 (VALUES {}) AS part (id, before) JOIN longhaul.branches b ON b.id = part.id, \
                 LATERAL (SELECT number FROM (SELECT w.number FROM longhaul.words w \
                 WHERE w.words @> ARRAY[int8send(b.number) || q.word] \
                 AND w.message < part.before OFFSET 0) AS those \
                 ORDER BY number DESC LIMIT {NEWEST}) AS found",
                parts(&cut)
            ));
        }
        let read = |row: &PgRow| Ok((count(row, 0)?, row.try_get::<i64, _>(1)?));
        let sql = questions.join("; ");
        let mut of_word: HashMap<u32, Vec<i64>> = HashMap::new();
        for (bit, number) in self.lane.ask(Purpose::Reading, &sql, read).await? {
            of_word.entry(bit).or_default().push(number);
        }
        Ok(merged(of_word))
    }

    pub(super) async fn find_entries(&self, numbers: &[i64]) -> Result<Vec<EntryRow>, StoreError> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<String> = numbers.iter().map(|wanted| number(*wanted)).collect();
        let sql = format!(
            "SELECT {ENTRIES} FROM longhaul.entries e JOIN longhaul.branches b \
             ON b.number = e.branch WHERE e.number IN ({}) AND b.id IS NOT NULL",
            numbers.join(", ")
        );
        self.lane.ask(Purpose::Reading, &sql, entry).await
    }

    pub(super) async fn list_entries(
        &self,
        scope: &Scope,
        listing: &Listing,
    ) -> Result<Vec<EntryRow>, StoreError> {
        let shown = joined(scope);
        if shown.is_empty() {
            return Ok(Vec::new());
        }
        let kinds: Vec<EntryKind> = match &listing.kinds[..] {
            [] => EntryKind::all().collect(),
            kinds => kinds.to_vec(),
        };
        let kinds: Vec<String> = kinds
            .iter()
            .map(|kind| format!("('{}'::text)", kind.name()))
            .collect();
        let sql = format!(
            "SELECT DISTINCT {ENTRIES} FROM (VALUES {}) AS part (id, before) \
             JOIN longhaul.branches b ON b.id = part.id, (VALUES {}) AS k (kind), \
             LATERAL (SELECT * FROM longhaul.entries e WHERE e.branch = b.number \
             AND e.kind = k.kind AND e.number < {} AND e.message < part.before \
             ORDER BY e.number DESC LIMIT {limit}) AS e ORDER BY e.number DESC LIMIT {limit}",
            parts(&shown),
            kinds.join(", "),
            number(listing.before.unwrap_or(i64::MAX)),
            limit = listing.limit,
        );
        let mut rows = self.lane.ask(Purpose::Reading, &sql, entry).await?;
        rows.sort_by_key(|row| Reverse(row.number));
        Ok(rows)
    }
}

/// The stretches of a scope, each branch once.
fn joined(scope: &Scope) -> Vec<Stretch> {
    let mut joined = Scope::default();
    joined.join(scope.clone());
    joined.0
}

fn parts(stretches: &[Stretch]) -> String {
    let part = |stretch: &Stretch| {
        let branch = bytes(stretch.branch.as_bytes());
        format!("({branch}, {}::bigint)", stretch.before)
    };
    stretches.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// The entry in a row.
pub(super) fn entry(row: &PgRow) -> Result<EntryRow, Error> {
    let text_of = |folded: &[u8]| {
        let text = unfold(folded).map_err(|error| Error::Decode(error.into()))?;
        String::from_utf8(text).map_err(|error| Error::Decode(error.into()))
    };
    let says = match row.try_get::<Option<Vec<u8>>, _>(9)? {
        Some(folded) => Text::Inline(text_of(&folded)?),
        None => Text::Content {
            blob: digest(row, 10, BlobId::from_slice)?,
            from: count(row, 11)?,
            to: count(row, 12)?,
        },
    };
    let kind = EntryKind::named(row.try_get(4)?);
    Ok(EntryRow {
        number: row.try_get(0)?,
        branch: digest(row, 1, LineageId::from_slice)?,
        at: Moment(row.try_get(15)?),
        entry: Entry {
            kind: kind.ok_or_else(|| Error::Decode("an entry is of no kind".into()))?,
            message: count(row, 2)?,
            block: count(row, 3)?,
            part: count(row, 5)?,
            turn: count(row, 6)?,
            tool: text(row, 7)?,
            path: text(row, 8)?,
            text: says,
            bytes: row.try_get::<i64, _>(13)?.unsigned_abs(),
            reference: digest(row, 14, Reference::from_slice)?,
            terms: Vec::new(),
        },
    })
}
