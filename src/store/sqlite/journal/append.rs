//! Appending entries, with the words they are found by.

use std::collections::{BTreeMap, HashSet};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Error, Row};

use super::branches::{Numbered, settle};
use super::many::Rows;
use super::pieces::link;
use super::search::{listed, word_of};
use super::{Journal, Question};
use crate::engine::ids::BlobId;
use crate::store::journal::words::is_word;
use crate::store::journal::{Entry, Text, Trace, room};
use crate::store::pack::fold;
use crate::store::sqlite::database::Purpose;
use crate::store::sqlite::rows::number;
use crate::store::sqlite::write::BEGIN;
use crate::store::{Moment, StoreError};

/// Which of some entries are there already, and the number given last. The order of
/// the join is fixed: the other way round, every entry of the branch would be held
/// against every one that is asked for.
const THERE: &str = "SELECT (SELECT group_concat(q.key) FROM json_each(?2) q CROSS JOIN entries e \
        ON e.branch = ?1 AND e.message = q.value ->> 0 AND e.block = q.value ->> 1 \
        AND e.kind = q.value ->> 2 AND e.part = q.value ->> 3), \
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entries'), 0)";

const APPEND: Rows = Rows {
    before: "INSERT INTO entries (number, branch, message, block, kind, part, turn, tool, path, \
             text, blob, first, behind, bytes, reference, at, size) VALUES",
    row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    after: "",
};

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
    let new = new(connection, branch, lines).await?;
    if new.is_empty() {
        return Ok(0);
    }
    let put = |write: Question, (number, line): &(i64, &Line)| {
        bind(write.bind(*number).bind(branch), line, now)
    };
    APPEND.write(connection, &new, put).await?;
    let words = |write: Question, (number, line): &(i64, &Line)| {
        let words = line.entry.terms.iter().filter(|word| is_word(word));
        let words: Vec<_> = words.map(|word| word_of(branch, word)).collect();
        write.bind(*number).bind(words.join(" "))
    };
    WORDS.write(connection, &new, words).await?;
    let mut needed: BTreeMap<BlobId, u32> = BTreeMap::new();
    for (_, line) in &new {
        if let Text::Content { blob, .. } = line.entry.text {
            let first = needed.entry(blob).or_insert(line.entry.message);
            *first = line.entry.message.min(*first);
        }
    }
    let mut size: i64 = new.iter().map(|(_, line)| line.size).sum();
    if !needed.is_empty() {
        size += link(connection, branch, &needed).await?;
    }
    sqlx::query(COUNT)
        .bind(branch)
        .bind(number(new.len() as u64))
        .bind(size)
        .execute(connection)
        .await?;
    Ok(new.len() as u64)
}

/// The entries that are not there yet, each with the number it gets.
async fn new<'l>(
    connection: &mut SqliteConnection,
    branch: i64,
    lines: &'l [Line],
) -> Result<Vec<(i64, &'l Line)>, Error> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let key = |line: &Line| {
        let Entry {
            message,
            block,
            kind,
            part,
            ..
        } = &line.entry;
        (*message, *block, kind.name(), *part)
    };
    let keys: Vec<_> = lines.iter().map(key).collect();
    let asked = serde_json::to_string(&keys).map_err(|error| Error::Encode(error.into()))?;
    let row = sqlx::query(THERE).bind(branch).bind(asked);
    let row = row.fetch_one(connection).await?;
    let there = listed(row.try_get(0)?)?;
    let there = there
        .iter()
        .filter_map(|at| keys.get(usize::try_from(*at).ok()?));
    let mut seen: HashSet<_> = there.copied().collect();
    let mut last: i64 = row.try_get(1)?;
    let mut new = Vec::with_capacity(lines.len());
    for line in lines {
        if seen.insert(key(line)) {
            last += 1;
            new.push((last, line));
        }
    }
    Ok(new)
}

fn bind(write: Question, line: &Line, now: Moment) -> Question {
    let entry = &line.entry;
    let content = match &entry.text {
        Text::Content { blob, from, to } => Some((blob.as_bytes().to_vec(), *from, *to)),
        Text::Inline(_) => None,
    };
    let stretch = content.as_ref().map(|(_, from, to)| (*from, *to));
    write
        .bind(entry.message)
        .bind(entry.block)
        .bind(entry.kind.name())
        .bind(entry.part)
        .bind(entry.turn)
        .bind(entry.tool.clone())
        .bind(entry.path.clone())
        .bind(line.text.clone())
        .bind(content.map(|(blob, ..)| blob))
        .bind(stretch.map(|(from, _)| from))
        .bind(stretch.map(|(_, to)| to))
        .bind(number(entry.bytes))
        .bind(entry.reference.as_bytes().to_vec())
        .bind(now.0)
        .bind(line.size)
}
