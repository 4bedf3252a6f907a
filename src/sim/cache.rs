//! The prompt cache.
//!
//! Entries are written only at marks and are found only by looking back at most
//! twenty positions from a mark. An entry can be read once the answer that
//! wrote it has begun; its life is counted from the start of the request that
//! last wrote or read it.

use std::collections::HashMap;

use super::canonical::Digest;
use super::marks::{Lifetime, Mark};
use super::prices::Tokens;
use super::prompt::{Position, Prompt};
use crate::clock::Moment;

/// Positions that are compared from a mark on, the mark itself included.
const LOOKBACK: usize = 20;

/// Workspace and position; the model is part of every digest.
type Key = (String, Digest);

#[derive(Debug, Clone, Copy)]
struct Entry {
    lifetime: Lifetime,
    expires: Moment,
}

/// All entries.
#[derive(Debug, Default)]
pub struct Cache {
    entries: HashMap<Key, Entry>,
    /// How many entries there may be before expired ones are thrown out.
    room: usize,
}

/// Fewer entries than this are not worth clearing up.
const SMALLEST_ROOM: usize = 1_024;

/// What a request reads and will write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Index of the position that is read up to.
    pub read: Option<usize>,
    /// Positions that are written, with their lifetimes.
    pub writes: Vec<(usize, Lifetime)>,
    /// The prompt by price class; output is still zero.
    pub tokens: Tokens,
}

impl Cache {
    /// Looks a prompt up, refreshes what is read and says what will be written.
    pub fn plan(
        &mut self,
        workspace: &str,
        prompt: &Prompt,
        marks: &[Mark],
        minimum: u64,
        now: Moment,
    ) -> Plan {
        let writes = cacheable(prompt, marks, minimum);
        let read = writes
            .iter()
            .rev()
            .find_map(|(mark, _)| self.look_back(workspace, prompt, *mark, now));
        if let Some(position) = read.and_then(|at| prompt.positions.get(at)) {
            self.refresh(workspace, position, now);
        }
        let tokens = bill(prompt, read, &writes);
        Plan {
            read,
            writes,
            tokens,
        }
    }

    /// Makes what a request wrote readable; `start` is when the request began.
    pub fn commit(&mut self, workspace: &str, prompt: &Prompt, plan: &Plan, start: Moment) {
        let alive = |position: &Position| {
            let entry = self.entries.get(&(workspace.to_owned(), position.digest));
            entry.copied().filter(|entry| entry.expires > start)
        };
        let found = plan.read.and_then(|at| prompt.positions.get(at));
        let found = found.and_then(alive);
        let mut written = Vec::new();
        for (at, lifetime) in &plan.writes {
            let Some(position) = prompt.positions.get(*at) else {
                continue;
            };
            let paid = plan.read.is_none_or(|read| *at > read);
            let (old, wanted) = (alive(position), *lifetime);
            // What is read is not written: a mark in front of the hit refreshes
            // an entry but buys it no longer life.
            let lifetime = match (paid, old) {
                (true, Some(old)) => old.lifetime.max(wanted),
                (true, None) => wanted,
                (false, Some(old)) => old.lifetime,
                (false, None) => found.map_or(wanted, |found| found.lifetime.min(wanted)),
            };
            let expires = start.after(lifetime.duration());
            let expires = old.map_or(expires, |old| old.expires.max(expires));
            written.push((position.digest, Entry { lifetime, expires }));
        }
        for (digest, entry) in written {
            self.entries.insert((workspace.to_owned(), digest), entry);
        }
        self.clear_up(start);
    }

    /// Throws expired entries out, now and then.
    fn clear_up(&mut self, now: Moment) {
        if self.entries.len() > self.room {
            self.entries.retain(|_, entry| entry.expires > now);
            self.room = (self.entries.len() * 2).max(SMALLEST_ROOM);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    fn look_back(
        &self,
        workspace: &str,
        prompt: &Prompt,
        mark: usize,
        now: Moment,
    ) -> Option<usize> {
        let first = (mark + 1).saturating_sub(LOOKBACK);
        (first..=mark).rev().find(|at| {
            let position = prompt.positions.get(*at);
            let entry = position.and_then(|p| self.entries.get(&(workspace.to_owned(), p.digest)));
            entry.is_some_and(|entry| entry.expires > now)
        })
    }

    fn refresh(&mut self, workspace: &str, position: &Position, now: Moment) {
        if let Some(entry) = self
            .entries
            .get_mut(&(workspace.to_owned(), position.digest))
        {
            entry.expires = entry.expires.max(now.after(entry.lifetime.duration()));
        }
    }
}

/// The marks that write: those on a rendered position behind enough tokens.
fn cacheable(prompt: &Prompt, marks: &[Mark], minimum: u64) -> Vec<(usize, Lifetime)> {
    let at = |mark: &Mark| {
        // A mark on a block that is no longer rendered stands on the one before.
        prompt
            .positions
            .iter()
            .rposition(|position| position.place <= mark.place)
    };
    let long_enough = |at: &usize| {
        prompt
            .positions
            .get(*at)
            .is_some_and(|position| position.tokens >= minimum)
    };
    marks
        .iter()
        .filter_map(|mark| Some((at(mark).filter(long_enough)?, mark.lifetime)))
        .collect()
}

/// Reads up to the hit; an hour's write up to the last such mark behind it; a
/// five minutes' write up to the last mark; the rest is plain input.
fn bill(prompt: &Prompt, read: Option<usize>, writes: &[(usize, Lifetime)]) -> Tokens {
    let tokens = |at: usize| {
        prompt
            .positions
            .get(at)
            .map_or(0, |position| position.tokens)
    };
    let hit = read.map_or(0, tokens);
    let up_to = |wanted: &dyn Fn(Lifetime) -> bool, from: u64| {
        let ends = writes
            .iter()
            .filter(|(_, lifetime)| wanted(*lifetime))
            .map(|(at, _)| tokens(*at));
        ends.max().unwrap_or(0).max(from)
    };
    let hour = up_to(&|lifetime| lifetime == Lifetime::Hour1, hit);
    let last = up_to(&|_| true, hour);
    Tokens {
        read: hit,
        write_1h: hour - hit,
        write_5m: last - hour,
        input: prompt.tokens() - last,
        output: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::sim::marks::Place;
    use std::time::Duration;

    /// A prompt of blocks of a hundred tokens each.
    fn prompt(blocks: usize) -> Prompt {
        let mut digest = Digest::of("start");
        let position = |index: usize| {
            digest = digest.then(Digest::of(&index.to_string()));
            Position {
                place: Place::Message(index, 0),
                digest,
                tokens: (index as u64 + 1) * 100,
            }
        };
        Prompt {
            positions: (0..blocks).map(position).collect(),
        }
    }

    fn mark(at: usize, lifetime: Lifetime) -> Mark {
        Mark {
            place: Place::Message(at, 0),
            lifetime,
        }
    }

    fn five(at: usize) -> Mark {
        mark(at, Lifetime::Minutes5)
    }

    struct Bench {
        cache: Cache,
        clock: Clock,
    }

    impl Bench {
        fn new() -> Self {
            let clock = Clock::default();
            clock.freeze();
            Self {
                cache: Cache::default(),
                clock,
            }
        }

        fn run(&mut self, blocks: usize, marks: &[Mark]) -> Tokens {
            let (prompt, now) = (prompt(blocks), self.clock.now());
            let plan = self.cache.plan("w", &prompt, marks, 200, now);
            self.cache.commit("w", &prompt, &plan, now);
            plan.tokens
        }
    }

    /// Fact: the next request reads what the mark wrote and writes the rest.
    #[test]
    fn what_was_written_is_read() {
        let mut bench = Bench::new();
        let first = bench.run(10, &[five(9)]);
        assert_eq!((first.read, first.write_5m, first.input), (0, 1_000, 0));
        let second = bench.run(12, &[five(11)]);
        assert_eq!(
            (second.read, second.write_5m, second.input),
            (1_000, 200, 0)
        );
    }

    /// Fact: an entry at block 15 is not found from a mark at block 35, but is from 34.
    #[test]
    fn lookback_is_twenty_positions() {
        for (later, read) in [(34, 1_500), (35, 0)] {
            let mut bench = Bench::new();
            bench.run(15, &[five(14)]);
            assert_eq!(bench.run(later, &[five(later - 1)]).read, read, "{later}");
        }
    }

    /// Fact: each explicit mark starts a new window.
    #[test]
    fn an_earlier_mark_starts_its_own_window() {
        let mut bench = Bench::new();
        bench.run(15, &[five(14)]);
        assert_eq!(bench.run(60, &[five(14), five(59)]).read, 1_500);
    }

    /// Fact: writes happen only at marks.
    #[test]
    fn nothing_is_written_without_a_mark() {
        let mut bench = Bench::new();
        assert_eq!(
            bench.run(10, &[]),
            Tokens {
                input: 1_000,
                ..Tokens::default()
            }
        );
        assert_eq!(bench.run(12, &[five(11)]).read, 0);
        assert_eq!(
            bench.run(11, &[five(10)]).read,
            0,
            "between marks there is no entry"
        );
    }

    /// Fact: a prefix below the model's minimum is silently not cached.
    #[test]
    fn short_prefixes_are_not_cached() {
        let mut bench = Bench::new();
        assert_eq!(
            bench.run(1, &[five(0)]),
            Tokens {
                input: 100,
                ..Tokens::default()
            }
        );
        assert_eq!(bench.run(2, &[five(1)]).write_5m, 200);
    }

    /// Fact: entries expire after their lifetime, counted from the start of the
    /// request; a read refreshes them.
    #[test]
    fn lifetimes_are_refreshed_by_reading() {
        let mut bench = Bench::new();
        bench.run(10, &[five(9)]);
        for _ in 0..3 {
            bench.clock.advance(Duration::from_secs(299));
            assert_eq!(bench.run(10, &[five(9)]).read, 1_000);
        }
        bench.clock.advance(Duration::from_mins(5));
        assert_eq!(bench.run(10, &[five(9)]).read, 0);
    }

    /// Fact: an hour's entry lives an hour.
    #[test]
    fn an_hour_is_an_hour() {
        let mut bench = Bench::new();
        bench.run(10, &[mark(9, Lifetime::Hour1)]);
        bench.clock.advance(Duration::from_secs(3_599));
        assert_eq!(bench.run(10, &[five(9)]).read, 1_000);
    }

    /// Fact: an hour's life is an hour's write price. An entry that expired and is
    /// written again for five minutes lives five minutes, however it lived before.
    #[test]
    fn an_expired_hour_does_not_come_back() {
        let mut bench = Bench::new();
        bench.run(10, &[mark(9, Lifetime::Hour1)]);
        bench.clock.advance(Duration::from_hours(2));
        assert_eq!(bench.run(10, &[five(9)]).write_5m, 1_000);
        bench.clock.advance(Duration::from_mins(4));
        assert_eq!(bench.run(10, &[five(9)]).read, 1_000);
        bench.clock.advance(Duration::from_mins(6));
        assert_eq!(bench.run(10, &[five(9)]).read, 0);
    }

    /// Fact: only what lies behind the hit is written; an hour's mark in front of it
    /// is billed as a read, so it makes nothing live an hour.
    #[test]
    fn a_mark_on_what_is_read_buys_no_hour() {
        let mut bench = Bench::new();
        bench.run(10, &[five(4), five(9)]);
        let again = bench.run(10, &[mark(4, Lifetime::Hour1), five(9)]);
        assert_eq!((again.read, again.write_1h), (1_000, 0));
        bench.clock.advance(Duration::from_mins(6));
        assert_eq!(bench.run(5, &[five(4)]).read, 0);
    }

    /// Fact: the life of an entry counts from the start of the request that wrote
    /// it, not from the answer that made it readable.
    #[test]
    fn a_slow_answer_shortens_the_life() {
        let mut bench = Bench::new();
        let (prompt, start) = (prompt(10), bench.clock.now());
        let plan = bench.cache.plan("w", &prompt, &[five(9)], 200, start);
        bench.clock.advance(Duration::from_mins(4));
        bench.cache.commit("w", &prompt, &plan, start);
        bench.clock.advance(Duration::from_secs(59));
        let read = |bench: &mut Bench| {
            let now = bench.clock.now();
            bench.cache.look_back("w", &prompt, 9, now)
        };
        assert_eq!(read(&mut bench), Some(9));
        bench.clock.advance(Duration::from_secs(1));
        assert_eq!(read(&mut bench), None);
    }

    #[test]
    fn expired_entries_are_thrown_out() {
        let (mut cache, clock) = (Cache::default(), Clock::default());
        clock.freeze();
        for number in 0..5 * SMALLEST_ROOM {
            let prompt = prompt(3);
            let now = clock.now();
            let workspace = number.to_string();
            let plan = cache.plan(&workspace, &prompt, &[five(2)], 200, now);
            cache.commit(&workspace, &prompt, &plan, now);
            clock.advance(Duration::from_secs(10));
        }
        assert!(cache.entries.len() <= 2 * SMALLEST_ROOM);
    }

    /// Fact: read A; hour's write B-A; five minutes' write C-B; the rest is input.
    #[test]
    fn billing_by_the_three_points() {
        let mut bench = Bench::new();
        bench.run(3, &[five(2)]);
        let marks = [five(2), mark(5, Lifetime::Hour1), five(8)];
        let tokens = bench.run(10, &marks);
        assert_eq!(
            tokens,
            Tokens {
                read: 300,
                write_1h: 300,
                write_5m: 300,
                input: 100,
                output: 0
            }
        );
    }

    /// Fact: an entry is readable only after the first answer has begun, and only
    /// in its own workspace.
    #[test]
    fn entries_appear_with_the_first_byte_in_their_workspace() {
        let (mut cache, now) = (Cache::default(), Clock::default().now());
        let prompt = prompt(10);
        let plan = cache.plan("w", &prompt, &[five(9)], 200, now);
        assert_eq!(cache.plan("w", &prompt, &[five(9)], 200, now).read, None);
        cache.commit("w", &prompt, &plan, now);
        assert_eq!(cache.plan("w", &prompt, &[five(9)], 200, now).read, Some(9));
        assert_eq!(cache.plan("x", &prompt, &[five(9)], 200, now).read, None);
    }
}
