//! What is stored and what is held while the store is away, as one.

use super::deed::Lane;
use super::{Guarded, away};
use crate::store::rule::{self, Verdict};
use crate::store::{Commit, MarkRow, Memory, Store, StoreError};

/// The conversations of these marks, which are mostly of one.
pub(super) fn lanes(marks: &[MarkRow]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = marks.iter().map(|mark| Some(mark.lineage)).collect();
    lanes.dedup();
    lanes
}

/// What is stored as it will be with what is held. Files that nobody else writes
/// to (`local`) have nothing against what was committed over them.
pub(super) fn together(mut stored: Vec<MarkRow>, held: Vec<MarkRow>, local: bool) -> Vec<MarkRow> {
    for mark in held {
        let same = |stored: &&mut MarkRow| stored.chain == mark.chain && stored.model == mark.model;
        match stored.iter_mut().find(same) {
            Some(stored) if local && stored.overlay != mark.overlay => *stored = mark,
            Some(stored) => _ = rule::renew(stored, &mark),
            None => stored.push(mark),
        }
    }
    stored
}

/// What was found, if anything was; else nobody knows.
pub(super) fn known<T>(found: Vec<T>) -> Result<Vec<T>, StoreError> {
    if found.is_empty() {
        return Err(away());
    }
    Ok(found)
}

impl Guarded {
    /// What is stored at the place of a commit, if that stands against it and
    /// memory knows nothing newer.
    pub(super) async fn stored_against(&self, memory: &Memory, commit: &Commit) -> Option<MarkRow> {
        if !self.inner().is_local() {
            return None;
        }
        let place = [commit.mark.chain];
        let own = |mark: &MarkRow| mark.model == commit.mark.model;
        if memory.marks(&place).await.ok()?.iter().any(own) {
            return None;
        }
        let stored = self.read(self.inner().marks(&place)).await.ok()?;
        let stored = stored.into_iter().find(own)?;
        (rule::judge(Some(&stored), commit) == Verdict::Lost).then_some(stored)
    }

    /// A commit with the overlay that it points to, as far as that is known.
    pub(super) async fn with_overlay(&self, commit: &Commit) -> Commit {
        let mut commit = commit.clone();
        if let (None, Some(id)) = (&commit.overlay, commit.mark.overlay)
            && let Ok(Some(body)) = self.overlay(id).await
        {
            commit.overlay = Some((id, body));
        }
        commit
    }
}
