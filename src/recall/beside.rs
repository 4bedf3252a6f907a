//! What a session's view looks like now, beside the history it stands for.
//!
//! The originals are those that were put away by the pass that made the view, and
//! the overlay is the one by which the newest request was rendered. What came
//! later is sent as it came, and is put away with the next pass.

use super::{Recall, Trouble, compute};
use crate::engine::beside::{Row, Standing, beside, standing};
use crate::engine::ids::LineageId;
use crate::engine::overlay::Overlay;
use crate::store::journal::scope_of_session;

/// Messages of a page.
pub const ROWS: u32 = 40;

/// A page of a history beside its view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Its number, from one.
    pub page: u32,
    /// How many there are.
    pub pages: u32,
    /// Messages of the history.
    pub messages: u32,
    /// Messages that it had when the view was last changed; none if the view is
    /// the history as it came.
    pub made_at: Option<u32>,
    /// Messages at the start that are shown.
    pub head: u32,
    /// The first message of the tail: what lies between is not shown.
    pub cut: u32,
    /// What stands for the messages that are not shown.
    pub standing: Vec<Standing>,
    /// The first message of this page, and the one behind the last.
    pub range: (u32, u32),
    /// Its messages, as far as they are kept.
    pub rows: Vec<Row>,
}

impl Recall {
    /// A page of a session's history beside its view.
    pub async fn beside(&self, session: LineageId, page: u32) -> Result<Beside, Trouble> {
        let marks = self.store.sessions().marks_of(session, 1).await?;
        let Some(newest) = marks.into_iter().next() else {
            return Err(Trouble::UnknownSession(session.to_string()));
        };
        let overlay = match newest.overlay {
            None => None,
            Some(id) => {
                let lost = || Trouble::Damaged(format!("overlay {id} is lost"));
                let bytes = self.store.overlay(id).await?.ok_or_else(lost)?;
                let read = Overlay::read(&bytes);
                Some(read.map_err(|error| Trouble::Damaged(error.to_string()))?)
            }
        };
        let made_at = overlay.as_ref().map(|overlay| overlay.made_at);
        let overlay = overlay.unwrap_or_default();
        let pages = newest.messages.div_ceil(ROWS).max(1);
        let page = page.clamp(1, pages);
        let from = (page - 1) * ROWS;
        let range = (from, (from + ROWS).min(newest.messages));
        let _turn = self.turn().await?;
        // With the message before them, results know their calls.
        let wanted = (from.saturating_sub(1), range.1);
        let kept = match self.store.journal().branch(session).await? {
            None => Vec::new(),
            Some(branch) => {
                let scope = scope_of_session(self.store.journal(), branch.id).await?;
                self.messages(&scope, wanted, made_at).await?
            }
        };
        let (head, cut) = (overlay.head, overlay.cut);
        let (rows, standing) = compute(move || {
            let rows = beside(&kept, &overlay);
            (rows, standing(&overlay))
        })
        .await?;
        let unread = || Trouble::Damaged("the messages do not fit the view".to_owned());
        let mut rows = rows.ok_or_else(unread)?;
        rows.retain(|row| row.message >= from);
        Ok(Beside {
            page,
            pages,
            messages: newest.messages,
            made_at,
            head,
            cut,
            standing,
            range,
            rows,
        })
    }
}
