//! What may be seen from a place in a conversation.
//!
//! A search that starts from a reference is confined to the conversations that
//! contain what it stands for: the branch it was written in, the beginnings of
//! the branches this one grew from, and those that left it later and so have it
//! too. Nothing of a branch that left before is among it.

use super::Journal;
use crate::engine::ids::LineageId;
use crate::store::StoreError;

/// The most branches that are looked into, however often a conversation forked.
const MOST: usize = 64;

/// Messages of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The branch.
    pub branch: LineageId,
    /// Only messages before this one.
    pub before: u32,
}

/// Everything that may be seen: the own branch first, then those it grew from,
/// nearest first, then those that grew from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope(pub Vec<Stretch>);

impl Scope {
    /// Adds what another scope shows.
    pub fn join(&mut self, other: Self) {
        for stretch in other.0 {
            match self.0.iter_mut().find(|held| held.branch == stretch.branch) {
                Some(held) => held.before = held.before.max(stretch.before),
                None => self.0.push(stretch),
            }
        }
    }

    /// Whether a message of a branch may be seen.
    pub fn shows(&self, branch: LineageId, message: u32) -> bool {
        let mut stretches = self.0.iter();
        stretches.any(|held| held.branch == branch && message < held.before)
    }
}

/// What may be seen by whoever knows a message of a branch.
pub async fn scope(
    journal: &dyn Journal,
    branch: LineageId,
    message: u32,
) -> Result<Scope, StoreError> {
    let mut scope = scope_of_session(journal, branch).await?;
    let mut next = 0;
    let mut grown = vec![(branch, message)];
    while let Some((parent, message)) = grown.get(next).copied() {
        next += 1;
        let room = MOST.saturating_sub(scope.0.len());
        if room == 0 {
            break;
        }
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        for child in journal.children(parent, message, limit).await? {
            if scope.0.iter().any(|held| held.branch == child.id) || scope.0.len() >= MOST {
                continue;
            }
            scope.0.push(Stretch {
                branch: child.id,
                before: u32::MAX,
            });
            // All it has of its own comes behind the message.
            grown.push((child.id, 0));
        }
    }
    Ok(scope)
}

/// What a session consists of: its branch and the beginnings of those it grew
/// from.
pub async fn scope_of_session(
    journal: &dyn Journal,
    branch: LineageId,
) -> Result<Scope, StoreError> {
    let mut scope = Scope::default();
    let mut next = Some((branch, u32::MAX));
    while let Some((id, before)) = next {
        if scope.0.len() >= MOST || scope.0.iter().any(|held| held.branch == id) {
            break;
        }
        scope.0.push(Stretch { branch: id, before });
        let parent = journal.branch(id).await?.and_then(|held| held.parent);
        next = parent.map(|(id, common)| (id, common.min(before)));
    }
    Ok(scope)
}
