//! The original messages of a session, byte for byte.

use super::{Recall, Trouble};
use crate::engine::archive;
use crate::engine::ids::LineageId;
use crate::store::journal::scope_of_session;

/// Messages as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// A JSON array of them, in order; each has the very bytes that the client
    /// sent.
    pub json: Vec<u8>,
    /// How many there are.
    pub messages: usize,
    /// How many the session had come to. The newest are put away with the next
    /// pass; older ones may be gone.
    pub of: u32,
}

impl Recall {
    /// All that is kept of a session, as it was when the history had come to so
    /// many messages; none: as it was last put away.
    pub async fn export(
        &self,
        session: LineageId,
        as_of: Option<u32>,
    ) -> Result<Exported, Trouble> {
        let branch = self.branch(session).await?;
        let _turn = self.turn().await?;
        let scope = scope_of_session(self.store.journal(), branch.id).await?;
        let to = as_of.unwrap_or(u32::MAX);
        let messages = self.messages(&scope, (0, to), as_of).await?;
        if messages.is_empty() {
            return Err(Trouble::NotKept);
        }
        Ok(Exported {
            json: archive::join(messages.iter().map(|(_, json)| json.as_slice())),
            messages: messages.len(),
            of: branch.messages.min(to),
        })
    }
}
