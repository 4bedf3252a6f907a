//! The journal in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::tree::{Held, Line, Message, key};
use super::{Kept as All, Memory, later};
use crate::engine::ids::{LineageId, Reference};
use crate::store::journal::words::{AT_ONCE, NEWEST, is_word};
use crate::store::journal::{
    Archive, Branch, Entry, EntryRow, Extent, Forgotten, Journal, Kept, Listing, Match, Referred,
    Scope, Text, Trace, room,
};
use crate::store::pack::{fold, pack, unfold};
use crate::store::{Answer, Moment, StoreError};

/// The most entries that a reference stands for.
const REFERRED: usize = 64;

impl All {
    fn archive(
        &mut self,
        trace: &Trace,
        messages: Vec<(Kept, Message)>,
        archive: &Archive,
        now: Moment,
    ) -> LineageId {
        let id = self.tree.settle(trace, now);
        let here = trace.here.1;
        for (kept, message) in messages {
            let known = self.state_of(id, kept.message, here);
            if known == Some(&message.folded) {
                continue;
            }
            let inherited = known.is_some();
            for blob in &kept.blobs {
                self.tree.link(id, *blob, kept.message);
            }
            let Some(held) = self.tree.branches.get_mut(&id) else {
                continue;
            };
            let versions = (kept.message, 0)..=(kept.message, u32::MAX);
            // What another branch has kept of it counts until here.
            let first = !inherited && held.messages.range(versions).next().is_none();
            let since = if first { 0 } else { here };
            held.size += message.size;
            if let Some(replaced) = held.messages.insert((kept.message, since), message) {
                held.size -= replaced.size;
            }
        }
        for promise in &archive.promises {
            if let Some(blob) = promise.blob {
                self.tree.link(id, blob, promise.messages.0);
            }
            let Some(held) = self.tree.branches.get_mut(&id) else {
                continue;
            };
            let mut promises = held.promises.iter_mut();
            let made = promises.find(|(_, made)| made.reference == promise.reference);
            if let Some((_, made)) = made {
                promise.clone_into(made);
            } else {
                self.tree.promised += 1;
                held.size += room::PROMISE;
                held.promises.push((self.tree.promised, promise.clone()));
            }
        }
        id
    }

    /// A message as a conversation has it, in its own branch or in those it grew
    /// from.
    fn state_of(&self, id: LineageId, message: u32, as_of: u32) -> Option<&Vec<u8>> {
        let mut next = Some((id, as_of));
        let mut seen = HashSet::new();
        while let Some((id, as_of)) = next.filter(|(id, _)| seen.insert(*id)) {
            let held = self.tree.branches.get(&id)?;
            let versions = held.messages.range((message, 0)..=(message, as_of));
            if let Some((_, found)) = versions.last() {
                return Some(&found.folded);
            }
            let parent = held
                .branch
                .parent
                .map(|(id, common)| (id, common.min(as_of)));
            next = parent.filter(|(_, as_of)| message < *as_of);
        }
        None
    }

    /// Whether a branch tells it that this one grew from, where they have the
    /// message in common.
    fn is_told(&self, id: LineageId, entry: &Entry) -> bool {
        let parent = |id: LineageId| self.tree.branches.get(&id)?.branch.parent;
        let mut next = parent(id);
        let mut seen = HashSet::from([id]);
        while let Some((id, common)) = next.filter(|(id, _)| seen.insert(*id)) {
            if entry.message >= common {
                return false;
            }
            let held = self.tree.branches.get(&id);
            if held.is_some_and(|held| held.keys.contains(&key(entry))) {
                return true;
            }
            next = parent(id);
        }
        false
    }

    fn append(&mut self, trace: &Trace, entries: Vec<(Entry, u64)>, now: Moment) -> u64 {
        let id = self.tree.settle(trace, now);
        let mut new = 0;
        for (mut entry, size) in entries {
            if self.is_told(id, &entry) {
                continue;
            }
            let Some(held) = self.tree.branches.get_mut(&id) else {
                continue;
            };
            if !held.keys.insert(key(&entry)) {
                continue;
            }
            new += 1;
            let (blob, message) = (blob_of(&entry.text), entry.message);
            self.tree.last_number += 1;
            let number = self.tree.last_number;
            let words = std::mem::take(&mut entry.terms).into_iter();
            let line = Line {
                terms: words.filter(|word| is_word(word)).collect(),
                entry,
                at: now,
                size,
            };
            held.size += size;
            held.entries.insert(number, line);
            self.tree.numbers.insert(number, id);
            if let Some(blob) = blob {
                self.tree.link(id, blob, message);
            }
        }
        new
    }

    fn referred(&self, reference: Reference) -> Vec<Referred> {
        let branches = || self.tree.branches.values();
        let promises = branches().flat_map(|held| {
            let promises = held.promises.iter();
            let made = promises.filter(move |(_, promise)| promise.reference == reference);
            made.map(|(order, promise)| {
                let referred = Referred {
                    branch: held.branch.id,
                    messages: promise.messages,
                    block: promise.block,
                    blob: promise.blob,
                    entry: None,
                };
                (*order, referred)
            })
        });
        let promises: BTreeMap<_, _> = promises.collect();
        let lines = branches().flat_map(|held| held.entries.iter().map(move |line| (held, line)));
        let lines = lines.filter(|(_, (_, line))| line.entry.reference == reference);
        let mut lines: Vec<_> = lines.collect();
        lines.sort_by_key(|(_, (number, _))| **number);
        let mut seen = HashSet::new();
        let entries = lines.into_iter().filter_map(|(held, (number, line))| {
            let Entry { message, block, .. } = line.entry;
            let one = seen.insert((held.branch.id, message, block));
            one.then(|| Referred {
                branch: held.branch.id,
                messages: (message, message.saturating_add(1)),
                block: Some(block),
                blob: blob_of(&line.entry.text),
                entry: Some(*number),
            })
        });
        promises
            .into_values()
            .chain(entries.take(REFERRED))
            .collect()
    }

    fn branches(&self, wanted: impl Fn(&Held) -> bool, limit: u32) -> Vec<Branch> {
        let held = self.tree.branches.values().filter(|held| wanted(held));
        let mut found: Vec<_> = held.map(|held| held.branch.clone()).collect();
        found.sort_by_key(|branch| (Reverse(branch.seen_at), branch.id));
        found.truncate(limit as usize);
        found
    }

    /// The entries of a scope.
    fn within<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = (i64, &'a Held, &'a Line)> {
        let branches: HashSet<_> = scope.0.iter().map(|stretch| stretch.branch).collect();
        let held = branches
            .into_iter()
            .filter_map(|id| self.tree.branches.get(&id));
        let lines = held.flat_map(|held| held.entries.iter().map(move |line| (held, line)));
        lines
            .filter(|(held, (_, line))| scope.shows(held.branch.id, line.entry.message))
            .map(|(held, (number, line))| (*number, held, line))
    }

    fn matching(&self, scope: &Scope, terms: &[String]) -> Vec<Match> {
        let mut found: HashMap<i64, u32> = HashMap::new();
        for (bit, term) in terms.iter().take(AT_ONCE).enumerate() {
            let lines = self.within(scope);
            let have = lines.filter(|(_, _, line)| line.terms.contains(term));
            let mut numbers: Vec<_> = have.map(|(number, ..)| number).collect();
            numbers.sort_unstable_by_key(|number| Reverse(*number));
            for number in numbers.into_iter().take(NEWEST) {
                *found.entry(number).or_default() |= 1 << bit;
            }
        }
        let found = found.into_iter();
        let mut found: Vec<_> = found
            .map(|(number, terms)| Match { number, terms })
            .collect();
        found.sort_unstable_by_key(|found| Reverse(found.number));
        found
    }

    fn list(&self, scope: &Scope, listing: &Listing) -> Vec<EntryRow> {
        let wanted = |number: i64, line: &Line| {
            listing.before.is_none_or(|before| number < before)
                && (listing.kinds.is_empty() || listing.kinds.contains(&line.entry.kind))
        };
        let lines = self.within(scope);
        let mut rows: Vec<_> = lines
            .filter(|(number, _, line)| wanted(*number, line))
            .map(|(number, held, line)| row(number, held, line))
            .collect();
        rows.sort_by_key(|row| Reverse(row.number));
        rows.truncate(listing.limit as usize);
        rows
    }

    fn messages(
        &self,
        scope: &Scope,
        (from, to): (u32, u32),
        as_of: Option<u32>,
    ) -> Result<Vec<Kept>, StoreError> {
        let as_of = as_of.unwrap_or(u32::MAX);
        let mut found: BTreeMap<u32, &Message> = BTreeMap::new();
        for stretch in &scope.0 {
            let Some(held) = self.tree.branches.get(&stretch.branch) else {
                continue;
            };
            let mut here = BTreeMap::new();
            for (&(message, since), kept) in &held.messages {
                let shown = from <= message && message < to.min(as_of).min(stretch.before);
                // Later states come later.
                if shown && since <= as_of.min(stretch.before) {
                    here.insert(message, kept);
                }
            }
            for (message, kept) in here {
                found.entry(message).or_insert(kept);
            }
        }
        let kept = found.into_iter().map(|(message, kept)| {
            Ok(Kept {
                message,
                parts: unfold(&kept.folded)?,
                blobs: kept.blobs.clone(),
            })
        });
        kept.collect()
    }
}

fn blob_of(text: &Text) -> Option<crate::engine::ids::BlobId> {
    match text {
        Text::Content { blob, .. } => Some(*blob),
        Text::Inline(_) => None,
    }
}

fn row(number: i64, held: &Held, line: &Line) -> EntryRow {
    EntryRow {
        number,
        branch: held.branch.id,
        at: line.at,
        entry: line.entry.clone(),
    }
}

impl Journal for Memory {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        later(move || {
            // Packing takes its time: not under the lock, and only what is new.
            let mut packed = Vec::with_capacity(archive.blobs.len());
            for (id, content) in &archive.blobs {
                let known = self.kept().blobs.touch(*id, now);
                packed.push(if known { None } else { Some(pack(content)?) });
            }
            let folded = |kept: &Kept| {
                let folded = fold(&kept.parts)?;
                let message = Message {
                    size: room::message(kept, folded.len()),
                    blobs: kept.blobs.clone(),
                    folded,
                };
                Ok((kept.clone(), message))
            };
            let messages: Result<Vec<_>, StoreError> =
                archive.messages.iter().map(folded).collect();
            let messages = messages?;
            let mut all = self.kept();
            for ((id, content), packed) in archive.blobs.iter().zip(packed) {
                match packed {
                    Some(packed) => _ = all.blobs.put(*id, packed, now),
                    None if all.blobs.touch(*id, now) => {}
                    // It was collected in between.
                    None => _ = all.blobs.put(*id, pack(content)?, now),
                }
            }
            Ok(all.archive(trace, messages, archive, now))
        })
    }

    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        later(move || {
            let sized = |entry: &Entry| {
                let text = match &entry.text {
                    Text::Inline(text) => fold(text.as_bytes())?.len(),
                    Text::Content { .. } => 0,
                };
                Ok((entry.clone(), room::entry(entry, text)))
            };
            let entries: Result<_, StoreError> = entries.iter().map(sized).collect();
            let entries = entries?;
            Ok(self.kept().append(trace, entries, now))
        })
    }

    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        later(move || Ok(self.kept().referred(reference)))
    }

    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        later(move || Ok(self.kept().tree.session(session).cloned()))
    }

    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        later(move || {
            let all = self.kept();
            let named = all.tree.branches.get(&id).map(|held| &held.branch);
            Ok(named.or_else(|| all.tree.session(id)).cloned())
        })
    }

    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        later(move || {
            let left = |held: &Held| {
                let parent = held.branch.parent;
                parent.is_some_and(|(parent, common)| parent == id && common > behind)
            };
            Ok(self.kept().branches(left, limit))
        })
    }

    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        later(move || {
            let seen = |held: &Held| before.is_none_or(|before| held.branch.seen_at < before);
            let wanted = |held: &Held| !held.forgotten && seen(held);
            Ok(self.kept().branches(wanted, limit))
        })
    }

    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        later(move || Ok(self.kept().matching(scope, terms)))
    }

    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        later(move || {
            let all = self.kept();
            let numbers: HashSet<_> = numbers.iter().collect();
            let found = numbers.into_iter().filter_map(|number| {
                let held = all.tree.branches.get(all.tree.numbers.get(number)?)?;
                Some(row(*number, held, held.entries.get(number)?))
            });
            Ok(found.collect())
        })
    }

    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        later(move || Ok(self.kept().list(scope, listing)))
    }

    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        later(move || self.kept().messages(scope, messages, as_of))
    }

    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        later(move || {
            let mut all = self.kept();
            let All { tree, blobs, .. } = &mut *all;
            Ok(tree.forget(id, blobs, Moment(i64::MAX)))
        })
    }

    fn extent(&self) -> Answer<'_, Extent> {
        later(move || {
            let all = self.kept();
            Ok(Extent {
                bytes: all.blobs.bytes() + all.tree.bytes(),
                branches: all.tree.branches.len() as u64,
                entries: all.tree.numbers.len() as u64,
            })
        })
    }
}
