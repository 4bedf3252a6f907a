//! The journal's tables: what views have left out, packed and with its index.
//!
//! What is written is one message as a rule, see `place`: the branch is found by
//! the chain in the same transaction that writes to it, and locked, so that
//! replicas which write of one conversation go one after the other. Only what
//! the chain does not tell is decided here, by the rule that all homes share,
//! before the message is sent again, see `settle`.

mod append;
mod archive;
mod branches;
mod forget;
mod place;
mod recall;
mod search;
mod settle;

use super::PostgresStore;
use crate::engine::ids::{LineageId, Reference};
use crate::store::journal::{
    Archive, Branch, Entry, EntryRow, Extent, Forgotten, Journal, Kept, Listing, Match, Referred,
    Scope, Trace,
};
use crate::store::{Answer, Moment};

impl Journal for PostgresStore {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        Box::pin(self.put_away(trace, archive, now))
    }

    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        Box::pin(self.append_all(trace, entries, now))
    }

    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        Box::pin(self.stands_for(reference))
    }

    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(self.find_alive(session))
    }

    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        Box::pin(self.find_branch(id))
    }

    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.find_children(id, behind, limit))
    }

    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        Box::pin(self.newest_branches(before, limit))
    }

    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        Box::pin(self.find_words(scope, terms))
    }

    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.find_entries(numbers))
    }

    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        Box::pin(self.list_entries(scope, listing))
    }

    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        Box::pin(self.find_messages(scope, messages, as_of))
    }

    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        let always = Moment(i64::MAX);
        Box::pin(self.forget_branch(id, always, always))
    }

    fn extent(&self) -> Answer<'_, Extent> {
        Box::pin(self.find_extent())
    }
}
