//! How old messages are, in tokens and in requests behind them, and which results
//! show files that the agent still works on.

use std::collections::HashSet;

use crate::engine::candidates::{Candidate, Reason};
use crate::engine::conversation::Conversation;
use crate::engine::weigh::Weights;
use crate::wire::body::Role;

/// Requests within which a file that was read or changed is in hand.
const IN_HAND: u32 = 15;

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

/// The newest contents of the files that were read or changed within the last
/// requests, the file used last first, within so many tokens.
pub(super) fn files_in_hand(
    candidates: &[Candidate],
    weights: &Weights,
    replies: &[u32],
    tokens: u64,
) -> HashSet<(usize, usize)> {
    let used = |candidate: &&Candidate| {
        let message = candidate
            .file_used
            .filter(|_| candidate.reason == Reason::Old)?;
        let since = replies.get(message).copied().unwrap_or(0);
        (since <= IN_HAND).then_some((message, candidate.result))
    };
    let mut found: Vec<_> = candidates.iter().filter_map(|held| used(&held)).collect();
    found.sort_unstable();
    let mut left = tokens;
    let mut kept = HashSet::new();
    for (_, result) in found.into_iter().rev() {
        if let Some(less) = left.checked_sub(weights.block(result)) {
            left = less;
            kept.insert(result);
        }
    }
    kept
}
