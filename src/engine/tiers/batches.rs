//! What the journal style hides next.
//!
//! It keeps the last turns and leaves everything before them to the journal, a
//! batch at a time. Where that is not enough, because the turns it should keep
//! are too large themselves, it hides more: fewer turns stay, down to what stays
//! where summaries are made, and a long one is split inside. Whether a batch is
//! worth what it costs is for the policy to say.

use super::{Close, Replacement, Survey};
use crate::engine::overlay::Segment;
use crate::engine::policy::{Closes, Closing};
use crate::engine::span;
use crate::engine::split::{self, Split};

/// What could be hidden; neither where nothing is older than what stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batches {
    /// Everything before the turns that are to be kept.
    pub old_turns: Option<Segment>,
    /// More than that, to come down to a size.
    pub more: Option<Segment>,
}

impl Batches {
    /// What is closed by a decision.
    pub fn close(&self, decided: Closes) -> Close<'_> {
        let batch = match decided {
            Closes::Nothing => None,
            Closes::Summary => return Close::Summary,
            Closes::OldTurns => self.old_turns.as_ref(),
            Closes::More => self.more.as_ref(),
        };
        batch.map_or(Close::Nothing, Close::Batch)
    }
}

impl Survey<'_> {
    /// The batches that could be hidden, when these have been trimmed. `room` is
    /// what the messages should come down to, where it comes to that.
    pub fn batches(&self, arrivals: &[Replacement], room: Option<u64>) -> Batches {
        let (conversation, current) = (self.conversation, self.current);
        let head = conversation.head();
        let notice = self.settings.notice();
        let turns = self.settings.live_turns;
        let turns = turns.filter(|_| notice.archives.is_some());
        let Some(turns) = turns.filter(|_| head > 0) else {
            return Batches::default();
        };
        let hidden = (current.cut as usize).max(head);
        let points = conversation.cut_points(self.settings.manual_thinking);
        let weights = self.messages(arrivals);
        let latest = |split: &Split| split::latest(conversation, &weights, &points, split);
        let kept = latest(&Split::live(turns)).filter(|cut| *cut > hidden);
        let least = latest(&self.settings.split);
        let more = room.and_then(|room| {
            let full = span::filled(&points, &weights, head, hidden, room, least)?;
            Some(full).filter(|cut| Some(*cut) > kept && Some(*cut) <= least)
        });
        let from = notice.begins(conversation, current);
        let segment = |to: usize| notice.segment(conversation, current, self.seed, from..to);
        Batches {
            old_turns: kept.map(segment),
            more: more.map(segment),
        }
    }

    /// What a batch would save, when these have been trimmed.
    pub fn saves(&self, segment: &Segment, arrivals: &[Replacement]) -> Closing {
        self.saved_by(segment, &self.messages(arrivals))
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
