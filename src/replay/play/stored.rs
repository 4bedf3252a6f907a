//! What the proxy has stored of the requests of a run: overlays, and what passes
//! were expected to write.

use super::{Playing, TENANT};
use crate::engine::chain::chain;
use crate::engine::conversation::Conversation;
use crate::engine::figures::Figures;
use crate::engine::ids::ChainHash;
use crate::engine::overlay::Overlay;
use crate::replay::reread::{self, Thing};
use crate::store::MarkRow;
use crate::wire::body::Body;

impl Playing<'_> {
    /// What was expected of the requests with a pass, and what they wrote. The proxy
    /// notes that after its answer, so it is read once the proxy has stopped.
    pub(super) async fn note_writes(&mut self) {
        let Some((store, _)) = &self.store else {
            return;
        };
        for here in &self.passed {
            let marks = store.marks(&[*here]).await.unwrap_or_default();
            let passed = |mark: &MarkRow| Figures::read(&mark.figures).passed?.writes();
            self.run.writes.extend(marks.iter().find_map(passed));
        }
    }

    /// Where a request ends, the overlay under which it was sent, and what that has
    /// removed.
    pub(super) async fn overlay(&self, body: &[u8]) -> Option<(ChainHash, Overlay, Vec<Thing>)> {
        let (store, _) = self.store.as_ref()?;
        let split = Body::split(body).ok()?;
        let here = *chain(TENANT, body, &split).last()?;
        let marks = store.marks(&[here]).await.ok()?;
        let id = marks.iter().find_map(|mark| mark.overlay)?;
        let overlay = Overlay::read(&store.overlay(id).await.ok()??).ok()?;
        let gone = reread::removed(&Conversation::new(body, &split), &overlay);
        Some((here, overlay, gone))
    }
}
