//! Appending entries, with the words they are found by.

use std::collections::{BTreeMap, HashSet};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::Journal;
use super::branches::{Numbered, settle};
use super::many::Rows;
use super::pieces::link;
use super::search::word_of;
use crate::engine::ids::BlobId;
use crate::store::journal::words::is_word;
use crate::store::journal::{Entry, Text, Trace, room};
use crate::store::pack::fold;
use crate::store::sqlite::database::Purpose;
use crate::store::sqlite::rows::number;
use crate::store::sqlite::write::BEGIN;
use crate::store::{Moment, StoreError};

const APPEND: &str = "INSERT INTO entries (branch, message, block, kind, part, turn, tool, path, \
    text, blob, first, behind, bytes, reference, at, size) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
    ON CONFLICT (branch, message, block, kind, part) DO NOTHING RETURNING number";

/// What the branches tell that this one grew from, as far as it has them in
/// common.
const TOLD: &str = "WITH RECURSIVE line (branch, before, step) AS (\
        SELECT ?1, 4294967295, 0 UNION ALL \
        SELECT b.parent, min(line.before, b.common), line.step + 1 \
        FROM line JOIN branches b ON b.number = line.branch \
        WHERE b.parent IS NOT NULL AND line.step < 1000) \
    SELECT e.message, e.block, e.kind, e.part FROM line CROSS JOIN entries e \
    ON e.branch = line.branch WHERE line.step > 0 AND e.message < line.before";

const WORDS: Rows = Rows {
    before: "INSERT INTO words (rowid, line) VALUES",
    row: "(?, ?)",
    after: "",
};

const COUNT: &str =
    "UPDATE branches SET entries = entries + ?2, size = size + ?3 WHERE number = ?1";

/// An entry, its text as it is stored.
struct Line {
    entry: Entry,
    text: Option<Vec<u8>>,
    size: i64,
}

impl Journal {
    pub(super) async fn append_all(
        &self,
        trace: &Trace,
        entries: &[Entry],
        now: Moment,
    ) -> Result<u64, StoreError> {
        let lines: Result<Vec<_>, StoreError> = entries.iter().map(line).collect();
        let (trace, lines) = (trace.clone(), lines?);
        self.lane
            .run(Purpose::Plain, async move |connection| {
                let mut transaction = connection.begin_with(BEGIN).await?;
                let settled = settle(&mut transaction, &trace, now).await?;
                let lines = unknown(&mut transaction, &settled, lines).await?;
                let new = append(&mut transaction, settled.number, &lines, now).await?;
                transaction.commit().await?;
                Ok(new)
            })
            .await
    }
}

/// Without those that the branches tell which this one grew from, as far as it
/// has them in common.
async fn unknown(
    connection: &mut SqliteConnection,
    settled: &Numbered,
    mut lines: Vec<Line>,
) -> Result<Vec<Line>, Error> {
    let common = settled.branch.parent.map_or(0, |(_, common)| common);
    if lines.iter().all(|line| line.entry.message >= common) {
        return Ok(lines);
    }
    let mut told = HashSet::new();
    let rows = sqlx::query(TOLD).bind(settled.number);
    for row in rows.fetch_all(connection).await? {
        let kind: String = row.try_get(2)?;
        told.insert((row.try_get(0)?, row.try_get(1)?, kind, row.try_get(3)?));
    }
    lines.retain(|line| {
        let Entry {
            message,
            block,
            kind,
            part,
            ..
        } = &line.entry;
        let key: (u32, u32, String, u32) = (*message, *block, kind.name().to_owned(), *part);
        !told.contains(&key)
    });
    Ok(lines)
}

fn line(entry: &Entry) -> Result<Line, StoreError> {
    let text = match &entry.text {
        Text::Inline(text) => Some(fold(text.as_bytes())?),
        Text::Content { .. } => None,
    };
    let size = room::entry(entry, text.as_ref().map_or(0, Vec::len));
    Ok(Line {
        entry: entry.clone(),
        text,
        size: number(size),
    })
}

async fn append(
    connection: &mut SqliteConnection,
    branch: i64,
    lines: &[Line],
    now: Moment,
) -> Result<u64, Error> {
    let mut needed: BTreeMap<BlobId, u32> = BTreeMap::new();
    let mut words = Vec::with_capacity(lines.len());
    let mut size = 0;
    for line in lines {
        let Some(number) = put(connection, branch, line, now).await? else {
            continue;
        };
        size += line.size;
        let message = line.entry.message;
        if let Text::Content { blob, .. } = line.entry.text {
            let first = needed.entry(blob).or_insert(message);
            *first = message.min(*first);
        }
        let known = line.entry.terms.iter().filter(|word| is_word(word));
        let known: Vec<_> = known.map(|word| word_of(branch, word)).collect();
        words.push((number, known.join(" ")));
    }
    if words.is_empty() {
        return Ok(0);
    }
    let write = |write: super::Question, (number, words): &(i64, String)| {
        write.bind(*number).bind(words.clone())
    };
    WORDS.write(connection, &words, write).await?;
    if !needed.is_empty() {
        size += link(connection, branch, &needed).await?;
    }
    let new = words.len() as u64;
    sqlx::query(COUNT)
        .bind(branch)
        .bind(number(new))
        .bind(size)
        .execute(connection)
        .await?;
    Ok(new)
}

/// Writes an entry, unless there is one; its number.
async fn put(
    connection: &mut SqliteConnection,
    branch: i64,
    line: &Line,
    now: Moment,
) -> Result<Option<i64>, Error> {
    let entry = &line.entry;
    let content = match &entry.text {
        Text::Content { blob, from, to } => Some((blob.as_bytes().to_vec(), *from, *to)),
        Text::Inline(_) => None,
    };
    let row = sqlx::query(APPEND)
        .bind(branch)
        .bind(entry.message)
        .bind(entry.block)
        .bind(entry.kind.name())
        .bind(entry.part)
        .bind(entry.turn)
        .bind(entry.tool.clone())
        .bind(entry.path.clone())
        .bind(line.text.clone())
        .bind(content.as_ref().map(|(blob, ..)| blob.clone()))
        .bind(content.as_ref().map(|(_, from, _)| *from))
        .bind(content.as_ref().map(|(.., to)| *to))
        .bind(number(entry.bytes))
        .bind(entry.reference.as_bytes().to_vec())
        .bind(now.0)
        .bind(line.size)
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.try_get(0)).transpose()
}
