//! Putting away what a pass leaves out: durably, and as a rule in one message.
//!
//! Where there is much content it is asked first which of it is there already,
//! and what would make the message too large goes before it: content that
//! nothing needs yet does no harm. The last message counts again whether all of
//! it is there, because somebody may have collected what nobody needed.

use std::collections::{BTreeMap, HashSet};

use super::super::PostgresStore;
use super::super::ask::{Purpose, bytes, list, maybe};
use super::super::pieces;
use super::super::rows::size;
use super::append::link;
use super::place::{BRANCH, Message, NAME};
use crate::engine::ids::{BlobId, LineageId};
use crate::store::journal::{Archive, Kept, Promise, Trace, room};
use crate::store::pack::fold;
use crate::store::{Moment, StoreError};

/// Less content than this is sent without asking whether it is there.
const LITTLE: usize = 256 << 10;

/// How often content may be collected before it is needed.
const ATTEMPTS: u32 = 4;

impl PostgresStore {
    pub(super) async fn put_away(
        &self,
        trace: &Trace,
        archive: &Archive,
        now: Moment,
    ) -> Result<LineageId, StoreError> {
        let write = write(trace.here.1, archive)?;
        let ids: HashSet<BlobId> = archive.blobs.iter().map(|(id, _)| *id).collect();
        let ready = if ids.is_empty() {
            "true".to_owned()
        } else {
            let names = list(ids.iter().map(|id| id.as_bytes().as_slice()));
            format!(
                "(SELECT count(*) FROM longhaul.blobs WHERE id IN ({names})) = {}",
                ids.len()
            )
        };
        for _ in 0..ATTEMPTS {
            let message = Message {
                purpose: Purpose::Durable,
                first: self.bring(&archive.blobs, now).await?,
                ready: ready.clone(),
                write: write.clone(),
            };
            if let Some(written) = self.write_to_branch(trace, now, &message).await? {
                return Ok(written.branch);
            }
        }
        Err(StoreError::Failed(
            "content is collected as fast as it comes".to_owned(),
        ))
    }

    /// The statement that brings what is not there yet and is left when the rest
    /// has been brought, and that holds on to what is there.
    async fn bring(
        &self,
        blobs: &[(BlobId, Vec<u8>)],
        now: Moment,
    ) -> Result<Option<String>, StoreError> {
        if blobs.is_empty() {
            return Ok(None);
        }
        let much = blobs
            .iter()
            .map(|(_, content)| content.len())
            .sum::<usize>()
            > LITTLE;
        let new = if much {
            self.missing(blobs, now).await?
        } else {
            pieces::once(blobs).into_iter().cloned().collect()
        };
        let sent: HashSet<BlobId> = new.iter().map(|(id, _)| *id).collect();
        let mut messages = pieces::pack_all(new, now).await?;
        let last = messages.pop();
        for rows in messages {
            self.put(&rows).await?;
        }
        let there: Vec<_> = pieces::once(blobs)
            .into_iter()
            .filter(|(id, _)| !sent.contains(id))
            .collect();
        let mut statements = Vec::new();
        if !there.is_empty() {
            statements.push(pieces::hold(&there, now));
        }
        statements.extend(last.map(|rows| pieces::insert(&rows)));
        Ok(Some(statements.join("; ")))
    }
}

/// The statements that keep messages and promises.
fn write(here: u32, archive: &Archive) -> Result<String, StoreError> {
    let mut statements = Vec::new();
    for round in rounds(&archive.messages, |kept| kept.message) {
        statements.push(keep(here, &round)?);
    }
    for round in rounds(&archive.promises, |promise| promise.reference) {
        statements.push(promise(&round));
    }
    statements.push(format!("SELECT 0::bigint, {NAME}"));
    Ok(statements.join("; "))
}

/// Things in rounds, because one statement may touch a row only once: what comes
/// twice comes in the second round again.
fn rounds<T, K: Ord>(all: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let mut seen: BTreeMap<K, usize> = BTreeMap::new();
    let mut rounds: Vec<Vec<&T>> = Vec::new();
    for one in all {
        let round = seen.entry(key(one)).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        if let Some(round) = rounds.get_mut(*round) {
            round.push(one);
        }
        *round += 1;
    }
    rounds
}

/// Keeps the messages that are not kept yet as they are now. What a conversation
/// has of a message is its own latest state of it, or else that of the nearest
/// branch that it grew from, as far and as late as they have in common.
fn keep(here: u32, messages: &[&Kept]) -> Result<String, StoreError> {
    let row = |kept: &&Kept| {
        let parts = fold(&kept.parts)?;
        let names: Vec<u8> = kept.blobs.iter().flat_map(|id| *id.as_bytes()).collect();
        Ok(format!(
            "({}::bigint, {}::bigint, {}, {}, {})",
            kept.message,
            size(room::message(kept, parts.len())),
            bytes(blake3::hash(&kept.parts).as_bytes()),
            bytes(&parts),
            bytes(&names),
        ))
    };
    let rows: Result<Vec<String>, StoreError> = messages.iter().map(row).collect();
    Ok(format!(
        "WITH RECURSIVE line (branch, before, step) AS (\
         SELECT number, {here}::bigint, 0 FROM longhaul.branches WHERE number = {BRANCH} \
         UNION ALL SELECT b.parent, least(line.before, b.common), line.step + 1 \
         FROM line JOIN longhaul.branches b ON b.number = line.branch \
         WHERE b.parent IS NOT NULL AND line.step < 1000), \
         given (message, size, digest, parts, blobs) AS (VALUES {}), \
         held AS (SELECT DISTINCT ON (m.message) m.message, m.digest FROM line \
         JOIN longhaul.messages m ON m.branch = line.branch \
         WHERE m.message IN (SELECT message FROM given) AND m.since <= line.before \
         AND (line.step = 0 OR m.message < line.before) \
         ORDER BY m.message, line.step, m.since DESC), \
         wanted AS (SELECT given.*, CASE WHEN held.message IS NOT NULL \
         OR EXISTS (SELECT 1 FROM longhaul.messages own \
         WHERE own.branch = {BRANCH} AND own.message = given.message) \
         THEN {here}::bigint ELSE 0 END AS since FROM given LEFT JOIN held USING (message) \
         WHERE held.digest IS DISTINCT FROM given.digest \
         AND EXISTS (SELECT 1 FROM longhaul.branches WHERE number = {BRANCH})), \
         replaced AS (SELECT coalesce(sum(m.size), 0) AS size FROM longhaul.messages m \
         JOIN wanted USING (message, since) WHERE m.branch = {BRANCH}), \
         kept AS (INSERT INTO longhaul.messages (branch, message, since, size, digest, parts, blobs) \
         SELECT {BRANCH}, message, since, size, digest, parts, blobs FROM wanted \
         ORDER BY message ON CONFLICT (branch, message, since) DO UPDATE SET \
         size = excluded.size, digest = excluded.digest, parts = excluded.parts, \
         blobs = excluded.blobs RETURNING message, size, blobs), \
         {} \
         UPDATE longhaul.branches SET size = size + (SELECT coalesce(sum(size), 0) FROM kept) \
         - (SELECT size FROM replaced) + {} * (SELECT count(*) FROM linked WHERE fresh) \
         WHERE number = {BRANCH}",
        rows?.join(", "),
        link(
            "SELECT substring(kept.blobs FROM at FOR 32) AS blob, kept.message FROM kept, \
             generate_series(1, length(kept.blobs), 32) AS at"
        ),
        room::LINK,
    ))
}

/// Notes what references of a view stand for.
fn promise(promises: &[&Promise]) -> String {
    let row = |(promise, rank): (&&Promise, usize)| {
        format!(
            "({rank}, {}, {}::bigint, {}::bigint, {}::bigint, {})",
            bytes(promise.reference.as_bytes()),
            promise.messages.0,
            promise.messages.1,
            promise
                .block
                .map_or_else(|| "NULL".to_owned(), |block| block.to_string()),
            maybe(promise.blob.as_ref().map(|blob| blob.as_bytes().as_slice())),
        )
    };
    let rows: Vec<String> = promises.iter().zip(0..).map(row).collect();
    format!(
        "WITH given (rank, reference, first, behind, block, blob) AS (VALUES {}), \
         made AS (INSERT INTO longhaul.promises (reference, branch, first, behind, block, blob) \
         SELECT reference, b.number, first, behind, block, blob FROM given, longhaul.branches b \
         WHERE b.number = {BRANCH} ORDER BY rank ON CONFLICT (reference, branch) DO UPDATE SET \
         first = excluded.first, behind = excluded.behind, block = excluded.block, \
         blob = excluded.blob RETURNING first, blob, xmax = 0 AS fresh), \
         {} \
         UPDATE longhaul.branches SET size = size \
         + {} * (SELECT count(*) FROM made WHERE fresh) \
         + {} * (SELECT count(*) FROM linked WHERE fresh) WHERE number = {BRANCH}",
        rows.join(", "),
        link("SELECT blob, first AS message FROM made WHERE blob IS NOT NULL"),
        room::PROMISE,
        room::LINK,
    )
}
