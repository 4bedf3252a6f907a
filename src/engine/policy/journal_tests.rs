//! The journal style as a table: each row a situation, and what comes of it.

use super::super::policy_tests::{offer, rates, situation, spent, thrash};
use super::super::{Ask, Cache, Course, Decision, Pass, Trigger, decide};
use super::*;

/// A conversation of so many tokens: the turns before those that stay come to
/// half of it, and most results behind them can go.
fn turns(size: u64) -> Offer {
    let mut offer = offer(size);
    let half = offer.behind.len() / 2;
    offer.items.retain(|item| item.message >= half);
    offer.old_turns = Some(Closing {
        from: 1,
        to: half,
        frees: size / 2 - 2_000,
        alone: false,
        raw: 0,
    });
    offer
}

/// The turns that are to stay are all there are, and no result can go: only
/// fewer turns would be smaller.
fn one_long_turn(size: u64) -> Offer {
    let mut offer = offer(size);
    offer.items.clear();
    offer.more = Some(Closing {
        from: 1,
        to: offer.behind.len() - 30,
        frees: size.saturating_sub(32_000),
        alone: false,
        raw: 0,
    });
    offer
}

fn in_journal(course: &Course) -> Situation {
    let mut course = course.clone();
    course.since_pass = 60;
    Situation {
        journal: true,
        beyond: true,
        ..situation(&course)
    }
}

fn verdict(situation: &Situation, offer: &Offer) -> String {
    match decide(situation, offer) {
        Decision::Pass(Pass {
            trigger, closes, ..
        }) => format!("{trigger:?} {closes:?}"),
        Decision::Rest(rest) => {
            let name = format!("{rest:?}");
            name.split([' ', '{']).next().unwrap().to_owned()
        }
    }
}

type Row = (&'static str, fn(&mut Situation), &'static str);

#[rustfmt::skip]
const TURNS: &[Row] = &[
    ("small, but there is an old half, and that pays", |s| s.size = 30_000, "Budget OldTurns"),
    ("no more turns than are to be kept", |s| (s.size, s.beyond) = (30_000, false), "Calm"),
    ("small, carried along for too short a time", |s| (s.size, s.course.since_pass) = (30_000, 20), "DoesNotPay"),
    ("small, nothing cached", |s| (s.size, s.course.since_pass, s.cache) = (30_000, 6, Cache::Unused), "Budget OldTurns"),
    ("small, a fortieth for reading, a short horizon", |s| (s.size, s.rates, s.horizon) = (30_000, rates(25), Some(8)), "DoesNotPay"),
    ("small, too little to be worth it", |s| s.size = 10_000, "TooLittle"),
    ("small, at once after a pass", |s| { s.size = 30_000; s.course.passed(true); }, "Calm"),
    ("small, looked at a moment ago", |s| (s.size, s.course.looked_at) = (30_000, 28_000), "Looked"),
    ("small and cold", |s| (s.size, s.cache) = (30_000, Cache::Cold), "Temporal OldTurns"),
    ("full", |_| {}, "Budget OldTurns"),
    ("full, carried along for too short a time", |s| s.course.since_pass = 20, "Budget Nothing"),
    ("full, and thinking is bound in a loop", |s| s.binds_in_loop = true, "Waits"),
    ("small, and thinking is bound in a loop", |s| (s.size, s.binds_in_loop) = (30_000, true), "Waits"),
    ("full, and passes do not last", |s| thrash(&mut s.course), "Thrash"),
    ("past the hard watermark", |s| (s.size, s.course) = (96_000, Course::default()), "Budget OldTurns"),
    ("asked for", |s| (s.size, s.asked) = (20_000, Some(Ask::Manual)), "Manual OldTurns"),
    ("refused by upstream", |s| (s.size, s.asked) = (50_000, Some(Ask::Reactive)), "Reactive OldTurns"),
    ("the client asks for its results to be cleared", |s| s.asked = Some(Ask::Client { at_least: 1 }), "Structural Nothing"),
];

#[rustfmt::skip]
const LONG: &[Row] = &[
    ("full, but not where a summary would be taken", |s| s.size = 65_000, "TooLittle"),
    ("where one would be", |s| s.size = 72_000, "Budget More"),
    ("about to be there", |s| (s.size, s.expected) = (65_000, 6_000), "Budget More"),
    ("it does not pay, and will never be full", |s| (s.size, s.rates, s.horizon, s.requests) = (72_000, rates(25), Some(4), 9_000), "TooLittle"),
    ("past the hard watermark it must be", |s| (s.size, s.rates, s.horizon) = (96_000, rates(25), Some(4)), "Budget More"),
    ("cold, where a summary would be taken", |s| (s.size, s.cache) = (72_000, Cache::Cold), "Temporal More"),
    ("cold and small", |s| (s.size, s.cache) = (50_000, Cache::Cold), "TooLittle"),
    ("asked for", |s| (s.size, s.asked) = (50_000, Some(Ask::Manual)), "Manual More"),
];

#[test]
fn old_turns_go_in_batches_when_that_pays_and_when_they_must() {
    for (name, change, expected) in TURNS {
        let mut situation = in_journal(&spent(100));
        change(&mut situation);
        assert_eq!(
            verdict(&situation, &turns(situation.size)),
            *expected,
            "{name}"
        );
    }
}

#[test]
fn fewer_turns_stay_only_where_a_summary_would_be_taken() {
    for (name, change, expected) in LONG {
        let mut situation = in_journal(&spent(100));
        situation.beyond = false;
        change(&mut situation);
        let offer = one_long_turn(situation.size);
        assert_eq!(verdict(&situation, &offer), *expected, "{name}");
    }
}

fn pass(situation: &Situation, offer: &Offer) -> Pass {
    match decide(situation, offer) {
        Decision::Pass(pass) => pass,
        Decision::Rest(rest) => panic!("{rest:?}"),
    }
}

#[test]
fn in_the_turns_that_stay_results_are_cleared_only_from_a_full_view() {
    let mut situation = in_journal(&spent(100));
    let full = pass(&situation, &turns(situation.size));
    assert_eq!(full.trigger, Trigger::Budget);
    assert!(full.take.is_empty(), "hiding alone comes down to the floor");
    situation.size = 80_000;
    let fuller = pass(&situation, &turns(situation.size));
    assert!(!fuller.take.is_empty());
    assert!(80_000 - fuller.numbers.frees <= 35_000);
    // Above the floor, but below the watermark.
    (situation.size, situation.course.since_pass) = (58_000, 200);
    let mut offer = turns(situation.size);
    offer.old_turns = offer.old_turns.map(|old| Closing {
        frees: 10_000,
        ..old
    });
    assert_eq!(pass(&situation, &offer).take, Vec::<usize>::new());
}

#[test]
fn when_the_cache_is_cold_results_go_with_the_old_turns() {
    let mut situation = in_journal(&spent(100));
    (situation.size, situation.cache) = (58_000, Cache::Cold);
    let mut offer = turns(situation.size);
    offer.old_turns = offer.old_turns.map(|old| Closing {
        frees: 10_000,
        ..old
    });
    let pass = pass(&situation, &offer);
    assert_eq!(pass.closes, Closes::OldTurns);
    assert!(58_000 - pass.numbers.frees <= 35_000, "{pass:?}");
}

#[test]
fn where_hiding_does_not_reach_the_floor_what_is_left_stays_while_there_is_room() {
    let mut situation = in_journal(&spent(100));
    (situation.size, situation.expected) = (96_000, 5_000);
    let mut offer = one_long_turn(situation.size);
    offer.more = offer.more.map(|more| Closing {
        frees: 30_000,
        ..more
    });
    let pass = pass(&situation, &offer);
    assert_eq!((pass.closes, pass.must_reach), (Closes::More, Some(90_000)));
}

#[test]
fn the_cut_stands_still_between_batches() {
    // A turn of two thousand tokens with each request, twelve of which stay.
    let mut course = spent(20);
    let (mut shown, mut moved) = (12_u64, Vec::new());
    for request in 0..100_u32 {
        course.goes_on();
        shown += 1;
        let size = 10_000 + shown * 2_000;
        let mut situation = in_journal(&course);
        situation.course = course.clone();
        (situation.size, situation.requests) = (size, 50 + request);
        let mut offer = offer(size);
        offer.items.clear();
        offer.old_turns = (shown > 12).then(|| Closing {
            from: 1,
            to: usize::try_from((shown - 12) * 2).unwrap(),
            frees: (shown - 12) * 2_000,
            alone: false,
            raw: 0,
        });
        match decide(&situation, &offer) {
            Decision::Pass(_) => {
                moved.push((request, shown - 12));
                course.passed(true);
                shown = 12;
            }
            Decision::Rest(rest) if rest.has_looked() => course.looked_at = size,
            Decision::Rest(_) => {}
        }
    }
    assert!((3..=12).contains(&moved.len()), "{moved:?}");
    assert!(
        moved.iter().skip(1).all(|(_, turns)| *turns > 10),
        "{moved:?}"
    );
}
