//! The tables as rows, for moving a store.
//!
//! The words of entries are in the index and nowhere else. It can be read as a
//! list in the order of the words, in which those of a branch stand together:
//! for some entries of a branch, the words of the branch are gone through.

use std::collections::HashMap;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Error, Row as _};

use super::SqliteStore;
use super::database::{Purpose, UNHURRIED};
use super::journal::word_of;
use super::lane::Lane;
use super::readers::Question;
use super::write::BEGIN;
use crate::store::copy::{Column, ENTRIES, Row, Table, Tables, Value};
use crate::store::{Answer, StoreError};

/// Tables of `state.db`; the others are in `journal.db`.
const STATE: [&str; 4] = ["overlays", "marks", "segments", "learned"];

const WORD_LIST: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_list USING fts5vocab('main', 'words', 'instance')";

const WORDS: &str = "SELECT doc, term FROM temp.word_list \
    WHERE term >= ?1 AND term < ?2 AND doc >= ?3 AND doc <= ?4";

impl Tables for SqliteStore {
    fn rows<'a>(
        &'a self,
        table: &'static Table,
        behind: Option<&'a [Value]>,
    ) -> Answer<'a, Vec<Row>> {
        Box::pin(async move {
            let behind = behind.map(<[Value]>::to_vec);
            let work = async move |connection: &mut SqliteConnection| {
                let question = question(table, behind.as_deref());
                let found = question.fetch_all(&mut *connection).await?;
                let rows: Result<Vec<_>, Error> = found.iter().map(row).collect();
                let mut rows = rows?;
                if table.name == ENTRIES {
                    add_words(connection, &mut rows).await?;
                }
                Ok(rows)
            };
            self.lane_of(table)?
                .run_within(UNHURRIED, Purpose::Plain, work)
                .await
        })
    }

    fn put_rows<'a>(&'a self, table: &'static Table, rows: &'a [Row]) -> Answer<'a, ()> {
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let rows = rows.to_vec();
            let work = async move |connection: &mut SqliteConnection| {
                let mut transaction = connection.begin_with(BEGIN).await?;
                for row in rows {
                    put(&mut transaction, table, row).await?;
                }
                transaction.commit().await
            };
            self.lane_of(table)?
                .run_within(UNHURRIED, Purpose::Durable, work)
                .await
        })
    }
}

impl SqliteStore {
    fn lane_of(&self, table: &Table) -> Result<&Lane, StoreError> {
        let lane = if STATE.contains(&table.name) {
            self.state.as_ref().map(|state| &state.lane)
        } else {
            self.journal.as_ref().map(|journal| &journal.lane)
        };
        lane.ok_or_else(|| StoreError::Failed("one of its files cannot be used".to_owned()))
    }
}

/// A column as SQLite calls it: places are not numbered but by their rows.
fn named(table: &Table, name: &'static str) -> &'static str {
    match (table.name, name) {
        ("places", "number") => "rowid",
        _ => name,
    }
}

fn question(table: &Table, behind: Option<&[Value]>) -> Question {
    let columns = table.columns.iter().map(|(name, column)| match column {
        Column::Text | Column::Name => format!("CAST({name} AS BLOB)"),
        _ => named(table, name).to_owned(),
    });
    let columns: Vec<String> = columns.collect();
    let keys: Vec<&str> = table
        .ordered()
        .into_iter()
        .map(|(name, _)| named(table, name))
        .collect();
    let keys = keys.join(", ");
    let given: Vec<&str> = table
        .ordered()
        .into_iter()
        .map(|(_, column)| match column {
            Column::Text => "CAST(? AS TEXT)",
            _ => "?",
        })
        .collect();
    let behind_it = behind.map_or_else(String::new, |_| {
        format!("WHERE ({keys}) > ({})", given.join(", "))
    });
    let sql = format!(
        "SELECT {} FROM {} {behind_it} ORDER BY {keys} LIMIT {}",
        columns.join(", "),
        table.name,
        table.at_once
    );
    let question = sqlx::query(AssertSqlSafe(sql));
    behind.into_iter().flatten().fold(question, bind)
}

fn bind(question: Question, value: &Value) -> Question {
    match value {
        Value::Null => question.bind(None::<i64>),
        Value::Number(number) => question.bind(*number),
        Value::Bytes(bytes) => question.bind(bytes.clone()),
    }
}

fn row(row: &SqliteRow) -> Result<Row, Error> {
    use sqlx::{TypeInfo, ValueRef};
    let mut values = Vec::with_capacity(row.len());
    for at in 0..row.len() {
        let held = row.try_get_raw(at)?;
        let value = if held.is_null() {
            Value::Null
        } else if held.type_info().name() == "INTEGER" {
            Value::Number(row.try_get_unchecked(at)?)
        } else {
            Value::Bytes(row.try_get_unchecked(at)?)
        };
        values.push(value);
    }
    Ok(Row {
        values,
        words: Vec::new(),
    })
}

/// The branch and the number of an entry.
fn place(row: &Row) -> Option<(i64, i64)> {
    match row.values.as_slice() {
        [Value::Number(branch), Value::Number(number), ..] => Some((*branch, *number)),
        _ => None,
    }
}

/// Adds their words to entries, which stand in the order of their branches.
async fn add_words(connection: &mut SqliteConnection, rows: &mut [Row]) -> Result<(), Error> {
    sqlx::raw_sql(WORD_LIST).execute(&mut *connection).await?;
    let mut at: HashMap<i64, usize> = HashMap::new();
    let mut branches: Vec<(i64, i64, i64)> = Vec::new();
    for (index, (branch, number)) in rows
        .iter()
        .map(place)
        .enumerate()
        .filter_map(|(index, place)| Some((index, place?)))
    {
        at.insert(number, index);
        match branches.last_mut() {
            Some((last, _, until)) if *last == branch => *until = number,
            _ => branches.push((branch, number, number)),
        }
    }
    for (branch, first, last) in branches {
        let beginning = word_of(branch, "");
        let found = sqlx::query(WORDS)
            .bind(beginning.clone())
            // Behind every word that begins so: no letter comes after this one.
            .bind(format!("{beginning}\u{10ffff}"))
            .bind(first)
            .bind(last)
            .fetch_all(&mut *connection)
            .await?;
        for row in found {
            let word: &str = row.try_get(1)?;
            let word = word.strip_prefix(&beginning).unwrap_or(word).to_owned();
            let entry = at.get(&row.try_get::<i64, _>(0)?);
            if let Some(entry) = entry.and_then(|at| rows.get_mut(*at)) {
                entry.words.push(word);
            }
        }
    }
    Ok(())
}

async fn put(connection: &mut SqliteConnection, table: &Table, row: Row) -> Result<(), Error> {
    let names: Vec<&str> = table
        .columns
        .iter()
        .map(|(name, _)| named(table, name))
        .collect();
    let given: Vec<&str> = table
        .columns
        .iter()
        .map(|(_, column)| match column {
            Column::Text | Column::Name => "CAST(? AS TEXT)",
            _ => "?",
        })
        .collect();
    let unique: Vec<&str> = table.unique.split(", ").collect();
    let set: Vec<String> = names
        .iter()
        .filter(|name| !unique.contains(name) && **name != "rowid")
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let sql = format!(
        "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        table.name,
        names.join(", "),
        given.join(", "),
        table.unique,
        set.join(", ")
    );
    let question = sqlx::query(AssertSqlSafe(sql));
    let question = row.values.iter().fold(question, bind);
    question.execute(&mut *connection).await?;
    let Some((branch, number)) = place(&row).filter(|_| table.name == ENTRIES) else {
        return Ok(());
    };
    sqlx::query("DELETE FROM words WHERE rowid = ?1")
        .bind(number)
        .execute(&mut *connection)
        .await?;
    let line: Vec<String> = row.words.iter().map(|word| word_of(branch, word)).collect();
    sqlx::query("INSERT INTO words (rowid, line) VALUES (?1, ?2)")
        .bind(number)
        .bind(line.join(" "))
        .execute(connection)
        .await?;
    Ok(())
}
