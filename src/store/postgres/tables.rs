//! The tables as rows, for moving a store.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::ask::{Purpose, bytes};
use super::collect::UNHURRIED;
use super::rows::number;
use crate::store::copy::{Column, ENTRIES, Row, Table, Tables, Value};
use crate::store::pack::unfold;
use crate::store::{Answer, StoreError};

/// Bytes of a word that say which branch it is of.
const BRANCH: usize = 8;

/// Tables whose rows are numbered.
const NUMBERED: [&str; 4] = ["branches", "places", "promises", ENTRIES];

impl Tables for PostgresStore {
    fn rows<'a>(
        &'a self,
        table: &'static Table,
        behind: Option<&'a [Value]>,
    ) -> Answer<'a, Vec<Row>> {
        Box::pin(self.read_rows(table, behind))
    }

    fn put_rows<'a>(&'a self, table: &'static Table, rows: &'a [Row]) -> Answer<'a, ()> {
        Box::pin(self.write_rows(table, rows))
    }
}

impl PostgresStore {
    async fn read_rows(
        &self,
        table: &'static Table,
        behind: Option<&[Value]>,
    ) -> Result<Vec<Row>, StoreError> {
        let columns = table.columns.iter().map(|(name, column)| match column {
            Column::Flag => format!("t.{name}::int::bigint"),
            Column::Name => format!("convert_to(t.{name}, 'UTF8')"),
            _ => format!("t.{name}"),
        });
        let columns: Vec<String> = columns.collect();
        let keys = table.ordered().into_iter();
        let keys: Vec<String> = keys.map(|(name, _)| format!("t.{name}")).collect();
        let keys = keys.join(", ");
        let behind = behind.map_or_else(String::new, |place| {
            let place: Vec<String> = place.iter().map(value).collect();
            format!("WHERE ({keys}) > ({})", place.join(", "))
        });
        let (words, joined) = if table.name == ENTRIES {
            let joined = "LEFT JOIN longhaul.words w ON w.number = t.number";
            // One after the other, each behind its length.
            let words = "(SELECT string_agg(int4send(length(word)) || word, '') \
                FROM unnest(w.words) AS word)";
            (words, joined)
        } else {
            ("NULL::bytea", "")
        };
        let sql = format!(
            "SELECT {words}, {} FROM longhaul.{} t {joined} {behind} ORDER BY {keys} LIMIT {}",
            columns.join(", "),
            table.name,
            table.at_once,
        );
        let purpose = Purpose::Reading;
        self.lane.ask_within(UNHURRIED, purpose, &sql, row).await
    }

    async fn write_rows(&self, table: &'static Table, rows: &[Row]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut columns = table.names();
        let mut given: Vec<String> = Vec::new();
        for row in rows {
            let values = row.values.iter().zip(table.columns);
            let mut values: Vec<String> = values
                .map(|(held, (_, column))| match column {
                    Column::Flag => format!("{}::int::boolean", value(held)),
                    Column::Name => format!("convert_from({}, 'UTF8')", value(held)),
                    Column::Number => format!("{}::bigint", value(held)),
                    _ => format!("{}::bytea", value(held)),
                })
                .collect();
            if let Some(digest) = digest(table, row)? {
                values.push(bytes(&digest));
            }
            given.push(format!("({})", values.join(", ")));
        }
        if table.name == "messages" {
            columns.push("digest");
        }
        let unique: Vec<&str> = table.unique.split(", ").collect();
        let set: Vec<String> = columns
            .iter()
            .filter(|name| !unique.contains(name))
            .map(|name| format!("{name} = excluded.{name}"))
            .collect();
        let mut statements = vec![format!(
            "INSERT INTO longhaul.{} ({}) VALUES {} ON CONFLICT ({}) DO UPDATE SET {}",
            table.name,
            columns.join(", "),
            given.join(", "),
            table.unique,
            set.join(", "),
        )];
        if NUMBERED.contains(&table.name) {
            // What comes later is numbered from there on.
            statements.push(format!(
                "SELECT setval(pg_get_serial_sequence('longhaul.{0}', 'number'), \
                 (SELECT max(number) FROM longhaul.{0}))",
                table.name
            ));
        }
        statements.extend(words(table, rows));
        let sql = statements.join("; ");
        let purpose = Purpose::Durable;
        self.lane
            .ask_within(UNHURRIED, purpose, &sql, |_| Ok(()))
            .await?;
        Ok(())
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Number(held) => number(*held),
        Value::Bytes(held) => bytes(held),
    }
}

/// What messages are known again by.
fn digest(table: &Table, row: &Row) -> Result<Option<[u8; 32]>, StoreError> {
    let parts = table.columns.iter().position(|(name, _)| *name == "parts");
    match parts.and_then(|at| row.values.get(at)) {
        Some(Value::Bytes(parts)) => Ok(Some(*blake3::hash(&unfold(parts)?).as_bytes())),
        _ => Ok(None),
    }
}

/// The statement that puts the words of entries.
fn words(table: &Table, rows: &[Row]) -> Option<String> {
    let found = rows.iter().filter(|row| !row.words.is_empty());
    let found: Vec<String> = found
        .filter_map(|row| {
            let [
                Value::Number(branch),
                Value::Number(number),
                Value::Number(message),
                ..,
            ] = row.values.as_slice()
            else {
                return None;
            };
            let words = row.words.iter().map(|word| {
                let whole = [&branch.to_be_bytes()[..], word.as_bytes()].concat();
                bytes(&whole)
            });
            let words: Vec<String> = words.collect();
            Some(format!(
                "({number}, {message}, ARRAY[{}])",
                words.join(", ")
            ))
        })
        .collect();
    (table.name == ENTRIES && !found.is_empty()).then(|| {
        format!(
            "INSERT INTO longhaul.words (number, message, words) VALUES {} \
             ON CONFLICT (number) DO UPDATE SET words = excluded.words",
            found.join(", ")
        )
    })
}

fn row(row: &PgRow) -> Result<Row, sqlx::Error> {
    let mut values = Vec::with_capacity(row.len());
    for at in 1..row.len() {
        // Everything is a number or bytes, see what is asked for.
        let value = match row.try_get::<Option<i64>, _>(at) {
            Ok(number) => number.map(Value::Number),
            Err(_) => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
        };
        values.push(value.unwrap_or(Value::Null));
    }
    let words: Option<Vec<u8>> = row.try_get(0)?;
    Ok(Row {
        values,
        words: listed(&words.unwrap_or_default())?,
    })
}

/// Words that stand one after the other, each behind its length.
fn listed(mut rest: &[u8]) -> Result<Vec<String>, sqlx::Error> {
    let mut words = Vec::new();
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((word, more)) = more.split_at_checked(length) else {
            break;
        };
        let word = word.get(BRANCH..).unwrap_or_default().to_vec();
        words.push(String::from_utf8(word).map_err(|error| sqlx::Error::Decode(error.into()))?);
        rest = more;
    }
    Ok(words)
}
