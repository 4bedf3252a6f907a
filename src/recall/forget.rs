//! Forgetting a session: what the journal has of it, and its marks.
//!
//! What other sessions have in common with it stays theirs. A finished summary
//! belongs to nobody in particular, because sessions share them; it goes when its
//! time is over.

use super::{Recall, Trouble};
use crate::engine::ids::LineageId;
use crate::store::journal::Forgotten;

/// Branches of one session, at most: it may have forked back into itself.
const BRANCHES: usize = 1_024;

/// What is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gone {
    /// What the journal had.
    pub journal: Forgotten,
    /// Marks.
    pub marks: u64,
}

impl Gone {
    /// For a program to read.
    pub fn json(&self, session: LineageId) -> serde_json::Value {
        serde_json::json!({
            "session": session.to_string(),
            "marks": self.marks,
            "branches": self.journal.branches,
            "entries": self.journal.entries,
            "blobs": self.journal.blobs,
        })
    }
}

impl Recall {
    /// Forgets a session.
    pub async fn forget(&self, session: LineageId) -> Result<Gone, Trouble> {
        let journal = self.store.journal();
        let mut gone = Gone::default();
        for _ in 0..BRANCHES {
            // One that is kept for others is found by its name all the same.
            let alive = journal.alive(session).await?;
            let found = match alive {
                Some(branch) => Some(branch),
                None => journal.branch(session).await?,
            };
            let Some(branch) = found else {
                break;
            };
            let done = journal.forget(branch.id).await?;
            gone.journal.branches += done.branches;
            gone.journal.entries += done.entries;
            gone.journal.blobs += done.blobs;
            if done.branches == 0 {
                break;
            }
        }
        gone.marks = self.store.sessions().forget(session).await?;
        if gone == Gone::default() {
            return Err(Trouble::UnknownSession(session.to_string()));
        }
        tracing::info!(%session, marks = gone.marks, blobs = gone.journal.blobs, "a session is forgotten");
        Ok(gone)
    }
}
