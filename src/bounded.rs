//! A map with a bound, shared between threads. When it is full, one entry goes for
//! each that comes: the one that was used least.

use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quick_cache::UnitWeighter;
use quick_cache::unsync::Cache;

/// Entries for which there is room from the beginning.
const AT_FIRST: usize = 16;

/// A map with a bound.
pub struct Bounded<K, V>(Mutex<Cache<K, V>>);

impl<K: Eq + Hash + Clone, V> Bounded<K, V> {
    /// An empty map for this many entries at the most.
    pub fn new(most: usize) -> Self {
        let cache = Cache::with_weighter(AT_FIRST.min(most), most as u64, UnitWeighter);
        Self(Mutex::new(cache))
    }

    fn lock(&self) -> MutexGuard<'_, Cache<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<V>
    where
        V: Clone,
    {
        self.lock().get(key).cloned()
    }

    /// What is read off the value of a key.
    pub fn read<T>(&self, key: &K, read: impl FnOnce(&V) -> T) -> Option<T> {
        self.lock().get(key).map(read)
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: K, value: V) {
        self.lock().insert(key, value);
    }

    /// Changes the value of a key, starting from the default if there is none.
    pub fn update<T>(&self, key: K, change: impl FnOnce(&mut V) -> T) -> T
    where
        V: Default,
    {
        let mut cache = self.lock();
        if let Some(mut value) = cache.get_mut(&key) {
            return change(&mut value);
        }
        let mut value = V::default();
        let answer = change(&mut value);
        cache.insert(key, value);
        answer
    }

    /// Removes a key; whether it was there.
    pub fn remove(&self, key: &K) -> bool {
        self.lock().remove(key).is_some()
    }

    /// Goes through all entries, in no order, and changes them.
    pub fn for_each(&self, mut change: impl FnMut(&K, &mut V)) {
        let mut cache = self.lock();
        let keys: Vec<K> = cache.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(mut value) = cache.peek_mut(&key) {
                change(&key, &mut value);
            }
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Eq + Hash + Clone, V> fmt::Debug for Bounded<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bounded({} entries)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_gives_up_one_entry_for_each_that_comes() {
        let map = Bounded::new(100);
        for at in 0..1_000_u32 {
            map.insert(at, at);
            let len = map.len();
            let wanted = usize::try_from(at).unwrap() + 1;
            assert!(len <= 100 && len + 1 >= wanted.min(100), "{at}: {len}");
            assert!(len == wanted.min(100) || at >= 99, "{at}: {len}");
        }
    }

    #[test]
    fn what_is_used_stays() {
        let map = Bounded::new(100);
        map.insert(u32::MAX, 7);
        for at in 0..1_000_u32 {
            map.insert(at, at);
            assert_eq!(map.get(&u32::MAX), Some(7), "{at}");
        }
    }

    #[test]
    fn entries_can_be_changed_and_removed() {
        let map: Bounded<&str, Vec<u32>> = Bounded::new(4);
        map.update("a", |list| list.push(1));
        map.update("a", |list| list.push(2));
        assert_eq!(map.read(&"a", Vec::len), Some(2));
        map.for_each(|_, list| list.clear());
        assert_eq!(map.get(&"a"), Some(Vec::new()));
        assert!(map.remove(&"a") && !map.remove(&"a") && map.is_empty());
    }
}
