//! The tables that make up a store, the same in files and in a database: what is
//! moved from one to the other is rows, as they are.
//!
//! Numbers are kept, so that what refers to them need not be changed and newer
//! things stay newer; packed content stays packed. Only two things are not a
//! column everywhere: the words of an entry, which each home indexes in its own
//! way, and what can be made from the rest.

use crate::store::Answer;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// A number.
    Number,
    /// Yes or no, as 1 or 0.
    Flag,
    /// Bytes.
    Bytes,
    /// A text, as its bytes.
    Text,
    /// A short text of our own making.
    Name,
}

use Column::{Bytes, Flag, Name, Number, Text};

/// A value in a row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number.
    Number(i64),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row: its columns in their order, and the words it is found by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The columns.
    pub values: Vec<Value>,
    /// The words, of an entry.
    pub words: Vec<String>,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, Column)],
    /// The columns by which it is read in order, by their places.
    pub key: &'static [usize],
    /// The columns of which there is one each.
    pub unique: &'static str,
    /// Rows that are read at once: few if they may be large.
    pub at_once: u32,
}

/// Rows of moderate size.
const MANY: u32 = 500;
/// Rows that may be large.
const FEW: u32 = 25;

/// All tables, each before those that refer to it.
pub const TABLES: [Table; 11] = [
    Table {
        name: "overlays",
        columns: &[("id", Bytes), ("proof", Bytes), ("body", Bytes)],
        key: &[0],
        unique: "id",
        at_once: FEW,
    },
    Table {
        name: "marks",
        columns: &[
            ("chain", Bytes),
            ("model", Text),
            ("lineage", Bytes),
            ("messages", Number),
            ("overlay", Bytes),
            ("view", Bytes),
            ("hint", Bytes),
            ("sealed", Flag),
            ("figures", Bytes),
            ("seen_at", Number),
            ("size", Number),
        ],
        key: &[0, 1],
        unique: "chain, model",
        at_once: MANY,
    },
    Table {
        name: "segments",
        columns: &[
            ("id", Bytes),
            ("used_at", Number),
            ("size", Number),
            ("body", Bytes),
        ],
        key: &[0],
        unique: "id",
        at_once: FEW,
    },
    Table {
        name: "learned",
        columns: &[("key", Text), ("value", Text)],
        key: &[0],
        unique: "key",
        at_once: MANY,
    },
    Table {
        name: "blobs",
        columns: &[
            ("id", Bytes),
            ("used_at", Number),
            ("size", Number),
            ("body", Bytes),
            ("linked", Flag),
        ],
        key: &[0],
        unique: "id",
        at_once: FEW,
    },
    Table {
        name: "branches",
        columns: &[
            ("number", Number),
            ("id", Bytes),
            ("lineage", Bytes),
            ("tenant", Bytes),
            ("label", Text),
            ("parent", Number),
            ("common", Number),
            ("messages", Number),
            ("began_at", Number),
            ("seen_at", Number),
            ("forgotten", Flag),
            ("places", Number),
            ("entries", Number),
            ("size", Number),
        ],
        key: &[0],
        unique: "number",
        at_once: MANY,
    },
    Table {
        name: "places",
        columns: &[
            ("number", Number),
            ("chain", Bytes),
            ("branch", Number),
            ("messages", Number),
        ],
        key: &[0],
        unique: "chain",
        at_once: MANY,
    },
    Table {
        name: "messages",
        columns: &[
            ("branch", Number),
            ("message", Number),
            ("since", Number),
            ("size", Number),
            ("parts", Bytes),
            ("blobs", Bytes),
        ],
        key: &[0, 1, 2],
        unique: "branch, message, since",
        at_once: 100,
    },
    Table {
        name: "promises",
        columns: &[
            ("number", Number),
            ("reference", Bytes),
            ("branch", Number),
            ("first", Number),
            ("behind", Number),
            ("block", Number),
            ("blob", Bytes),
        ],
        key: &[0],
        unique: "number",
        at_once: MANY,
    },
    Table {
        name: "links",
        columns: &[("branch", Number), ("blob", Bytes), ("message", Number)],
        key: &[0, 1],
        unique: "branch, blob",
        at_once: MANY,
    },
    Table {
        name: ENTRIES,
        columns: &[
            ("branch", Number),
            ("number", Number),
            ("message", Number),
            ("block", Number),
            ("kind", Name),
            ("part", Number),
            ("turn", Number),
            ("tool", Text),
            ("path", Text),
            ("text", Bytes),
            ("blob", Bytes),
            ("first", Number),
            ("behind", Number),
            ("bytes", Number),
            ("reference", Bytes),
            ("at", Number),
            ("size", Number),
        ],
        key: &[0, 1],
        unique: "number",
        at_once: 1_000,
    },
];

/// The table whose rows have words.
pub const ENTRIES: &str = "entries";

impl Table {
    /// The names of its columns.
    pub fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, _)| *name).collect()
    }

    /// The columns by which it is read in order.
    pub fn ordered(&self) -> Vec<(&'static str, Column)> {
        let columns = self.key.iter().filter_map(|at| self.columns.get(*at));
        columns.copied().collect()
    }

    /// A row's place in that order.
    pub fn place(&self, row: &Row) -> Vec<Value> {
        let values = self.key.iter().filter_map(|at| row.values.get(*at));
        values.cloned().collect()
    }
}

/// A store as its tables.
pub trait Tables: Send + Sync {
    /// The rows of a table behind a place, in order, as many as are read at once;
    /// fewer if there are no more.
    fn rows<'a>(
        &'a self,
        table: &'static Table,
        behind: Option<&'a [Value]>,
    ) -> Answer<'a, Vec<Row>>;

    /// Puts rows into a table, in place of those that are there.
    fn put_rows<'a>(&'a self, table: &'static Table, rows: &'a [Row]) -> Answer<'a, ()>;
}
