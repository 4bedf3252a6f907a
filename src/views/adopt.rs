//! A history that was edited where the view does not look.
//!
//! Some clients rewrite old messages of theirs after a while, to save room. To
//! the chain that is another conversation, and its overlay would be lost with
//! its cache and its thinking. So, if the client says which session it is, the
//! overlays of that session are tried: the one under which the history shows
//! the very view that upstream has seen is taken over. The view is compared, not
//! guessed at; a hint alone proves nothing.

use std::sync::Arc;

use super::provisional::is_provisional;
use super::recognise::Recognised;
use super::standing::Standing;
use super::{Fault, Views, compute};
use crate::engine::chain;
use crate::engine::figures::Figures;
use crate::engine::ids::{ChainHash, Hint};
use crate::engine::overlay::Overlay;
use crate::engine::view::{Recipe, View};
use crate::wire::body::Body;

/// How many overlays are tried.
const TRIED: u32 = 4;
/// A conversation that has grown by no more than this since its newest mark is
/// simply going on.
const GOES_ON: usize = 6;
/// How many places at the end of the view are compared.
const PLACES: usize = 64;

impl Views {
    /// Where a history stands that shows the view of an overlay of the hinted
    /// session; `None` if it shows none, or a newer mark is known.
    pub(super) async fn adopt(
        &self,
        recognised: &Recognised,
        hint: Hint,
        standing: Option<&Standing>,
    ) -> Result<Option<Standing>, Fault> {
        let since = standing.map_or(0, |standing| standing.messages);
        if recognised.len() <= since + GOES_ON {
            return Ok(None);
        }
        let candidates = self.store.overlays_of(hint, TRIED);
        let candidates = self.timed("overlays_of", candidates).await?;
        for id in candidates {
            // One that cannot be had says nothing about the others.
            let Ok(overlay) = self.overlay(id).await else {
                continue;
            };
            let held = standing.and_then(|standing| standing.overlay.as_ref());
            let newer = overlay.made_at as usize > since && held.is_none_or(|held| held.0 != id);
            if !newer || overlay.made_at as usize > recognised.len() {
                continue;
            }
            let (bytes, body) = (recognised.bytes.clone(), recognised.body.clone());
            let (tenant, tried) = (recognised.tenant.clone(), overlay.clone());
            let shown = compute(bytes.len(), "adopt", move || {
                let conversation = crate::engine::conversation::Conversation::new(&bytes, &body);
                shown(&bytes, &conversation, &tried, &tenant)
            })
            .await?;
            let Some(shown) = shown else {
                continue;
            };
            let views: Vec<ChainHash> = shown.iter().map(|(_, view)| *view).collect();
            let rows = Box::pin(self.writer.marks_by_view(hint, &views));
            let rows = self.timed("marks_by_view", rows).await?;
            let model = &recognised.facts.model;
            let found = rows
                .iter()
                .filter(|row| row.overlay == Some(id) && row.model == *model)
                .filter(|row| !is_provisional(row))
                .max_by_key(|row| row.messages);
            let place = found.and_then(|row| {
                let at = shown.iter().find(|(_, view)| *view == row.view)?;
                Some((row, at.0 + 1))
            });
            let Some((row, messages)) = place else {
                continue;
            };
            tracing::info!(session = %row.lineage, "an edited history keeps its overlay");
            return Ok(Some(Standing {
                messages,
                lineage: row.lineage,
                overlay: Some((id, overlay)),
                view: Some(row.view),
                figures: Figures::read(&row.figures),
                own: true,
                sealed: false,
                adopted: Some((row.chain, row.messages)),
                newest: None,
                seen_at: row.seen_at,
            }));
        }
        Ok(None)
    }
}

/// The last messages of a history and the hash of the view up to each, under an
/// overlay; `None` if it does not fit.
fn shown(
    bytes: &bytes::Bytes,
    conversation: &crate::engine::conversation::Conversation<'_>,
    overlay: &Arc<Overlay>,
    tenant: &str,
) -> Option<Vec<(usize, ChainHash)>> {
    let recipe = Recipe {
        overlay: Some(overlay),
        marks: None,
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(bytes, conversation, recipe).ok()?;
    let view = view.bytes();
    let body = Body::split(&view).ok()?;
    let hashes = chain::chain(tenant, &view, &body);
    // The tail is the same in both, so both are counted from the end.
    let count = conversation.len();
    let last = overlay.made_at as usize - 1;
    let ends = (last..count).rev().zip(hashes.into_iter().rev());
    Some(ends.take(PLACES).collect())
}
