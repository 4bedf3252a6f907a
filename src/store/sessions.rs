//! The sessions that a store knows, for an operator who looks.
//!
//! They are read off the marks, so they are there whether or not a journal is
//! kept. Nothing of this is on the path of a request.

use super::{Answer, MarkRow, Moment};
use crate::engine::ids::LineageId;

/// A session, as far as marks tell of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The mark that was used last; of several, the one with the most messages.
    pub newest: MarkRow,
    /// How many marks there are.
    pub marks: u64,
}

/// Where a list of sessions goes on: behind one, and when that was last used. Two
/// may have been used in the same moment, so both are needed.
pub type Behind = (Moment, LineageId);

/// The sessions of a store.
pub trait Sessions: Send + Sync {
    /// Those used last first, of equal ones those with the larger name; only
    /// those behind a place in that list.
    fn list(&self, behind: Option<Behind>, limit: u32) -> Answer<'_, Vec<SessionRow>>;

    /// The marks of a session, those used last first, of equal ones those with
    /// more messages.
    fn marks_of(&self, lineage: LineageId, limit: u32) -> Answer<'_, Vec<MarkRow>>;

    /// The sessions whose names, as text, begin so, in no particular order.
    fn named<'a>(&'a self, beginning: &'a str, limit: u32) -> Answer<'a, Vec<LineageId>>;

    /// Forgets the marks of a session, and overlays that nothing else points to;
    /// how many marks. What another process does with the session meanwhile may
    /// stay.
    fn forget(&self, lineage: LineageId) -> Answer<'_, u64>;
}
