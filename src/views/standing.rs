//! Where a conversation stands: the newest mark, and what follows from it.
//!
//! The store is asked for the places from the newest that this process knows
//! on, which is one look-up of one to three keys in the ordinary case, and for
//! older ones only if there is nothing. What it says counts; what this process
//! remembers stands in where the store has nothing newer or does not answer.
//! The newest place decides, whichever model was asked there: it also says
//! which overlay every other model of the lineage has. A plan made for a refusal
//! that no answer has confirmed is passed over for the one before it.

use std::sync::Arc;

use super::provisional::{as_confirmed, is_provisional};
use super::recognise::Recognised;
use super::{Fault, Views, compute};
use crate::engine::chain;
use crate::engine::figures::Figures;
use crate::engine::ids::{ChainHash, LineageId, OverlayId};
use crate::engine::overlay::Overlay;
use crate::engine::trail::Trail;
use crate::store::{Found, MarkRow, Moment};

/// How many older places are asked for at once, after the newest.
const BATCH: usize = 500;
/// How many of the newest are asked for first.
const NEWEST: usize = 32;

/// Where a conversation stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The messages of the newest known place.
    pub messages: usize,
    /// The session.
    pub lineage: LineageId,
    /// The overlay that holds for this model.
    pub overlay: Option<(OverlayId, Arc<Overlay>)>,
    /// The view at that place, if it was made by this overlay.
    pub view: Option<ChainHash>,
    /// Its figures; those of another model say nothing of tokens.
    pub figures: Figures,
    /// The mark is this model's own.
    pub own: bool,
    /// When it was last written.
    pub seen_at: Moment,
    /// The plan there stands for ever.
    pub sealed: bool,
    /// The place of its mark in the history as it was before the client edited
    /// it, if that is so.
    pub adopted: Option<(ChainHash, u32)>,
    /// The messages of the place where its session was last, if that is known.
    pub newest: Option<usize>,
}

impl Standing {
    /// Whether this very history was sent before, to this model.
    pub fn is_exact(&self, recognised: &Recognised) -> bool {
        self.own && self.messages == recognised.len()
    }
}

impl Views {
    /// Where the conversation stands; `None` if it is new.
    pub(super) async fn standing(
        &self,
        recognised: &mut Recognised,
    ) -> Result<Option<Standing>, Fault> {
        let remembered = recognised.remembered.clone();
        let (from, hashes) = recognised.hashes();
        let mut found = match self.search(hashes, recognised).await {
            // The store does not answer: what is remembered must do.
            Err(fault) if remembered.is_none() => return Err(fault),
            Err(_) => None,
            Ok(found) => found,
        };
        // Between what was only tried and what is remembered there may be more.
        let older = remembered
            .as_ref()
            .map_or(0, |mark| mark.row.messages as usize);
        if found.is_none() && from > older {
            self.complete(recognised).await?;
            let (_, hashes) = recognised.hashes();
            let between = hashes.get(older..from).unwrap_or(&[]);
            found = match self.search(between, recognised).await {
                Err(fault) if remembered.is_none() => return Err(fault),
                found => found.unwrap_or(None),
            };
        }
        let model = &recognised.facts.model;
        let memory = remembered
            .filter(|mark| mark.row.messages as usize <= recognised.len())
            .filter(|mark| {
                let stored = found.as_ref().map(|found| &found.mark);
                stored.is_none_or(|row| is_newer(&mark.row, row))
            });
        match (memory, found) {
            (Some(mark), _) => self.stands(&mark.row, None, model).await.map(Some),
            (None, Some(Found { mark, newest })) => {
                self.stands(&mark, newest, model).await.map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Computes the chain from the very start, away from the streams.
    async fn complete(&self, recognised: &mut Recognised) -> Result<(), Fault> {
        let (bytes, body) = (recognised.bytes.clone(), recognised.body.clone());
        let start = chain::start(&recognised.tenant);
        let whole = compute(bytes.len() * 2, "complete", move || {
            chain::chain_from(start, &bytes, &body, 0)
        });
        recognised.complete(whole.await?);
        Ok(())
    }

    /// The newest mark at one of these places: the newest few are asked for
    /// first, because that is where it nearly always is.
    async fn search(
        &self,
        places: &[ChainHash],
        recognised: &Recognised,
    ) -> Result<Option<Found>, Fault> {
        let (older, newest) = places.split_at(places.len().saturating_sub(NEWEST));
        if newest.is_empty() {
            return Ok(None);
        }
        // The newest reply may belong to a view that does not hold where it was
        // asked for.
        let bound = recognised.bound();
        let own = bound.map(|(_, place)| place);
        let newest: Vec<ChainHash> = newest.iter().copied().chain(own).collect();
        for batch in [newest.as_slice()].into_iter().chain(older.rchunks(BATCH)) {
            let found = self.find(batch, is_own(recognised)).await?;
            let (mut rows, mut newest) = (Vec::new(), Vec::new());
            for found in found {
                rows.push(self.confirmed(found.mark).await);
                newest.push(found.newest);
            }
            if let Some(mark) = best(&rows, recognised, bound) {
                let is_it = |row: &MarkRow| row.chain == mark.chain && row.model == mark.model;
                let at = rows.iter().position(is_it);
                let newest = at.and_then(|at| newest.get(at).copied().flatten());
                return Ok(Some(Found { mark, newest }));
            }
        }
        Ok(None)
    }

    /// A mark with the plan before a refusal, if the one it has is not confirmed.
    /// Nothing in the store points to the overlay of that plan any more: if it is
    /// gone, the plan that was made for the refusal is the best there is.
    async fn confirmed(&self, mark: MarkRow) -> MarkRow {
        if !is_provisional(&mark) {
            return mark;
        }
        let earlier = as_confirmed(mark.clone());
        let is_lost = match earlier.overlay {
            Some(id) => matches!(self.overlay(id).await, Err(Fault::LostOverlay(_))),
            None => false,
        };
        if is_lost { mark } else { earlier }
    }

    /// The marks at these places. How far their sessions have come costs a
    /// database some time, and is known where nobody else can have answered.
    async fn find(&self, places: &[ChainHash], own: bool) -> Result<Vec<Found>, Fault> {
        if !own {
            let found = Box::pin(self.writer.find(places));
            return self.timed("marks", found).await;
        }
        let marks = self.timed("marks", Box::pin(self.writer.marks(places)));
        let marks = marks.await?.into_iter();
        Ok(marks.map(|mark| Found { mark, newest: None }).collect())
    }

    async fn stands(
        &self,
        row: &MarkRow,
        newest: Option<u32>,
        model: &str,
    ) -> Result<Standing, Fault> {
        let mut figures = Figures::read(&row.figures);
        let own = row.model == model;
        let theirs = figures.overlay_of(model).filter(|_| !own);
        let id = theirs.unwrap_or(row.overlay);
        let overlay = match id {
            None => None,
            Some(id) => Some((id, self.overlay(id).await?)),
        };
        // The API's own summary is for the model that was asked for it.
        let foreign = |(_, overlay): &(OverlayId, Arc<Overlay>)| !own && overlay.native.is_some();
        let overlay = overlay.filter(|held| theirs.is_some() || !foreign(held));
        let id = overlay.as_ref().map(|(id, _)| *id);
        if !own {
            // Another tokenizer counted, and another cache was filled.
            figures.prompt = None;
            figures.previous = None;
            figures.marked = None;
            figures.trail = Trail::default();
            figures.hold_no_place();
            figures.ours = None;
            if figures.drop_block {
                figures.others_drop.insert(row.model.clone());
            }
            figures.drop_block = figures.others_drop.remove(model);
            figures.unfit = false;
            figures.set_overlay_of(&row.model, row.overlay);
            figures.new_model = figures.others.remove(model).is_none();
        }
        Ok(Standing {
            messages: row.messages as usize,
            lineage: row.lineage,
            view: (row.overlay == id).then_some(row.view),
            sealed: row.sealed && own,
            seen_at: row.seen_at,
            adopted: None,
            newest: newest.map(|newest| newest as usize),
            overlay,
            figures,
            own,
        })
    }

    /// An overlay, from memory if it was read before: it never changes.
    pub(super) async fn overlay(&self, id: OverlayId) -> Result<Arc<Overlay>, Fault> {
        if let Some(overlay) = self.overlays.get(id) {
            return Ok(overlay);
        }
        let bytes = self.timed("overlay", self.store.overlay(id)).await?;
        let bytes = bytes.ok_or(Fault::LostOverlay(id))?;
        let overlay = Arc::new(Overlay::read(&bytes)?);
        self.overlays.put(id, overlay.clone());
        Ok(overlay)
    }
}

/// Whether a history has grown by one reply and what was said to it since this
/// process was answered: then no other was in between.
fn is_own(recognised: &Recognised) -> bool {
    let known = recognised.known.as_ref();
    known.is_some_and(|(at, place)| {
        let was_answered = place.moved_on || place.mark.is_some();
        was_answered && recognised.len() <= at + 1 + 2
    })
}

/// Whether what is remembered goes before what the store has, or will once it
/// has heard of it.
fn is_newer(remembered: &MarkRow, stored: &MarkRow) -> bool {
    let same = remembered.chain == stored.chain && remembered.model == stored.model;
    remembered.messages > stored.messages || (same && remembered.outdoes(stored))
}

/// The row of the newest place; among several, this model's, of these the one
/// that the newest reply is bound to, or the one that knows of it, or the first
/// by name, so that every process takes the same.
fn best(
    rows: &[MarkRow],
    recognised: &Recognised,
    bound: Option<(usize, ChainHash)>,
) -> Option<MarkRow> {
    let model = &recognised.facts.model;
    let is_bound = |row: &MarkRow| bound.is_some_and(|(_, place)| place == row.chain);
    let place = |row: &&MarkRow| {
        let (at, _) = bound.filter(|_| is_bound(row)).unzip();
        at.or_else(|| recognised.position(row.chain))
    };
    let newest = rows.iter().filter_map(|row| place(&row)).max()?;
    let rank = |row: &&MarkRow| {
        let knows = Figures::read(&row.figures).others.contains_key(model);
        (
            row.model != *model,
            !is_bound(row),
            !knows,
            row.model.clone(),
        )
    };
    let there = || rows.iter().filter(|row| place(row) == Some(newest));
    let mut chosen = there().min_by_key(rank)?.clone();
    if there().count() == 1 {
        return Some(chosen);
    }
    // What the others have there stays theirs.
    let mut figures = Figures::read(&chosen.figures);
    for other in there().filter(|row| row.model != chosen.model) {
        figures.set_overlay_of(&other.model, other.overlay);
        if Figures::read(&other.figures).drop_block {
            figures.others_drop.insert(other.model.clone());
        }
    }
    chosen.figures = figures.store();
    Some(chosen)
}
