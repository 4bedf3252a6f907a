//! What a summary is prepared from, what it is called, and how it is shown.
//!
//! A preparation is taken when a request is on its way, and holds its bytes. The
//! span is chosen from it and named; the name says everything the summary depends
//! on, so that whoever wants the same finds the same.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::Views;
use super::recognise::Recognised;
use crate::compactor::errand::{Finished, id};
use crate::compactor::sender::Sender;
use crate::engine::breaker::Permit;
use crate::engine::ids::{ChainHash, LineageId, OverlayId, SegmentId};
use crate::engine::native::Native;
use crate::engine::overlay::{Origin, Overlay, Segment};
use crate::engine::pinned;
use crate::engine::policy::Situation;
use crate::engine::recall::telling::Telling;
use crate::engine::span::{Look, Room, Wanted, wanted};
use crate::engine::swift::Swift;
use crate::engine::tiers::Settings as Tiers;
use crate::engine::tiers::Survey;
use crate::wire::body::Body;
use crate::wire::splice::joined;

/// Everything that preparing a summary needs, once the request is on its way.
pub struct Preparation {
    pub(super) recognised: Arc<Recognised>,
    pub(super) overlay: Option<Arc<Overlay>>,
    pub(super) lineage: LineageId,
    pub(super) situation: Situation,
    pub(super) tiers: Tiers,
    pub(super) base: u64,
    pub(super) pieces: Vec<Bytes>,
    pub(super) overlay_id: Option<OverlayId>,
    pub(super) native: bool,
    /// The accounts, or somebody, ask for it.
    pub(super) wanted: bool,
    pub(super) betas: Vec<&'static str>,
    pub(super) tokens: u64,
    pub(super) sender: Sender,
    /// Leave to ask for it; none: nobody is asked.
    pub(super) permit: Option<Permit>,
    pub(super) instructions: Option<String>,
    /// What it takes of the memory for such things.
    pub(super) room: Arc<OwnedSemaphorePermit>,
}

/// A span, and what a summary of it is called.
pub(super) struct Named {
    pub(super) wanted: Wanted,
    pub(super) id: SegmentId,
    pub(super) as_good: Vec<SegmentId>,
    pub(super) end: Swift,
    pub(super) earlier: String,
    pub(super) pins: pinned::Settings,
    /// The API itself is asked: messages of the view before the tail.
    pub(super) native: Option<usize>,
}

impl Named {
    /// This summary and all that would do as well.
    pub(super) fn all(&self) -> Vec<SegmentId> {
        let as_good = self.as_good.iter().copied();
        std::iter::once(self.id).chain(as_good).collect()
    }

    /// Those of them that end earlier, so that whoever has this history has
    /// theirs.
    pub(super) fn earlier_ends(&self) -> Vec<SegmentId> {
        let ends = self.wanted.as_good.iter().zip(&self.as_good);
        let earlier = ends.filter(|(end, _)| **end < self.wanted.span.end);
        earlier.map(|(_, id)| *id).collect()
    }
}

/// The segment that shows a finished summary.
pub(super) fn segment(finished: &Finished) -> Segment {
    Segment {
        block: finished.block.clone(),
        from: finished.from,
        to: finished.to,
        origin: Origin::Summary,
        pinned: finished.pinned,
    }
}

/// The same of the API's own, if it is that.
pub(super) fn native(finished: &Finished) -> Option<Native> {
    finished.native.as_ref().map(|block| Native {
        to: finished.to,
        block: block.clone(),
        note: finished.block.clone(),
    })
}

impl Views {
    /// The settings that a summary depends on.
    pub(super) fn digest(
        &self,
        instructions: Option<&str>,
        archives: Option<&Telling>,
    ) -> [u8; 32] {
        let (summarizer, pin) = (&self.config.summarizer, &self.config.pin);
        let mut hasher = blake3::Hasher::new();
        let parts = [
            summarizer.instructions.as_str(),
            instructions.unwrap_or_default(),
            if summarizer.replace_prompt {
                "replaces"
            } else {
                ""
            },
            // What is said of how to get things back is part of it.
            &archives.map_or_else(String::new, |telling| format!("{telling:?}")),
        ];
        for part in parts {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        let digest = self.config.clear.digest;
        let numbers = [pin.user_tokens, pin.files as u64, pin.errors as u64];
        for number in numbers.into_iter().chain(digest) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.finalize().into()
    }
}

impl Preparation {
    /// How many messages of the view stand before the tail, if the API itself can
    /// be asked to sum them up.
    fn native(&self, must: bool, wanted: &Wanted) -> Option<usize> {
        let overlay = self.overlay.as_ref();
        let hidden = overlay.map_or(0, |overlay| overlay.cut as usize);
        // Nothing can stand between the API's own summary and the tail.
        let (at, manual) = (wanted.span.end, self.recognised.facts.manual_thinking);
        let fits = at > hidden && self.recognised.conversation().is_cut_point(at, manual);
        if must || !self.native || !fits {
            return None;
        }
        let view = Body::split(&joined(&self.pieces)).ok()?;
        let tail = self.recognised.len().checked_sub(wanted.span.end)?;
        view.messages()
            .len()
            .checked_sub(tail)
            .filter(|count| *count > 0)
    }

    /// What the summary depends on besides the history: the API's own is made
    /// from the view.
    fn settings(&self, native: bool, settings: &[u8; 32]) -> [u8; 32] {
        if !native {
            return *settings;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(settings);
        hasher.update(b"native");
        if let Some(id) = self.overlay_id {
            hasher.update(id.as_bytes());
        }
        hasher.finalize().into()
    }
}

/// Chooses the span and gives it its name.
pub(super) fn name(
    preparation: &Preparation,
    must: bool,
    max_segments: usize,
    pins: pinned::Settings,
    settings: &[u8; 32],
) -> Option<Named> {
    let Preparation {
        recognised,
        overlay,
        situation,
        tiers,
        base,
        ..
    } = preparation;
    let conversation = recognised.conversation();
    let none = Overlay::default();
    let overlay = overlay.as_deref().unwrap_or(&none);
    let tokens = situation.size.saturating_sub(*base);
    let survey = Survey::new(&conversation, overlay, recognised.seed(), tiers, tokens);
    let clearable = survey.clearable();
    let needed = must || situation.prepares(clearable);
    let floor = situation.watermarks.floor.saturating_sub(*base);
    let look = Look {
        weights: survey.weights(),
        room: match () {
            () if needed => Room::Within(floor),
            () if preparation.wanted => tiers.closable.unwrap_or(Room::Enough),
            () => Room::Enough,
        },
        split: &tiers.split,
        manual_thinking: recognised.facts.manual_thinking,
        max_segments,
        user_tokens: pins.user_tokens,
    };
    let mut wanted = wanted(&conversation, overlay, &look)?;
    let native = preparation.native(must, &wanted);
    if native.is_some() {
        wanted.as_good.clear();
    }
    let settings = &preparation.settings(native.is_some(), settings);
    let chain = recognised.whole_chain();
    let named = |end: usize| {
        let hash: &ChainHash = chain.get(end.checked_sub(1)?)?;
        Some(id(*hash, &(wanted.span.start..end), settings))
    };
    let before = overlay.segments.iter();
    let mut before = before.filter(|held| (held.to as usize) <= wanted.span.start);
    let words: u64 = before.clone().map(|held| held.pinned).sum();
    let digest_bytes = match native {
        // It takes the place of all that came before, and says more than ours do.
        Some(_) => tiers.digest.for_segment(std::iter::empty()) / 8,
        None => tiers.digest.for_segment(before.clone()),
    };
    // The newest says where things stand; all of them would make each summary
    // dearer than the one before.
    let earlier = before.next_back().map_or_else(String::new, |held| {
        let block: serde_json::Value = serde_json::from_str(&held.block).unwrap_or_default();
        let text = block.get("text").and_then(serde_json::Value::as_str);
        text.unwrap_or_default().to_owned()
    });
    let left = pins.user_tokens.saturating_sub(words);
    Some(Named {
        id: named(wanted.span.end)?,
        as_good: wanted
            .as_good
            .iter()
            .filter_map(|end| named(*end))
            .collect(),
        end: *recognised.swifts.get(wanted.span.end.checked_sub(1)?)?,
        earlier,
        native,
        pins: pinned::Settings {
            user_tokens: left.max(pins.user_tokens / 4),
            digest_bytes,
            plan_tokens: match native {
                Some(_) => pins.plan_tokens / 2,
                None => pins.plan_tokens,
            },
            ..pins
        },
        wanted,
    })
}
