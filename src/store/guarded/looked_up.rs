//! The journal and the sessions of a store that may go away.
//!
//! What a pass puts away is kept like the overlay that needs it, and put into the
//! journal when that is back. Entries come from a feed that tries again by
//! itself. Whoever looks something up is told that it is away. In files of this
//! machine it is looked up all the same, and what was put away since they cannot
//! be written is found with it.

use super::deed::Deed;
use super::{Guarded, away};
use crate::engine::ids::{LineageId, Reference};
use crate::store::journal::{
    Archive, Branch, Entry, EntryRow, Extent, Forgotten, Journal, Kept, Listing, Match, Referred,
    Scope, Trace,
};
use crate::store::sessions::{Behind, SessionRow};
use crate::store::{Answer, MarkRow, Moment, Sessions, Store};

impl Journal for Guarded {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        let answer = self.inner().journal().archive(trace, archive, now);
        let lane = Some(trace.lineage);
        Box::pin(self.keep(lane, answer, move |memory| {
            Box::pin(async move {
                if self.inner().is_local() {
                    memory.journal().archive(trace, archive, now).await?;
                }
                let deed = Deed::Archive(Box::new((trace.clone(), archive.clone(), now)));
                Ok((trace.lineage, Some(deed)))
            })
        }))
    }

    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        let answer = self.inner().journal().append(trace, entries, now);
        Box::pin(async move {
            if !self.is_settled(trace.lineage).await {
                return Err(away());
            }
            self.ask(answer).await
        })
    }

    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        Box::pin(async move {
            let journal = self.inner().journal();
            let mut found = self.read(journal.referred(reference)).await?;
            if let Some(memory) = self.held() {
                for held in memory.journal().referred(reference).await? {
                    if !found.contains(&held) {
                        found.push(held);
                    }
                }
            }
            // What is on its way there is not lost.
            if found.is_empty() && self.is_settling() {
                return Err(away());
            }
            Ok(found)
        })
    }

    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(async move {
            let stored = self.read(self.inner().journal().alive(session)).await?;
            match self.held() {
                None => Ok(stored),
                Some(memory) => Ok(newer(stored, memory.journal().alive(session).await?)),
            }
        })
    }

    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(async move {
            let stored = self.read(self.inner().journal().branch(id)).await?;
            match self.held() {
                None => Ok(stored),
                Some(memory) => Ok(newer(stored, memory.journal().branch(id).await?)),
            }
        })
    }

    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.read(self.inner().journal().children(id, behind, limit)))
    }

    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.read(self.inner().journal().branches(before, limit)))
    }

    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        Box::pin(self.read(self.inner().journal().matching(scope, terms)))
    }

    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.read(self.inner().journal().entries(numbers)))
    }

    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.read(self.inner().journal().list(scope, listing)))
    }

    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        Box::pin(async move {
            let journal = self.inner().journal();
            let mut found = self.read(journal.kept(scope, messages, as_of)).await?;
            if let Some(memory) = self.held() {
                let held = memory.journal().kept(scope, messages, as_of).await?;
                found.retain(|kept| held.iter().all(|newer| newer.message != kept.message));
                found.extend(held);
                found.sort_by_key(|kept| kept.message);
            }
            Ok(found)
        })
    }

    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        Box::pin(self.ask(self.inner().journal().forget(id)))
    }

    fn extent(&self) -> Answer<'_, Extent> {
        Box::pin(self.read(self.inner().journal().extent()))
    }
}

/// A branch as it is stored, with how far it has come since.
fn newer(stored: Option<Branch>, held: Option<Branch>) -> Option<Branch> {
    let (Some(mut branch), Some(since)) = (stored.clone(), held.clone()) else {
        return stored.or(held);
    };
    branch.messages = branch.messages.max(since.messages);
    branch.seen_at = branch.seen_at.max(since.seen_at);
    Some(branch)
}

impl Sessions for Guarded {
    fn list(&self, behind: Option<Behind>, limit: u32) -> Answer<'_, Vec<SessionRow>> {
        Box::pin(self.read(self.inner().sessions().list(behind, limit)))
    }

    fn marks_of(&self, lineage: LineageId, limit: u32) -> Answer<'_, Vec<MarkRow>> {
        Box::pin(self.read(self.inner().sessions().marks_of(lineage, limit)))
    }

    fn named<'a>(&'a self, beginning: &'a str, limit: u32) -> Answer<'a, Vec<LineageId>> {
        Box::pin(self.read(self.inner().sessions().named(beginning, limit)))
    }

    fn forget(&self, lineage: LineageId) -> Answer<'_, u64> {
        Box::pin(async move {
            let gone = self.ask(self.inner().sessions().forget(lineage)).await?;
            if let Some(recent) = self.absence.recent() {
                recent.forget(lineage);
            }
            Ok(gone)
        })
    }
}
