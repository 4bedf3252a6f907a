//! Figures that are not written yet: in order, each place once, bounded.
//!
//! A newer mark takes the older one's turn if both have the same overlay. With
//! different overlays they are rivals that only the store can judge, in the
//! order in which they came, so both stay. What is being written counts as
//! pending until the store has said that it has it.

use std::collections::{BTreeMap, HashMap};

use super::{MarkRow, rule};
use crate::engine::ids::{ChainHash, Hint, LineageId};

/// Marks waiting for their turn.
pub(super) struct Pending {
    /// By turn, the oldest first.
    marks: BTreeMap<u64, MarkRow>,
    /// The turns of a place.
    turns: HashMap<ChainHash, Vec<u64>>,
    writing: Vec<(u64, MarkRow)>,
    next: u64,
    room: usize,
    dropped: u64,
}

impl Pending {
    pub(super) fn new(room: usize) -> Self {
        Self {
            marks: BTreeMap::new(),
            turns: HashMap::new(),
            writing: Vec::new(),
            next: 0,
            room: room.max(1),
            dropped: 0,
        }
    }

    /// How many wait, without what is being written.
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// How many were forgotten for want of room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a mark in.
    pub(super) fn push(&mut self, mark: MarkRow) {
        if let Some(held) = self.same(&mark).and_then(|turn| self.marks.get_mut(&turn)) {
            rule::renew(held, &mark);
            return;
        }
        let turn = self.next;
        self.next += 1;
        self.insert(turn, mark);
        while self.marks.len() > self.room {
            self.pop();
            self.dropped += 1;
        }
    }

    /// The oldest ones, to be written; they stay pending until [`Self::done`].
    pub(super) fn begin(&mut self, count: usize) -> Vec<MarkRow> {
        while self.writing.len() < count
            && let Some(oldest) = self.pop()
        {
            self.writing.push(oldest);
        }
        self.writing.iter().map(|(_, mark)| mark.clone()).collect()
    }

    /// What was begun is written.
    pub(super) fn done(&mut self) {
        self.writing.clear();
    }

    /// What was begun could not be written: it waits again, in its old turn.
    pub(super) fn failed(&mut self) {
        for (turn, mut mark) in std::mem::take(&mut self.writing) {
            if let Some(newer) = self.same(&mark).and_then(|turn| self.remove(turn)) {
                rule::renew(&mut mark, &newer);
            }
            self.insert(turn, mark);
        }
        while self.marks.len() > self.room {
            self.pop();
            self.dropped += 1;
        }
    }

    /// The most messages of what is pending of a session.
    pub(super) fn farthest(&self, lineage: LineageId) -> Option<u32> {
        let writing = self.writing.iter().map(|(_, mark)| mark);
        let all = self.marks.values().chain(writing);
        let own = all.filter(|mark| mark.lineage == lineage);
        own.map(|mark| mark.messages).max()
    }

    /// What is pending of a session's that has one of these views.
    pub(super) fn with_view(&self, hint: Hint, views: &[ChainHash]) -> Vec<MarkRow> {
        let writing = self.writing.iter().map(|(_, mark)| mark);
        let all = writing.chain(self.marks.values());
        let shows = |mark: &&MarkRow| mark.hint == Some(hint) && views.contains(&mark.view);
        all.filter(shows).cloned().collect()
    }

    /// What is pending at these places, the oldest first, each as it will be.
    pub(super) fn at(&self, places: &[ChainHash]) -> Vec<MarkRow> {
        let mut found: Vec<MarkRow> = Vec::new();
        if self.marks.is_empty() && self.writing.is_empty() {
            return found;
        }
        let writing = self.writing.iter().map(|(_, mark)| mark);
        found.extend(writing.filter(|mark| places.contains(&mark.chain)).cloned());
        let turns = places.iter().filter_map(|place| self.turns.get(place));
        let mut turns: Vec<u64> = turns.flatten().copied().collect();
        turns.sort_unstable();
        turns.dedup();
        for mark in turns.iter().filter_map(|turn| self.marks.get(turn)) {
            match found.iter_mut().find(|held| alike(held, mark)) {
                Some(held) => _ = rule::renew(held, mark),
                None => found.push(mark.clone()),
            }
        }
        found
    }

    fn same(&self, mark: &MarkRow) -> Option<u64> {
        let turns = self.turns.get(&mark.chain)?.iter().copied();
        turns
            .into_iter()
            .find(|turn| self.marks.get(turn).is_some_and(|held| alike(held, mark)))
    }

    fn insert(&mut self, turn: u64, mark: MarkRow) {
        self.turns.entry(mark.chain).or_default().push(turn);
        self.marks.insert(turn, mark);
    }

    fn pop(&mut self) -> Option<(u64, MarkRow)> {
        let turn = *self.marks.first_key_value()?.0;
        self.remove(turn).map(|mark| (turn, mark))
    }

    fn remove(&mut self, turn: u64) -> Option<MarkRow> {
        let mark = self.marks.remove(&turn)?;
        if let Some(turns) = self.turns.get_mut(&mark.chain) {
            turns.retain(|held| *held != turn);
            if turns.is_empty() {
                self.turns.remove(&mark.chain);
            }
        }
        Some(mark)
    }
}

fn alike(one: &MarkRow, other: &MarkRow) -> bool {
    one.chain == other.chain && one.overlay == other.overlay && one.model == other.model
}
