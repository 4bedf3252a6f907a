//! Which messages a summary is to stand for.
//!
//! Mostly the next stretch behind what is hidden already, up to where the tail
//! starts: the tail is filled up to the floor, so that no more is summed up than
//! has to be. Where there are too many segments, or the user's words have no
//! more room in a new one, all of them are made anew as one, from the messages
//! themselves. Where something was left out without an account of it, that is
//! made good.

use std::ops::Range;

use super::conversation::Conversation;
use super::overlay::{Origin, Overlay};
use super::split::{self, Split};
use super::weigh::Weights;

/// Fewer messages, or fewer tokens, than this are not worth a summary.
const MESSAGES: usize = 4;
const TOKENS: u64 = 1_000;
/// Tokens that a summary takes, about.
const SEGMENT: u64 = 1_500;
/// In hundredths: how much of a span one that ends earlier must cover to do just
/// as well, and how much one that ends later may cover at the most.
const AS_GOOD: (u64, u64) = (40, 150);
/// The most ends that do, before and behind.
const ENDS: (usize, usize) = (48, 16);

/// What the choice goes by.
#[derive(Debug, Clone)]
pub struct Look<'a> {
    /// Tokens of each message as it is shown.
    pub weights: &'a [u64],
    /// How much has to be hidden.
    pub room: Room,
    /// How much of the newest part stays.
    pub split: &'a Split,
    /// Thinking is switched on the older way.
    pub manual_thinking: bool,
    /// The most segments.
    pub max_segments: usize,
    /// Tokens of the user's words that a view may pin.
    pub user_tokens: u64,
}

/// How much a summary has to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Nothing more.
    Enough,
    /// Segments and messages may come to so many tokens.
    Within(u64),
    /// Everything but so many tokens of the newest messages.
    Keep(u64),
    /// Everything before this message.
    Before(usize),
}

/// A span that wants a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The messages.
    pub span: Range<usize>,
    /// Some of them were left out without an account.
    pub heals: bool,
    /// Other ends that would do just as well, because somebody else may have got
    /// there: earlier ones, the latest first, then later ones, the earliest first.
    pub as_good: Vec<usize>,
}

/// The span that wants a summary, if any does.
pub fn wanted(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    look: &Look<'_>,
) -> Option<Wanted> {
    let head = conversation.head();
    if head == 0 {
        return None;
    }
    // A summary of the API's own behind what was hidden has made that dead.
    let segments = if (overlay.cut as usize) < head {
        &[][..]
    } else {
        &overlay.segments
    };
    let hidden = (overlay.cut as usize).max(head);
    let lost = segments
        .iter()
        .find(|held| held.origin == Origin::Truncated);
    let words: u64 = segments.iter().map(|segment| segment.pinned).sum();
    let crowded = look.max_segments > 0 && segments.len() >= look.max_segments;
    let merges = crowded || (!segments.is_empty() && words > look.user_tokens / 4 * 3);
    let from = match lost {
        // What only the API's own summary accounts for is summed up anew.
        _ if merges || overlay.native.is_some() => head,
        Some(lost) => lost.from as usize,
        None => hidden,
    };
    let points = conversation.cut_points(look.manual_thinking);
    let latest = split::latest(conversation, look.weights, &points, look.split);
    let to = match look.room {
        Room::Enough => None,
        Room::Within(room) => filled(&points, look.weights, head, hidden, room, latest),
        Room::Keep(keep) => kept(&points, look.weights, hidden, keep, latest),
        Room::Before(end) => {
            Some(end).filter(|end| points.contains(end) && *end > hidden && Some(*end) <= latest)
        }
    };
    let to = to.unwrap_or(hidden);
    let weight = |to: usize| look.weights.get(hidden..to).map_or(0, |w| w.iter().sum());
    let whole: u64 = weight(to);
    let closes = to > hidden && to - hidden >= MESSAGES && whole >= TOKENS;
    // Segments that are merged for their number only are merged with more.
    if from >= to || !(closes || lost.is_some()) {
        return None;
    }
    let (least, most) = (whole * AS_GOOD.0, whole * AS_GOOD.1);
    let good = |end: &usize| closes && (least..=most).contains(&(weight(*end) * 100));
    let ends = || points.iter().copied().filter(good);
    let earlier = ends().rev().filter(|end| *end > hidden && *end < to);
    let later = ends().filter(|end| *end > to && latest.is_some_and(|latest| *end <= latest));
    Some(Wanted {
        span: from..to,
        heals: lost.is_some(),
        as_good: earlier.take(ENDS.0).chain(later.take(ENDS.1)).collect(),
    })
}

/// Where the tail starts that fills a room, of which head and segment have their
/// part; see [`split::cut`].
pub(super) fn filled(
    points: &[usize],
    weights: &[u64],
    head: usize,
    hidden: usize,
    room: u64,
    latest: Option<usize>,
) -> Option<usize> {
    let kept: u64 = weights.iter().take(head).sum();
    let room = room.saturating_sub(kept);
    let room = room.saturating_sub(SEGMENT.min(room / 4));
    split::cut(points, weights, hidden, room, latest)
}

/// The latest cut that leaves so many tokens of the newest messages as they are.
fn kept(
    points: &[usize],
    weights: &[u64],
    hidden: usize,
    keep: u64,
    latest: Option<usize>,
) -> Option<usize> {
    let behind = Weights::behind(weights);
    let stays = |point: &&usize| behind.get(**point).is_some_and(|tail| *tail >= keep);
    let may = |point: &&usize| **point > hidden && Some(**point) <= latest;
    points.iter().rev().filter(may).find(stays).copied()
}

/// How a finished summary stands to what is hidden by now, which may be more
/// than when it was begun; `None`: it ends or begins in the middle of something
/// and can no longer be used. `Some(true)`: it stands for something that was left
/// out without an account.
pub fn heals(overlay: &Overlay, head: usize, span: &Range<usize>) -> Option<bool> {
    let hidden = (overlay.cut as usize).max(head);
    let segments = if (overlay.cut as usize) < head {
        &[][..]
    } else {
        &overlay.segments
    };
    let ranges = segments
        .iter()
        .map(|held| (held.from as usize..held.to as usize, held.origin));
    let edge = |at: usize| {
        let edges = ranges.clone();
        at == head || at == hidden || edges.map(|(held, _)| held.end).any(|end| end == at)
    };
    let fits = edge(span.start) && (span.end > hidden || edge(span.end));
    let lost = |(held, origin): (Range<usize>, Origin)| {
        origin == Origin::Truncated && span.start <= held.start && held.end <= span.end
    };
    fits.then(|| ranges.clone().any(lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::Segment;
    use crate::wire::body::Body;
    use serde_json::json;

    fn history(cycles: usize) -> Vec<u8> {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        for at in 0..cycles {
            let id = format!("t{at}");
            messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "x", "input": {}}]}));
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "y"}]}));
        }
        serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap()
    }

    fn look<'a>(weights: &'a [u64], room: Option<u64>, split: &'a Split) -> Look<'a> {
        Look {
            weights,
            room: room.map_or(Room::Enough, Room::Within),
            split,
            manual_thinking: false,
            max_segments: 3,
            user_tokens: 1_000,
        }
    }

    fn segment(from: u32, to: u32, origin: Origin) -> Segment {
        Segment {
            block: String::new(),
            from,
            to,
            origin,
            pinned: 10,
        }
    }

    fn overlay(segments: Vec<Segment>) -> Overlay {
        Overlay {
            made_at: 40,
            head: 1,
            cut: segments.last().map_or(1, |last| last.to),
            segments,
            ..Overlay::default()
        }
    }

    fn wants(segments: Vec<Segment>, room: Option<u64>) -> Option<Wanted> {
        let bytes = history(20);
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let weights = vec![1_000; conversation.len()];
        let split = Split::default();
        wanted(
            &conversation,
            &overlay(segments),
            &look(&weights, room, &split),
        )
    }

    #[test]
    fn the_next_span_begins_behind_what_is_hidden_and_leaves_a_full_tail() {
        let first = wants(vec![], Some(20_000)).unwrap();
        assert_eq!(first.span, 1..25);
        assert!(!first.heals);
        assert_eq!(first.as_good.first(), Some(&23));
        let ends = first.as_good.iter().copied();
        let (earlier, later): (Vec<usize>, Vec<usize>) = ends.partition(|end| *end < 25);
        assert_eq!(earlier, [23, 21, 19, 17, 15, 13, 11]);
        assert_eq!(later, [27, 29, 31, 33, 35, 37]);
        let next = wants(vec![segment(1, 9, Origin::Summary)], Some(20_000)).unwrap();
        assert_eq!(next.span, 9..25);
    }

    #[test]
    fn too_many_segments_are_made_anew_as_one() {
        let segments = (0..3).map(|at| segment(1 + at * 4, 5 + at * 4, Origin::Summary));
        assert_eq!(wants(segments.collect(), Some(20_000)).unwrap().span, 1..25);
        let mut wordy = segment(1, 9, Origin::Summary);
        wordy.pinned = 900;
        assert_eq!(wants(vec![wordy], Some(20_000)).unwrap().span, 1..25);
    }

    #[test]
    fn what_was_left_out_is_made_good_even_if_nothing_else_is_to_be_done() {
        let segments = [
            segment(1, 5, Origin::Summary),
            segment(5, 9, Origin::Truncated),
            segment(9, 13, Origin::Summary),
        ];
        let more = wants(segments[..2].to_vec(), Some(20_000)).unwrap();
        assert_eq!((more.span, more.heals), (5..25, true));
        let healed = wants(segments[..2].to_vec(), None).unwrap();
        assert_eq!((healed.span, healed.heals), (5..9, true));
        assert!(healed.as_good.is_empty());
    }

    #[test]
    fn a_summary_is_judged_by_what_is_hidden_when_it_comes() {
        let notice = |from, to| segment(from, to, Origin::Truncated);
        let summary = |from, to| segment(from, to, Origin::Summary);
        let rows = [
            (vec![], 1..9, Some(false)),
            (vec![summary(1, 9)], 9..15, Some(false)),
            (vec![notice(1, 9)], 1..9, Some(true)),
            (vec![notice(1, 9)], 1..15, Some(true)),
            (vec![summary(1, 5), notice(5, 9)], 5..9, Some(true)),
            (vec![notice(1, 15)], 1..9, None),
            (vec![summary(1, 5), notice(5, 15)], 5..9, None),
            (vec![notice(1, 15)], 5..15, None),
        ];
        for (segments, span, expected) in rows {
            let overlay = overlay(segments);
            assert_eq!(heals(&overlay, 1, &span), expected, "{overlay:?} {span:?}");
        }
    }

    #[test]
    fn a_place_that_is_given_is_taken_if_it_can_be() {
        let bytes = history(20);
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let weights = vec![1_000; conversation.len()];
        let split = Split::default();
        let before = |end: usize| {
            let look = Look {
                room: Room::Before(end),
                ..look(&weights, None, &split)
            };
            let wanted = wanted(&conversation, &overlay(vec![]), &look);
            wanted.map(|wanted| wanted.span)
        };
        assert_eq!(before(21), Some(1..21));
        assert_eq!(before(22), None, "between a call and its result");
        assert_eq!(before(41), None, "nothing would be left");
    }

    #[test]
    fn nothing_is_wanted_where_there_is_nothing_to_gain() {
        assert_eq!(wants(vec![], None), None);
        assert_eq!(wants(vec![segment(1, 9, Origin::Summary)], None), None);
        assert_eq!(wants(vec![], Some(41_000)), None, "too little");
    }
}
