//! The room that things in the journal are taken to need, as a rule and not a
//! measurement, so that collecting does the same in every home.

use super::{Entry, Kept};

/// A branch.
pub const BRANCH: u64 = 200;

/// A place of a branch.
pub const PLACE: u64 = 80;

/// A promise.
pub const PROMISE: u64 = 120;

/// A piece that a branch needs.
pub const LINK: u64 = 100;

/// An entry, given its text as it is stored.
pub fn entry(entry: &Entry, text: usize) -> u64 {
    let words = 4 * entry.terms.len();
    (250 + entry.tool.len() + entry.path.len() + text + words) as u64
}

/// A message, given its parts as they are stored.
pub fn message(kept: &Kept, parts: usize) -> u64 {
    (80 + parts + 32 * kept.blobs.len()) as u64
}
