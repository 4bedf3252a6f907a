//! What takes the place of old messages in a draft, and what that saves.

use super::Survey;
use crate::engine::digest::{all_in_segment, held_by_segments};
use crate::engine::native::Native;
use crate::engine::overlay::Segment;
use crate::engine::policy::Closing;
use crate::engine::span;

/// Tokens that the first segment should take.
const SEGMENT: u64 = 2_000;

/// Bytes of a message that are a token, about.
const BYTES_PER_TOKEN: u64 = 4;

/// What is closed with a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close<'a> {
    /// Nothing.
    Nothing,
    /// What the summary stands for that lies ready.
    Summary,
    /// What is left to the journal.
    Batch(&'a Segment),
}

impl Survey<'_> {
    /// What the summary that lies ready would save.
    pub(super) fn closing(&self, messages: &[u64]) -> Option<Closing> {
        if let Some(native) = &self.settings.native {
            return Some(self.closing_natively(native, messages));
        }
        let segment = self.settings.closing.as_ref()?;
        Some(self.saved_by(segment, messages))
    }

    /// What a summary could stand for that nobody has written yet: everything
    /// behind what is hidden already, up to the working set.
    pub(super) fn closable(&self, messages: &[u64]) -> Option<Closing> {
        let room = self.settings.closable?;
        let look = span::Look {
            weights: messages,
            room,
            split: &self.settings.split,
            manual_thinking: self.settings.manual_thinking,
            max_segments: self.settings.max_segments,
            user_tokens: u64::MAX,
        };
        let wanted = span::wanted(self.conversation, self.current, &look)?;
        let hidden = messages.get(wanted.span.clone()).unwrap_or(&[]);
        let hidden: u64 = hidden.iter().sum();
        let covered = |held: &&Segment| held.from as usize >= wanted.span.start;
        let held = self.current.segments.iter().filter(covered);
        let held: u64 = held.map(|held| self.weights.of_segment(&held.block)).sum();
        Some(Closing {
            from: wanted.span.start,
            to: wanted.span.end,
            frees: (hidden + held).saturating_sub(self.expected_segment(&wanted.span)),
            alone: self.settings.summaries_keep_thinking,
            raw: self.raw(wanted.span.clone()),
        })
    }

    /// Tokens of messages as the client has them, about.
    fn raw(&self, span: std::ops::Range<usize>) -> u64 {
        self.raw_bytes(span) as u64 / BYTES_PER_TOKEN
    }

    fn raw_bytes(&self, span: std::ops::Range<usize>) -> usize {
        let bytes = |at: usize| self.conversation.message(at).map_or(0, |it| it.span.len());
        span.map(bytes).sum()
    }

    /// Tokens that the next segment should take: as many as those before it, and
    /// the digests of what it stands for.
    fn expected_segment(&self, span: &std::ops::Range<usize>) -> u64 {
        let segments = self.current.segments.iter();
        let said = |segment: &Segment| {
            let digests = held_by_segments(std::iter::once(segment));
            let bytes = segment.block.len().saturating_sub(digests);
            self.weights.of_segments(bytes)
        };
        let sizes: Vec<u64> = segments.clone().map(said).collect();
        let sum: u64 = sizes.iter().sum();
        let said = sum.checked_div(sizes.len() as u64).unwrap_or(SEGMENT);
        let before = segments.filter(|held| (held.to as usize) <= span.start);
        let room = self.settings.digest.for_segment(before);
        let digests = room.min(all_in_segment(self.raw_bytes(span.clone())));
        said + self.weights.of_segments(digests)
    }

    /// Tokens of all segments.
    pub(super) fn segments(&self) -> u64 {
        let segments = self.current.segments.iter().map(|segment| &segment.block);
        let ours = segments.chain(self.current.carried());
        ours.map(|block| self.weights.of_segment(block)).sum()
    }

    /// What a segment saves of these messages.
    pub(super) fn saved_by(&self, segment: &Segment, messages: &[u64]) -> Closing {
        let (from, to) = (segment.from as usize, segment.to as usize);
        let hidden: u64 = messages.get(from..to).unwrap_or(&[]).iter().sum();
        let covered = |held: &&Segment| held.from >= segment.from && held.to <= segment.to;
        let held = self.current.segments.iter().filter(covered);
        let held: u64 = held.map(|held| self.weights.of_segment(&held.block)).sum();
        let ours = self.weights.of_segment(&segment.block);
        Closing {
            from,
            to,
            frees: (hidden + held).saturating_sub(ours),
            alone: false,
            raw: 0,
        }
    }

    fn closing_natively(&self, native: &Native, messages: &[u64]) -> Closing {
        let to = native.to as usize;
        let hidden: u64 = messages.get(..to).unwrap_or(&[]).iter().sum();
        let held = self.current.segments.iter().map(|held| &held.block);
        let held = held.chain(&self.current.native);
        let held: u64 = held.map(|block| self.weights.of_segment(block)).sum();
        let ours = self.weights.of_segment(&native.block) + self.weights.of_segment(&native.note);
        Closing {
            from: 0,
            to,
            frees: (hidden + held).saturating_sub(ours),
            alone: true,
            raw: 0,
        }
    }
}
