//! Packed pieces in memory, each with the moment of its last use.
//!
//! Blobs and segments are kept alike: the first piece under a name stays, a
//! later one only makes it young again, and what has not been used for longest
//! goes first.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Moment, rule};

/// Pieces by name.
pub struct Shelf<Id> {
    pieces: HashMap<Id, Piece>,
}

struct Piece {
    packed: Vec<u8>,
    used_at: Moment,
}

impl<Id> Default for Shelf<Id> {
    fn default() -> Self {
        Self {
            pieces: HashMap::new(),
        }
    }
}

impl<Id: Copy + Ord + Hash> Shelf<Id> {
    /// Marks a piece as used; whether it is there.
    pub fn touch(&mut self, id: Id, now: Moment) -> bool {
        let Some(piece) = self.pieces.get_mut(&id) else {
            return false;
        };
        piece.used_at = piece.used_at.max(now);
        true
    }

    /// Keeps a piece, unless there is one already; the one that holds.
    pub fn put(&mut self, id: Id, packed: Vec<u8>, now: Moment) -> Vec<u8> {
        let piece = self.pieces.entry(id).or_insert(Piece {
            packed,
            used_at: now,
        });
        piece.used_at = piece.used_at.max(now);
        piece.packed.clone()
    }

    /// A piece.
    pub fn get(&self, id: Id) -> Option<Vec<u8>> {
        self.pieces.get(&id).map(|piece| piece.packed.clone())
    }

    /// The room all pieces are taken to need.
    pub fn bytes(&self) -> u64 {
        self.pieces.values().map(Piece::bytes).sum()
    }

    /// Removes a piece if it has not been used since a moment; whether it was.
    pub fn remove(&mut self, id: Id, since: Moment) -> bool {
        let old = self
            .pieces
            .get(&id)
            .is_some_and(|piece| piece.used_at < since);
        old && self.pieces.remove(&id).is_some()
    }

    /// Removes those not used since a moment, unless they are needed; how many.
    pub fn remove_older(&mut self, since: Moment, needed: impl Fn(Id) -> bool) -> u64 {
        let before = self.pieces.len();
        self.pieces
            .retain(|id, piece| piece.used_at >= since || needed(*id));
        (before - self.pieces.len()) as u64
    }

    /// Removes those not used for longest until so many bytes are free, as far
    /// as there are any that may go; how many.
    pub fn free(&mut self, excess: u64, may_go: impl Fn(Id, Moment) -> bool) -> u64 {
        if excess == 0 {
            return 0;
        }
        let pieces = self.pieces.iter();
        let mut oldest: Vec<_> = pieces
            .filter(|(id, piece)| may_go(**id, piece.used_at))
            .map(|(id, piece)| (piece.used_at, *id, piece.bytes()))
            .collect();
        oldest.sort_unstable();
        let (mut removed, mut freed) = (0, 0);
        for (_, id, bytes) in oldest {
            if freed >= excess {
                break;
            }
            self.pieces.remove(&id);
            freed += bytes;
            removed += 1;
        }
        removed
    }
}

impl Piece {
    fn bytes(&self) -> u64 {
        rule::packed_bytes(self.packed.len())
    }
}
