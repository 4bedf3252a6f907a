//! Marks as they travel to and from PostgreSQL.

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use super::ask::{bytes, maybe};
use crate::engine::ids::{ChainHash, Hint, LineageId, OverlayId};
use crate::store::{MarkRow, Moment, rule};

/// A mark's columns in their order.
pub(super) const MARK: &str =
    "chain, model, lineage, messages, overlay, view, hint, sealed, figures, seen_at";

/// A mark from its columns.
pub(super) fn mark(row: &PgRow) -> Result<MarkRow, Error> {
    let overlay: Option<Vec<u8>> = row.try_get(4)?;
    let hint: Option<Vec<u8>> = row.try_get(6)?;
    let messages: i64 = row.try_get(3)?;
    Ok(MarkRow {
        chain: digest(row, 0, ChainHash::from_slice)?,
        model: text(row, 1)?,
        lineage: digest(row, 2, LineageId::from_slice)?,
        messages: u32::try_from(messages).map_err(|error| Error::Decode(error.into()))?,
        overlay: overlay
            .map(|id| OverlayId::from_slice(&id).ok_or_else(wrong))
            .transpose()?,
        view: digest(row, 5, ChainHash::from_slice)?,
        hint: hint
            .map(|id| Hint::from_slice(&id).ok_or_else(wrong))
            .transpose()?,
        sealed: row.try_get(7)?,
        figures: row.try_get(8)?,
        seen_at: Moment(row.try_get(9)?),
    })
}

/// A mark's columns in their order, and its size last, as SQL.
pub(super) fn values(mark: &MarkRow) -> String {
    format!(
        "({}, {}, {}, {}::bigint, {}, {}, {}, {}, {}, {}::bigint, {}::bigint)",
        bytes(mark.chain.as_bytes()),
        bytes(mark.model.as_bytes()),
        bytes(mark.lineage.as_bytes()),
        mark.messages,
        maybe(mark.overlay.as_ref().map(|id| id.as_bytes().as_slice())),
        bytes(mark.view.as_bytes()),
        maybe(mark.hint.as_ref().map(|hint| hint.as_bytes().as_slice())),
        mark.sealed,
        bytes(&mark.figures),
        number(mark.seen_at.0),
        number(size(rule::mark_bytes(mark))),
    )
}

/// A digest from a column.
pub(super) fn digest<T>(
    row: &PgRow,
    column: usize,
    from: fn(&[u8]) -> Option<T>,
) -> Result<T, Error> {
    let bytes: Vec<u8> = row.try_get(column)?;
    from(&bytes).ok_or_else(wrong)
}

/// A text from a column of bytes.
pub(super) fn text(row: &PgRow, column: usize) -> Result<String, Error> {
    String::from_utf8(row.try_get(column)?).map_err(|error| Error::Decode(error.into()))
}

fn wrong() -> Error {
    Error::Decode("a digest has a wrong length".into())
}

/// A count as PostgreSQL has it.
pub(super) fn size(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A number as SQL. The smallest one cannot be written with a sign before it.
pub(super) fn number(number: i64) -> String {
    match number {
        i64::MIN => "(-9223372036854775807 - 1)".to_owned(),
        number => format!("({number})"),
    }
}

/// A count of messages, or another small number, from a column.
pub(super) fn count(row: &PgRow, column: usize) -> Result<u32, Error> {
    let count: i64 = row.try_get(column)?;
    u32::try_from(count).map_err(|error| Error::Decode(error.into()))
}

/// The same, if there is one.
pub(super) fn maybe_count(row: &PgRow, column: usize) -> Result<Option<u32>, Error> {
    let there: Option<i64> = row.try_get(column)?;
    there.map(|_| count(row, column)).transpose()
}

/// A digest, if there is one.
pub(super) fn maybe_digest<T>(
    row: &PgRow,
    column: usize,
    from: fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, Error> {
    let there: Option<Vec<u8>> = row.try_get(column)?;
    there.map(|_| digest(row, column, from)).transpose()
}
