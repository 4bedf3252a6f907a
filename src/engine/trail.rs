//! From where the provider's cache can still be read.
//!
//! An entry ends where a mark stood, and lives from the last request that wrote
//! or read it. A request reads the newest entry only, so those before it die one
//! after another, a lifetime after the conversation has moved on. A change in
//! the middle can go on from the last living entry before it, if there is one;
//! otherwise everything behind system and tools is written once more. What is
//! not known to live is taken for dead: to believe otherwise is dear.

use serde::{Deserialize, Serialize};

use super::cache_marks::Place;

/// The most entries that are remembered.
const KEPT: usize = 32;
/// The newest of them, which are never thinned out.
const NEWEST: usize = 8;
/// Seconds before its end at which an entry is no longer relied on.
const MARGIN: i64 = 15;

/// Entries of a lineage's cache, in order of place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trail(Vec<Entry>);

/// An entry: message and block where it ends, and when it was last used, in
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Entry(u32, u32, i64);

impl Trail {
    /// A request goes out now and reads what the one before has left.
    pub fn goes_on(&mut self, read: Option<Place>, now: i64, lifetime: Option<u64>) {
        self.0.retain(|entry| entry.lives(now, lifetime));
        let Some((message, block)) = read else {
            return;
        };
        let place = (count(message), count(block));
        self.0.retain(|entry| (entry.0, entry.1) < place);
        self.0.push(Entry(place.0, place.1, now));
        if self.0.len() > KEPT {
            self.thin_out();
        }
    }

    /// A request goes out that keeps an entry alive besides the newest.
    pub fn keeps(&mut self, place: Option<Place>, now: i64) {
        let Some((message, block)) = place.map(|(message, block)| (count(message), count(block)))
        else {
            return;
        };
        let place = (message, block);
        self.0.retain(|entry| (entry.0, entry.1) != place);
        let at = self.0.partition_point(|entry| (entry.0, entry.1) < place);
        self.0.insert(at, Entry(message, block, now));
    }

    /// The view changes from a message on: what ends there is of another one.
    pub fn breaks_at(&mut self, message: usize) {
        self.0.retain(|entry| (entry.0 as usize) < message);
    }

    /// The messages up to which something can be read, in order.
    pub fn living(&self, now: i64, lifetime: Option<u64>) -> Vec<usize> {
        let living = self.0.iter().filter(|entry| entry.lives(now, lifetime));
        living.map(|entry| entry.0 as usize).collect()
    }

    /// The last place that a change from a message on leaves as it is.
    pub fn before(&self, message: usize) -> Option<Place> {
        let kept = |entry: &&Entry| (entry.0 as usize) < message;
        let entry = self.0.iter().rev().find(kept)?;
        Some((entry.0 as usize, entry.1 as usize))
    }

    /// Forgets the older entry that stands closest behind another.
    fn thin_out(&mut self) {
        let older = self.0.get(..self.0.len() - NEWEST).unwrap_or(&[]);
        let gaps = older.windows(2).enumerate().filter_map(|(at, pair)| {
            let [one, other] = pair else { return None };
            Some((other.0 - one.0, at + 1))
        });
        if let Some((_, at)) = gaps.min() {
            self.0.remove(at);
        }
    }
}

impl Entry {
    fn lives(&self, now: i64, lifetime: Option<u64>) -> bool {
        let seconds = i64::try_from(lifetime.unwrap_or(0)).unwrap_or(i64::MAX);
        let end = seconds.saturating_sub(MARGIN).saturating_mul(1_000);
        now.saturating_sub(self.2) <= end
    }
}

fn count(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Option<u64> = Some(300);

    /// A request every minute, each ending two messages further.
    fn walked(requests: usize) -> (Trail, i64) {
        let mut trail = Trail::default();
        for at in 0..requests {
            let now = i64::try_from(at).unwrap() * 60_000;
            trail.goes_on(at.checked_sub(1).map(|at| (at * 2, 0)), now, SHORT);
        }
        (trail, i64::try_from(requests - 1).unwrap() * 60_000)
    }

    #[test]
    fn entries_die_a_lifetime_after_the_conversation_has_moved_on() {
        let (trail, now) = walked(20);
        assert_eq!(trail.living(now, SHORT), [28, 30, 32, 34, 36]);
        assert_eq!(trail.living(now + 200_000, SHORT), [34, 36]);
        assert_eq!(trail.living(now, None), [0; 0], "no cache is in use");
    }

    #[test]
    fn a_change_goes_on_from_the_last_entry_before_it() {
        let (mut trail, now) = walked(20);
        assert_eq!(trail.before(33), Some((32, 0)));
        assert_eq!(trail.before(32), Some((30, 0)));
        assert_eq!(trail.before(5), None);
        trail.breaks_at(33);
        assert_eq!(trail.living(now, SHORT), [28, 30, 32]);
    }

    #[test]
    fn a_long_trail_is_thinned_out_and_stays_in_order() {
        let mut trail = Trail::default();
        for at in 0..500_usize {
            trail.goes_on(Some((at * 2, 1)), 0, Some(3_600));
        }
        let living = trail.living(0, Some(3_600));
        assert_eq!(living.len(), KEPT);
        assert!(living.is_sorted());
        assert_eq!(living.last(), Some(&998));
        assert_eq!(living.first(), Some(&0));
        assert!(
            living.iter().any(|at| (300..700).contains(at)),
            "{living:?}"
        );
    }

    #[test]
    fn a_history_that_was_taken_back_leaves_no_entry_behind_its_end() {
        let (mut trail, now) = walked(20);
        trail.goes_on(Some((31, 0)), now, SHORT);
        assert_eq!(trail.living(now, SHORT).last(), Some(&31));
    }
}
