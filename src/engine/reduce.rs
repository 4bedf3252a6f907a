//! Builds a smaller view from orders: what is replaced by what, and how small
//! the rest has to be.
//!
//! What stands in for old results is decided elsewhere (`tiers`). If that is not
//! enough, old messages give way to a notice. What is built is a draft: an
//! overlay and the list of what it leaves out. Everything an earlier overlay did
//! is kept as it stands, so that the bytes in front of the first new change stay
//! the same.
//!
//! On a model that binds thinking to what stands before it, thinking behind the
//! first new change no longer fits. Between two turns it is left out with the
//! rest. In the middle of a tool loop the newest message may not be touched, and
//! nothing is left out here: the API is asked to drop what does not fit.

mod cover;

use std::collections::BTreeMap;
use std::ops::Range;

use super::conversation::Conversation;
use super::ids::{ChainHash, Reference};
use super::native::Native;
use super::notice::Notice;
use super::overlay::{Change, Edit, Origin, Overlay, Segment};
use super::recall::reference::{reference_at, reference_of_span};
use super::split::Split;
use super::stub;
use crate::wire::body::{Kind, Role};

/// The most changes in an overlay to which a stub is added; it must be read and
/// rendered with every request. Results beyond it stay, or are hidden. Thinking
/// goes all the same: what does not fit would be refused, and to leave it out
/// takes no text.
pub(super) const EDITS: usize = 20_000;

/// What is to be done.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// A segment that takes the place of what it stands for.
    pub closing: Option<Segment>,
    /// The API's own, which takes the place of everything before the tail.
    pub native: Option<Native>,
    /// What is replaced, in any order.
    pub replacements: Vec<Replacement>,
    /// The size of each message as it is shown, in any unit.
    pub weights: Vec<u64>,
    /// What the messages should come down to by hiding old ones, in that unit;
    /// none: nothing is hidden.
    pub hide_to: Option<u64>,
    /// How much of the newest part stays when old messages are hidden.
    pub split: Split,
    /// The model binds thinking to what stands before it.
    pub binds_thinking: bool,
    /// Thinking is switched on the older way.
    pub manual_thinking: bool,
    /// How notices are written.
    pub notice: Notice,
    /// What a text of ours weighs, in the unit of the weights: so much for each
    /// so many bytes.
    pub text: (u64, u64),
}

/// Something that stands in for what a block holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The message and the block.
    pub place: (usize, usize),
    /// What it holds instead, as JSON.
    pub with: String,
    /// By how much that is smaller, in the unit of the weights.
    pub spares: u64,
    /// It is a part of what was there; else it only stands for it.
    pub trims: bool,
}

/// Something that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted {
    /// The messages.
    pub messages: Range<usize>,
    /// Only this block of the one message.
    pub block: Option<usize>,
    /// What the view shows for it.
    pub reference: Reference,
}

/// An overlay that is not committed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The overlay.
    pub overlay: Overlay,
    /// What it leaves out that the one before did not.
    pub evicted: Vec<Evicted>,
    /// What it frees, by kind.
    pub freed: Freed,
    /// Thinking that was left out.
    pub thinking_dropped: usize,
    /// Thinking behind the change stays in the view although it does not fit.
    pub leaves_unfit_thinking: bool,
    /// The first message that changes.
    pub first: usize,
    /// The size of all messages that are shown, in the unit of the weights.
    pub weight: u64,
}

/// What a draft frees, by kind, in the unit of the weights; `None`: nothing of
/// that kind was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freed {
    /// By clearing results.
    pub cleared: Option<u64>,
    /// By trimming them.
    pub trimmed: Option<u64>,
    /// By summing messages up.
    pub summed_up: Option<u64>,
    /// By leaving old turns to the journal.
    pub journaled: Option<u64>,
    /// By leaving messages out.
    pub truncated: Option<u64>,
}

/// Carries orders out; `None` if nothing changes.
pub fn reduce(
    conversation: &Conversation<'_>,
    current: &Overlay,
    seed: ChainHash,
    orders: &Orders,
) -> Option<Draft> {
    let mut work = Work::new(conversation, current, seed, orders);
    let mut freed = Freed::default();
    if let Some(native) = &orders.native {
        let shown = work.shown();
        if work.close_natively(native) {
            freed.summed_up = Some(shown.saturating_sub(work.shown()));
        }
    } else if let Some(segment) = &orders.closing {
        let shown = work.shown();
        if work.close(segment) {
            let kind = match segment.origin {
                Origin::Summary => &mut freed.summed_up,
                Origin::Truncated => &mut freed.journaled,
            };
            *kind = Some(shown.saturating_sub(work.shown()));
        }
    }
    // What is ordered twice is done as it was ordered last.
    let ordered = orders.replacements.iter().map(|order| (order.place, order));
    for replacement in ordered.collect::<BTreeMap<_, _>>().into_values() {
        if work.replace(replacement).is_some() {
            let kind = if replacement.trims {
                &mut freed.trimmed
            } else {
                &mut freed.cleared
            };
            *kind = Some(kind.unwrap_or(0) + replacement.spares);
        }
    }
    // Where it must be smaller, no matter what that costs; else only what is sent
    // anew in any case.
    let too_large = orders.hide_to.is_some_and(|target| work.shown() > target);
    let given = too_large.then(|| work.give_way((0, 0))).flatten();
    let shown = work.shown();
    if orders.hide_to.is_some_and(|target| shown > target) && work.hide_old() {
        let kind = if orders.notice.journal {
            &mut freed.journaled
        } else {
            &mut freed.truncated
        };
        *kind = Some(kind.unwrap_or(0) + shown.saturating_sub(work.shown()));
    }
    let first = work.first?;
    for spares in given.into_iter().chain(work.give_way(first)) {
        freed.trimmed = Some(freed.trimmed.unwrap_or(0) + spares);
    }
    let in_loop = conversation.is_in_tool_loop();
    let mut thinking_dropped = 0;
    let mut leaves_unfit_thinking = false;
    // The API's own summary spoils no thinking.
    if orders.binds_thinking && orders.native.is_none() {
        if in_loop {
            leaves_unfit_thinking = work.thinking_behind(first).next().is_some();
        } else {
            thinking_dropped = work.drop_thinking(first);
        }
    }
    Some(Draft {
        evicted: std::mem::take(&mut work.evicted),
        weight: work.shown(),
        overlay: work.overlay(),
        freed,
        thinking_dropped,
        leaves_unfit_thinking,
        first: first.0,
    })
}

/// The same overlay without the thinking that is shown behind its first change;
/// `None` if there is none.
pub fn without_thinking(
    conversation: &Conversation<'_>,
    current: &Overlay,
    seed: ChainHash,
) -> Option<Overlay> {
    let place = |edit: &Edit| (edit.message as usize, edit.block as usize);
    let edited = current.edits.first().map(place);
    let hidden = current.hides().then_some((current.head as usize, 0));
    let first = edited.into_iter().chain(hidden).min()?;
    let orders = Orders::default();
    let mut work = Work::new(conversation, current, seed, &orders);
    if work.drop_thinking(first) == 0 {
        return None;
    }
    Some(work.overlay())
}

struct Work<'a> {
    conversation: &'a Conversation<'a>,
    orders: &'a Orders,
    weights: Vec<u64>,
    seed: ChainHash,
    edits: BTreeMap<(u32, u32), Change>,
    overlay: Overlay,
    evicted: Vec<Evicted>,
    /// The first message that changes, and the block.
    first: Option<(usize, usize)>,
    /// What the segments weigh that were added, less those that went.
    segments: i64,
}

impl<'a> Work<'a> {
    fn new(
        conversation: &'a Conversation<'a>,
        current: &Overlay,
        seed: ChainHash,
        orders: &'a Orders,
    ) -> Self {
        Self {
            conversation,
            orders,
            weights: orders.weights.clone(),
            seed,
            edits: current
                .edits
                .iter()
                .map(|edit| ((edit.message, edit.block), edit.change.clone()))
                .collect(),
            overlay: Overlay {
                made_at: count(conversation.len()),
                ..current.clone()
            },
            evicted: Vec::new(),
            first: None,
            segments: 0,
        }
    }

    fn changes_at(&mut self, place: (usize, usize)) {
        self.first = Some(self.first.map_or(place, |first| first.min(place)));
    }

    fn evict_block(&mut self, (message, block): (usize, usize)) {
        self.evicted.push(Evicted {
            messages: message..message + 1,
            block: Some(block),
            reference: reference_at(self.seed, count(message), count(block)),
        });
    }

    fn replace(&mut self, replacement: &Replacement) -> Option<()> {
        let Replacement {
            place: (message, block),
            with,
            spares,
            ..
        } = replacement;
        self.conversation.block_at((*message, *block))?.payload?;
        let place = (count(*message), count(*block));
        let crowded = self.edits.len() >= EDITS && !self.edits.contains_key(&place);
        if crowded || !self.overlay.shows(*message) {
            return None;
        }
        self.evict_block((*message, *block));
        self.edits.insert(place, Change::Payload(with.clone()));
        if let Some(weight) = self.weights.get_mut(*message) {
            *weight = weight.saturating_sub(*spares);
        }
        self.changes_at((*message, *block));
        Some(())
    }

    /// Lets go, from a place on, of parts of results that the client has made
    /// shorter itself since: what it has there now is less, and what it wants to
    /// be shown. By how much that is smaller, if there are any.
    fn give_way(&mut self, from: (usize, usize)) -> Option<u64> {
        let conversation = self.conversation;
        let shorter = |(place, change): (&(u32, u32), &Change)| {
            let at = (place.0 as usize, place.1 as usize);
            let Change::Payload(with) = change else {
                return None;
            };
            let own = conversation.block_at(at)?.payload?.len();
            let longer = with.len().checked_sub(own + 1)? as u64 + 1;
            (at >= from && change.is_trim()).then_some((*place, longer))
        };
        let shorter: Vec<_> = self.edits.iter().filter_map(shorter).collect();
        let (weight, bytes) = self.orders.text;
        let mut sum = None;
        for (place, longer) in shorter {
            self.edits.remove(&place);
            let spares = longer.saturating_mul(weight) / bytes.max(1);
            if let Some(weight) = self.weights.get_mut(place.0 as usize) {
                *weight = weight.saturating_sub(spares);
            }
            self.changes_at((place.0 as usize, place.1 as usize));
            sum = Some(sum.unwrap_or(0) + spares);
        }
        sum
    }

    /// What is shown of the history, in the unit of the weights.
    fn shown(&self) -> u64 {
        let weights = self.weights.iter().enumerate();
        let messages: u64 = weights
            .filter(|(at, _)| self.overlay.shows(*at))
            .map(|(_, weight)| *weight)
            .sum();
        messages.saturating_add_signed(self.segments)
    }

    fn weight(&self, at: usize) -> u64 {
        self.weights.get(at).copied().unwrap_or(0)
    }

    /// The thinking that is shown behind a place. What stands before it in the
    /// same message is bound to nothing that changes.
    fn thinking_behind(&self, first: (usize, usize)) -> impl Iterator<Item = (u32, u32)> {
        let speaks = |at: &usize| {
            let message = self.conversation.message(*at);
            message.is_some_and(|message| message.role == Role::Assistant)
        };
        (first.0..self.conversation.len())
            .filter(|at| self.overlay.shows(*at))
            .filter(speaks)
            .flat_map(move |at| {
                let blocks = self.conversation.blocks(at).iter().enumerate();
                blocks
                    .filter(move |(index, _)| (at, *index) >= first)
                    .filter(|(_, block)| block.kind == Kind::Thinking)
                    .map(move |(index, _)| (count(at), count(index)))
            })
            .filter(|place| !self.edits.contains_key(place))
    }

    fn drop_thinking(&mut self, first: (usize, usize)) -> usize {
        let places: Vec<(u32, u32)> = self.thinking_behind(first).collect();
        for place in &places {
            self.edits.insert(*place, Change::Gone);
        }
        for alike in places.chunk_by(|a, b| a.0 == b.0) {
            alike
                .first()
                .into_iter()
                .for_each(|place| self.fill(place.0));
        }
        places.len()
    }

    /// A message of which nothing is left gets a placeholder.
    fn fill(&mut self, message: u32) {
        let blocks = self.conversation.blocks(message as usize).len();
        let gone = |block: usize| self.edits.get(&(message, count(block))) == Some(&Change::Gone);
        if blocks > 0 && (0..blocks).all(gone) {
            self.edits
                .insert((message, 0), Change::Block(stub::EMPTIED.to_owned()));
        }
    }

    /// The overlay with the changes gathered so far.
    fn overlay(self) -> Overlay {
        let edit = |((message, block), change)| Edit {
            message,
            block,
            change,
        };
        Overlay {
            edits: self.edits.into_iter().map(edit).collect(),
            ..self.overlay
        }
    }
}

fn count(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "reduce_tests.rs"]
mod tests;
