//! Where the tail starts.
//!
//! A strategy says how much of the newest part should stay as it is, and so
//! names the latest place at which the tail may start; the tail itself is filled
//! up from there to the floor. Every place is one of the conversation's cut
//! points, so that whatever is picked parts no call from its result. A turn that
//! is larger than its budget is split inside, at a cycle.
//!
//! A strategy is a wish: where a view would stay too large by it, it gives way,
//! or pass would follow pass and nothing be gained. The messages at the end that
//! stay whatever else do not give way.

use std::ops::Range;

use super::conversation::Conversation;
use super::weigh::Weights;
use crate::config::Ratio;
use crate::wire::body::{Block, Kind, Role};

/// How much of the newest part stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What decides.
    pub strategy: Strategy,
    /// Messages at the end that stay whatever it decides, if that is possible.
    pub tail_messages: usize,
    /// What the head and a tail by the strategy may weigh together.
    pub most: u64,
}

impl Default for Split {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            tail_messages: 0,
            most: u64::MAX,
        }
    }
}

impl Split {
    /// So many turns stay, whatever they weigh.
    pub fn live(turns: usize) -> Self {
        Self {
            strategy: Strategy::RecentTurns {
                turns,
                budget: u64::MAX,
            },
            ..Self::default()
        }
    }
}

/// What decides how much stays; sizes in the unit of the weights.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The last turns.
    RecentTurns {
        /// How many; none counts as one.
        turns: usize,
        /// What they may weigh, all together.
        budget: u64,
    },
    /// The newest messages.
    TokenFraction {
        /// What they may weigh, of all that is shown once results are cleared.
        share: Ratio,
    },
    /// The newest turns, counted by what the user said in them.
    UserMessages {
        /// What the user's own words may weigh, all together.
        words: u64,
        /// What each turn may weigh as a whole.
        turn_budget: u64,
    },
    /// Only the messages at the end that stay whatever else.
    #[default]
    TailMessages,
}

/// The latest place at which the tail may start: one of the cut points, or none
/// if all that could be hidden is to stay.
pub fn latest(
    conversation: &Conversation<'_>,
    weights: &[u64],
    points: &[usize],
    split: &Split,
) -> Option<usize> {
    let (head, len) = (conversation.head(), conversation.len());
    let places = Places {
        points,
        head,
        behind: Weights::behind(weights),
    };
    let start = match split.strategy {
        Strategy::RecentTurns { turns, budget } => {
            let all = self::turns(conversation);
            let first = all.iter().rev().nth(turns.saturating_sub(1));
            places.within(first.copied().unwrap_or(head)..len, budget)
        }
        Strategy::TokenFraction { share } => {
            places.within(head..len, share.of(weights.iter().sum()))
        }
        Strategy::UserMessages { words, turn_budget } => {
            let weight = |at: usize| weights.get(at).copied().unwrap_or(0);
            let said = |turn: Range<usize>| -> u64 {
                let opening = turn.filter(|at| conversation.opens_turn(*at));
                opening
                    .map(|at| own_words(conversation.blocks(at), weight(at)))
                    .sum()
            };
            places.heard(&turns(conversation), len, words, turn_budget, said)
        }
        Strategy::TailMessages => len,
    };
    let kept: u64 = weights.iter().take(head).sum();
    let start = places.within(start..len, split.most.saturating_sub(kept));
    places.at_or_before(start.min(len.saturating_sub(split.tail_messages)))
}

/// Where to cut behind `from`: the earliest point whose tail fits the room, so
/// that no more is hidden than must be, but none later than `latest`; else
/// `latest`; else the first there is.
pub fn cut(
    points: &[usize],
    weights: &[u64],
    from: usize,
    room: u64,
    latest: Option<usize>,
) -> Option<usize> {
    let behind = Weights::behind(weights);
    let later = || points.iter().copied().filter(|point| *point > from);
    let allowed = || later().filter(|point| latest.is_some_and(|latest| *point <= latest));
    let fits = |point: &usize| behind.get(*point).is_some_and(|tail| *tail <= room);
    allowed()
        .find(fits)
        .or_else(|| allowed().next_back())
        .or_else(|| later().next())
}

/// Whether more turns than these are shown from a message on.
pub fn shows_more(conversation: &Conversation<'_>, from: usize, most: usize) -> bool {
    let all = turns(conversation);
    let kept = all.iter().rev().nth(most.saturating_sub(1));
    kept.is_some_and(|kept| *kept > from.max(conversation.head()))
}

/// The first message of each turn behind the head, and the first of all behind
/// it, whose turn the head has opened. What the user says in several messages in
/// a row opens one turn, because to the API it is one message.
fn turns(conversation: &Conversation<'_>) -> Vec<usize> {
    let mut opened = false;
    let opens = |at: &usize| {
        let role = conversation.message(*at).map(|message| message.role);
        let opens = !opened && conversation.opens_turn(*at);
        opened = (opened || opens) && role != Some(Role::Assistant);
        opens
    };
    let head = conversation.head();
    let behind = (head + 1..conversation.len()).filter(opens);
    std::iter::once(head).chain(behind).collect()
}

/// What the user's own words weigh in a message: all of it, unless results stand
/// beside them; then as much as their share of the bytes.
fn own_words(blocks: &[Block], weight: u64) -> u64 {
    let bytes = |blocks: &mut dyn Iterator<Item = &Block>| -> u128 {
        blocks.map(|block| block.span.len() as u128).sum()
    };
    let mut own = blocks.iter().filter(|b| b.kind != Kind::ToolResult);
    let (own, all) = (bytes(&mut own), bytes(&mut blocks.iter()));
    if own == all {
        return weight;
    }
    u64::try_from(u128::from(weight) * own / all.max(1)).unwrap_or(weight)
}

/// Where a tail may start, and what stands behind each place.
struct Places<'a> {
    points: &'a [usize],
    head: usize,
    behind: Vec<u64>,
}

impl Places<'_> {
    fn at_or_before(&self, at: usize) -> Option<usize> {
        let after = self.points.partition_point(|point| *point <= at);
        self.points.get(after.checked_sub(1)?).copied()
    }

    fn fits(&self, range: Range<usize>, budget: u64) -> bool {
        let behind = |at: usize| self.behind.get(at).copied().unwrap_or(0);
        behind(range.start).saturating_sub(behind(range.end)) <= budget
    }

    /// Where a stretch has to begin to fit a budget: where it does, if it fits
    /// from the cut point that this takes; else at the first cut point inside
    /// from which it does; else at its end.
    fn within(&self, stretch: Range<usize>, budget: u64) -> usize {
        let Range { start, end } = stretch;
        let whole = self.at_or_before(start).unwrap_or(self.head);
        if self.fits(whole..end, budget) {
            return start;
        }
        let after = self.points.partition_point(|point| *point <= start);
        let inside = self.points.get(after..).unwrap_or(&[]).iter().copied();
        inside
            .take_while(|point| *point < end)
            .find(|point| self.fits(*point..end, budget))
            .unwrap_or(end)
    }

    /// Where the newest turns begin whose words fit a budget; one that is too
    /// large as a whole is split, and nothing before it stays.
    fn heard(
        &self,
        turns: &[usize],
        len: usize,
        words: u64,
        turn_budget: u64,
        said: impl Fn(Range<usize>) -> u64,
    ) -> usize {
        let mut start = len;
        let mut left = words;
        for opening in turns.iter().rev().copied() {
            let turn = opening..start;
            let Some(rest) = left.checked_sub(said(turn.clone())) else {
                return start;
            };
            left = rest;
            start = self.within(turn, turn_budget);
            if start != opening {
                return start;
            }
        }
        start
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
