//! The report for programs. Its fields are relied on: adding is fine.

use serde_json::{Map, Value, json};

use super::Report;
use crate::replay::figures::{Figures, Outcome};
use crate::replay::probes::Kind;
use crate::replay::signals::WITHIN;

/// Passes are told by kind, also where there was none.
const KINDS: [&str; 4] = ["clear", "trim", "summary", "truncate"];

/// The whole report.
pub fn json(report: &Report<'_>) -> Value {
    let sessions = report.told.iter().map(|told| {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(told.name));
        entry.insert("messages".to_owned(), json!(told.messages));
        entry.insert("turns".to_owned(), json!(told.turns));
        let outcomes: Vec<&Outcome> = told.with.iter().map(|(outcome, _)| outcome).collect();
        fill(&mut entry, report, &told.alone.0, &outcomes);
        Value::Object(entry)
    });
    let sessions: Vec<Value> = sessions.collect();
    let mut total = Map::new();
    let sum = |of: fn(&super::Told) -> usize| report.told.iter().map(of).sum::<usize>();
    total.insert("sessions".to_owned(), json!(report.told.len()));
    total.insert("messages".to_owned(), json!(sum(|told| told.messages)));
    total.insert("turns".to_owned(), json!(sum(|told| told.turns)));
    let outcomes: Vec<Outcome> = (0..=report.variations.len())
        .map(|variation| report.total(variation))
        .collect();
    let outcomes: Vec<&Outcome> = outcomes.iter().collect();
    fill(&mut total, report, &report.alone(), &outcomes);
    json!({
        "settings": {
            "model": report.model,
            "window": report.window,
            "budget": report.budget,
            "pause_seconds": report.pause,
            "needed_within_requests": WITHIN,
            "variations": report.variations.iter().map(|set| keys(set)).collect::<Vec<_>>(),
        },
        "sessions": sessions,
        "total": total,
    })
}

fn fill(
    entry: &mut Map<String, Value>,
    report: &Report<'_>,
    alone: &Figures,
    outcomes: &[&Outcome],
) {
    entry.insert("without".to_owned(), figures(alone));
    let mut outcomes = outcomes.iter();
    if let Some(outcome) = outcomes.next() {
        entry.extend(told(outcome));
    }
    let varied = report
        .variations
        .iter()
        .zip(outcomes)
        .map(|(set, outcome)| {
            let mut entry = Map::new();
            entry.insert("set".to_owned(), keys(set));
            entry.extend(told(outcome));
            Value::Object(entry)
        });
    let varied: Vec<Value> = varied.collect();
    if !varied.is_empty() {
        entry.insert("variations".to_owned(), Value::Array(varied));
    }
}

fn keys(set: &[(String, String)]) -> Value {
    let pairs = set.iter().map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(pairs.collect())
}

fn figures(figures: &Figures) -> Value {
    let tokens = figures.tokens;
    json!({
        "completed": figures.completed,
        "ends_at_request": figures.ends_at,
        "refused": figures.refused,
        "requests": figures.requests,
        "tokens": {
            "input": tokens.input,
            "cache_read": tokens.read,
            "cache_write": tokens.write_5m + tokens.write_1h,
            "output": tokens.output,
        },
        "cost_usd": rounded(figures.dollars),
        "cache_read_share": rounded(figures.cache_read_share()),
        "peak_tokens": figures.peak,
        "prefix_breaks": figures.breaks,
    })
}

/// What is told of a run with the proxy.
fn told(outcome: &Outcome) -> Map<String, Value> {
    let signals = outcome.signals();
    let counts = KINDS.map(|kind| {
        let count = outcome.compactions.get(kind).copied().unwrap_or(0);
        (kind.to_owned(), json!(count))
    });
    let shown = |signal: Option<f64>| signal.map(rounded);
    let fields = [
        ("with", figures(&outcome.with)),
        ("compactions", Value::Object(counts.into_iter().collect())),
        ("compared_requests", json!(outcome.compared.requests)),
        ("cost_share", json!(shown(outcome.compared.cost_share()))),
        ("saved_usd", json!(rounded(outcome.compared.saved()))),
        ("summarizer_usd", json!(rounded(outcome.summarizer))),
        (
            "signals",
            json!({
                "compression_ratio": shown(signals.compression_ratio),
                "mean_compression_ratio": shown(signals.mean_compression_ratio),
                "trigger_precision": shown(signals.trigger_precision),
                "probe_recovery": shown(signals.probe_recovery),
                "recall_recovery": shown(signals.recall_recovery),
                "degradation": shown(signals.degradation),
                "amortization_usd_per_turn": shown(signals.amortization_usd_per_turn),
                "reread_rate": shown(signals.reread_rate),
            }),
        ),
        ("probes", probes(outcome)),
    ];
    let owned = fields.map(|(name, value)| (name.to_owned(), value));
    owned.into_iter().collect()
}

/// How many probes of each kind there were, and what came of them.
fn probes(outcome: &Outcome) -> Value {
    let each = Kind::ALL.map(|kind| {
        let of_it = || outcome.sums.probes.iter().filter(move |it| it.kind == kind);
        let told = json!({
            "asked": of_it().count(),
            "in_view": of_it().filter(|probe| probe.in_view).count(),
            "reachable": of_it().filter(|probe| probe.reachable).count(),
        });
        (kind.word().to_owned(), told)
    });
    Value::Object(each.into_iter().collect())
}

/// Six digits behind the point are enough for anybody.
fn rounded(number: f64) -> f64 {
    let rounded = (number * 1e6).round() / 1e6;
    // Never minus nothing.
    if rounded == 0.0 { 0.0 } else { rounded }
}
