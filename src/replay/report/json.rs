//! The report for programs. Its fields are relied on: adding is fine.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::layout::rounded;
use super::quality::quality;
use super::{Report, per_million};
use crate::replay::conditions::Effective;
use crate::replay::figures::{Figures, Outcome, is_near};
use crate::replay::probes::Kind;
use crate::replay::recording::NotPlayed;
use crate::replay::signals::WITHIN;
use crate::sim::models::find;
use crate::sim::prices::{Prices, Tokens};

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
        entry.insert("not_played".to_owned(), not_played(&told.not_played));
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
    total.insert("not_played".to_owned(), not_played(&report.not_played()));
    fill(&mut total, report, &report.alone(), &outcomes);
    let worst = outcomes.first().and_then(|of| of.worst_cut.as_ref());
    let cut = total.get_mut("worst_cut").and_then(Value::as_object_mut);
    if let (Some(cut), Some(worst)) = (cut, worst) {
        cut.insert("session".to_owned(), json!(worst.session));
    }
    json!({
        "settings": {
            "model": report.model,
            "window": report.window,
            "budget": report.conditions.configured().budget,
            "pause_seconds": report.pause,
            "effective": report.conditions.runs.iter().map(effective).collect::<Vec<_>>(),
            "config_file": report.conditions.config_file.as_ref().map(|it| it.display().to_string()),
            "variables": report.conditions.variables,
            "prices_usd_per_million": prices(report, &outcomes),
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
    let played = report.aims().filter_map(|(aim, run)| {
        let outcome = outcomes.get(run)?;
        Some((aim.to_owned(), preset(outcome)))
    });
    let aims: Map<String, Value> = played.collect();
    let mut outcomes = outcomes.iter();
    if let Some(outcome) = outcomes.next() {
        entry.extend(told(outcome));
    }
    let varied = report.set().iter().zip(outcomes).map(|(set, outcome)| {
        let mut entry = Map::new();
        entry.insert("set".to_owned(), keys(set));
        entry.extend(told(outcome));
        Value::Object(entry)
    });
    let varied: Vec<Value> = varied.collect();
    if !varied.is_empty() {
        entry.insert("variations".to_owned(), Value::Array(varied));
    }
    if !aims.is_empty() {
        entry.insert("aims".to_owned(), Value::Object(aims));
    }
}

/// What is told of a preset: all that is told of a run, and what it is chosen by
/// once more in one place.
fn preset(outcome: &Outcome) -> Value {
    let signals = outcome.signals();
    let mut entry = told(outcome);
    let shown = |signal: Option<f64>| json!(signal.map(rounded));
    for (name, value) in [
        ("passes", json!(outcome.sums.passes.0)),
        ("probe_recovery", shown(signals.probe_recovery)),
        ("recall_recovery", shown(signals.recall_recovery)),
    ] {
        entry.insert(name.to_owned(), value);
    }
    Value::Object(entry)
}

/// Requests that were not played, by reason.
fn not_played(all: &[NotPlayed]) -> Value {
    let each = all
        .iter()
        .map(|one| json!({"requests": one.requests, "why": one.why}));
    each.collect()
}

fn keys(set: &[(String, String)]) -> Value {
    let pairs = set.iter().map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(pairs.collect())
}

fn figures(figures: &Figures) -> Value {
    json!({
        "completed": figures.completed,
        "ends_at_request": figures.ends_at,
        "refused": figures.refused,
        "requests": figures.requests,
        "tokens": classes(&figures.tokens),
        "cost_usd": rounded(figures.dollars),
        "cache_read_share": rounded(figures.cache_read_share()),
        "peak_tokens": figures.peak,
        "prefix_breaks": figures.breaks,
    })
}

/// Tokens by class; those written for an hour are among those written.
fn classes(tokens: &Tokens) -> Value {
    json!({
        "input": tokens.input,
        "cache_read": tokens.read,
        "cache_write": tokens.write_5m + tokens.write_1h,
        "cache_write_1h": tokens.write_1h,
        "output": tokens.output,
    })
}

/// What was configured for a run.
fn effective(run: &Effective) -> Value {
    json!({
        "window": run.window,
        "budget": run.budget,
        "hard_at": run.hard_at,
        "mode": run.mode,
        "style": run.style,
        "summarizer": run.summarizer,
    })
}

/// What every model costs that was asked.
fn prices(report: &Report<'_>, outcomes: &[&Outcome]) -> Value {
    let summarizers = outcomes.iter().flat_map(|it| it.summarized.keys());
    let asked = summarizers.map(String::as_str).chain([report.model]);
    let asked: BTreeSet<&str> = asked.collect();
    let each = asked.into_iter().filter_map(|name| {
        let model = find(name)?;
        let mut told = priced(&model.prices);
        if let (Some(step), Some(told)) = (&model.step, told.as_object_mut()) {
            told.insert("above_tokens".to_owned(), json!(step.above));
            told.insert("above".to_owned(), priced(&step.prices));
        }
        Some((name.to_owned(), told))
    });
    Value::Object(each.collect())
}

fn priced(prices: &Prices) -> Value {
    json!({
        "input": per_million(prices.input),
        "cache_read": per_million(prices.read),
        "cache_write": per_million(prices.write_5m),
        "cache_write_1h": per_million(prices.write_1h),
        "output": per_million(prices.output),
    })
}

/// What was asked of summarizers, by model.
fn summarizer(outcome: &Outcome) -> Value {
    let each = outcome.summarized.iter();
    let all = each
        .clone()
        .fold(Tokens::default(), |sum, (_, (_, tokens))| sum.plus(*tokens));
    let models = each.map(|(model, (requests, tokens))| {
        let told = json!({"requests": requests, "tokens": classes(tokens)});
        (model.clone(), told)
    });
    json!({
        "cost_usd": rounded(outcome.summarizer),
        "tokens": classes(&all),
        "models": models.collect::<Map<String, Value>>(),
    })
}

/// How near what passes were expected to write came to what they wrote; those
/// that did not come near are listed.
fn reckoning(writes: &[(u64, u64)]) -> Value {
    let (near, far): (Vec<_>, Vec<_>) = writes.iter().partition(|pass| is_near(**pass));
    let listed = |(expected, wrote): &(u64, u64)| json!({"expected": expected, "written": wrote});
    json!({
        "passes": writes.len(),
        "within_a_tenth": near.len(),
        "others": far.iter().map(listed).collect::<Vec<_>>(),
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
        ("hindsight_usd", json!(rounded(outcome.hindsight))),
        ("regret", json!(shown(outcome.regret()))),
        ("worst_cut", worst_cut(outcome)),
        ("pass_reckoning", reckoning(&outcome.writes)),
        ("summarizer_usd", json!(rounded(outcome.summarizer))),
        ("summarizer", summarizer(outcome)),
        (
            "signals",
            json!({
                "compression_ratio": shown(signals.compression_ratio),
                "mean_compression_ratio": shown(signals.mean_compression_ratio),
                "trigger_precision": shown(signals.trigger_precision),
                "probe_recovery": shown(signals.probe_recovery),
                "recall_recovery": shown(signals.recall_recovery),
                "planted_recovery": shown(signals.planted_recovery),
                "planted_recall": shown(signals.planted_recall),
                "views_larger_than_history": outcome.sums.larger,
                "degradation": shown(signals.degradation),
                "amortization_usd_per_turn": shown(signals.amortization_usd_per_turn),
                "reread_rate": shown(signals.reread_rate),
                "next_action_support": shown(signals.next_action_support),
                "edit_support": shown(signals.edit_support),
                "line_recovery": shown(signals.line_recovery),
                "constraint_survival": shown(signals.constraint_survival),
                "stale_facts": shown(signals.stale_facts),
            }),
        ),
        ("probes", probes(outcome)),
        ("quality", quality(outcome)),
    ];
    let owned = fields.map(|(name, value)| (name.to_owned(), value));
    owned.into_iter().collect()
}

/// The worst request to end with.
fn worst_cut(outcome: &Outcome) -> Value {
    let cut = outcome.worst_cut.as_ref();
    let told = cut.map(|cut| json!({"request": cut.request, "share": rounded(cut.share)}));
    told.unwrap_or_default()
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
