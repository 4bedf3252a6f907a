//! What was written lately, in case the files it was written to vanish.
//!
//! A data folder can be deleted under the running process. The database that is
//! begun in its place knows nothing of the sessions that go on, and marks that
//! point to an overlay which is not stored are refused. So the newest marks of
//! each session are held here with the overlays they point to, and everything
//! learned, within bounds; and the new database is given that before anything
//! else. Only stores in files of this machine need it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::deed::Deed;
use crate::engine::ids::{LineageId, OverlayId};
use crate::store::{Commit, MarkRow};

/// The most bytes of overlays.
const OVERLAY_BYTES: usize = 32 << 20;
/// The most sessions.
const SESSIONS: usize = 4_096;
/// The newest marks of a session: a client may repeat its last request, or ask
/// another model in between.
const MARKS: usize = 3;
/// The most things learned.
const LEARNED: usize = 4_096;

#[derive(Default)]
pub(super) struct Recent {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    overlays: HashMap<OverlayId, Used<Vec<u8>>>,
    overlay_bytes: usize,
    sessions: HashMap<LineageId, Used<VecDeque<MarkRow>>>,
    learned: HashMap<String, String>,
    /// Counts uses.
    clock: u64,
}

struct Used<T> {
    value: T,
    at: u64,
}

impl Held {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn add_overlay(&mut self, id: OverlayId, body: &[u8]) {
        let at = self.tick();
        if let Some(held) = self.overlays.get_mut(&id) {
            held.at = at;
            return;
        }
        if body.len() > OVERLAY_BYTES {
            return;
        }
        self.overlay_bytes += body.len();
        let value = body.to_vec();
        self.overlays.insert(id, Used { value, at });
        if self.overlay_bytes <= OVERLAY_BYTES {
            return;
        }
        // Down to half of it, so that this is rare.
        let mut oldest: Vec<(u64, OverlayId)> = self
            .overlays
            .iter()
            .map(|(id, held)| (held.at, *id))
            .collect();
        oldest.sort_unstable();
        for (_, id) in oldest {
            if self.overlay_bytes <= OVERLAY_BYTES / 2 {
                break;
            }
            let gone = self.overlays.remove(&id).map_or(0, |held| held.value.len());
            self.overlay_bytes -= gone;
        }
    }

    fn add_mark(&mut self, mark: &MarkRow) {
        let at = self.tick();
        if let Some(held) = mark.overlay.and_then(|id| self.overlays.get_mut(&id)) {
            held.at = at;
        }
        let session = self.sessions.entry(mark.lineage).or_insert_with(|| Used {
            value: VecDeque::new(),
            at,
        });
        session.at = at;
        let marks = &mut session.value;
        let same = |held: &MarkRow| held.chain == mark.chain && held.model == mark.model;
        // What was sealed stays so, as in the store.
        let was_sealed = |held: &MarkRow| same(held) && held.overlay == mark.overlay && held.sealed;
        let sealed = mark.sealed || marks.iter().any(was_sealed);
        marks.retain(|held| !same(held));
        marks.push_back(MarkRow {
            sealed,
            ..mark.clone()
        });
        if marks.len() > MARKS {
            marks.pop_front();
        }
        if self.sessions.len() > SESSIONS {
            let mut used: Vec<u64> = self.sessions.values().map(|held| held.at).collect();
            used.sort_unstable();
            let kept_from = used.get(SESSIONS / 2).copied().unwrap_or(0);
            self.sessions.retain(|_, held| held.at >= kept_from);
        }
    }
}

impl Recent {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An overlay was stored or read.
    pub(super) fn add_overlay(&self, id: OverlayId, body: &[u8]) {
        self.held().add_overlay(id, body);
    }

    pub(super) fn overlay(&self, id: OverlayId) -> Option<Vec<u8>> {
        let held = self.held();
        held.overlays.get(&id).map(|held| held.value.clone())
    }

    /// An overlay and its mark were stored.
    pub(super) fn add_commit(&self, commit: &Commit) {
        let mut held = self.held();
        if let Some((id, body)) = &commit.overlay {
            held.add_overlay(*id, body);
        }
        held.add_mark(&commit.mark);
    }

    /// Marks were stored.
    pub(super) fn add_marks(&self, marks: &[MarkRow]) {
        let mut held = self.held();
        for mark in marks {
            held.add_mark(mark);
        }
    }

    /// Something learned was stored or read.
    pub(super) fn add_learned(&self, key: &str, value: &str) {
        let mut held = self.held();
        if held.learned.len() < LEARNED || held.learned.contains_key(key) {
            held.learned.insert(key.to_owned(), value.to_owned());
        }
    }

    /// A session was forgotten.
    pub(super) fn forget(&self, lineage: LineageId) {
        let mut held = self.held();
        let marks = held.sessions.remove(&lineage).map(|session| session.value);
        for id in marks.into_iter().flatten().filter_map(|mark| mark.overlay) {
            let gone = held.overlays.remove(&id).map_or(0, |held| held.value.len());
            held.overlay_bytes -= gone;
        }
    }

    /// What has to be written to a database that knows nothing, the oldest of
    /// each session first. Marks whose overlay is not held are left out.
    pub(super) fn to_write(&self) -> Vec<Deed> {
        let held = self.held();
        let learned = held.learned.iter();
        let learned = learned.map(|(key, value)| Deed::Learn(key.clone(), value.clone()));
        let marks = held.sessions.values().flat_map(|session| &session.value);
        let marks = marks.filter_map(|mark| {
            let overlay = match mark.overlay {
                None => None,
                Some(id) => Some((id, held.overlays.get(&id)?.value.clone())),
            };
            Some(Deed::Commit(Box::new(Commit {
                overlay,
                mark: mark.clone(),
                parent: None,
                refused: false,
            })))
        });
        learned.chain(marks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::ChainHash;
    use crate::store::Moment;

    fn mark(session: u8, place: u8, overlay: Option<u8>) -> MarkRow {
        MarkRow {
            chain: ChainHash::from_bytes([place; 32]),
            model: "m".to_owned(),
            lineage: LineageId::from_bytes([session; 16]),
            messages: u32::from(place),
            overlay: overlay.map(|id| OverlayId::from_bytes([id; 32])),
            view: ChainHash::from_bytes([0; 32]),
            hint: None,
            sealed: true,
            figures: Vec::new(),
            seen_at: Moment(i64::from(place)),
        }
    }

    fn written(recent: &Recent) -> Vec<(u32, Option<Vec<u8>>)> {
        let deeds = recent.to_write().into_iter();
        let commits = deeds.filter_map(|deed| match deed {
            Deed::Commit(commit) => {
                Some((commit.mark.messages, commit.overlay.map(|(_, body)| body)))
            }
            _ => None,
        });
        commits.collect()
    }

    #[test]
    fn the_newest_marks_of_a_session_are_written_with_their_overlays_in_order() {
        let recent = Recent::default();
        recent.add_commit(&Commit {
            overlay: Some((OverlayId::from_bytes([9; 32]), b"nine".to_vec())),
            mark: mark(1, 1, Some(9)),
            parent: None,
            refused: false,
        });
        for place in 2..=5 {
            recent.add_marks(&[mark(1, place, Some(9))]);
        }
        let body = Some(b"nine".to_vec());
        let expected: Vec<_> = [3, 4, 5].map(|at| (at, body.clone())).into();
        assert_eq!(written(&recent), expected);
    }

    #[test]
    fn a_mark_without_an_overlay_is_written_and_one_with_an_unknown_overlay_is_not() {
        let recent = Recent::default();
        recent.add_marks(&[mark(1, 1, None), mark(1, 2, Some(7))]);
        assert_eq!(written(&recent), [(1, None)]);
    }

    #[test]
    fn what_is_held_is_bounded_and_the_least_recently_used_goes_first() {
        let recent = Recent::default();
        let body = vec![0; OVERLAY_BYTES / 5];
        let id = |number: u8| OverlayId::from_bytes([number; 32]);
        for number in 0..5 {
            recent.add_overlay(id(number), &body);
        }
        // The first is in use.
        recent.add_marks(&[mark(1, 1, Some(0))]);
        recent.add_overlay(id(5), &body);
        let held: Vec<u8> = (0..6)
            .filter(|at| recent.overlay(id(*at)).is_some())
            .collect();
        assert_eq!(held, [0, 5]);
    }
}
