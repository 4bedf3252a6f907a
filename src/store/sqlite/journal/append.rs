//! Appending entries, with the words they are found by.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::Journal;
use super::branches::settle;
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
                let branch = settle(&mut transaction, &trace, now).await?.number;
                let new = append(&mut transaction, branch, &lines, now).await?;
                transaction.commit().await?;
                Ok(new)
            })
            .await
    }
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
