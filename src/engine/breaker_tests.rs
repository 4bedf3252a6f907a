//! How a breaker opens, tries and closes, and what it never does.

use super::{Answer, Breaker, Event, Permit, Phase, Settings, State, Transition};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

const SETTINGS: Settings = Settings {
    max_failures: 3,
    cooldown: 5,
    trial: 4,
};
const ORDINARY: Permit = Permit { trial_until: None };

fn trial(until: u64) -> Permit {
    Permit {
        trial_until: Some(until),
    }
}

fn closed(failures: u32) -> State {
    State::Closed { failures }
}

fn open(until: u64) -> State {
    State::Open { until, trials: 0 }
}

fn open_again(until: u64, trials: u32) -> State {
    State::Open { until, trials }
}

fn half_open(trial_until: Option<u64>) -> State {
    State::HalfOpen {
        trial_until,
        trials: 0,
    }
}

fn half_open_again(trial_until: Option<u64>, trials: u32) -> State {
    State::HalfOpen {
        trial_until,
        trials,
    }
}

#[test]
fn an_outcome_moves_it_as_the_table_says() {
    use Event::{Failed, Succeeded, Withdrawn};
    let rows = [
        (closed(0), Succeeded, closed(0)),
        (closed(2), Succeeded, closed(0)),
        (open(19), Succeeded, closed(0)),
        (half_open(None), Succeeded, closed(0)),
        (half_open(Some(12)), Succeeded, closed(0)),
        (closed(0), Failed(ORDINARY), closed(1)),
        (closed(1), Failed(trial(12)), closed(2)),
        (closed(2), Failed(ORDINARY), open(15)),
        (open(12), Failed(ORDINARY), open(12)),
        (open(12), Failed(trial(12)), open(12)),
        (half_open(None), Failed(ORDINARY), half_open(None)),
        (half_open(None), Failed(trial(12)), half_open(None)),
        (half_open(Some(12)), Failed(ORDINARY), half_open(Some(12))),
        (half_open(Some(12)), Failed(trial(8)), half_open(Some(12))),
        (half_open(Some(12)), Failed(trial(12)), open_again(20, 1)),
        (
            half_open_again(Some(12), 1),
            Failed(trial(12)),
            open_again(30, 2),
        ),
        (
            half_open_again(Some(12), 6),
            Failed(trial(12)),
            open_again(330, 6),
        ),
        (half_open_again(Some(12), 6), Succeeded, closed(0)),
        (
            half_open_again(Some(12), 2),
            Withdrawn(trial(12)),
            half_open_again(None, 2),
        ),
        (closed(2), Withdrawn(ORDINARY), closed(2)),
        (open(12), Withdrawn(trial(12)), open(12)),
        (
            half_open(Some(12)),
            Withdrawn(ORDINARY),
            half_open(Some(12)),
        ),
        (
            half_open(Some(12)),
            Withdrawn(trial(8)),
            half_open(Some(12)),
        ),
        (half_open(Some(12)), Withdrawn(trial(12)), half_open(None)),
    ];
    for (before, event, after) in rows {
        let mut breaker = Breaker(before);
        let transition = breaker.on(event, 10, &SETTINGS);
        assert_eq!(breaker.0, after, "{before:?} {event:?}");
        let (from, to) = (Breaker(before).phase(), Breaker(after).phase());
        let expected = (from != to).then_some(Transition { from, to });
        assert_eq!(transition, expected, "{before:?} {event:?}");
    }
}

#[test]
fn a_permit_is_given_as_the_table_says() {
    let rows = [
        (closed(2), closed(2), Some(ORDINARY)),
        (open(11), open(11), None),
        (open(10), half_open(Some(14)), Some(trial(14))),
        (half_open(None), half_open(Some(14)), Some(trial(14))),
        (half_open(Some(11)), half_open(Some(11)), None),
        (half_open(Some(14)), half_open(Some(14)), None),
        (half_open(Some(10)), half_open(Some(14)), Some(trial(14))),
        // From another clock.
        (open(1_000), open(15), None),
        (open_again(40, 3), open_again(40, 3), None),
        (open_again(1_000, 3), open_again(50, 3), None),
        (
            open_again(10, 3),
            half_open_again(Some(14), 3),
            Some(trial(14)),
        ),
        (half_open(Some(99)), half_open(Some(14)), Some(trial(14))),
    ];
    for (before, after, permit) in rows {
        let mut breaker = Breaker(before);
        assert_eq!(breaker.admits(10, &SETTINGS), permit.is_some());
        assert_eq!(breaker, Breaker(before), "to look changes nothing");
        let answer = breaker.permit(10, &SETTINGS);
        assert_eq!((breaker.0, answer.permit), (after, permit), "{before:?}");
        let (from, to) = (Breaker(before).phase(), breaker.phase());
        let expected = (from != to).then_some(Transition { from, to });
        assert_eq!(answer.transition, expected, "{before:?}");
    }
}

#[test]
fn failures_in_a_row_open_it_and_one_good_trial_closes_it() {
    let mut breaker = Breaker::default();
    let mut told = Vec::new();
    let mut tell = |transition: Option<Transition>| {
        let labels = |t: Transition| (t.from.label(), t.to.label());
        told.extend(transition.map(labels));
    };
    for now in 0..3 {
        let Answer { permit, .. } = breaker.permit(now, &SETTINGS);
        tell(breaker.on(Event::Failed(permit.unwrap()), now, &SETTINGS));
    }
    assert!((2..7).all(|now| !breaker.admits(now, &SETTINGS)));
    for (now, outcome) in [(7, None), (17, Some(Event::Succeeded))] {
        let Answer { permit, transition } = breaker.permit(now, &SETTINGS);
        tell(transition);
        assert!(!breaker.admits(now, &SETTINGS), "one trial");
        let failed = Event::Failed(permit.unwrap());
        tell(breaker.on(outcome.unwrap_or(failed), now, &SETTINGS));
    }
    assert_eq!(
        told,
        [
            ("closed", "open"),
            ("open", "half_open"),
            ("half_open", "open"),
            ("open", "half_open"),
            ("half_open", "closed"),
        ]
    );
}

/// As it is stored: a field of something larger.
#[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Holder {
    breaker: Breaker,
    other: u32,
}

#[test]
fn what_is_stored_is_what_is_read_and_what_is_unknown_is_closed() {
    for state in [
        closed(0),
        closed(2),
        open(u64::MAX),
        half_open(None),
        half_open(Some(7)),
    ] {
        let held = Holder {
            breaker: Breaker(state),
            other: 5,
        };
        let stored = serde_json::to_string(&held).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&stored).unwrap(), held);
    }
    let stored = serde_json::to_value(Breaker(open(9))).unwrap();
    assert_eq!(stored, json!({"state": "open", "until": 9}));
    let stored = serde_json::to_value(Breaker(open_again(9, 2))).unwrap();
    assert_eq!(stored, json!({"state": "open", "until": 9, "trials": 2}));
    for unknown in [
        json!(null),
        json!(5),
        json!("open"),
        json!([1]),
        json!({}),
        json!({"state": "melted", "until": 9}),
        json!({"state": "open"}),
        json!({"state": "open", "until": -1}),
        json!({"state": "closed", "failures": {"a": [1.5e300]}}),
    ] {
        let text = json!({"breaker": unknown, "other": 5}).to_string();
        let held: Holder = serde_json::from_str(&text).unwrap();
        assert_eq!(held.other, 5, "{text}");
        assert_eq!(held.breaker, Breaker::default(), "{text}");
    }
    let none: Holder = serde_json::from_str("{}").unwrap();
    assert_eq!(none.breaker.phase(), Phase::Closed);
}

/// What somebody does with a breaker; a number says which of the calls that are
/// under way it is about.
#[derive(Debug, Clone, Copy)]
enum Act {
    Ask,
    Succeed(usize),
    Fail(usize),
    Withdraw(usize),
    Crash(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Ask),
        1 => (0usize..4).prop_map(Act::Succeed),
        4 => (0usize..4).prop_map(Act::Fail),
        1 => (0usize..4).prop_map(Act::Withdraw),
        1 => (0usize..4).prop_map(Act::Crash),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (0u32..4, 0u64..8, 0u64..8).prop_map(|(max_failures, cooldown, trial)| Settings {
        max_failures,
        cooldown,
        trial,
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        any::<u32>().prop_map(closed),
        any::<u64>().prop_map(open),
        any::<Option<u64>>().prop_map(half_open),
    ]
}

proptest! {
    #[test]
    fn it_never_has_two_trials_at_once_and_is_never_open_longer_than_the_longest_cooldown(
        acts in vec((act(), 0u64..4), 0..80),
        settings in settings(),
    ) {
        let mut breaker = Breaker::default();
        let mut calls: Vec<Permit> = Vec::new();
        let mut now = 0;
        let mut last_failure = 0;
        // The trial that is waited for, and until when.
        let mut waited: Option<(Permit, u64)> = None;
        for (act, passes) in acts {
            now += passes;
            waited = waited.filter(|(_, until)| now < *until);
            let call = |at: usize| (at < calls.len()).then_some(at);
            match act {
                Act::Ask => {
                    let before = breaker.phase();
                    let answer = breaker.permit(now, &settings);
                    if answer.permit.is_none() {
                        prop_assert!(waited.is_some() || now < last_failure + settings.cooldown * 64);
                    } else if before != Phase::Closed {
                        prop_assert!(waited.is_none(), "{:?}", breaker);
                        waited = answer.permit.map(|permit| (permit, now + settings.trial.max(1)));
                    }
                    calls.extend(answer.permit);
                }
                Act::Succeed(at) => {
                    if let Some(at) = call(at) {
                        calls.remove(at);
                        breaker.on(Event::Succeeded, now, &settings);
                        prop_assert_eq!(breaker, Breaker::default());
                        // It has told what the trial was to find out.
                        waited = None;
                    }
                }
                Act::Fail(at) | Act::Withdraw(at) => {
                    if let Some(at) = call(at) {
                        let permit = calls.remove(at);
                        let failed = matches!(act, Act::Fail(_));
                        let event = if failed { Event::Failed } else { Event::Withdrawn };
                        breaker.on(event(permit), now, &settings);
                        last_failure = if failed { now } else { last_failure };
                        waited = waited.filter(|(trial, _)| *trial != permit);
                    }
                }
                Act::Crash(at) => {
                    call(at).map(|at| calls.remove(at));
                }
            }
        }
    }

    #[test]
    fn from_any_state_a_success_closes_and_patience_leads_to_a_permit(
        state in state(),
        now in 0u64..u64::MAX / 2,
        settings in settings(),
    ) {
        let mut breaker = Breaker(state);
        breaker.on(Event::Succeeded, now, &settings);
        prop_assert_eq!(breaker, Breaker::default());
        let mut breaker = Breaker(state);
        let patience = settings.cooldown.max(settings.trial).max(1);
        let asked = breaker.permit(now, &settings).permit.is_some();
        prop_assert!(asked || breaker.admits(now + patience, &settings));
        let stored = serde_json::to_vec(&breaker).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Breaker>(&stored).unwrap(), breaker);
    }
}
