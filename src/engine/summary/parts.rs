//! A span in parts, where one call cannot hold it all.
//!
//! Parts end where a tail may start, so that no call is parted from its result.
//! There are as few as the room allows, and none is larger than it has to be: a
//! last part of two messages would be a summary of nothing. What cannot be split
//! and is larger than the room is a part of its own, for the transcript to trim.
//! The narratives of the parts are merged, neighbours first, in as many rounds as
//! that takes.

use std::ops::Range;

use crate::engine::conversation::Conversation;

/// The parts of a span, in order; each fits the room if it can. `weight` is what
/// a message weighs, in the unit of the room.
pub fn parts(
    conversation: &Conversation<'_>,
    span: Range<usize>,
    weight: impl Fn(usize) -> u64,
    room: u64,
) -> Vec<Range<usize>> {
    if span.is_empty() {
        return Vec::new();
    }
    let inside = |at: &usize| *at > span.start && *at < span.end;
    let cuts = conversation.cut_points(false).into_iter().filter(inside);
    let mut units = Vec::new();
    let mut from = span.start;
    for to in cuts.chain([span.end]) {
        units.push(Unit {
            weight: (from..to).map(&weight).fold(0, u64::saturating_add),
            messages: from..to,
        });
        from = to;
    }
    // What is too large by itself stands between runs that can be balanced.
    let is_large = |unit: &Unit| unit.weight > room;
    units
        .chunk_by(|one, other| !is_large(one) && !is_large(other))
        .flat_map(|run| balanced(run, room))
        .collect()
}

/// What lies between two cut points.
#[derive(Debug)]
struct Unit {
    messages: Range<usize>,
    weight: u64,
}

/// As few parts as the room allows, with the largest as small as it can be.
fn balanced(run: &[Unit], room: u64) -> Vec<Range<usize>> {
    let fewest = filled(run, room).len();
    let (mut low, mut high) = (0, room);
    // A part may be heavier than the room only if nothing lighter is possible.
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(run, middle) && filled(run, middle).len() <= fewest {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    filled(run, high)
}

fn fits(run: &[Unit], room: u64) -> bool {
    run.iter().all(|unit| unit.weight <= room)
}

/// Parts that are each filled as far as the room goes.
fn filled(run: &[Unit], room: u64) -> Vec<Range<usize>> {
    let mut parts: Vec<(Range<usize>, u64)> = Vec::new();
    for unit in run {
        match parts.last_mut() {
            Some((messages, weight)) if weight.saturating_add(unit.weight) <= room => {
                messages.end = unit.messages.end;
                *weight += unit.weight;
            }
            _ => parts.push((unit.messages.clone(), unit.weight)),
        }
    }
    parts.into_iter().map(|(messages, _)| messages).collect()
}

/// Which narratives are merged with which, in order: neighbours, as many as fit
/// the room, and two at least, because one alone would come no nearer to the end.
pub fn groups(weights: &[u64], room: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<(Range<usize>, u64)> = Vec::new();
    for (at, weight) in weights.iter().enumerate() {
        match groups.last_mut() {
            Some((group, sum)) if group.len() < 2 || sum.saturating_add(*weight) <= room => {
                group.end = at + 1;
                *sum = sum.saturating_add(*weight);
            }
            _ => groups.push((at..at + 1, *weight)),
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// A user's word and then so many cycles, with one answer at the end.
    fn cycles(count: usize) -> String {
        let mut messages: Vec<Value> = vec![json!({"role": "user", "content": "go"})];
        for number in 0..count {
            let id = format!("t{number}");
            messages.push(json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "n", "input": {}}]}));
            messages.push(json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": "ok"}]}));
        }
        messages.push(json!({"role": "assistant", "content": "done"}));
        json!({"messages": messages}).to_string()
    }

    fn split(count: usize, weights: &[u64], room: u64) -> Vec<Range<usize>> {
        let bytes = cycles(count);
        let body = Body::split(bytes.as_bytes()).unwrap();
        let conversation = Conversation::new(bytes.as_bytes(), &body);
        let weight = |at: usize| weights.get(at).copied().unwrap_or(1);
        parts(&conversation, 1..1 + 2 * count, weight, room)
    }

    #[test]
    fn parts_are_few_and_alike_and_keep_pairs_whole() {
        assert_eq!(split(6, &[], 100).len(), 1);
        assert_eq!(split(6, &[], 10), [1..7, 7..13], "not ten and two");
        assert_eq!(split(6, &[], 4), [1..5, 5..9, 9..13]);
        assert!(split(0, &[], 4).is_empty());
    }

    #[test]
    fn what_cannot_be_split_is_a_part_of_its_own() {
        assert_eq!(split(2, &[], 1), [1..3, 3..5]);
        assert_eq!(split(5, &[0, 1, 1, 1, 1, 1, 99], 8), [1..5, 5..7, 7..11]);
        assert_eq!(split(3, &[], 0), [1..3, 3..5, 5..7]);
    }

    #[test]
    fn neighbours_are_merged_as_far_as_there_is_room_and_at_least_in_pairs() {
        assert_eq!(groups(&[3, 3, 3, 3, 3], 9), [0..3, 3..5]);
        assert_eq!(groups(&[50, 50, 50], 9), [0..2, 2..3]);
        assert!(groups(&[], 9).is_empty());
    }

    proptest! {
        #[test]
        fn parts_cover_the_span_and_fit_where_they_can(
            weights in prop::collection::vec(0_u64..50, 0..60), room in 0_u64..120,
        ) {
            let count = weights.len() / 2;
            let found = split(count, &weights, room);
            let mut at = 1;
            let weight = |at: usize| weights.get(at).copied().unwrap_or(1);
            for part in &found {
                prop_assert_eq!(part.start, at);
                prop_assert!(part.end > part.start && part.len() % 2 == 0);
                let sum: u64 = part.clone().map(weight).sum();
                prop_assert!(sum <= room || part.len() == 2, "{part:?} weighs {sum}");
                at = part.end;
            }
            prop_assert_eq!(at, 1 + 2 * count);
            prop_assert_eq!(split(count, &weights, room), found);
        }

        #[test]
        fn every_round_of_merging_leaves_fewer(weights in prop::collection::vec(0_u64..50, 2..40), room in 0_u64..200) {
            let groups = groups(&weights, room);
            prop_assert!(groups.len() < weights.len());
            prop_assert!(groups.iter().cloned().flatten().eq(0..weights.len()));
        }
    }
}
