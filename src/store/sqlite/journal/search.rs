//! Finding entries: by their words, by their kind, by their numbers.
//!
//! A word is kept with the number of its branch before it. What a search costs
//! then depends on what it finds and not on how common a word is elsewhere: of
//! a million entries most may have the same word. All words of a search go into
//! one statement, whose answer is a line of numbers for each.

use std::cmp::Reverse;
use std::collections::HashMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row};

use super::Journal;
use super::many::names;
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::store::journal::words::{AT_ONCE, NEWEST, is_word, merged};
use crate::store::journal::{Entry, EntryKind, EntryRow, Listing, Match, Scope, Text};
use crate::store::pack::unfold;
use crate::store::sqlite::rows::digest;
use crate::store::{Moment, StoreError};

const BRANCHES: &str = concat!("SELECT id, number FROM branches WHERE id IN ", names!(16));

/// The newest entries with a word, for each of the words. Only where not all of
/// a branch is shown need an entry itself be looked at.
const MATCHING: &str = "SELECT q.value ->> 0, iif(q.value ->> 2 IS NULL, \
        (SELECT group_concat(number) FROM (SELECT rowid AS number FROM words \
            WHERE words MATCH q.value ->> 1 ORDER BY rowid DESC LIMIT ?2)), \
        (SELECT group_concat(number) FROM (SELECT words.rowid AS number FROM words \
            CROSS JOIN entries ON entries.number = words.rowid \
            WHERE words MATCH q.value ->> 1 AND entries.message < q.value ->> 2 \
            ORDER BY words.rowid DESC LIMIT ?2))) \
    FROM json_each(?1) q";

/// The newest entries of a kind in a branch, for each of several.
const LISTING: &str = "SELECT (SELECT group_concat(number) FROM (SELECT number FROM entries \
        WHERE branch = q.value ->> 0 AND kind = q.value ->> 1 AND number < ?2 \
        AND message < q.value ->> 2 ORDER BY number DESC LIMIT ?3)) \
    FROM json_each(?1) q";

const ENTRIES: &str = "SELECT e.number, b.id, e.message, e.block, e.kind, e.part, e.turn, e.tool, \
    e.path, e.text, e.blob, e.first, e.behind, e.bytes, e.reference, e.at \
    FROM entries e JOIN branches b ON b.number = e.branch \
    WHERE e.number IN (SELECT value FROM json_each(?1)) AND b.id IS NOT NULL";

/// A part of a branch that may be seen.
struct Shown {
    branch: i64,
    before: u32,
}

/// A word, as it is kept for a branch. What stands before the `x` are
/// hexadecimal digits, so that no two are the same.
pub(in super::super) fn word_of(branch: i64, word: &str) -> String {
    format!("{branch:x}x{word}")
}

impl Journal {
    /// The branches of a scope, by their numbers.
    pub(super) async fn numbers(
        &self,
        scope: &Scope,
    ) -> Result<HashMap<LineageId, i64>, StoreError> {
        let ids = scope.0.iter().flat_map(|held| *held.branch.as_bytes());
        let question = sqlx::query(BRANCHES).bind(ids.collect::<Vec<u8>>());
        let rows = self.read(question, |row| {
            let id = digest(row.try_get(0)?, LineageId::from_slice)?;
            Ok((id, row.try_get(1)?))
        });
        Ok(rows.await?.into_iter().collect())
    }

    async fn shown(&self, scope: &Scope) -> Result<Vec<Shown>, StoreError> {
        let mut joined = Scope::default();
        joined.join(scope.clone());
        let numbers = self.numbers(&joined).await?;
        let stretches = joined.0.iter();
        let shown = stretches.filter_map(|stretch| {
            Some(Shown {
                branch: *numbers.get(&stretch.branch)?,
                before: stretch.before,
            })
        });
        Ok(shown.collect())
    }

    pub(super) async fn find(
        &self,
        scope: &Scope,
        terms: &[String],
    ) -> Result<Vec<Match>, StoreError> {
        let shown = self.shown(scope).await?;
        let (whole, cut): (Vec<_>, Vec<_>) = shown
            .into_iter()
            .partition(|shown| shown.before == u32::MAX);
        let mut questions = Vec::new();
        for (bit, term) in terms.iter().take(AT_ONCE).enumerate() {
            if !is_word(term) {
                continue;
            }
            let quoted = |shown: &Shown| format!("\"{}\"", word_of(shown.branch, term));
            if !whole.is_empty() {
                let any: Vec<_> = whole.iter().map(quoted).collect();
                questions.push((bit, any.join(" OR "), None));
            }
            let cut = cut.iter();
            questions.extend(cut.map(|shown| (bit, quoted(shown), Some(shown.before))));
        }
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let question = sqlx::query(MATCHING)
            .bind(json(&questions)?)
            .bind(i64::try_from(NEWEST).unwrap_or(i64::MAX));
        let rows = self.read(question, |row| {
            Ok((row.try_get::<u32, _>(0)?, listed(row.try_get(1)?)?))
        });
        let mut of_word: HashMap<u32, Vec<i64>> = HashMap::new();
        for (bit, numbers) in rows.await? {
            of_word.entry(bit).or_default().extend(numbers);
        }
        Ok(merged(of_word))
    }

    pub(super) async fn rows(&self, numbers: &[i64]) -> Result<Vec<EntryRow>, StoreError> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let question = sqlx::query(ENTRIES).bind(json(numbers)?);
        self.read(question, entry).await
    }

    pub(super) async fn listed(
        &self,
        scope: &Scope,
        listing: &Listing,
    ) -> Result<Vec<EntryRow>, StoreError> {
        let kinds: Vec<EntryKind> = match &listing.kinds[..] {
            [] => EntryKind::all().collect(),
            kinds => kinds.to_vec(),
        };
        let mut questions = Vec::new();
        for shown in self.shown(scope).await? {
            let kinds = kinds.iter().map(|kind| kind.name());
            questions.extend(kinds.map(|kind| (shown.branch, kind, shown.before)));
        }
        let question = sqlx::query(LISTING)
            .bind(json(&questions)?)
            .bind(listing.before.unwrap_or(i64::MAX))
            .bind(listing.limit);
        let found = self.read(question, |row| listed(row.try_get(0)?)).await?;
        let mut numbers: Vec<i64> = found.into_iter().flatten().collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        numbers.dedup();
        numbers.truncate(listing.limit as usize);
        let mut rows = self.rows(&numbers).await?;
        rows.sort_by_key(|row| Reverse(row.number));
        Ok(rows)
    }
}

/// The numbers in a line of them.
pub(super) fn listed(line: Option<&str>) -> Result<Vec<i64>, Error> {
    let numbers = line.into_iter().flat_map(|line| line.split(','));
    let numbers: Result<_, _> = numbers.map(str::parse).collect();
    numbers.map_err(|_| Error::Decode("a number is none".into()))
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed(error.to_string()))
}

/// The entry in a row.
fn entry(row: &SqliteRow) -> Result<EntryRow, Error> {
    let kind = EntryKind::named(row.try_get(4)?);
    let text = match row.try_get::<Option<&[u8]>, _>(9)? {
        Some(folded) => {
            let text = unfold(folded).map_err(|error| Error::Decode(error.into()))?;
            let text = String::from_utf8(text).map_err(|error| Error::Decode(error.into()))?;
            Text::Inline(text)
        }
        None => Text::Content {
            blob: digest(row.try_get(10)?, BlobId::from_slice)?,
            from: row.try_get(11)?,
            to: row.try_get(12)?,
        },
    };
    Ok(EntryRow {
        number: row.try_get(0)?,
        branch: digest(row.try_get(1)?, LineageId::from_slice)?,
        at: Moment(row.try_get(15)?),
        entry: Entry {
            kind: kind.ok_or_else(|| Error::Decode("an entry is of no kind".into()))?,
            message: row.try_get(2)?,
            block: row.try_get(3)?,
            part: row.try_get(5)?,
            turn: row.try_get(6)?,
            tool: row.try_get(7)?,
            path: row.try_get(8)?,
            text,
            bytes: row.try_get::<i64, _>(13)?.unsigned_abs(),
            reference: digest(row.try_get(14)?, Reference::from_slice)?,
            terms: Vec::new(),
        },
    })
}
