//! The entries of a session, the newest first.

use std::collections::HashMap;

use super::find::{hit, texts};
use super::{Hit, Recall, Trouble, compute};
use crate::engine::ids::LineageId;
use crate::engine::recall::rank::snippet;
use crate::engine::recall::show::SNIPPET;
use crate::store::journal::{Listing, scope_of_session};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// The entries.
    pub entries: Vec<Hit>,
    /// Where the list goes on, if it does: behind this number.
    pub next: Option<i64>,
}

impl Recall {
    /// Some entries of a session; what they say only if that is asked for.
    pub async fn show(
        &self,
        session: LineageId,
        listing: &Listing,
        content: bool,
    ) -> Result<Shown, Trouble> {
        let branch = self.branch(session).await?;
        let _turn = self.turn().await?;
        let journal = self.store.journal();
        let scope = scope_of_session(journal, branch.id).await?;
        let rows = journal.list(&scope, listing).await?;
        let full = rows.len() >= listing.limit as usize;
        let next = rows.last().map(|row| row.number).filter(|_| full);
        let contents = if content {
            self.contents(&rows).await?
        } else {
            HashMap::default()
        };
        let entries = compute(move || {
            if !content {
                return rows.iter().map(|row| hit(row, String::new())).collect();
            }
            let texts = texts(&rows, &contents);
            let says = |number: i64| texts.get(&number).map(String::as_str).unwrap_or_default();
            rows.iter()
                .map(|row| hit(row, snippet(says(row.number), &[], SNIPPET)))
                .collect()
        })
        .await?;
        Ok(Shown { entries, next })
    }
}
