//! Claims and answers as tables: each row a story of one key, and the window that
//! counts in the end.

use super::*;

const HOUR: i64 = TRUSTED;

/// What happens to a key, in order.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A refusal claims a window.
    Refused(u64),
    /// A prompt is answered.
    Answered(u64),
    /// A prompt is answered after a refusal that claimed a window.
    AnsweredUnder(u64, u64),
    /// Hours pass.
    Hours(i64),
}
use Event::{Answered, AnsweredUnder, Hours, Refused};

fn after(events: &[Event]) -> (LearnedWindow, i64) {
    let (mut known, mut now) = (LearnedWindow::default(), 1_000);
    for event in events {
        match *event {
            Refused(window) => _ = known.refused(window, now),
            Answered(tokens) => _ = known.answered(tokens, None),
            AnsweredUnder(tokens, claimed) => _ = known.answered(tokens, Some(claimed)),
            Hours(hours) => now += hours * HOUR,
        }
    }
    (known, now)
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn which_window_counts() {
    const TABLE: u64 = 1_000_000;
    let rows: &[(&str, &[Event], u64)] = &[
        ("nothing is known", &[], TABLE),
        ("half of the table's", &[Refused(500_000)], 500_000),
        ("a quarter", &[Refused(250_000)], 250_000),
        (
            "less than a quarter, not confirmed",
            &[Refused(200_000)],
            TABLE,
        ),
        (
            "less than a quarter, said three times",
            &[Refused(8_192), Refused(8_192), Refused(8_192)],
            TABLE,
        ),
        (
            "less than a quarter, and a view under it answered",
            &[Refused(200_000), AnsweredUnder(90_000, 200_000)],
            200_000,
        ),
        (
            "an answer that followed no refusal confirms nothing",
            &[Refused(200_000), Answered(90_000)],
            TABLE,
        ),
        (
            "nor does one that followed another claim",
            &[Refused(200_000), AnsweredUnder(90_000, 150_000)],
            TABLE,
        ),
        ("more than the table's", &[Refused(2_000_000)], 2_000_000),
        (
            "never below what was answered before",
            &[
                Answered(567_611),
                Refused(200_000),
                AnsweredUnder(60_000, 200_000),
            ],
            TABLE,
        ),
        (
            "just what was answered",
            &[Answered(500_000), Refused(500_000)],
            500_000,
        ),
        (
            "more was answered since",
            &[Refused(500_000), Answered(500_001)],
            TABLE,
        ),
        ("an hour later", &[Refused(500_000), Hours(1)], TABLE),
        (
            "a probe was refused: two hours",
            &[
                Refused(500_000),
                AnsweredUnder(9, 500_000),
                Hours(1),
                Refused(500_000),
                Hours(1),
            ],
            500_000,
        ),
        (
            "and no more than two",
            &[
                Refused(500_000),
                AnsweredUnder(9, 500_000),
                Hours(1),
                Refused(500_000),
                Hours(2),
            ],
            TABLE,
        ),
        (
            "without a confirmation it is as new each time",
            &[Refused(500_000), Hours(1), Refused(500_000), Hours(1)],
            TABLE,
        ),
        (
            "a smaller claim must be confirmed anew",
            &[
                Refused(200_000),
                AnsweredUnder(90_000, 200_000),
                Refused(100_000),
            ],
            TABLE,
        ),
        (
            "a larger one need not",
            &[
                Refused(100_000),
                AnsweredUnder(90_000, 100_000),
                Refused(200_000),
            ],
            200_000,
        ),
        (
            "beyond belief",
            &[Refused(0), Refused(999), Refused(100_000_001)],
            TABLE,
        ),
    ];
    for (name, events, window) in rows {
        let (known, now) = after(events);
        assert_eq!(known.window(TABLE, now), *window, "{name}");
        let stored = LearnedWindow::from_text(&known.to_text());
        assert_eq!(stored, Some(known), "{name}");
    }
}

/// A real window that is smaller than the table's: hardly ever asked about.
#[test]
fn a_true_claim_is_probed_ever_less_often() {
    let (mut known, mut refusals) = (LearnedWindow::default(), 0);
    for hour in 0..24 * 30 {
        let now = hour * HOUR;
        if known.window(200_000, now) == 200_000 {
            known.refused(8_192, now);
            known.answered(3_000, Some(8_192));
            refusals += 1;
        }
    }
    assert!((8..=13).contains(&refusals), "{refusals}");
}

#[test]
fn a_clock_that_was_set_back_keeps_nothing_for_ever() {
    let (known, now) = after(&[Refused(500_000)]);
    assert_eq!(known.window(1_000_000, now - 100 * HOUR), 1_000_000);
}

#[test]
fn keys_differ_in_every_part() {
    let key = |upstream, model, account, long| WindowKey::new(upstream, model, account, long);
    let tenant = Account::Tenant("t");
    let keys = [
        key("u", "m", tenant, false),
        key("u", "m", tenant, true),
        key("u", "n", tenant, false),
        key("v", "m", tenant, false),
        key("um", "", tenant, false),
        key("u", "m", Account::Tenant("s"), false),
        key("u", "m", Account::Credential([0; 32]), false),
        key("u", "m", Account::Credential([1; 32]), false),
    ];
    for (at, one) in keys.iter().enumerate() {
        assert_eq!(WindowKey::from_text(&one.to_string()), Some(*one));
        assert!(keys.iter().skip(at + 1).all(|other| other != one), "{at}");
    }
    for text in ["", "x", "00", "+0000000000000000000000000000001"] {
        assert_eq!(WindowKey::from_text(text), None, "{text}");
    }
}

#[test]
fn what_one_process_knows_the_other_takes_in() {
    let (answered, _) = after(&[Answered(567_611)]);
    let (mut claims, now) = after(&[Refused(500_000)]);
    claims.merge(&answered);
    assert_eq!(claims.window(1_000_000, now), 1_000_000);
    let (mut old, _) = after(&[Refused(400_000)]);
    let (newer, now) = after(&[Hours(1), Refused(500_000)]);
    old.merge(&newer);
    assert_eq!(old.window(1_000_000, now), 500_000);
    let (mut same, now) = after(&[Refused(8_192)]);
    let (confirmed, _) = after(&[Refused(8_192), AnsweredUnder(5, 8_192)]);
    same.merge(&confirmed);
    assert_eq!(same.window(1_000_000, now), 8_192);
}

#[test]
fn what_cannot_be_read_is_not_taken_in() {
    let (mut windows, key) = (LearnedWindows::default(), WindowKey::default());
    let absurd = r#"{"claim":{"window":5,"confirmed":true,"renewed":0,"at":0}}"#;
    for stored in ["", "200000", "[]", "{", absurd] {
        windows.merge(key, stored);
        assert_eq!(
            windows.get(&key).window(1_000_000, 0),
            1_000_000,
            "{stored}"
        );
    }
}

#[test]
fn only_what_matters_is_stored_again() {
    let (mut windows, key) = (LearnedWindows::default(), WindowKey::default());
    assert!(windows.answered(key, 64_000, None).is_some());
    assert!(windows.answered(key, 64_500, None).is_none(), "hardly more");
    assert!(windows.answered(key, 65_001, None).is_some());
    assert!(windows.refused(key, 200_000, 0).is_some());
    assert!(windows.refused(key, 200_000, 1).is_none(), "no news");
    assert!(
        windows.answered(key, 5, Some(200_000)).is_some(),
        "confirmed"
    );
    assert!(windows.answered(key, 5, Some(200_000)).is_none());
    assert!(windows.answered(key, 200_001, None).is_some(), "outgrown");
}

#[test]
fn keys_from_outside_cannot_fill_the_memory() {
    let mut windows = LearnedWindows::default();
    let key = |number: usize| WindowKey::new("u", &number.to_string(), Account::Tenant(""), false);
    for number in 0..KEYS + 10 {
        windows.answered(key(number), 5_000, None);
        windows.answered(key(0), 5_000, None);
    }
    assert_eq!(windows.windows.len(), KEYS);
    assert!(windows.get(&key(0)).was_answered_at(5_000), "in use");
    assert!(!windows.get(&key(1)).was_answered_at(5_000), "the oldest");
}
