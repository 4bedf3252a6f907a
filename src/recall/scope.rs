//! What whoever asks may see.

use super::{Recall, Trouble, Who};
use crate::engine::ids::{LineageId, Reference};
use crate::store::journal::{Branch, Referred, Scope, scope, scope_of_session};

/// Places of one reference that are looked at: forks that have the same one.
const PLACES: usize = 16;

impl Recall {
    /// Where a reference leads.
    pub(super) async fn referred(&self, reference: Reference) -> Result<Vec<Referred>, Trouble> {
        let mut places = self.store.journal().referred(reference).await?;
        if places.is_empty() {
            return Err(Trouble::UnknownReference);
        }
        places.truncate(PLACES);
        Ok(places)
    }

    /// A session's branch.
    pub(super) async fn branch(&self, session: LineageId) -> Result<Branch, Trouble> {
        match self.store.journal().branch(session).await? {
            Some(branch) => Ok(branch),
            None if self.has_marks(session).await? => Err(Trouble::NotKept),
            None => Err(Trouble::UnknownSession(session.to_string())),
        }
    }

    /// All that may be seen.
    pub(super) async fn scope(&self, who: Who) -> Result<Scope, Trouble> {
        let journal = self.store.journal();
        match who {
            Who::Session(session) => {
                let branch = self.branch(session).await?;
                Ok(scope_of_session(journal, branch.id).await?)
            }
            Who::Reference(reference) => {
                let mut all = Scope::default();
                for place in self.referred(reference).await? {
                    all.join(scope(journal, place.branch, last(&place)).await?);
                }
                Ok(all)
            }
        }
    }

    /// Whether a reference stands for something of a session.
    pub async fn belongs(&self, session: LineageId, reference: Reference) -> Result<bool, Trouble> {
        let scope = self.scope(Who::Session(session)).await?;
        let places = self.referred(reference).await?;
        let mut places = places.iter();
        Ok(places.any(|place| scope.shows(place.branch, last(place))))
    }

    /// The branches that contain all of it, those seen last first.
    pub(super) async fn branches_of(&self, who: Who) -> Result<Vec<Branch>, Trouble> {
        if let Who::Session(session) = who {
            return Ok(vec![self.branch(session).await?]);
        }
        let journal = self.store.journal();
        let mut branches = Vec::new();
        for stretch in self.scope(who).await?.0 {
            // Of those it grew from only a beginning may be seen.
            if stretch.before == u32::MAX {
                branches.extend(journal.branch(stretch.branch).await?);
            }
        }
        branches.sort_by_key(|branch| std::cmp::Reverse((branch.seen_at, branch.id)));
        Ok(branches)
    }

    /// The sessions that contain it, those seen last first.
    pub async fn containing(&self, who: Who) -> Result<Vec<LineageId>, Trouble> {
        let mut sessions = Vec::new();
        for branch in self.branches_of(who).await? {
            if !sessions.contains(&branch.lineage) {
                sessions.push(branch.lineage);
            }
        }
        Ok(sessions)
    }
}

/// The last message that something stands for: who has it has all of it.
fn last(place: &Referred) -> u32 {
    let (from, to) = place.messages;
    to.saturating_sub(1).max(from)
}
