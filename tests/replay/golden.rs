//! What was told before, and how much worse is still the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Signals;

/// A signal, whether more of it is better, and by how much it may become worse:
/// other rules for choosing a span move each a little.
const ALLOWED: [(&str, bool, f64); 13] = [
    ("cost_share", false, 0.03),
    ("compression_ratio", false, 0.05),
    ("trigger_precision", true, 0.10),
    ("probe_recovery", true, 0.06),
    ("recall_recovery", true, 0.02),
    ("planted_recovery", true, 0.06),
    ("planted_recall", true, 0.02),
    ("degradation", false, 0.05),
    ("amortization_usd_per_turn", false, 0.002),
    ("reread_rate", false, 0.06),
    ("next_action_support", true, 0.03),
    ("line_recovery", true, 0.06),
    ("constraint_survival", true, 0.03),
];

/// What signals are told from. If there is much less of it or much more, other
/// things are judged than before: by this share it may change, or by so many.
const COUNTS: [(&str, f64, f64); 3] = [
    ("passes", 0.25, 2.0),
    ("probes", 0.25, 4.0),
    ("planted", 0.25, 3.0),
];

/// What has changed beyond what is allowed for.
#[derive(Debug, Default)]
pub struct Compared {
    pub worse: Vec<String>,
    pub better: Vec<String>,
}

/// Holds signals against what they were.
pub fn compare(name: &str, before: &Signals, now: &Signals) -> Compared {
    let mut compared = Compared::default();
    for (signal, more_is_better, allowed) in ALLOWED {
        let (was, is) = match (before.get(signal), now.get(signal)) {
            (Some(was), Some(is)) => (*was, *is),
            (None, None) => continue,
            (was, is) => {
                let line = format!("{name}: {signal} was {was:?} and is {is:?}");
                compared.worse.push(line);
                continue;
            }
        };
        let worse_by = if more_is_better { was - is } else { is - was };
        // Of few probes a single one is a large share. How many there were is what
        // counts: were it how many there are, losing probes would allow for more.
        let few = match signal {
            "probe_recovery" | "recall_recovery" | "degradation" | "line_recovery" => {
                before.get("probes")
            }
            "planted_recovery" | "planted_recall" => before.get("planted"),
            "trigger_precision" => before.get("passes"),
            _ => None,
        };
        let allowed = few.map_or(allowed, |few| allowed.max(1.2 / few.max(1.0)));
        let line = |word: &str| {
            let by = worse_by.abs();
            format!(
                "{name}: {signal} is {word}: {was:.4} before, {is:.4} now, by {by:.4} where {allowed} is allowed"
            )
        };
        if worse_by > allowed {
            compared.worse.push(line("worse"));
        } else if -worse_by > allowed {
            compared.better.push(line("better"));
        }
    }
    for (count, part, some) in COUNTS {
        let of = |signals: &Signals| signals.get(count).copied().unwrap_or(0.0);
        let (was, is) = (of(before), of(now));
        if (was - is).abs() > (was * part).max(some) {
            let line = format!("{name}: {count} were {was} and are {is}: what is judged changed");
            compared.worse.push(line);
        }
    }
    compared
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/replay/golden.json")
}

pub fn read() -> BTreeMap<String, Signals> {
    let text = std::fs::read_to_string(path()).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes down what was seen; what was not seen this time stays.
pub fn write(seen: &BTreeMap<String, Signals>) {
    let mut all = if path().exists() {
        read()
    } else {
        BTreeMap::new()
    };
    all.extend(seen.clone());
    let text = serde_json::to_string_pretty(&all).unwrap();
    std::fs::write(path(), text + "\n").unwrap();
}

#[test]
fn a_signal_that_gets_worse_is_named_with_its_figures() {
    let signals = |recovery: f64, cost: f64| -> Signals {
        let pairs = [("probe_recovery", recovery), ("cost_share", cost)];
        pairs.map(|(name, signal)| (name.to_owned(), signal)).into()
    };
    let before = signals(0.8, 0.5);
    assert!(compare("s", &before, &signals(0.75, 0.52)).worse.is_empty());
    let lost = compare("s", &before, &signals(0.7, 0.4));
    assert_eq!(
        lost.worse,
        ["s: probe_recovery is worse: 0.8000 before, 0.7000 now, by 0.1000 where 0.06 is allowed"]
    );
    assert_eq!(lost.better.len(), 1);
    let dear = compare("s", &before, &signals(0.8, 0.6));
    assert!(dear.worse[0].starts_with("s: cost_share is worse: "));
    let gone = compare("s", &before, &Signals::new());
    assert_eq!(gone.worse.len(), 2);
}

/// A change that makes probes vanish must not pass because few are left.
#[test]
fn what_is_judged_by_may_not_vanish_nor_widen_what_is_allowed() {
    let signals = |recovery: f64, probes: f64| -> Signals {
        let pairs = [("recall_recovery", recovery), ("probes", probes)];
        pairs.map(|(name, signal)| (name.to_owned(), signal)).into()
    };
    let before = signals(1.0, 100.0);
    assert!(compare("s", &before, &signals(1.0, 80.0)).worse.is_empty());
    let vanished = compare("s", &before, &signals(0.5, 2.0));
    assert_eq!(vanished.worse.len(), 2, "{:?}", vanished.worse);
    let few = signals(1.0, 4.0);
    assert!(compare("s", &few, &signals(0.75, 4.0)).worse.is_empty());
}
