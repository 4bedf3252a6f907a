//! What is kept, read back: pieces each once, messages put together again.

use std::collections::HashMap;

use super::{Recall, Trouble};
use crate::engine::archive::{self, Part};
use crate::engine::ids::BlobId;
use crate::store::journal::{Kept, Scope};

/// Bytes that one answer may take together.
const MOST: u64 = 192 << 20;

/// Messages as they were: of each its index in the history and its JSON.
pub(super) type Messages = Vec<(u32, Vec<u8>)>;

impl Recall {
    /// Pieces of content, each once; those that are gone are missing.
    pub(super) async fn pieces(&self, ids: &[BlobId]) -> Result<HashMap<BlobId, Vec<u8>>, Trouble> {
        let mut pieces = HashMap::new();
        let mut bytes = 0;
        for id in ids {
            if pieces.contains_key(id) {
                continue;
            }
            let Some(piece) = self.store.blob(*id).await? else {
                continue;
            };
            bytes += piece.len() as u64;
            if bytes > MOST {
                return Err(Trouble::TooLarge(MOST));
            }
            pieces.insert(*id, piece);
        }
        Ok(pieces)
    }

    /// The messages of a scope, as they were when the history had come to so many
    /// messages. Those that are not kept, or not whole any more, are missing.
    pub(super) async fn messages(
        &self,
        scope: &Scope,
        range: (u32, u32),
        as_of: Option<u32>,
    ) -> Result<Messages, Trouble> {
        let kept = self.store.journal().kept(scope, range, as_of).await?;
        let needed: Vec<BlobId> = kept.iter().flat_map(|held| held.blobs.clone()).collect();
        let pieces = self.pieces(&needed).await?;
        let mut messages = Vec::new();
        let mut bytes = 0;
        for Kept { message, parts, .. } in kept {
            let parts = archive::decode(&parts);
            let parts: Vec<Part> = parts.map_err(|error| Trouble::Damaged(error.to_string()))?;
            let piece = |id: BlobId| pieces.get(&id).map(Vec::as_slice);
            let Ok(json) = archive::rebuilt(&parts, piece) else {
                continue;
            };
            // A piece that stands in many messages is read once and shown often.
            bytes += json.len() as u64;
            if bytes > MOST {
                return Err(Trouble::TooLarge(MOST));
            }
            messages.push((message, json));
        }
        Ok(messages)
    }
}
