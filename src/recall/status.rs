//! Where a session stands, by what was noted with each of its turns.

use super::{Recall, Trouble, Who};
use crate::engine::facts::{Fact, FactKind};
use crate::engine::recall::entry::EntryKind;
use crate::engine::status::Status;
use crate::store::journal::{Branch, EntryRow, Listing, scope_of_session};

/// Facts that are looked at: the newest.
const FACTS: u32 = 10_000;
/// How many are asked for at once.
const BATCH: u32 = 1_000;

impl Recall {
    /// Where a session stands. Of several that contain a reference it is the one
    /// that was seen last.
    pub async fn status(&self, who: Who) -> Result<Status, Trouble> {
        let branches = self.branches_of(who).await?;
        let branch = branches.first().ok_or(Trouble::UnknownReference)?;
        let _turn = self.turn().await?;
        let facts = self.facts(branch).await?;
        let turns = facts.iter().map(|fact| fact.turn).max().unwrap_or(0);
        Ok(Status::of(&facts, turns, branch.messages))
    }

    /// The facts of a session, as far as they were noted.
    pub(super) async fn facts(&self, branch: &Branch) -> Result<Vec<Fact>, Trouble> {
        let kinds = FactKind::ALL.into_iter().map(EntryKind::Fact).collect();
        let rows = self.entries_of(branch, kinds, FACTS).await?;
        Ok(rows.iter().filter_map(|row| row.entry.fact()).collect())
    }

    /// The newest entries of some kinds, newest first.
    pub(super) async fn entries_of(
        &self,
        branch: &Branch,
        kinds: Vec<EntryKind>,
        most: u32,
    ) -> Result<Vec<EntryRow>, Trouble> {
        let journal = self.store.journal();
        let scope = scope_of_session(journal, branch.id).await?;
        let mut listing = Listing {
            kinds,
            before: None,
            limit: BATCH.min(most),
        };
        let mut rows = Vec::new();
        while rows.len() < most as usize {
            let batch = journal.list(&scope, &listing).await?;
            listing.before = batch.last().map(|row| row.number);
            let full = batch.len() >= listing.limit as usize;
            rows.extend(batch);
            if !full {
                break;
            }
        }
        rows.truncate(most as usize);
        Ok(rows)
    }
}
