//! The text that starts a fresh session where an old one ended.

use std::collections::HashSet;

use super::{Recall, Trouble};
use crate::engine::handoff::{Material, Reference, handoff};
use crate::engine::ids::LineageId;
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::reference::shown;
use crate::store::journal::{Entry, EntryRow, Text};

/// Bytes of the text, at most: some thousand tokens.
const ROOM: usize = 24_000;
/// Summaries that are looked at, the newest.
const SUMMARIES: u32 = 8;
/// Other things that are named with their references, and how many entries are
/// looked at for them: of one thing there may be many.
const NAMED: usize = 24;
const LOOKED_AT: u32 = 500;

impl Recall {
    /// The hand-off of a session, in Markdown.
    pub async fn handoff(&self, session: LineageId) -> Result<String, Trouble> {
        let branch = self.branch(session).await?;
        let _turn = self.turn().await?;
        let facts = self.facts(&branch).await?;
        let summaries = self
            .entries_of(&branch, vec![EntryKind::Summary], SUMMARIES)
            .await?;
        let kinds = vec![EntryKind::ToolResult, EntryKind::ToolCall];
        let others = self.entries_of(&branch, kinds, LOOKED_AT).await?;
        let mut named = HashSet::new();
        let once = |row: &&EntryRow| named.insert(row.entry.reference);
        let mut references: Vec<Reference> = summaries
            .iter()
            .chain(&others)
            .filter(once)
            .take(NAMED)
            .map(|row| named_so(&row.entry))
            .collect();
        references.reverse();
        let says = |row: &EntryRow| match &row.entry.text {
            Text::Inline(text) => Some(text.clone()),
            Text::Content { .. } => None,
        };
        let narratives: Vec<String> = summaries.iter().rev().filter_map(says).collect();
        Ok(handoff(&Material {
            facts: &facts,
            narratives: &narratives,
            references: &references,
            room: ROOM,
        }))
    }
}

fn named_so(entry: &Entry) -> Reference {
    let Entry {
        kind,
        tool,
        path,
        turn,
        ..
    } = entry;
    let what = [kind.name(), tool, path];
    let what: Vec<&str> = what.into_iter().filter(|word| !word.is_empty()).collect();
    Reference {
        reference: shown(entry.reference),
        label: format!("{}, turn {turn}", what.join(" ")),
    }
}
