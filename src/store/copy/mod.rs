//! Moving a whole store from one home to another.
//!
//! Table by table, some rows at a time, so that it takes the same memory however
//! much there is. How far it has come is noted in the store that is filled,
//! after the rows: whoever is interrupted begins again where that note says, and
//! puts some rows a second time, which changes nothing. The note also says which
//! store is being copied and what was newest in it, since tables that are
//! complete are not read again. A store that holds anything and no such note is
//! somebody's, and is left alone.

mod tables;

pub use tables::{Column, ENTRIES, Row, TABLES, Table, Tables, Value};

use super::{Store, StoreError};

/// Under which key the note is kept among what was learned.
const NOTE: &str = "store copy";

/// Why a store is not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It only exists while a process runs.
    #[error("a store in memory cannot be copied")]
    Memory,
    /// There is something in it.
    #[error(
        "the store to be filled is in use: it holds {0}; name an empty database or folder, or remove what is there"
    )]
    InUse(String),
    /// It holds a part of another store.
    #[error(
        "the store to be filled holds a part of {0}: copy that again, or name an empty database or folder"
    )]
    Another(String),
    /// It holds a part of what the store that is copied was before.
    #[error(
        "the store that is copied was used after the copy began: stop the proxies that use it, empty the store to be filled (of a database: DROP SCHEMA longhaul CASCADE; of a folder: remove its files) and begin again"
    )]
    Moved,
    /// The store that is read.
    #[error("cannot read the store that is copied: {0}")]
    Reading(StoreError),
    /// The store that is filled.
    #[error("cannot write to the store that is filled: {0}")]
    Writing(StoreError),
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Note {
    /// What is copied.
    from: String,
    /// Tables that are complete.
    tables: usize,
    /// Where the next one goes on.
    behind: Option<Vec<Value>>,
    /// What was newest in what is copied when that began.
    #[serde(default)]
    source: Option<[Option<i64>; 2]>,
    /// Rows of each table that have been put.
    rows: [u64; TABLES.len()],
    /// What was newest when all was done: whoever uses the store changes it.
    done: Option<[Option<i64>; 2]>,
}

/// Rows of a table that have been put so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The table.
    pub table: &'static str,
    /// How many.
    pub rows: u64,
    /// There are no more.
    pub complete: bool,
}

/// Copies all that a store holds; how many rows each table has. `name` tells the
/// store that is copied from others, and `tell` hears how it goes.
pub async fn copy(
    from: &dyn Store,
    name: &str,
    to: &dyn Store,
    mut tell: impl FnMut(Progress),
) -> Result<Vec<Progress>, CopyError> {
    let (Some(source), Some(target)) = (from.tables(), to.tables()) else {
        return Err(CopyError::Memory);
    };
    let source_now = newest(from).await.map_err(CopyError::Reading)?;
    let mut note = begin(name, source_now, to, target).await?;
    for (at, table) in TABLES.iter().enumerate().skip(note.tables) {
        while note.tables == at {
            let read = source.rows(table, note.behind.as_deref()).await;
            let mut rows = read.map_err(CopyError::Reading)?;
            let complete = rows.len() < table.at_once as usize;
            let last = rows.last().map(|row| table.place(row));
            rows.retain(|row| !is_note(table, row));
            if let Err(error) = target.put_rows(table, &rows).await {
                // A mark of now may need an overlay that was not there then.
                let source_now = newest(from).await.map_err(CopyError::Reading)?;
                let moved = note.source.is_some_and(|source| source != source_now);
                return Err(if moved {
                    CopyError::Moved
                } else {
                    CopyError::Writing(error)
                });
            }
            note.behind = last.filter(|_| !complete);
            note.tables += usize::from(complete);
            if let Some(sum) = note.rows.get_mut(at) {
                *sum += rows.len() as u64;
            }
            write(to, &note).await?;
            tell(progress(table, note.rows.get(at), complete));
        }
    }
    note.done = Some(newest(to).await.map_err(CopyError::Writing)?);
    write(to, &note).await?;
    let all = TABLES.iter().zip(&note.rows);
    Ok(all
        .map(|(table, rows)| progress(table, Some(rows), true))
        .collect())
}

fn progress(table: &'static Table, rows: Option<&u64>, complete: bool) -> Progress {
    Progress {
        table: table.name,
        rows: rows.copied().unwrap_or(0),
        complete,
    }
}

/// Where to begin, if the store may be filled at all.
async fn begin(
    name: &str,
    source: [Option<i64>; 2],
    to: &dyn Store,
    target: &dyn Tables,
) -> Result<Note, CopyError> {
    let learned = to.learned().await.map_err(CopyError::Writing)?;
    let noted = learned.iter().find(|(key, _)| key == NOTE);
    let noted = noted.and_then(|(_, note)| serde_json::from_str::<Note>(note).ok());
    let fresh = Note {
        from: name.to_owned(),
        tables: 0,
        behind: None,
        source: Some(source),
        rows: [0; TABLES.len()],
        done: None,
    };
    let Some(note) = noted else {
        for table in &TABLES {
            let rows = target.rows(table, None).await.map_err(CopyError::Writing)?;
            if !rows.is_empty() {
                return Err(CopyError::InUse(table.name.to_owned()));
            }
        }
        write(to, &fresh).await?;
        return Ok(fresh);
    };
    let now = newest(to).await.map_err(CopyError::Writing)?;
    match note.done {
        Some(then) if then != now => Err(CopyError::InUse("sessions of its own".to_owned())),
        _ if note.from != name => Err(CopyError::Another(note.from)),
        Some(_) => Ok(fresh),
        None if note.source.is_some_and(|then| then != source) => Err(CopyError::Moved),
        None => Ok(note),
    }
}

/// When a session and a branch were last seen.
async fn newest(store: &dyn Store) -> Result<[Option<i64>; 2], StoreError> {
    let session = store.sessions().list(None, 1).await?;
    let branch = store.journal().branches(None, 1).await?;
    Ok([
        session.first().map(|session| session.newest.seen_at.0),
        branch.first().map(|branch| branch.seen_at.0),
    ])
}

async fn write(to: &dyn Store, note: &Note) -> Result<(), CopyError> {
    let text = serde_json::to_string(note).map_err(|error| {
        let failed = StoreError::Failed(error.to_string());
        CopyError::Writing(failed)
    })?;
    to.learn(NOTE, &text).await.map_err(CopyError::Writing)
}

fn is_note(table: &Table, row: &Row) -> bool {
    let key = row.values.first();
    table.name == "learned" && key == Some(&Value::Bytes(NOTE.as_bytes().to_vec()))
}
