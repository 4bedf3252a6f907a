//! What was told before, and how much worse is still the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Signals;

/// A signal, whether more of it is better, and by how much it may become worse:
/// other rules for choosing a span move each a little.
const ALLOWED: [(&str, bool, f64); 7] = [
    ("cost_share", false, 0.03),
    ("compression_ratio", false, 0.05),
    ("trigger_precision", true, 0.10),
    ("probe_recovery", true, 0.06),
    ("recall_recovery", true, 0.02),
    ("degradation", false, 0.05),
    ("reread_rate", false, 0.06),
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
        // Of few probes a single one is a large share.
        let few = match signal {
            "probe_recovery" | "recall_recovery" | "degradation" => now.get("probes"),
            "trigger_precision" => now.get("passes"),
            _ => None,
        };
        let allowed = few.map_or(allowed, |few| allowed.max(1.2 / few.max(1.0)));
        let line = |word: &str| {
            let by = worse_by.abs();
            format!(
                "{name}: {signal} is {word}: {was:.4} before, {is:.4} now, by {by:.4} where {allowed:.2} is allowed"
            )
        };
        if worse_by > allowed {
            compared.worse.push(line("worse"));
        } else if -worse_by > allowed {
            compared.better.push(line("better"));
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
