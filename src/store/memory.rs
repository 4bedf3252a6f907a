//! A store in memory: what `store.url = "memory"` uses, what stands in when no
//! file can be used, and the model that every other home is tested against.
//!
//! One lock around hash maps. Nothing waits while it is held, and a look-up
//! holds it for about as long as it takes to copy what was found.

mod sessions;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod journal;
mod tree;

use self::tree::Tree;
use super::journal::Journal;
use super::lease::{Holder, Leases};
use super::pack::{pack, unpack};
use super::rule::{self, Verdict};
use super::shelf::Shelf;
use super::{
    Answer, Collected, Commit, Committed, Keep, MarkRow, Moment, Sessions, Store, StoreError,
};
use crate::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, SegmentId};

/// The store in memory.
#[derive(Default)]
pub struct Memory {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By place; a place has a row for each model, so one or two.
    marks: HashMap<ChainHash, Vec<MarkRow>>,
    /// The places of a hinted session.
    places: HashMap<Hint, HashSet<ChainHash>>,
    overlays: HashMap<OverlayId, Vec<u8>>,
    learned: BTreeMap<String, String>,
    segments: Shelf<SegmentId>,
    blobs: Shelf<BlobId>,
    tree: Tree,
    leases: Leases,
}

impl Memory {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing is done before it is asked for, as with any other store.
fn later<'a, T: 'a>(work: impl FnOnce() -> Result<T, StoreError> + Send + 'a) -> Answer<'a, T> {
    Box::pin(async move { work() })
}

impl Kept {
    fn has(&self, overlay: Option<OverlayId>) -> bool {
        overlay.is_none_or(|id| self.overlays.contains_key(&id))
    }

    fn at(&self, chain: &ChainHash, model: &str) -> Option<&MarkRow> {
        let rows = self.marks.get(chain)?;
        rows.iter().find(|row| row.model == model)
    }

    fn put(&mut self, mark: &MarkRow) {
        let rows = self.marks.entry(mark.chain).or_default();
        match rows.iter_mut().find(|row| row.model == mark.model) {
            Some(held) => mark.clone_into(held),
            None => rows.push(mark.clone()),
        }
        if let Some(hint) = mark.hint {
            self.places.entry(hint).or_default().insert(mark.chain);
        }
    }

    /// Notes figures.
    fn record(&mut self, mark: &MarkRow) {
        if !self.has(mark.overlay) {
            return;
        }
        match self.at(&mark.chain, &mark.model) {
            Some(held) => {
                let mut held = held.clone();
                if rule::renew(&mut held, mark) {
                    self.put(&held);
                }
            }
            None => self.put(mark),
        }
    }

    /// Whether the overlay of a mark holds at its place.
    fn holds(&self, mark: &MarkRow) -> bool {
        let held = self.at(&mark.chain, &mark.model);
        held.is_some_and(|held| held.overlay == mark.overlay)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        rule::check(commit)?;
        let held = self.at(&commit.mark.chain, &commit.mark.model);
        match rule::judge(held, commit) {
            Verdict::There => return Ok(Committed::Done),
            Verdict::Lost => {
                if let Some(held) = held {
                    return Ok(Committed::Lost(Box::new(held.clone())));
                }
            }
            Verdict::Write => {}
        }
        if let Some((id, body)) = &commit.overlay {
            self.overlays.entry(*id).or_insert_with(|| body.clone());
        } else if !self.has(commit.mark.overlay) {
            return Err(rule::unknown_overlay());
        }
        self.put(&commit.mark);
        Ok(Committed::Done)
    }

    fn of_session(&self, hint: Hint) -> impl Iterator<Item = &MarkRow> {
        let places = self.places.get(&hint).into_iter().flatten();
        places
            .filter_map(|place| self.marks.get(place))
            .flatten()
            .filter(move |mark| mark.hint == Some(hint))
    }

    fn state_bytes(&self) -> u64 {
        let marks: u64 = self.marks.values().flatten().map(rule::mark_bytes).sum();
        let bodies = self.overlays.values();
        let overlays: u64 = bodies.map(|body| rule::overlay_bytes(body.len())).sum();
        marks + overlays + self.segments.bytes()
    }

    /// Removes marks and then the overlays that nothing points to.
    fn remove(&mut self, gone: impl Fn(&MarkRow) -> bool, done: &mut Collected) {
        let mut pointed = HashSet::new();
        self.marks.retain(|_, rows| {
            let before = rows.len();
            rows.retain(|row| !gone(row));
            done.marks += (before - rows.len()) as u64;
            pointed.extend(rows.iter().filter_map(|row| row.overlay));
            !rows.is_empty()
        });
        let before = self.overlays.len();
        self.overlays.retain(|id, _| pointed.contains(id));
        done.overlays += (before - self.overlays.len()) as u64;
        let marks = &self.marks;
        self.places.retain(|hint, places| {
            places.retain(|place| {
                let rows = marks.get(place).into_iter().flatten();
                rows.into_iter().any(|row| row.hint == Some(*hint))
            });
            !places.is_empty()
        });
    }

    fn collect_state(&mut self, keep: &Keep, done: &mut Collected) {
        self.remove(|mark| mark.seen_at < keep.since, done);
        done.segments += self.segments.remove_older(keep.since, |_| false);
        let excess = self.state_bytes().saturating_sub(keep.state_bytes);
        done.segments += self.segments.free(excess, |_, _| true);
        let victims = self.least_used(keep.state_bytes);
        if !victims.is_empty() {
            self.remove(|mark| victims.contains(&mark.lineage), done);
        }
    }

    /// The lineages that must go for the rest to fit.
    fn least_used(&self, limit: u64) -> HashSet<LineageId> {
        let mut bytes = self.state_bytes();
        if bytes <= limit {
            return HashSet::new();
        }
        let mut pointers: HashMap<OverlayId, usize> = HashMap::new();
        let mut lineages: HashMap<LineageId, (Moment, Vec<&MarkRow>)> = HashMap::new();
        for mark in self.marks.values().flatten() {
            if let Some(id) = mark.overlay {
                *pointers.entry(id).or_default() += 1;
            }
            let (last, marks) = lineages
                .entry(mark.lineage)
                .or_insert((mark.seen_at, Vec::new()));
            *last = mark.seen_at.max(*last);
            marks.push(mark);
        }
        let mut lineages: Vec<_> = lineages.into_iter().collect();
        lineages.sort_by_key(|(lineage, (last, _))| (*last, *lineage));
        let mut victims = HashSet::new();
        for (lineage, (_, marks)) in lineages {
            if bytes <= limit {
                break;
            }
            victims.insert(lineage);
            for mark in marks {
                bytes -= rule::mark_bytes(mark);
                let Some(id) = mark.overlay else { continue };
                let Some(count) = pointers.get_mut(&id) else {
                    continue;
                };
                *count -= 1;
                if *count == 0 {
                    let body = self.overlays.get(&id).map_or(0, Vec::len);
                    bytes = bytes.saturating_sub(rule::overlay_bytes(body));
                }
            }
        }
        victims
    }
}

impl Store for Memory {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        later(move || {
            let kept = self.kept();
            let mut seen = HashSet::new();
            let places = places.iter().filter(|place| seen.insert(**place));
            let found = places.filter_map(|place| kept.marks.get(place));
            Ok(found.flatten().cloned().collect())
        })
    }

    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        later(move || {
            let views: HashSet<_> = views.iter().collect();
            let kept = self.kept();
            let marks = kept.of_session(hint);
            let found = marks.filter(|mark| views.contains(&mark.view));
            Ok(found.cloned().collect())
        })
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        later(move || {
            let mut used: HashMap<OverlayId, Moment> = HashMap::new();
            for mark in self.kept().of_session(hint) {
                if let Some(overlay) = mark.overlay {
                    let last = used.entry(overlay).or_insert(mark.seen_at);
                    *last = mark.seen_at.max(*last);
                }
            }
            let mut newest: Vec<_> = used.into_iter().collect();
            newest.sort_by_key(|(id, last)| (Reverse(*last), *id));
            let newest = newest.into_iter().map(|(id, _)| id);
            Ok(newest.take(limit as usize).collect())
        })
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        later(move || Ok(self.kept().overlays.get(&id).cloned()))
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        later(|| self.kept().commit(commit))
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        later(move || {
            let mut kept = self.kept();
            for mark in marks {
                kept.record(mark);
            }
            let lost = marks.iter().filter(|mark| !kept.holds(mark));
            Ok(lost.cloned().collect())
        })
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        later(move || {
            let ids: HashSet<_> = ids.iter().collect();
            let packed = |id: &SegmentId| Some((*id, self.kept().segments.get(*id)?));
            let found = ids.into_iter().filter_map(packed);
            found
                .map(|(id, packed)| Ok((id, unpack(&packed)?)))
                .collect()
        })
    }

    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        later(move || {
            let packed = pack(body)?;
            let held = self.kept().segments.put(id, packed, now);
            unpack(&held)
        })
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        later(|| Ok(self.kept().learned.clone().into_iter().collect()))
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        later(|| {
            let learned = &mut self.kept().learned;
            learned.insert(key.to_owned(), value.to_owned());
            Ok(())
        })
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        later(move || {
            for (id, content) in blobs {
                if self.kept().blobs.touch(*id, now) {
                    continue;
                }
                // Packing takes its time: not under the lock.
                let packed = pack(content)?;
                self.kept().blobs.put(*id, packed, now);
            }
            Ok(())
        })
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        later(move || {
            let packed = self.kept().blobs.get(id);
            packed.as_deref().map(unpack).transpose()
        })
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn lease<'a>(&'a self, name: &'a str, holder: Holder, time: Duration) -> Answer<'a, bool> {
        later(move || {
            let leases = &mut self.kept().leases;
            Ok(leases.take(name, holder, time, Instant::now()))
        })
    }

    fn is_leased<'a>(&'a self, names: &'a [String]) -> Answer<'a, bool> {
        later(move || Ok(self.kept().leases.has_any(names, Instant::now())))
    }

    fn release<'a>(&'a self, name: &'a str, holder: Holder) -> Answer<'a, ()> {
        later(move || {
            self.kept().leases.give_back(name, holder);
            Ok(())
        })
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        later(move || {
            let mut done = Collected::default();
            let mut kept = self.kept();
            kept.collect_state(&keep, &mut done);
            let Kept { tree, blobs, .. } = &mut *kept;
            tree.collect(blobs, &keep, &mut done);
            Ok(done)
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        later(|| Ok(()))
    }
}
