//! Where a store is, and everything that is in it, as lines of a pinned file.
//!
//! What goes into a hash under a name of ours (prefix hashes, blobs, segments,
//! references, branches, hints, tenants, breakers, tool calls) is a key or a value
//! of some row, so these lines pin the hashes too.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul::store::copy::{Column, Row, TABLES, Table, Value};
use longhaul::store::journal::{Archive, Trace};
use longhaul::store::{Moment, Store, postgres, sqlite};
use tokio::runtime::Runtime;

use super::stage::PROBE;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Notes whose keys contain the address of upstream, whose port differs each time.
const BY_ADDRESS: [&str; 3] = ["window_of:", "accepted:", "no_native:"];
/// The longest text that is written out.
const SHORT: usize = 200;

/// Where a store is.
pub enum Place {
    /// Files in a folder.
    Folder(tempfile::TempDir),
    /// A database, by its URL, and a folder for the rest.
    Database(String, tempfile::TempDir),
}

impl Place {
    /// Files in a folder of their own.
    pub fn files() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// A database.
    pub fn database(url: String) -> Self {
        Self::Database(url, tempfile::tempdir().unwrap())
    }

    /// What a configuration says to use it.
    pub fn setting(&self) -> String {
        match self {
            Self::Folder(_) => String::new(),
            Self::Database(url, _) => format!("store.url = {url:?}\n"),
        }
    }

    /// The folder of a proxy that uses it.
    pub fn folder(&self) -> &Path {
        let (Self::Folder(folder) | Self::Database(_, folder)) = self;
        folder.path()
    }

    /// The folder of its files, where it has any.
    pub fn data(&self) -> PathBuf {
        self.folder().join(".local/share/longhaul")
    }

    /// Opens it beside the proxies that use it.
    pub fn open(&self) -> Reader {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let store = runtime.block_on(async {
            match self {
                Self::Folder(_) => sqlite::open(&self.data(), PATIENCE).await.store,
                Self::Database(url, _) => postgres::open(url, 2, PATIENCE).await.unwrap().store,
            }
        });
        Reader { runtime, store }
    }
}

/// A store that is looked at.
pub struct Reader {
    runtime: Runtime,
    store: Arc<dyn Store>,
}

impl Reader {
    /// How many questions of no importance have a mark, and how many the journal
    /// tells of.
    pub fn probes(&self) -> (usize, usize) {
        let model = Value::Bytes(PROBE.as_bytes().to_vec());
        let marks = self.all(table("marks"));
        let places = self.all(table("places"));
        let marks = marks.iter().filter(|row| row.values[1] == model);
        // They are the only ones that are asked with a single message.
        let places = places
            .iter()
            .filter(|row| row.values[3] == Value::Number(1));
        (marks.count(), places.count())
    }

    /// Everything, a line a row. Each kind of store numbers rows in its own way, so no
    /// number is shown: a branch is called by its id.
    pub fn lines(&self) -> String {
        let branches = self.branches();
        let mut text = String::from("# a line a row; long values by length and BLAKE3\n");
        for table in &TABLES {
            let names: Vec<&str> = table.names();
            text.push_str(&format!("\n## {}\n# {}\n", table.name, names.join(" ")));
            let rows = self.all(table);
            let rows = rows.iter().map(|row| line(table, row, &branches));
            let mut lines: Vec<String> = rows.collect();
            lines.sort();
            lines.push(String::new());
            text.push_str(&lines.join("\n"));
        }
        text
    }

    /// The ids of branches, by their numbers.
    fn branches(&self) -> BTreeMap<i64, String> {
        let rows = self.all(table("branches"));
        let named = rows
            .iter()
            .map(|row| match (&row.values[0], &row.values[1]) {
                (Value::Number(number), Value::Bytes(id)) => (*number, hex(id)),
                other => panic!("{other:?}"),
            });
        named.collect()
    }

    /// All rows of a table.
    fn all(&self, table: &'static Table) -> Vec<Row> {
        let tables = self.store.tables().unwrap();
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let behind = rows.last().map(|row| table.place(row));
            let more = tables.rows(table, behind.as_deref());
            let more = self.runtime.block_on(more).unwrap();
            let complete = more.len() < table.at_once as usize;
            rows.extend(more);
            if complete {
                return rows;
            }
        }
    }

    /// Puts something away.
    pub fn archive(&self, trace: &Trace, archive: &Archive, now: Moment) {
        let put = self.store.journal().archive(trace, archive, now);
        self.runtime.block_on(put).unwrap();
    }

    /// Copies everything to another store.
    pub fn copy_to(&self, other: &Self) {
        let copied = longhaul::store::copy::copy(&*self.store, "here", &*other.store, |_| {});
        self.runtime.block_on(copied).unwrap();
    }
}

fn table(name: &str) -> &'static Table {
    TABLES.iter().find(|table| table.name == name).unwrap()
}

fn line(table: &Table, row: &Row, branches: &BTreeMap<i64, String>) -> String {
    let columns = table.columns.iter().zip(&row.values);
    let shown = columns.map(|((name, kind), value)| match (*name, value) {
        ("number", _) => "*".to_owned(),
        ("branch" | "parent", Value::Number(number)) => branches[number].clone(),
        _ => shown(*kind, value),
    });
    let mut line = shown.collect::<Vec<String>>().join(" ");
    if !row.words.is_empty() {
        // Each kind of store has them in an order of its own.
        let mut words = row.words.clone();
        words.sort();
        line.push_str(&format!(" {}", hashed(words.join(" ").as_bytes())));
    }
    line
}

fn shown(kind: Column, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Null) => "-".to_owned(),
        (_, Value::Number(number)) => number.to_string(),
        (Column::Text | Column::Name, Value::Bytes(text)) => words(&String::from_utf8_lossy(text)),
        (_, Value::Bytes(bytes)) if bytes.len() <= 32 => hex(bytes),
        (_, Value::Bytes(bytes)) => hashed(bytes),
    }
}

fn words(text: &str) -> String {
    if let Some(kind) = BY_ADDRESS.iter().find(|kind| text.starts_with(**kind)) {
        return format!("{kind}<digest>");
    }
    if text.len() > SHORT {
        return hashed(text.as_bytes());
    }
    format!("{text:?}")
}

/// Bytes as digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn hashed(bytes: &[u8]) -> String {
    format!("({} {})", bytes.len(), &blake3::hash(bytes).to_hex()[..32])
}
