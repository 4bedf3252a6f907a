//! All of what a reference stands for, word for word, a page at a time.
//!
//! A reference that stands for a block leads to the message it stood in, as that
//! was first put away: some clients clear old results themselves later on, and
//! what is asked for is what was there before. Where the message is not kept the
//! entry itself has the words, or a part of them.

use super::content::Messages;
use super::{Recall, Trouble, Who, compute};
use crate::engine::archive;
use crate::engine::conversation::Conversation;
use crate::engine::ids::{LineageId, Reference};
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::reference::shown;
use crate::engine::recall::show::{self, Label};
use crate::engine::recall::text::text;
use crate::store::journal::{Entry, Referred, Text, scope_of_session};
use crate::wire::body::{Body, Kind, Role};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The reference, as it is shown; none for a session.
    pub reference: Option<String>,
    /// Its number, from one.
    pub page: u32,
    /// What stands there, with a line of ours around it.
    pub text: String,
}

impl Page {
    /// Whether another page follows: its last line says so, and nothing that is
    /// shown can pass for a line of ours.
    pub fn goes_on(&self) -> bool {
        let last = self.text.lines().next_back().unwrap_or_default();
        last.starts_with("[longhaul: page ") && last.ends_with(" goes on]")
    }
}

/// What is known of a place.
struct Place {
    referred: Referred,
    /// The entry, if one was made: it knows the tool and what it is about.
    entry: Option<Entry>,
}

impl Recall {
    /// A page of what a reference stands for, or of all that is kept of a session.
    pub async fn expand(&self, who: Who, page: u32) -> Result<Page, Trouble> {
        let places = match who {
            Who::Reference(reference) => self.places(reference).await?,
            Who::Session(_) => Vec::new(),
        };
        let _turn = self.turn().await?;
        self.metrics.recalled();
        let number = page as usize;
        let (reference, text) = match who {
            Who::Session(session) => {
                let branch = self.branch(session).await?;
                let scope = scope_of_session(self.store.journal(), branch.id).await?;
                let messages = self.messages(&scope, (0, u32::MAX), None).await?;
                (None, of_messages(None, messages, number).await?)
            }
            Who::Reference(reference) => {
                let text = self.first_shown(reference, &places, number).await?;
                (Some(shown(reference)), text)
            }
        };
        Ok(Page {
            reference,
            page,
            text: text.ok_or(Trouble::NotKept)?,
        })
    }

    /// All pages of what a reference stands for, after one another: what whoever
    /// turns every page has read in the end. For a replay, which asks for many.
    pub async fn whole(&self, reference: Reference) -> Result<String, Trouble> {
        let places = self.places(reference).await?;
        let _turn = self.turn().await?;
        let text = self.first_shown(reference, &places, show::ALL).await?;
        text.ok_or(Trouble::NotKept)
    }

    async fn first_shown(
        &self,
        reference: Reference,
        places: &[Place],
        number: usize,
    ) -> Result<Option<String>, Trouble> {
        for place in places {
            let text = self.shown(reference, place, number).await?;
            if text.is_some() {
                return Ok(text);
            }
        }
        Ok(None)
    }

    /// A page of one message of a session, counted from zero.
    pub async fn message(
        &self,
        session: LineageId,
        message: u32,
        page: u32,
    ) -> Result<Page, Trouble> {
        let branch = self.branch(session).await?;
        let _turn = self.turn().await?;
        let scope = scope_of_session(self.store.journal(), branch.id).await?;
        let range = (message, message.saturating_add(1));
        let messages = self.messages(&scope, range, None).await?;
        let text = of_messages(None, messages, page as usize).await?;
        Ok(Page {
            reference: None,
            page,
            text: text.ok_or(Trouble::NotKept)?,
        })
    }

    /// Where a reference leads, with what is known there.
    async fn places(&self, reference: Reference) -> Result<Vec<Place>, Trouble> {
        let referred = self.referred(reference).await?;
        let numbers: Vec<i64> = referred.iter().filter_map(|place| place.entry).collect();
        let rows = self.store.journal().entries(&numbers).await?;
        let entry_of = |place: &Referred| {
            let here = |row: &&crate::store::journal::EntryRow| {
                let same = row.branch == place.branch && row.entry.message == place.messages.0;
                same && place.block.is_none_or(|block| block == row.entry.block)
            };
            rows.iter().find(here).map(|row| row.entry.clone())
        };
        Ok(referred
            .into_iter()
            .map(|referred| Place {
                entry: entry_of(&referred),
                referred,
            })
            .collect())
    }

    async fn shown(
        &self,
        reference: Reference,
        place: &Place,
        number: usize,
    ) -> Result<Option<String>, Trouble> {
        let Referred {
            branch,
            messages,
            block,
            blob,
            ..
        } = place.referred;
        let label = place.label();
        if let Some(blob) = blob
            && let Some(piece) = self.store.blob(blob).await?
        {
            let page = compute(move || label.page(reference, &text(&piece), number)).await?;
            return Ok(Some(page));
        }
        let scope = scope_of_session(self.store.journal(), branch).await?;
        let range = match block {
            Some(_) => (messages.0, messages.0.saturating_add(1)),
            None => messages,
        };
        // What was put away later about the same messages is not looked at.
        let kept = self.messages(&scope, range, Some(range.1)).await?;
        let page = match block {
            None => of_messages(Some(reference), kept, number).await?,
            Some(block) => {
                let entry = place.entry.as_ref();
                // A summary stands in no message.
                let ours = entry.is_some_and(|entry| entry.kind == EntryKind::Summary);
                let json = kept.into_iter().next().filter(|_| !ours);
                compute(move || {
                    let (_, json) = json?;
                    let (kind, says) = of_block(&json, block as usize)?;
                    Some(Known { kind, ..label }.page(reference, &says, number))
                })
                .await?
            }
        };
        match (page, &place.entry) {
            (Some(page), _) => Ok(Some(page)),
            (None, Some(entry)) => self.of_entry(reference, entry, number).await,
            (None, None) => Ok(None),
        }
    }

    /// What an entry itself says.
    async fn of_entry(
        &self,
        reference: Reference,
        entry: &Entry,
        number: usize,
    ) -> Result<Option<String>, Trouble> {
        let label = Known::of(entry);
        match &entry.text {
            Text::Inline(says) => Ok(Some(label.page(reference, says, number))),
            Text::Content { blob, .. } => {
                let Some(piece) = self.store.blob(*blob).await? else {
                    return Ok(None);
                };
                let page = compute(move || label.page(reference, &text(&piece), number)).await?;
                Ok(Some(page))
            }
        }
    }
}

impl Place {
    fn label(&self) -> Known {
        self.entry.as_ref().map_or_else(Known::default, Known::of)
    }
}

/// What is said above a page.
#[derive(Debug)]
struct Known {
    kind: EntryKind,
    tool: String,
    path: String,
    turn: u32,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            kind: EntryKind::ToolResult,
            tool: String::new(),
            path: String::new(),
            turn: 0,
        }
    }
}

impl Known {
    fn of(entry: &Entry) -> Self {
        Self {
            kind: entry.kind,
            tool: entry.tool.clone(),
            path: entry.path.clone(),
            turn: entry.turn,
        }
    }

    fn page(&self, reference: Reference, text: &str, number: usize) -> String {
        let label = Label {
            reference,
            kind: self.kind,
            tool: &self.tool,
            path: &self.path,
            turn: self.turn,
        };
        show::content(&label, text, number)
    }
}

async fn of_messages(
    reference: Option<Reference>,
    messages: Messages,
    number: usize,
) -> Result<Option<String>, Trouble> {
    if messages.is_empty() {
        return Ok(None);
    }
    let page = compute(move || {
        let messages: Vec<(u32, &[u8])> = messages
            .iter()
            .map(|(index, json)| (*index, json.as_slice()))
            .collect();
        show::span(reference, &messages, number)
    });
    Ok(Some(page.await?))
}

/// What a block of a message is and says; `None` if there is none.
fn of_block(json: &[u8], block: usize) -> Option<(EntryKind, String)> {
    let array = archive::join([json]);
    let bytes = [&b"{\"messages\":"[..], &array, b"}"].concat();
    let body = Body::split(&bytes).ok()?;
    let conversation = Conversation::new(&bytes, &body);
    let range = archive::content(&conversation, (0, block))?;
    let role = conversation.message(0).map(|message| message.role);
    let kind = match conversation.block_at((0, block)).map(|block| block.kind) {
        Some(Kind::ToolUse) => EntryKind::ToolCall,
        Some(Kind::ToolResult | Kind::Other) => EntryKind::ToolResult,
        Some(Kind::Compaction) => EntryKind::Summary,
        _ if role == Some(Role::Assistant) => EntryKind::AssistantText,
        _ => EntryKind::UserWords,
    };
    Some((kind, text(bytes.get(range)?)))
}
