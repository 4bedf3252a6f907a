//! What this process knows of the conversations it has seen.
//!
//! A history that was seen before is found here by its quick hash, newest
//! message first, so that only what is new is hashed again. The newest place of
//! each lineage also keeps its mark, so that a store that is slow or away costs
//! nothing that matters: the overlay it names is held by [`super::overlays`] as
//! long as the lineage is among those used last. Older places are thinned out: a client that goes back
//! far is found a few messages further on, or in the store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::ids::{ChainHash, LineageId};
use crate::engine::swift::Swift;
use crate::store::MarkRow;

const SHARDS: usize = 16;
/// Places of one lineage that are all kept; of the older ones, one in eight is.
const RECENT: usize = 32;
/// How many places without a mark are passed over.
const TRIED: usize = 8;
/// The weight of one shard; beyond it the least recently used half goes. A place
/// weighs one, about a hundred bytes, and a mark as much as sixteen: in all some
/// 300 MB, whether conversations are long or many.
const MOST: usize = 160_000;
const MARK: usize = 16;

/// A place in a conversation.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its chain hash.
    pub chain: ChainHash,
    /// Its mark, if it is the newest place of its lineage.
    pub mark: Option<Arc<Remembered>>,
    /// A conversation has gone on from here.
    pub moved_on: bool,
}

/// A mark, and the places that led to it.
#[derive(Debug)]
pub struct Remembered {
    /// The mark.
    pub row: MarkRow,
    trail: VecDeque<Swift>,
}

impl Place {
    fn new(chain: ChainHash) -> Self {
        Self {
            chain,
            mark: None,
            moved_on: false,
        }
    }
}

struct Entry {
    place: Place,
    used: u64,
}

#[derive(Default)]
struct Shard {
    marks: usize,
    /// How many marks there are of each lineage: mostly one.
    lineages: HashMap<LineageId, usize>,
    entries: HashMap<Swift, Entry>,
    clock: u64,
}

/// What this process knows.
pub struct Known {
    shards: Vec<Mutex<Shard>>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Known {
    fn with<T>(&self, at: Swift, act: impl FnOnce(&mut Shard) -> T) -> Option<T> {
        let shard = self.shards.get(at.bucket(SHARDS))?;
        Some(act(&mut shard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)))
    }

    /// The newest place that is known and which message it is, and the newest
    /// mark: a place that was only tried has none.
    pub fn find(&self, history: &[Swift]) -> (Option<(usize, Place)>, Option<Arc<Remembered>>) {
        let look = |(at, swift): (usize, &Swift)| {
            let place = self.with(*swift, |shard| {
                shard.clock += 1;
                let used = shard.clock;
                let entry = shard.entries.get_mut(swift)?;
                entry.used = used;
                Some(entry.place.clone())
            })??;
            Some((at, place))
        };
        let mut known = history.iter().enumerate().rev().filter_map(look);
        let newest = known.next();
        let own = newest.as_ref().and_then(|(_, place)| place.mark.clone());
        let mark = own.or_else(|| known.take(TRIED).find_map(|(_, place)| place.mark));
        (newest, mark)
    }

    /// Notes the chain hash of a place.
    pub fn learn(&self, at: Swift, chain: ChainHash) {
        self.with(at, |shard| {
            shard.put(at, |place| place.unwrap_or(Place::new(chain)));
        });
    }

    /// Notes the mark of a place that grew out of another, which hands over
    /// unless it is another model's: a question on the side moves nothing on.
    pub fn remember(&self, at: Swift, parent: Option<Swift>, row: MarkRow) {
        let taken = parent.filter(|parent| *parent != at).and_then(|parent| {
            let mark = self.with(parent, |shard| {
                let place = &mut shard.entries.get_mut(&parent)?.place;
                let theirs = place.mark.as_ref().map(|mark| &mark.row.model);
                if theirs.is_some_and(|model| *model != row.model) {
                    return None;
                }
                place.moved_on = true;
                let mark = place.mark.take();
                shard.gone(mark.as_deref());
                mark
            })??;
            let mut trail = mark.trail.clone();
            trail.push_back(parent);
            Some(trail)
        });
        let own = self.with(at, |shard| {
            let mark = shard.entries.get(&at)?.place.mark.as_ref()?;
            Some(mark.trail.clone())
        });
        let mut trail = taken.or(own.flatten()).unwrap_or_default();
        while trail.len() > RECENT {
            if let Some(old) = trail.pop_front()
                && !old.is_one_in(8)
            {
                self.with(old, |shard| shard.forget(old));
            }
        }
        let chain = row.chain;
        let mark = Some(Arc::new(Remembered { row, trail }));
        self.with(at, |shard| {
            shard.put(at, |place| Place {
                mark,
                ..place.unwrap_or(Place::new(chain))
            });
        });
    }

    /// Whether a lineage is known.
    pub fn has(&self, lineage: LineageId) -> bool {
        self.shards.iter().any(|shard| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.lineages.contains_key(&lineage)
        })
    }

    /// How many lineages are known, roughly: places with a mark.
    pub fn lineages(&self) -> usize {
        let marked = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let marks = shard.entries.values();
            marks.filter(|entry| entry.place.mark.is_some()).count()
        };
        self.shards.iter().map(marked).sum()
    }
}

impl Shard {
    fn forget(&mut self, at: Swift) {
        if let Some(gone) = self.entries.remove(&at) {
            self.gone(gone.place.mark.as_deref());
        }
    }

    /// A mark is there that was not.
    fn came(&mut self, mark: Option<&Remembered>) {
        let Some(mark) = mark else { return };
        self.marks += 1;
        *self.lineages.entry(mark.row.lineage).or_default() += 1;
    }

    /// A mark is not there any more.
    fn gone(&mut self, mark: Option<&Remembered>) {
        let Some(mark) = mark else { return };
        self.marks -= 1;
        if let Some(count) = self.lineages.get_mut(&mark.row.lineage) {
            *count -= 1;
            if *count == 0 {
                self.lineages.remove(&mark.row.lineage);
            }
        }
    }

    fn put(&mut self, at: Swift, make: impl FnOnce(Option<Place>) -> Place) {
        self.clock += 1;
        let used = self.clock;
        let old = self.entries.remove(&at).map(|entry| entry.place);
        self.gone(old.as_ref().and_then(|place| place.mark.as_deref()));
        let place = make(old);
        self.came(place.mark.as_deref());
        self.entries.insert(at, Entry { place, used });
        if self.entries.len() + self.marks * MARK > MOST {
            let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
            let middle = ages.len() / 2;
            let (_, median, _) = ages.select_nth_unstable(middle);
            let median = *median;
            let old: Vec<Entry> = self
                .entries
                .extract_if(|_, entry| entry.used <= median)
                .map(|(_, entry)| entry)
                .collect();
            for entry in old {
                self.gone(entry.place.mark.as_deref());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::LineageId;
    use crate::engine::swift::{Key, swift};
    use crate::store::Moment;
    use crate::wire::body::Body;

    fn history(name: usize, messages: usize) -> Vec<Swift> {
        let message = |at| format!(r#"{{"role":"user","content":"{name} {at}"}}"#);
        let messages: Vec<String> = (0..messages).map(message).collect();
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        let split = Body::split(body.as_bytes()).unwrap();
        swift(&Key::new([1; 32]), "", body.as_bytes(), &split)
    }

    fn of(lineage: usize) -> LineageId {
        LineageId::beginning(blake3::hash(&lineage.to_le_bytes()).as_bytes())
    }

    fn row(messages: u32) -> MarkRow {
        MarkRow {
            chain: ChainHash::from_bytes([7; 32]),
            model: "m".to_owned(),
            lineage: LineageId::from_bytes([7; 16]),
            messages,
            overlay: None,
            view: ChainHash::from_bytes([7; 32]),
            hint: None,
            sealed: true,
            figures: Vec::new(),
            seen_at: Moment(0),
        }
    }

    #[test]
    fn the_newest_place_of_a_lineage_has_its_mark_and_a_tried_one_is_passed_over() {
        let known = Known::default();
        let history = history(0, 9);
        for at in [0, 2, 4] {
            let parent = (at > 0).then(|| history[at - 2]);
            let messages = u32::try_from(at + 1).unwrap();
            known.remember(history[at], parent, row(messages));
        }
        known.learn(history[6], ChainHash::from_bytes([8; 32]));
        let (place, mark) = known.find(&history);
        assert_eq!(place.unwrap().0, 6);
        assert_eq!(mark.unwrap().row.messages, 5);
        assert_eq!(known.lineages(), 1);
        let (place, mark) = known.find(&history[..3]);
        assert!(place.unwrap().1.moved_on && mark.is_none());
    }

    #[test]
    fn older_places_are_thinned_out() {
        let known = Known::default();
        let history = history(0, 1000);
        for at in 0..history.len() {
            let parent = at.checked_sub(1).map(|parent| history[parent]);
            known.remember(history[at], parent, row(1));
        }
        let kept = |range: &[Swift]| {
            range
                .iter()
                .filter(|at| known.find(&[**at]).0.is_some())
                .count()
        };
        assert_eq!(kept(&history[1000 - RECENT..]), RECENT);
        assert!(kept(&history) < RECENT + 1000 / 4);
    }

    /// Also while places come and go.
    #[test]
    fn a_lineage_is_known_as_long_as_it_has_a_mark() {
        let known = Known::default();
        let rows = |lineage| MarkRow {
            lineage: of(lineage),
            ..row(1)
        };
        let first = history(0, 3);
        known.remember(first[0], None, rows(0));
        known.remember(first[1], Some(first[0]), rows(0));
        known.remember(first[2], Some(first[1]), rows(0));
        assert!(known.has(of(0)) && !known.has(of(1)));
        // The same history, as a session of its own.
        known.remember(first[2], None, rows(1));
        assert!(!known.has(of(0)) && known.has(of(1)));
        let most = SHARDS * MOST / MARK;
        for (name, at) in (0..most * 2).step_by(500).enumerate() {
            for place in history(at + 1, 500) {
                known.remember(place, None, rows(name + 2));
            }
        }
        assert!(!known.has(of(1)) && known.has(of(most * 2 / 500)));
        let has = |name| known.has(of(name));
        assert!((0..most * 2 / 500).filter(|name| has(*name)).count() > 100);
        let counted = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap();
            assert_eq!(shard.marks, shard.lineages.values().sum::<usize>());
            shard.marks
        };
        assert_eq!(
            known.shards.iter().map(counted).sum::<usize>(),
            known.lineages()
        );
    }

    #[test]
    fn many_short_conversations_push_out_the_oldest() {
        let known = Known::default();
        let most = SHARDS * MOST / MARK;
        let first = history(0, 1)[0];
        known.remember(first, None, row(1));
        let all: Vec<Swift> = (1..=most * 2)
            .step_by(500)
            .flat_map(|name| history(name, 500))
            .collect();
        for at in &all {
            known.remember(*at, None, row(1));
        }
        assert!(known.find(&[first]).0.is_none());
        assert!(known.find(&[*all.last().unwrap()]).0.is_some());
        assert!(known.lineages() <= most);
    }
}
