//! What is found by searching.
//!
//! The store tells which entries have which words; the best by words alone are
//! read, and what they say decides.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Recall, Trouble, Who, compute};
use crate::engine::ids::{BlobId, LineageId, Reference};
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::rank::{self, Candidate, snippet};
use crate::engine::recall::reference::shown;
use crate::engine::recall::show::{self, Label, SNIPPET};
use crate::engine::recall::terms;
use crate::engine::recall::text::{passage, text};
use crate::store::Moment;
use crate::store::journal::{EntryRow, Scope, Text};

/// Entries whose text is looked at.
const LOOKED_AT: usize = 32;
/// Bytes of content that are read for it. Entries beyond go by their words.
const READ: u64 = 48 << 20;

/// Something that was found or listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The entry's number: newer ones have larger numbers.
    pub number: i64,
    /// Its reference.
    pub reference: Reference,
    /// The branch it is in.
    pub branch: LineageId,
    /// What it is.
    pub kind: EntryKind,
    /// The tool; may be empty.
    pub tool: String,
    /// What it is about; may be empty.
    pub path: String,
    /// The message, counted from zero.
    pub message: u32,
    /// The turn, counted from one.
    pub turn: u32,
    /// Bytes of all of it.
    pub bytes: u64,
    /// When it was written.
    pub at: Moment,
    /// What is shown of it.
    pub snippet: String,
}

impl Hit {
    /// For a program to read; what it says only if that is asked for.
    pub fn json(&self, content: bool) -> Value {
        let mut told = json!({
            "number": self.number,
            "ref": shown(self.reference),
            "kind": self.kind.name(),
            "tool": self.tool,
            "path": self.path,
            "message": self.message,
            "turn": self.turn,
            "bytes": self.bytes,
            "at": self.at.to_string(),
        });
        if let (true, Some(told)) = (content, told.as_object_mut()) {
            told.insert("text".to_owned(), json!(self.snippet));
        }
        told
    }
}

/// What was found, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The best.
    pub hits: Vec<Hit>,
    /// How many fit less well.
    pub more: usize,
}

impl Found {
    /// For a model to read.
    pub fn text(&self) -> String {
        let hits: Vec<_> = self
            .hits
            .iter()
            .map(|hit| show::Hit {
                label: Label {
                    reference: hit.reference,
                    kind: hit.kind,
                    tool: &hit.tool,
                    path: &hit.path,
                    turn: hit.turn,
                },
                bytes: hit.bytes,
                snippet: &hit.snippet,
            })
            .collect();
        show::results(&hits, self.more)
    }
}

impl Recall {
    /// What fits a question best.
    pub async fn recall(&self, who: Who, query: &str, limit: u32) -> Result<Found, Trouble> {
        let scope = self.scope(who).await?;
        let _turn = self.turn().await?;
        self.metrics.recalled();
        let terms = terms::query(query);
        if terms.is_empty() {
            return Ok(Found::default());
        }
        let journal = self.store.journal();
        let matches = journal.matching(&scope, &terms).await?;
        let matches: Vec<_> = matches
            .iter()
            .map(|held| (held.number, held.terms))
            .collect();
        let weights = rank::weights(&matches, terms.len());
        let best = rank::first(&matches, &weights, LOOKED_AT);
        let rows = self.rows(&scope, &best).await?;
        let contents = self.contents(&rows).await?;
        let query = query.to_owned();
        compute(move || {
            let texts = texts(&rows, &contents);
            let question = Question {
                query: &query,
                terms: &terms,
                weights: &weights,
                bits: matches.into_iter().collect(),
            };
            question.found(&rows, &texts, limit as usize)
        })
        .await
    }

    /// Entries by their numbers, as far as they may be seen.
    pub(super) async fn rows(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<EntryRow>, Trouble> {
        let mut rows = self.store.journal().entries(numbers).await?;
        rows.retain(|row| scope.shows(row.branch, row.entry.message));
        let places = numbers.iter().enumerate();
        let places: HashMap<_, _> = places.map(|(at, number)| (*number, at)).collect();
        rows.sort_by_key(|row| places.get(&row.number).copied());
        Ok(rows)
    }

    /// The pieces that entries point to, as far as they are not too large
    /// together; the first entries are served first.
    pub(super) async fn contents(
        &self,
        rows: &[EntryRow],
    ) -> Result<HashMap<BlobId, Vec<u8>>, Trouble> {
        let mut bytes = 0;
        let mut wanted = Vec::new();
        for row in rows {
            if let Text::Content { blob, .. } = &row.entry.text
                && !wanted.contains(blob)
                && bytes + row.entry.bytes <= READ
            {
                bytes += row.entry.bytes;
                wanted.push(*blob);
            }
        }
        self.pieces(&wanted).await
    }
}

/// What entries say, by their numbers; nothing where it was not read.
pub(super) fn texts(
    rows: &[EntryRow],
    contents: &HashMap<BlobId, Vec<u8>>,
) -> HashMap<i64, String> {
    let mut read: HashMap<BlobId, String> = HashMap::new();
    let mut says = |row: &EntryRow| match &row.entry.text {
        Text::Inline(text) => text.clone(),
        Text::Content { blob, from, to } => {
            let whole = read.entry(*blob).or_insert_with(|| {
                contents
                    .get(blob)
                    .map(|piece| text(piece))
                    .unwrap_or_default()
            });
            passage(whole, *from, *to).to_owned()
        }
    };
    rows.iter().map(|row| (row.number, says(row))).collect()
}

/// A question, and what the store made of it.
struct Question<'a> {
    query: &'a str,
    terms: &'a [String],
    weights: &'a [f64],
    /// The words that entries have, a bit each.
    bits: HashMap<i64, u32>,
}

impl Question<'_> {
    fn found(&self, rows: &[EntryRow], texts: &HashMap<i64, String>, limit: usize) -> Found {
        let says = |number: i64| texts.get(&number).map(String::as_str).unwrap_or_default();
        let candidates: Vec<_> = rows
            .iter()
            .map(|row| self.candidate(row, says(row.number)))
            .collect();
        let ranked = rank::second(self.query, self.terms, self.weights, &candidates);
        let by_number: HashMap<_, _> = rows.iter().map(|row| (row.number, row)).collect();
        let hits: Vec<_> = ranked
            .iter()
            .take(limit)
            .filter_map(|ranked| by_number.get(&ranked.number))
            .map(|row| hit(row, snippet(says(row.number), self.terms, SNIPPET)))
            .collect();
        let more = ranked.len() - hits.len();
        Found { hits, more }
    }

    fn candidate<'a>(&self, row: &'a EntryRow, text: &'a str) -> Candidate<'a> {
        let blob = match &row.entry.text {
            Text::Content { blob, .. } => Some(*blob),
            Text::Inline(_) => None,
        };
        Candidate {
            number: row.number,
            kind: row.entry.kind,
            tool: &row.entry.tool,
            path: &row.entry.path,
            text,
            blob,
            terms: self.bits.get(&row.number).copied().unwrap_or(0),
        }
    }
}

pub(super) fn hit(row: &EntryRow, snippet: String) -> Hit {
    let entry = &row.entry;
    Hit {
        number: row.number,
        reference: entry.reference,
        branch: row.branch,
        kind: entry.kind,
        tool: entry.tool.clone(),
        path: entry.path.clone(),
        message: entry.message,
        turn: entry.turn,
        bytes: entry.bytes,
        at: row.at,
        snippet,
    }
}
