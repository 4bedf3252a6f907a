//! The branches of the journal in memory, with all that belongs to each.
//!
//! The model that every other home of the journal is tested against, so it says
//! what it does as plainly as it can: a branch holds its own things, and looking
//! for something is looking through them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::engine::ids::{BlobId, ChainHash, LineageId};
use crate::store::journal::growth::{self, Belongs, Found, PLACES, SLACK};
use crate::store::journal::{Branch, Entry, EntryKind, Forgotten, Promise, Trace, room};
use crate::store::shelf::Shelf;
use crate::store::{Collected, Keep, Moment};

/// All branches.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) branches: HashMap<LineageId, Held>,
    places: HashMap<ChainHash, (LineageId, u32)>,
    /// The branch of each entry.
    pub(super) numbers: HashMap<i64, LineageId>,
    /// How many branches need a piece.
    links: HashMap<BlobId, u64>,
    pub(super) last_number: i64,
    pub(super) promised: u64,
}

/// A branch and what belongs to it.
pub(super) struct Held {
    pub(super) branch: Branch,
    /// It is only there for those that left it.
    pub(super) forgotten: bool,
    pub(super) size: u64,
    /// In the order in which it came there.
    places: Vec<(ChainHash, u32)>,
    pub(super) entries: BTreeMap<i64, Line>,
    pub(super) keys: HashSet<Key>,
    /// By message and from which state of the history on.
    pub(super) messages: BTreeMap<(u32, u32), Message>,
    /// With their order among all.
    pub(super) promises: Vec<(u64, Promise)>,
    /// The pieces it needs, and the first message that does.
    links: HashMap<BlobId, u32>,
}

/// What there is one of in a branch: message, block, kind, part.
pub(super) type Key = (u32, u32, EntryKind, u32);

/// An entry.
pub(super) struct Line {
    pub(super) entry: Entry,
    pub(super) terms: HashSet<String>,
    pub(super) at: Moment,
    pub(super) size: u64,
}

/// A message.
pub(super) struct Message {
    pub(super) folded: Vec<u8>,
    pub(super) blobs: Vec<BlobId>,
    pub(super) size: u64,
}

/// What there is one of in a branch.
pub(super) fn key(entry: &Entry) -> Key {
    (entry.message, entry.block, entry.kind, entry.part)
}

impl Tree {
    /// The branch to which a conversation belongs, now if not before.
    pub(super) fn settle(&mut self, trace: &Trace, now: Moment) -> LineageId {
        let branch = |id: &LineageId| Some(self.branches.get(id)?.branch.clone());
        let place = |(chain, _)| {
            let (id, messages) = self.places.get(&chain)?;
            Some((branch(id)?, *messages))
        };
        let found = Found {
            here: place(trace.here).map(|(branch, _)| branch),
            from: trace
                .before()
                .into_iter()
                .filter_map(place)
                .find(|(branch, _)| branch.tenant == trace.tenant),
        };
        let (id, moved) = match growth::belongs(trace, found) {
            Belongs::There(branch) => (branch.id, false),
            Belongs::Grows(branch) => (branch.id, true),
            Belongs::Begins(parent) => {
                let mut names = growth::names(trace);
                let free = names.find(|name| !self.branches.contains_key(name));
                let id = free.unwrap_or(trace.lineage);
                let branch = growth::begin(trace, id, parent, now);
                self.branches.insert(id, Held::new(branch));
                (id, true)
            }
        };
        if let Some(held) = self.branches.get_mut(&id) {
            growth::renew(&mut held.branch, trace, now);
            if held.forgotten && moved {
                // Little was left of it: it begins anew.
                held.forgotten = false;
                held.branch.began_at = now;
            }
        }
        if moved {
            let before = trace.from.into_iter().chain(trace.through.iter().copied());
            let before = before.filter(|(_, messages)| *messages <= trace.here.1);
            for place in before.chain([trace.here]) {
                self.arrive(id, place);
            }
        }
        id
    }

    fn arrive(&mut self, id: LineageId, (chain, messages): (ChainHash, u32)) {
        let Some(held) = self.branches.get_mut(&id) else {
            return;
        };
        if self.places.contains_key(&chain) {
            return;
        }
        self.places.insert(chain, (id, messages));
        held.places.push((chain, messages));
        held.size += room::PLACE;
        let count = held.places.len() as u64;
        if count > PLACES + SLACK {
            let many = usize::try_from(count - PLACES).unwrap_or(0);
            for (chain, _) in held.places.drain(..many) {
                self.places.remove(&chain);
                held.size -= room::PLACE;
            }
        }
    }

    /// The branch of that name, or the one of that session which was seen last.
    pub(super) fn session(&self, lineage: LineageId) -> Option<&Branch> {
        let alive = self.branches.values().filter(|held| !held.forgotten);
        alive
            .map(|held| &held.branch)
            .filter(|branch| branch.lineage == lineage)
            .max_by_key(|branch| (branch.id == lineage, branch.seen_at, Reverse(branch.id)))
    }

    /// A branch needs a piece because of a message.
    pub(super) fn link(&mut self, id: LineageId, blob: BlobId, message: u32) {
        let Some(held) = self.branches.get_mut(&id) else {
            return;
        };
        if let Some(first) = held.links.get_mut(&blob) {
            *first = message.min(*first);
        } else {
            held.links.insert(blob, message);
            held.size += room::LINK;
            *self.links.entry(blob).or_default() += 1;
        }
    }

    /// How many messages others have in common with a branch at most.
    fn common(&self, id: LineageId) -> Option<u32> {
        let parents = self.branches.values().filter_map(|held| held.branch.parent);
        let commons = parents.filter(|(parent, _)| *parent == id);
        commons.map(|(_, common)| common).max()
    }

    /// Forgets a branch, as far as others do not need it.
    pub(super) fn forget(
        &mut self,
        id: LineageId,
        blobs: &mut Shelf<BlobId>,
        idle_since: Moment,
    ) -> Forgotten {
        let mut done = Forgotten::default();
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let common = self.common(id);
            let Some(held) = self.branches.get_mut(&id) else {
                break;
            };
            done.branches += u64::from(!held.forgotten);
            held.forgotten = true;
            held.branch.label = None;
            let cut = held.cut(common);
            let parent = held.branch.parent;
            for chain in cut.places {
                self.places.remove(&chain);
            }
            for number in cut.entries {
                done.entries += u64::from(self.numbers.remove(&number).is_some());
            }
            for blob in cut.links {
                let left = self.links.get_mut(&blob).map_or(0, |count| {
                    *count -= 1;
                    *count
                });
                if left == 0 {
                    self.links.remove(&blob);
                    done.blobs += u64::from(blobs.remove(blob, idle_since));
                }
            }
            if common.is_none() {
                self.branches.remove(&id);
                let forgotten = |(id, _)| self.branches.get(&id).is_some_and(|held| held.forgotten);
                next = parent.filter(|parent| forgotten(*parent)).map(|(id, _)| id);
            }
        }
        done
    }

    pub(super) fn bytes(&self) -> u64 {
        self.branches.values().map(|held| held.size).sum()
    }

    /// Removes what is no longer kept.
    pub(super) fn collect(&mut self, blobs: &mut Shelf<BlobId>, keep: &Keep, done: &mut Collected) {
        let mut forget = |tree: &mut Self, blobs: &mut _, id| {
            let gone = tree.forget(id, blobs, keep.idle_since);
            done.branches += gone.branches;
            done.entries += gone.entries;
            done.blobs += gone.blobs;
        };
        while let Some(id) = self.least_seen(keep.blobs_since) {
            forget(self, blobs, id);
        }
        let mut removed = blobs.remove_older(keep.blobs_since.min(keep.idle_since), |id| {
            self.links.contains_key(&id)
        });
        let excess = (blobs.bytes() + self.bytes()).saturating_sub(keep.blob_bytes);
        removed += blobs.free(excess, |id, used_at| {
            used_at < keep.idle_since && !self.links.contains_key(&id)
        });
        while blobs.bytes() + self.bytes() > keep.blob_bytes {
            let Some(id) = self.least_seen(keep.idle_since) else {
                break;
            };
            forget(self, blobs, id);
        }
        done.blobs += removed;
    }

    /// The branch that was not seen for longest, if not since a moment.
    fn least_seen(&self, since: Moment) -> Option<LineageId> {
        let alive = self.branches.values().filter(|held| !held.forgotten);
        let old = alive.filter(|held| held.branch.seen_at < since);
        old.map(|held| (held.branch.seen_at, held.branch.id))
            .min()
            .map(|(_, id)| id)
    }
}

/// What a branch lost.
struct Cut {
    places: Vec<ChainHash>,
    entries: Vec<i64>,
    links: Vec<BlobId>,
}

impl Held {
    fn new(branch: Branch) -> Self {
        Self {
            branch,
            forgotten: false,
            size: room::BRANCH,
            places: Vec::new(),
            entries: BTreeMap::new(),
            keys: HashSet::new(),
            messages: BTreeMap::new(),
            promises: Vec::new(),
            links: HashMap::new(),
        }
    }

    /// Cuts it back to its first messages, or to nothing.
    fn cut(&mut self, common: Option<u32>) -> Cut {
        let place_stays = |messages| common.is_some_and(|common| messages <= common);
        let common = common.unwrap_or(0);
        self.branch.messages = self.branch.messages.min(common);
        let mut freed = 0;
        let mut cut = Cut {
            places: Vec::new(),
            entries: Vec::new(),
            links: Vec::new(),
        };
        self.places.retain(|(chain, messages)| {
            let stays = place_stays(*messages);
            if !stays {
                cut.places.push(*chain);
                freed += room::PLACE;
            }
            stays
        });
        self.entries.retain(|number, line| {
            let stays = line.entry.message < common;
            if !stays {
                cut.entries.push(*number);
                self.keys.remove(&key(&line.entry));
                freed += line.size;
            }
            stays
        });
        self.messages.retain(|(message, since), held| {
            let stays = *message < common && *since <= common;
            freed += if stays { 0 } else { held.size };
            stays
        });
        self.promises.retain(|(_, promise)| {
            let stays = place_stays(promise.messages.1);
            freed += if stays { 0 } else { room::PROMISE };
            stays
        });
        self.links.retain(|blob, message| {
            let stays = *message < common;
            if !stays {
                cut.links.push(*blob);
                freed += room::LINK;
            }
            stays
        });
        self.size -= freed;
        cut
    }
}
