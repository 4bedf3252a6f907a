//! How old messages are: in tokens and in requests behind them.

use crate::engine::conversation::Conversation;
use crate::wire::body::Role;

/// The first of the newest messages that come to so many tokens.
pub(super) fn newest(weights: &[u64], tokens: u64) -> usize {
    let mut left = tokens;
    for (at, weight) in weights.iter().enumerate().rev() {
        let Some(less) = left.checked_sub(*weight) else {
            return at + 1;
        };
        left = less;
    }
    0
}

/// How many replies there are from each message on.
pub(super) fn replies(conversation: &Conversation<'_>) -> Vec<u32> {
    let mut counts = vec![0; conversation.len()];
    let mut count = 0;
    for (at, slot) in counts.iter_mut().enumerate().rev() {
        let message = conversation.message(at);
        count += u32::from(message.is_some_and(|message| message.role == Role::Assistant));
        *slot = count;
    }
    counts
}
