//! Marks as they travel to and from SQLite.
//!
//! A statement runs on a thread of its own, and each row that it finds wakes
//! the one that waits for it: for a few small rows that costs far more than
//! finding them. So SQLite joins all that it finds into one row, a line of text
//! with everything but numbers in hexadecimal, and here it is taken apart again.

use sqlx::Error;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::readers::Question;
use crate::engine::ids::{ChainHash, Hint, LineageId, OverlayId};
use crate::store::{MarkRow, Moment, rule};

/// A question about marks, answered by one row that [`marks`] reads.
macro_rules! select_marks {
    ($where:literal) => {
        concat!(
            "SELECT group_concat(hex(chain) || '|' || hex(model) || '|' || hex(lineage) || '|' || \
             messages || '|' || hex(overlay) || '|' || hex(view) || '|' || hex(hint) || '|' || \
             sealed || '|' || hex(figures) || '|' || seen_at, ';') FROM marks WHERE ",
            $where
        )
    };
}
pub(super) use select_marks;

/// The marks in the answer to such a question.
pub(super) fn marks(row: Option<&SqliteRow>) -> Result<Vec<MarkRow>, Error> {
    let Some(row) = row else {
        return Ok(Vec::new());
    };
    let Some(text) = row.try_get::<Option<&str>, _>(0)? else {
        return Ok(Vec::new());
    };
    let found: Option<_> = text.split(';').map(mark).collect();
    found.ok_or_else(|| Error::Decode("a mark is not what was stored".into()))
}

fn mark(text: &str) -> Option<MarkRow> {
    let mut parts = text.split('|');
    let mut next = || parts.next();
    Some(MarkRow {
        chain: ChainHash::from_slice(&bytes(next()?)?)?,
        model: String::from_utf8(bytes(next()?)?).ok()?,
        lineage: LineageId::from_slice(&bytes(next()?)?)?,
        messages: next()?.parse().ok()?,
        overlay: maybe(next()?, OverlayId::from_slice).ok()?,
        view: ChainHash::from_slice(&bytes(next()?)?)?,
        hint: maybe(next()?, Hint::from_slice).ok()?,
        sealed: next()? != "0",
        figures: bytes(next()?)?,
        seen_at: Moment(next()?.parse().ok()?),
    })
}

/// A digest or none; an error if it is neither.
fn maybe<T>(text: &str, from: fn(&[u8]) -> Option<T>) -> Result<Option<T>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let digest = bytes(text).and_then(|bytes| from(&bytes));
    digest.map(Some).ok_or(())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

/// A digest from a column.
pub(super) fn digest<T>(bytes: &[u8], from: fn(&[u8]) -> Option<T>) -> Result<T, Error> {
    from(bytes).ok_or_else(|| Error::Decode("a digest has a wrong length".into()))
}

/// A mark's columns in their order, and its size last.
pub(super) fn bind(question: Question, mark: &MarkRow) -> Question {
    question
        .bind(mark.chain.as_bytes().as_slice())
        .bind(mark.model.as_str())
        .bind(mark.lineage.as_bytes().as_slice())
        .bind(mark.messages)
        .bind(mark.overlay.map(|id| id.as_bytes().to_vec()))
        .bind(mark.view.as_bytes().as_slice())
        .bind(mark.hint.map(|hint| hint.as_bytes().to_vec()))
        .bind(mark.sealed)
        .bind(mark.figures.as_slice())
        .bind(mark.seen_at.0)
        .bind(number(rule::mark_bytes(mark)))
}

/// A count as SQLite has it.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
