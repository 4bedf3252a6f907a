//! Which turn a message belongs to, counted from one over the whole history.
//!
//! The count goes over all messages, those of the head included, so that a turn
//! has the same number in every segment that speaks of it.

use crate::engine::conversation::Conversation;

/// The line that names a turn above what was said in it.
pub(in crate::engine) fn heading(turn: usize) -> String {
    format!("turn {turn}:\n")
}

/// How many turns the messages before this one have opened: how many there are,
/// for the length of the history.
pub(in crate::engine) fn opened(conversation: &Conversation<'_>, before: usize) -> usize {
    let before = before.min(conversation.len());
    (0..before)
        .filter(|at| conversation.opens_turn(*at))
        .count()
}

/// The turns of a history.
pub(in crate::engine) struct Turns(Vec<usize>);

impl Turns {
    pub(in crate::engine) fn new(conversation: &Conversation<'_>) -> Self {
        let mut turn = 0;
        let count = |at: usize| {
            turn += usize::from(conversation.opens_turn(at));
            turn
        };
        Self((0..conversation.len()).map(count).collect())
    }

    /// The turn of a message; what stands before the first belongs to it.
    pub(in crate::engine) fn of(&self, at: usize) -> usize {
        self.0.get(at).copied().unwrap_or_default().max(1)
    }
}
