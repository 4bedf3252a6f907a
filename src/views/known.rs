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

use crate::engine::ids::ChainHash;
use crate::engine::swift::Swift;
use crate::store::MarkRow;

const SHARDS: usize = 16;
/// Places of one lineage that are all kept; of the older ones, one in eight is.
const RECENT: usize = 32;
/// How many places without a mark are passed over.
const TRIED: usize = 8;
/// Places in one shard; beyond it the least recently used half goes. In all
/// about 300 MB.
const MOST: usize = 160_000;

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
                place.mark.take()
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
                self.with(old, |shard| shard.entries.remove(&old));
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
    fn put(&mut self, at: Swift, make: impl FnOnce(Option<Place>) -> Place) {
        self.clock += 1;
        let used = self.clock;
        let old = self.entries.remove(&at).map(|entry| entry.place);
        let place = make(old);
        self.entries.insert(at, Entry { place, used });
        if self.entries.len() > MOST {
            let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
            let middle = ages.len() / 2;
            let (_, median, _) = ages.select_nth_unstable(middle);
            let median = *median;
            self.entries.retain(|_, entry| entry.used > median);
        }
    }
}
