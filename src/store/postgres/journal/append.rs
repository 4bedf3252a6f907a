//! Appending entries, with the words they are found by: one statement.

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, maybe};
use super::super::rows::{number, size};
use super::place::{BRANCH, Message, NAME};
use crate::store::journal::words::is_word;
use crate::store::journal::{Entry, Text, Trace, room};
use crate::store::pack::fold;
use crate::store::{Moment, StoreError};

/// Entries that go in one message: it holds up whoever writes to the branch.
const TOGETHER: usize = 1_024;

impl PostgresStore {
    pub(super) async fn append_all(
        &self,
        trace: &Trace,
        entries: &[Entry],
        now: Moment,
    ) -> Result<u64, StoreError> {
        // The place is noted even if there is nothing to say of it.
        let mut left = entries;
        let mut new = 0;
        loop {
            let (together, rest) = left.split_at_checked(TOGETHER).unwrap_or((left, &[]));
            let rows: Result<Vec<String>, StoreError> = together.iter().zip(0..).map(row).collect();
            let message = Message {
                purpose: Purpose::Plain,
                first: None,
                ready: "true".to_owned(),
                write: append(&rows?, now),
            };
            let written = self.write_to_branch(trace, now, &message).await?;
            new += written.map_or(0, |written| written.count.unsigned_abs());
            left = rest;
            if left.is_empty() {
                return Ok(new);
            }
        }
    }
}

/// The columns of an entry, as they come.
const COLUMNS: &str = "message, block, kind, part, turn, tool, path, text, blob, first, behind, \
    bytes, reference, size";

/// The statement that appends rows, those that are new.
fn append(rows: &[String], now: Moment) -> String {
    if rows.is_empty() {
        return format!("SELECT 0::bigint, {NAME}");
    }
    // Of two that come together the first is the one.
    // What a branch tells that this one grew from need not be told again.
    format!(
        "WITH RECURSIVE line (branch, before, step) AS (\
         SELECT number, 4294967295::bigint, 0 FROM longhaul.branches WHERE number = {BRANCH} \
         UNION ALL SELECT b.parent, least(line.before, b.common), line.step + 1 \
         FROM line JOIN longhaul.branches b ON b.number = line.branch \
         WHERE b.parent IS NOT NULL AND line.step < 1000), \
         given (rank, words, {COLUMNS}) AS (VALUES {}), \
         new AS (INSERT INTO longhaul.entries (branch, at, {COLUMNS}) \
         SELECT b.number, {}, {} FROM given, longhaul.branches b WHERE b.number = {BRANCH} \
         AND NOT EXISTS (SELECT 1 FROM line JOIN longhaul.entries e ON e.branch = line.branch \
         WHERE line.step > 0 AND given.message < line.before AND e.message = given.message \
         AND e.block = given.block AND e.kind = given.kind AND e.part = given.part) \
         ORDER BY given.rank ON CONFLICT (branch, message, block, kind, part) DO NOTHING \
         RETURNING number, {COLUMNS}), \
         found AS (INSERT INTO longhaul.words (number, message, words) \
         SELECT new.number, new.message, ARRAY(SELECT int8send({BRANCH}) || word \
         FROM unnest(first.words) AS word) FROM new JOIN (SELECT DISTINCT ON \
         (message, block, kind, part) message, block, kind, part, words FROM given \
         ORDER BY message, block, kind, part, rank) AS first \
         USING (message, block, kind, part) WHERE cardinality(first.words) > 0), \
         {}, \
         counted AS (UPDATE longhaul.branches SET \
         entries = entries + (SELECT count(*) FROM new), size = size \
         + (SELECT coalesce(sum(size), 0) FROM new) + {} * (SELECT count(*) FROM linked WHERE fresh) \
         WHERE number = {BRANCH}) \
         SELECT count(*), {NAME} FROM new",
        rows.join(", "),
        number(now.0),
        COLUMNS
            .split(", ")
            .map(|column| format!("given.{column}"))
            .collect::<Vec<_>>()
            .join(", "),
        link("SELECT blob, message FROM new WHERE blob IS NOT NULL"),
        room::LINK,
    )
}

/// The parts of a statement that note which pieces a branch needs: `linked`,
/// with those that are new as `fresh`, and that these pieces are needed.
pub(super) fn link(needed: &str) -> String {
    format!(
        "linked AS (INSERT INTO longhaul.links AS held (branch, blob, message) \
         SELECT {BRANCH}, blob, min(message) FROM ({needed}) AS needed \
         GROUP BY blob ORDER BY blob \
         ON CONFLICT (branch, blob) DO UPDATE SET message = excluded.message \
         WHERE excluded.message < held.message RETURNING blob, xmax = 0 AS fresh), \
         needed AS (UPDATE longhaul.blobs SET linked = true WHERE NOT linked \
         AND id IN (SELECT blob FROM linked))"
    )
}

/// An entry as SQL, with its rank among those that come together.
fn row((entry, rank): (&Entry, u32)) -> Result<String, StoreError> {
    let (text, content) = match &entry.text {
        Text::Inline(text) => (Some(fold(text.as_bytes())?), None),
        Text::Content { blob, from, to } => (None, Some((blob, from, to))),
    };
    let room = room::entry(entry, text.as_ref().map_or(0, Vec::len));
    let words = entry.terms.iter().filter(|word| is_word(word));
    let words: Vec<String> = words.map(|word| bytes(word.as_bytes())).collect();
    let nothing = || "NULL::bigint".to_owned();
    Ok(format!(
        "({rank}, ARRAY[{}]::bytea[], {}::bigint, {}::bigint, '{}'::text, {}::bigint, {}::bigint, \
         {}, {}, {}, {}, {}, {}, {}::bigint, {}, {}::bigint)",
        words.join(", "),
        entry.message,
        entry.block,
        entry.kind.name(),
        entry.part,
        entry.turn,
        bytes(entry.tool.as_bytes()),
        bytes(entry.path.as_bytes()),
        maybe(text.as_deref()),
        maybe(content.map(|(blob, ..)| blob.as_bytes().as_slice())),
        content.map_or_else(nothing, |(_, from, _)| format!("{from}::bigint")),
        content.map_or_else(nothing, |(.., to)| format!("{to}::bigint")),
        size(entry.bytes),
        bytes(entry.reference.as_bytes()),
        size(room),
    ))
}
