//! Marks as rows: the one list of columns, and how they become a mark again.

use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row};

use super::readers::Question;
use crate::engine::ids::{ChainHash, Hint, LineageId, OverlayId};
use crate::store::{MarkRow, Moment, rule};

/// A question about marks; the columns are those that [`mark`] reads.
macro_rules! select_marks {
    ($where:literal) => {
        concat!(
            "SELECT chain, model, lineage, messages, overlay, view, hint, sealed, figures, seen_at FROM marks WHERE ",
            $where
        )
    };
}
pub(super) use select_marks;

/// A mark from a row.
pub(super) fn mark(row: &SqliteRow) -> Result<MarkRow, Error> {
    let bytes = |at: usize| row.try_get::<&[u8], _>(at);
    let maybe = |at: usize| row.try_get::<Option<&[u8]>, _>(at);
    Ok(MarkRow {
        chain: digest(bytes(0)?, ChainHash::from_slice)?,
        model: row.try_get(1)?,
        lineage: digest(bytes(2)?, LineageId::from_slice)?,
        messages: row.try_get(3)?,
        overlay: maybe(4)?
            .map(|id| digest(id, OverlayId::from_slice))
            .transpose()?,
        view: digest(bytes(5)?, ChainHash::from_slice)?,
        hint: maybe(6)?
            .map(|hint| digest(hint, Hint::from_slice))
            .transpose()?,
        sealed: row.try_get(7)?,
        figures: row.try_get(8)?,
        seen_at: Moment(row.try_get(9)?),
    })
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
