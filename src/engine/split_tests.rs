//! Where each strategy starts the tail, and what holds wherever it does.

use super::{Split, Strategy as By, cut, latest, shows_more};
use crate::config::Ratio;
use crate::engine::conversation::Conversation;
use crate::engine::properties::{body, history};
use crate::wire::body::{Body, Role};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Three turns and what the user says last; indices stand above.
///
///     0 12 34 5 6 78 9 10 11 12
///     u cr cr a u cr a u  a  u
const TALK: &str = "ucrcraucrauau";
const POINTS: [usize; 7] = [3, 5, 6, 7, 9, 10, 11];

/// A conversation in letters: the user, the assistant, a call, its result, a
/// result with words beside it, a system message.
fn talk(letters: &str) -> Vec<Value> {
    let message = |(at, letter): (usize, char)| {
        let result = |at: usize| json!({"type": "tool_result", "tool_use_id": format!("t{}", at - 1), "content": "r".repeat(900)});
        let words = json!({"type": "text", "text": "and"});
        match letter {
            'u' => json!({"role": "user", "content": "go on"}),
            'a' => json!({"role": "assistant", "content": "done"}),
            'c' => json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": format!("t{at}"), "name": "Bash", "input": {}}]}),
            'r' => json!({"role": "user", "content": [result(at)]}),
            'm' => json!({"role": "user", "content": [result(at), words]}),
            _ => json!({"role": "system", "content": "note"}),
        }
    };
    letters.chars().enumerate().map(message).collect()
}

fn with<T>(messages: &[Value], ask: impl FnOnce(&Conversation<'_>) -> T) -> T {
    let bytes = body(messages, false);
    let split = Body::split(&bytes).unwrap();
    ask(&Conversation::new(&bytes, &split))
}

/// What is picked where every message weighs ten, unless said otherwise.
fn picked(letters: &str, heavy: &[(usize, u64)], split: &Split) -> Option<usize> {
    with(&talk(letters), |conversation| {
        let mut weights = vec![10; conversation.len()];
        for (at, weight) in heavy {
            weights[*at] = *weight;
        }
        let points = conversation.cut_points(false);
        latest(conversation, &weights, &points, split)
    })
}

fn by(strategy: By) -> Split {
    Split {
        strategy,
        tail_messages: 1,
        ..Split::default()
    }
}

fn recent_turns(turns: usize, budget: u64) -> Split {
    by(By::RecentTurns { turns, budget })
}

fn fraction(percent: u32) -> Split {
    let share = Ratio::percent(percent);
    by(By::TokenFraction { share })
}

fn user_messages(words: u64, turn_budget: u64) -> Split {
    by(By::UserMessages { words, turn_budget })
}

#[test]
fn live_turns_stay_whatever_they_weigh_and_more_of_them_are_noticed() {
    // Four turns: they begin with messages 1, 6, 10 and 12, the first with the head.
    let rows = [
        (1, Some(11)),
        (2, Some(10)),
        (3, Some(6)),
        (4, None),
        (9, None),
    ];
    for (turns, expected) in rows {
        let found = picked(TALK, &[(7, 1_000_000)], &Split::live(turns));
        assert_eq!(found, expected, "{turns}");
        with(&talk(TALK), |conversation| {
            assert_eq!(shows_more(conversation, 0, turns), expected.is_some());
            assert!(!shows_more(conversation, 12, turns));
        });
    }
    with(&talk(TALK), |conversation| {
        assert!(shows_more(conversation, 5, 3), "message 6 begins the third");
        assert!(
            !shows_more(conversation, 6, 3),
            "it is the first that is shown"
        );
    });
}

#[test]
fn recent_turns_stay_whole_within_their_budget_and_are_split_at_a_cycle_beyond_it() {
    assert_eq!(with(&talk(TALK), |c| c.cut_points(false)), POINTS);
    for (turns, budget, expected) in [
        (1, 1_000, Some(11)),
        (2, 1_000, Some(10)),
        (3, 1_000, Some(6)),
        (3, 70, Some(6)),
        (3, 69, Some(7)),
        (3, 50, Some(9)),
        (3, 5, Some(11)),
        (4, 120, None),
        (4, 119, Some(3)),
        (99, 1_000, None),
    ] {
        let split = recent_turns(turns, budget);
        let found = picked(TALK, &[], &split);
        assert_eq!(found, expected, "{turns} turns, {budget}");
    }
}

#[test]
fn a_share_of_the_tokens_stays() {
    for (percent, expected) in [
        (0, Some(11)),
        (23, Some(11)),
        (24, Some(10)),
        (92, Some(3)),
        (93, None),
        (100, None),
    ] {
        let found = picked(TALK, &[], &fraction(percent));
        assert_eq!(found, expected, "{percent}");
    }
}

#[test]
fn as_many_turns_stay_as_the_user_s_words_allow_and_no_turn_takes_more_than_its_budget() {
    for (words, turn_budget, expected) in [
        (0, 1_000, Some(11)),
        (10, 1_000, Some(11)),
        (20, 1_000, Some(10)),
        (29, 1_000, Some(10)),
        (30, 1_000, None),
        (30, 50, None),
        (30, 40, Some(3)),
        (30, 39, Some(7)),
        (30, 25, Some(9)),
    ] {
        let split = user_messages(words, turn_budget);
        let found = picked(TALK, &[], &split);
        assert_eq!(found, expected, "{words} of words, {turn_budget} a turn");
    }
}

#[test]
fn results_beside_the_user_s_words_are_not_counted_as_words() {
    let heavy = [(6, 1_000)];
    let split = user_messages(100, 10_000);
    assert_eq!(picked("ucraucmaua", &[(4, 1_000)], &split), Some(5));
    assert_eq!(picked("ucraucmaua", &heavy, &split), None);
}

#[test]
fn the_last_messages_stay_whatever_the_strategy() {
    let strategies = [
        recent_turns(1, 1_000),
        fraction(0),
        user_messages(0, 0),
        by(By::TailMessages),
    ];
    for split in strategies {
        for (tail_messages, expected) in [
            (0, Some(11)),
            (2, Some(11)),
            (3, Some(10)),
            (5, Some(7)),
            (10, Some(3)),
            (11, None),
            (1_000, None),
        ] {
            let split = Split {
                tail_messages,
                ..split.clone()
            };
            let found = picked(TALK, &[], &split);
            assert_eq!(found, expected, "{split:?}");
        }
    }
}

#[test]
fn a_strategy_gives_way_where_a_view_would_stay_too_large_and_the_last_messages_do_not() {
    for split in [
        recent_turns(99, 1_000),
        fraction(100),
        user_messages(1_000, 1_000),
    ] {
        // The head weighs ten.
        for (most, tail_messages, expected) in [
            (130, 1, None),
            (129, 1, Some(3)),
            (55, 1, Some(9)),
            (0, 1, Some(11)),
            (0, 5, Some(7)),
        ] {
            let split = Split {
                tail_messages,
                most,
                ..split.clone()
            };
            assert_eq!(picked(TALK, &[], &split), expected, "{split:?}");
        }
    }
}

#[test]
fn a_giant_turn_is_split_at_a_cycle() {
    let giant = format!("ucrau{}", "cr".repeat(500));
    for split in [recent_turns(2, 105), user_messages(1_000, 105)] {
        let found = picked(&giant, &[], &split);
        assert_eq!(found, Some(giant.len() - 10), "{split:?}");
        // Even if the newest cycle alone is more than the budget.
        let heavy = [(giant.len() - 1, 1_000)];
        let found = picked(&giant, &heavy, &split);
        assert_eq!(found, Some(giant.len() - 2), "{split:?}");
    }
}

#[test]
fn a_system_message_stays_with_its_turn_and_several_messages_of_the_user_are_one_turn() {
    for (letters, expected) in [
        ("ucraususaua", [9, 4]),
        ("usasusasusa", [8, 4]),
        ("uauuauusa", [5, 2]),
        ("ucraucrsuaua", [10, 5]),
    ] {
        let found = [1, 2].map(|turns| {
            let split = recent_turns(turns, 1_000);
            picked(letters, &[], &split)
        });
        assert_eq!(found, expected.map(Some), "{letters}");
    }
}

#[test]
fn the_tail_is_filled_up_to_the_room_and_never_starts_later_than_allowed() {
    let weights = [10; 13];
    for (from, room, latest, expected) in [
        (1, 100, Some(9), Some(3)),
        (1, 75, Some(9), Some(6)),
        (1, 40, Some(9), Some(9)),
        (1, 0, Some(9), Some(9)),
        (6, 1_000, Some(9), Some(7)),
        (9, 0, Some(9), Some(10)),
        (1, 0, None, Some(3)),
        (11, 0, None, None),
    ] {
        let found = cut(&POINTS, &weights, from, room, latest);
        assert_eq!(found, expected, "from {from}, room {room}, {latest:?}");
    }
}

fn split() -> impl Strategy<Value = Split> {
    let size = || select(vec![0_u64, 50, 400, 100_000]);
    let strategy = prop_oneof![
        (1usize..5, size()).prop_map(|(turns, budget)| By::RecentTurns { turns, budget }),
        (0u32..=100).prop_map(|percent| fraction(percent).strategy),
        (size(), size()).prop_map(|(words, turn_budget)| By::UserMessages { words, turn_budget }),
        Just(By::TailMessages),
    ];
    let most = select(vec![0, 300, u64::MAX]);
    (strategy, 0usize..12, most).prop_map(|(strategy, tail_messages, most)| Split {
        strategy,
        tail_messages,
        most,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_picked_is_a_cut_point_that_parts_no_pair_and_keeps_the_last_messages(
        messages in prop_oneof![history(0), history(2)],
        weights in vec(0u64..200, 60),
        split in split(),
        from in 0usize..40,
        room in 0u64..2_000,
        manual: bool,
    ) {
        with(&messages, |conversation| {
            let len = conversation.len();
            let mut weights = weights;
            weights.resize(len, 10);
            let points = conversation.cut_points(manual);
            let latest = latest(conversation, &weights, &points, &split);
            let cut = cut(&points, &weights, from, room, latest);
            for picked in latest.into_iter().chain(cut) {
                prop_assert!(points.contains(&picked));
                prop_assert_ne!(conversation.message(picked).unwrap().role, Role::System);
                for call in conversation.calls() {
                    let asked = call.used.0 < picked;
                    prop_assert!(call.result.is_none_or(|result| asked == (result.0 < picked)));
                }
            }
            let allowed = |point: &usize| point + split.tail_messages <= len;
            let tail = |at: usize| weights[at..].iter().sum::<u64>();
            let most = split.most.saturating_sub(tail(0) - tail(conversation.head()));
            if let Some(latest) = latest {
                prop_assert!(allowed(&latest));
                prop_assert!(cut.is_none_or(|cut| cut <= latest || latest <= from));
            } else if let Some(first) = points.first().filter(|first| allowed(first)) {
                prop_assert!(tail(conversation.head()) <= most, "nothing is picked, but {}", first);
            }
            // What is picked is small enough, if anything that may be picked is.
            let small = points.iter().copied().filter(allowed).any(|point| tail(point) <= most);
            prop_assert!(!small || latest.is_none_or(|latest| tail(latest) <= most));
            Ok(())
        })?;
    }

    #[test]
    fn the_more_messages_must_stay_the_earlier_the_tail_starts(
        messages in history(1),
        split in split(),
    ) {
        with(&messages, |conversation| {
            let weights = vec![10; conversation.len()];
            let points = conversation.cut_points(false);
            let stays = |tail_messages| {
                let split = Split { tail_messages, ..split.clone() };
                latest(conversation, &weights, &points, &split)
            };
            let picks: Vec<Option<usize>> = (0..conversation.len() + 2).map(stays).collect();
            // No place at all sorts before every place.
            prop_assert!(picks.is_sorted_by(|fewer, more| fewer >= more), "{:?}", picks);
            Ok(())
        })?;
    }
}
