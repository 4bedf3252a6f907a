//! When a summary may be asked for again.
//!
//! Whoever makes a summary holds a lease on it, and extends it until the summary
//! is stored. So a second replica begins the same summary only if the first can no
//! longer store it, or could not say that it still would:
//!
//! - it was killed before it had ended; its lease runs out after that,
//! - it failed, so that there is no summary,
//! - it did not get to extend its lease in time, as it says itself,
//! - it ended while the database was away, which learns of it when it is back.
//!
//! None of that depends on when upstream came to read what was sent. A call that a
//! replica wrote to its socket just before it was killed may well be read after.

use std::collections::HashMap;

use super::told::{Ended, Told};

/// How often a summary was begun again, or which one should not have been. `away`:
/// when the database was.
pub fn count(told: &[Told], away: &[(u64, u64)]) -> Result<usize, String> {
    let mut begun: HashMap<&str, Vec<(u64, &Told)>> = HashMap::new();
    for replica in told {
        for (segment, at) in &replica.begun {
            begun.entry(segment).or_default().push((*at, replica));
        }
    }
    let mut again = 0;
    for (segment, mut times) in begun {
        times.sort_by_key(|(at, _)| *at);
        for pair in times.windows(2) {
            let [(first, replica), (second, _)] = pair else {
                continue;
            };
            let ended = replica.ended.iter();
            let ended = ended
                .filter(|ended| ended.segment == segment && ended.at >= *first)
                .min_by_key(|ended| ended.at);
            if !is_excused(ended, replica.killed, away) {
                return Err(format!(
                    "{segment} was summed up twice, from {first} and from {second}; the first: \
                     killed {}, {ended:?}",
                    replica.killed
                ));
            }
            again += 1;
        }
    }
    Ok(again)
}

/// Whether what became of the first allows for a second.
fn is_excused(first: Option<&Ended>, killed: bool, away: &[(u64, u64)]) -> bool {
    match first {
        None => killed,
        Some(ended) => {
            let mut away = away.iter();
            !ended.finished
                || ended.lapsed
                || away.any(|(since, found)| (*since..=*found).contains(&ended.at))
        }
    }
}

#[test]
fn a_second_summary_needs_a_reason_that_the_first_replica_has() {
    let ended = |finished, lapsed, at| Ended {
        segment: "s".to_owned(),
        at,
        finished,
        lapsed,
    };
    let table = [
        ("killed, whenever upstream read its call", None, true, true),
        ("alive and still at it", None, false, false),
        ("stored", Some(ended(true, false, 30)), false, false),
        (
            "stored, and killed afterwards",
            Some(ended(true, false, 30)),
            true,
            false,
        ),
        ("failed", Some(ended(false, false, 30)), false, true),
        ("without a lease", Some(ended(true, true, 30)), false, true),
        (
            "while the database was away",
            Some(ended(true, false, 70)),
            false,
            true,
        ),
        (
            "of an earlier attempt",
            Some(ended(false, false, 5)),
            false,
            false,
        ),
    ];
    for (name, ended, killed, excused) in table {
        let first = Told {
            begun: vec![("s".to_owned(), 10)],
            ended: ended.into_iter().collect(),
            killed,
            ..Told::default()
        };
        let second = Told {
            begun: vec![("s".to_owned(), 20), ("t".to_owned(), 21)],
            ..Told::default()
        };
        let counted = count(&[second, first], &[(60, 80)]);
        assert_eq!(
            counted.as_ref().ok(),
            excused.then_some(&1),
            "{name}: {counted:?}"
        );
    }
}
