//! The rule of the accounts as tables: what is due, what is taken, and what a
//! session can lose by it.

use super::super::policy_tests::{offer, rates, situation, spent};
use super::super::{Accounts, Course, Decision, Need, Trigger, decide};
use super::*;

/// A view of 62,000 tokens of which 10,000 are kept, decided by the accounts.
fn by_accounts(course: &Course) -> Situation {
    let mut situation = situation(course);
    (
        situation.watermarks.clear_at,
        situation.watermarks.summarize_at,
    ) = (None, None);
    situation.bill = Bill {
        keep: 10_000,
        factor: 2,
        cached: Some(61_000),
        fetches: 100,
        ..Bill::default()
    };
    situation
}

/// A session that has carried what could go for so many requests.
fn carried(requests: u32, dollars: i128) -> Course {
    let mut course = spent(dollars);
    let finding = Finding {
        removable: 40_000,
        needed: Some(0),
    };
    course.accounts.looked(52_000, finding, finding);
    for _ in 0..requests {
        course.accounts.carried(52_000, 100_000);
    }
    course
}

/// A summary could stand for most of it.
fn closable(size: u64) -> Offer {
    Offer {
        closable: Some(Closing {
            from: 1,
            to: 50,
            frees: 47_000,
            alone: false,
            raw: 0,
        }),
        ..offer(size)
    }
}

fn decided(situation: &Situation, offer: &Offer) -> String {
    match decide(situation, offer) {
        Decision::Rest(rest) => format!("{rest:?}"),
        Decision::Pass(pass) => format!("{:?} {:?}", pass.trigger, pass.closes),
    }
}

type Change = fn(&mut Situation);

#[test]
fn a_pass_is_due_when_carrying_has_cost_twice_what_it_costs() {
    #[rustfmt::skip]
    let rows: [(&str, u32, Change, &str); 9] = [
        ("nothing carried yet", 0, |_| {}, "Calm"),
        ("not enough", 5, |_| {}, "NotDue"),
        ("enough", 60, |_| {}, "Budget Nothing"),
        ("enough, but the session has spent too little to risk it", 60, |s| { s.course = carried(60, 0); }, "NotDue"),
        ("enough, and only what is of no use may go", 60, |s| s.bill.faithful = true, "NotDue"),
        ("cold", 5, |s| s.cache = Cache::Cold, "Temporal Nothing"),
        ("another model was asked before", 5, |s| s.bill.invalidated = true, "Temporal Nothing"),
        ("cold, and only what is free may go", 5, |s| (s.cache, s.bill.faithful) = (Cache::Cold, true), "Temporal Nothing"),
        ("nothing outside of the working set", 60, |s| s.bill.keep = 60_000, "Calm"),
    ];
    for (name, requests, change, expected) in rows {
        let mut situation = by_accounts(&carried(requests, 100));
        change(&mut situation);
        assert_eq!(decided(&situation, &offer(62_000)), expected, "{name}");
    }
}

#[test]
fn the_faithful_remove_only_what_is_of_no_more_use() {
    let mut situation = by_accounts(&carried(60, 100));
    situation.bill.faithful = true;
    situation.bill.summaries = Some(Summaries::default());
    let mut offered = closable(62_000);
    assert_eq!(decided(&situation, &offered), "NotDue");
    for item in &mut offered.items {
        item.useless = true;
    }
    assert_eq!(decided(&situation, &offered), "Budget Nothing");
}

#[test]
fn the_window_does_not_matter_as_long_as_the_view_fits() {
    for requests in [0, 5, 20, 60] {
        let small = by_accounts(&carried(requests, 100));
        let mut large = small.clone();
        (large.watermarks.hard_at, large.watermarks.floor) = (950_000, 350_000);
        let offer = offer(62_000);
        assert_eq!(decide(&small, &offer), decide(&large, &offer), "{requests}");
    }
}

#[test]
fn a_summary_is_prepared_where_it_leaves_more_over_and_taken_when_it_is_ready() {
    let mut situation = by_accounts(&carried(60, 100));
    situation.bill.summaries = Some(Summaries::default());
    let offered = closable(62_000);
    assert_eq!(decided(&situation, &offered), "Prepares");
    situation.ready = Some(false);
    let ready = Offer {
        closing: offered.closable,
        ..offered.clone()
    };
    assert_eq!(decided(&situation, &ready), "Budget Summary");
    situation.ready = None;
    situation.bill.summaries = None;
    assert_eq!(
        decided(&situation, &offered),
        "Budget Nothing",
        "nobody writes one"
    );
}

#[test]
fn what_somebody_asked_for_is_completed_when_its_summary_is_ready() {
    let mut situation = by_accounts(&carried(0, 100));
    situation.course.compacting = true;
    situation.ready = Some(false);
    let offered = closable(62_000);
    let ready = Offer {
        closing: offered.closable,
        ..offered
    };
    assert_eq!(decided(&situation, &ready), "Manual Summary");
}

#[test]
fn what_is_likely_to_be_needed_again_waits_longer() {
    let due = |hazard: u32, fetches: u32| {
        let mut offered = offer(62_000);
        for item in &mut offered.items {
            item.need = Need { hazard, age: 10 };
        }
        (1..2_000).find(|requests| {
            let mut situation = by_accounts(&carried(*requests, 1_000));
            situation.bill.fetches = fetches;
            decided(&situation, &offered) == "Budget Nothing"
        })
    };
    let (never, seldom, often) = (due(0, 100), due(50, 100), due(200, 100));
    assert!(
        never < seldom && seldom < often,
        "{never:?} {seldom:?} {often:?}"
    );
    assert!(often < due(200, 300), "it fetches more than others do");
    assert!(due(200, 300).is_some(), "but not for ever");
}

#[test]
fn staying_below_a_price_step_is_part_of_the_gain() {
    let model = crate::config::Models::default().lookup("claude-haiku-5-5");
    let mut situation = by_accounts(&carried(1, 100));
    situation.rates = Rates::new(&model.prices(110_000).unwrap(), None);
    (situation.size, situation.bill.cached) = (110_000, Some(109_000));
    situation.bill.model = Some(model);
    let extra = situation.extra(&situation.clearing(&offer(110_000), &situation.worth())[0].chosen);
    assert!(extra < 0, "the whole request is cheaper: {extra}");
    assert_eq!(decided(&situation, &offer(110_000)), "Budget Nothing");
}

/// Whatever a session does, it has not cost more than the guard allows at any
/// request, as long as what was predicted of a pass comes true.
#[test]
fn no_session_that_ends_at_any_request_has_cost_more_than_the_guard_allows() {
    for read in [100, 50, 25] {
        let mut course = Course::default();
        let (mut size, mut removed) = (20_000_u64, 0_u64);
        let (mut spent, mut without) = (0_i128, 0_i128);
        let mut passes = 0;
        for request in 0..400 {
            let mut situation = by_accounts(&course);
            situation.rates = rates(read);
            situation.size = size;
            situation.watermarks.hard_at = 1_000_000;
            situation.requests = request;
            situation.bill.cached = Some(size.saturating_sub(1_000));
            situation.bill.removed = removed;
            let offered = offer(size);
            let (clearing, closing) = situation.findings(&offered);
            let as_is = situation.as_is();
            let mut cost = as_is;
            if let Decision::Pass(pass) = decide(&situation, &offered) {
                passes += 1;
                cost += situation.extra(&Chosen {
                    frees: pass.numbers.frees,
                    rewrites: pass.numbers.rewrites,
                    ..Chosen::default()
                });
                size -= pass.numbers.frees;
                removed += pass.numbers.frees;
                course
                    .accounts
                    .looked(situation.outside(), clearing, closing);
                let outside = size.saturating_sub(10_000);
                course.accounts.removed(pass.numbers.frees, outside);
            } else if course
                .accounts
                .deserves_look(situation.outside(), situation.at_least)
            {
                course
                    .accounts
                    .looked(situation.outside(), clearing, closing);
            }
            let alone = as_is + i128::from(situation.bill.removed * read * 1_000);
            spent += cost;
            without += alone;
            course.billed(cost, alone - cost);
            course
                .accounts
                .carried(size.saturating_sub(10_000), read * 1_000);
            assert!(spent * 100 <= without * 105 + 100, "{read} {request}");
            size += 1_000;
        }
        assert!(passes > 2, "{read}: {passes}");
        assert!(spent < without, "{read}");
    }
}

#[test]
fn old_checkpoints_have_empty_accounts() {
    let course: Course = serde_json::from_str("{}").unwrap();
    assert_eq!(course.accounts, Accounts::default());
    assert!(!course.compacting);
    assert_eq!(Trigger::Budget.label(), "budget");
}
