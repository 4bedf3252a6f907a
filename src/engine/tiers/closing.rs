//! What takes the place of old messages in a draft, and what that saves.

use super::Survey;
use crate::engine::native::Native;
use crate::engine::overlay::Segment;
use crate::engine::policy::Closing;

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

    /// What a segment saves of these messages.
    pub(super) fn saved_by(&self, segment: &Segment, messages: &[u64]) -> Closing {
        let (from, to) = (segment.from as usize, segment.to as usize);
        let hidden: u64 = messages.get(from..to).unwrap_or(&[]).iter().sum();
        let covered = |held: &&Segment| held.from >= segment.from && held.to <= segment.to;
        let held = self.current.segments.iter().filter(covered);
        let held: u64 = held.map(|held| self.weights.of_text(&held.block)).sum();
        let ours = self.weights.of_text(&segment.block);
        Closing {
            from,
            to,
            frees: (hidden + held).saturating_sub(ours),
            alone: false,
        }
    }

    fn closing_natively(&self, native: &Native, messages: &[u64]) -> Closing {
        let to = native.to as usize;
        let hidden: u64 = messages.get(..to).unwrap_or(&[]).iter().sum();
        let held = self.current.segments.iter().map(|held| &held.block);
        let held = held.chain(&self.current.native);
        let held: u64 = held.map(|block| self.weights.of_text(block)).sum();
        let ours = self.weights.of_text(&native.block) + self.weights.of_text(&native.note);
        Closing {
            from: 0,
            to,
            frees: (hidden + held).saturating_sub(ours),
            alone: true,
        }
    }
}
