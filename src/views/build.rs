//! Renders a plan and counts what comes of it.
//!
//! What is known of the conversation up to some message is taken over; only what
//! is new is hashed and counted. A view made by another overlay than the one
//! that is known is looked at as a whole.

use std::sync::Arc;

use bytes::Bytes;

use super::learned::Quirk;
use super::recognise::Recognised;
use super::{Fault, Views, compute};
use crate::config::Breakpoints;
use crate::engine::cache_marks::Lifetime;
use crate::engine::chain::{self, chain_from};
use crate::engine::figures::Figures;
use crate::engine::ids::{ChainHash, OverlayId};
use crate::engine::measure::{BUDGET, Size, raw_prompt};
use crate::engine::overlay::Overlay;
use crate::engine::view::{Recipe, View};
use crate::wire::body::Body;
use crate::wire::report::Report;

/// How much more it costs to count a byte than to look at it.
pub(super) const COUNTING: usize = 200;

/// The plan of a request: by what its view is made.
pub(super) struct Plan {
    pub overlay: Option<(OverlayId, Arc<Overlay>)>,
    pub figures: Figures,
    /// Hash and size of the view, where they are known.
    pub view: Option<(ChainHash, Size)>,
}

impl Views {
    /// Renders and counts. `from` is how far both are known already, `tried`
    /// what must be left out.
    pub(super) async fn build(
        &self,
        recognised: Arc<Recognised>,
        plan: Plan,
        from: Option<(usize, Option<ChainHash>)>,
        tried: &[Quirk],
    ) -> Result<Built, Fault> {
        let marks_allowed = self.config.cache.breakpoints == Breakpoints::Auto
            && !tried.contains(&Quirk::NoMarks)
            && !self.learned.has(Quirk::NoMarks, &recognised.facts.model);
        // Counting what is new costs far more than looking at what is known.
        let counted = from.filter(|_| plan.figures.sizes().is_some());
        let known = counted.map_or(0, |(messages, _)| messages);
        let new = recognised.body.messages().get(known..).unwrap_or(&[]);
        let new: usize = new.iter().map(|message| message.span.len()).sum();
        let size = recognised.bytes.len().max(new * COUNTING);
        let without_clear = self.clears_itself(&recognised);
        compute(size, "build", move || {
            Built::make(&recognised, plan, from, marks_allowed, without_clear)
        })
        .await?
    }

    /// Whether the clearing that a client asks for is done here. Upstream does
    /// not know it then, and must never be asked, however little there is to do.
    pub(super) fn clears_itself(&self, recognised: &Recognised) -> bool {
        self.config.performs_clear() && recognised.facts.clears.is_some()
    }

    /// What a client is told of that as long as nothing is cleared. Who only
    /// counts is told nothing.
    pub(super) fn first_report(&self, recognised: &Recognised, counts: bool) -> Option<Report> {
        let tells = self.clears_itself(recognised) && !counts;
        tells.then(Report::default)
    }
}

/// A view and what is known of it.
pub(super) struct Built {
    pub view: View,
    pub overlay: Option<(OverlayId, Arc<Overlay>)>,
    pub figures: Figures,
    pub hash: ChainHash,
    pub size: Size,
    pub history: Size,
}

impl Built {
    pub(super) fn make(
        recognised: &Recognised,
        plan: Plan,
        from: Option<(usize, Option<ChainHash>)>,
        marks_allowed: bool,
        without_client_clear: bool,
    ) -> Result<Self, Fault> {
        let Plan {
            overlay,
            mut figures,
            view: known,
        } = plan;
        let Recognised { bytes, body, .. } = recognised;
        let conversation = recognised.conversation();
        let recipe = Recipe {
            overlay: overlay.as_ref().map(|(_, overlay)| overlay.as_ref()),
            marks: marks_allowed.then(|| figures.basis()),
            drop_block: figures.drop_block,
            without_client_clear,
        };
        let view = View::make(bytes, &conversation, recipe)?;
        figures.marked = view.marked;
        figures.ours = view.ours;
        // The longest is what keeps the cache alive.
        figures.lifetime = figures.lifetime.max(view.lifetime.map(Lifetime::seconds));
        let sizes = figures.sizes();
        let history = match (from, sizes) {
            (Some((messages, _)), Some((history, _))) => {
                history.grown(bytes, body, messages, BUDGET)
            }
            _ => raw_prompt(bytes, body, BUDGET),
        };
        let last = recognised.last().ok_or(Fault::Bug("no chain"))?;
        let (hash, size) = match (&overlay, known, from, sizes) {
            (None, ..) => (last, history),
            (_, Some(known), ..) => known,
            (_, None, Some((messages, Some(before))), Some((_, shown))) => {
                let rest = chain_from(before, bytes, body, messages);
                let hash = rest.last().copied().unwrap_or(before);
                (hash, shown.grown(bytes, body, messages, BUDGET))
            }
            _ => of_view(&view, &recognised.tenant)?,
        };
        figures.set_sizes(&history, &size);
        Ok(Self {
            view,
            overlay,
            figures,
            hash,
            size,
            history,
        })
    }
}

/// Hash and size of a view, from its bytes.
pub(super) fn of_view(view: &View, tenant: &str) -> Result<(ChainHash, Size), Fault> {
    let (bytes, body) = taken_apart(view)?;
    of_body(&bytes, &body, tenant)
}

/// The same, of a view that is taken apart.
pub(super) fn of_body(bytes: &[u8], body: &Body, tenant: &str) -> Result<(ChainHash, Size), Fault> {
    let hash = chain::chain(tenant, bytes, body).last().copied();
    let hash = hash.ok_or(Fault::Bug("a view is empty"))?;
    Ok((hash, raw_prompt(bytes, body, BUDGET)))
}

/// A view in one piece, and its spans.
pub(super) fn taken_apart(view: &View) -> Result<(Bytes, Body), Fault> {
    let bytes = view.bytes();
    let body = Body::split(&bytes).map_err(|_| Fault::Bug("a view is not a body"))?;
    Ok((bytes, body))
}
