//! What views were worth, told in JSON and in a table: each measure with its
//! share, its counts, how many for each hundred requests, and by pass.

use serde_json::{Map, Value, json};

use super::Report;
use super::layout::{aligned, percent, rounded};
use crate::replay::figures::Outcome;
use crate::replay::plant::Shape;
use crate::replay::probes::Kind;
use crate::replay::quality::{ByPass, Quality, Tally};
use crate::replay::rules::Age;

/// The counts behind the signals of quality.
pub fn quality(outcome: &Outcome) -> Value {
    let quality = &outcome.sums.quality;
    let lines = outcome.sums.lines();
    let mut line_recovery = counted(quality, &lines.in_line);
    let asked = lines.in_line.total().asked;
    let share = |found: usize| json!(Tally { asked, found }.share().map(rounded));
    for (name, found) in [
        ("by_name", lines.named),
        ("bag_of_rarest_names", lines.rarest),
        ("bag_of_random_names", lines.random),
    ] {
        line_recovery.insert(name.to_owned(), share(found));
    }
    let mut rules = counted(quality, &quality.rules);
    rules.insert("by_age_in_requests".to_owned(), by_age(quality));
    json!({
        "requests": quality.requests,
        "next_action_support": counted(quality, &quality.next_action),
        "edit_support": counted(quality, &quality.edits),
        "line_recovery": line_recovery,
        "constraint_survival": rules,
        "stale_facts": stale(quality),
        "planted": planted(outcome),
    })
}

/// What was looked for and found, and what was missed.
fn counted(quality: &Quality, counts: &ByPass) -> Map<String, Value> {
    let total = counts.total();
    let missed = quality.per_hundred(total.missed()).map(rounded);
    let by_pass = counts.each().map(|(pass, tally)| (pass, found(tally)));
    let fields = [
        ("asked", json!(total.asked)),
        ("in_view", json!(total.found)),
        ("missed_per_100_requests", json!(missed)),
        ("by_pass", named(by_pass)),
    ];
    owned(fields)
}

/// Values that no longer hold, shown alone.
fn stale(quality: &Quality) -> Map<String, Value> {
    let total = quality.fresh_values.total();
    let each = quality.fresh_values.each();
    let by_pass = each.map(|(pass, it)| (pass, told(it, "replaced", "stale", it.missed())));
    let per_hundred = quality.per_hundred(total.missed()).map(rounded);
    owned([
        ("replaced", json!(total.asked)),
        ("stale", json!(total.missed())),
        ("stale_per_100_requests", json!(per_hundred)),
        ("by_pass", named(by_pass)),
    ])
}

fn by_age(quality: &Quality) -> Value {
    let ages = Age::ALL.iter().zip(quality.rules_by_age);
    named(ages.map(|(age, tally)| (age.word(), found(tally))))
}

/// What came of planted facts, by how they were said.
fn planted(outcome: &Outcome) -> Value {
    let shapes = Shape::ALL.map(|shape| {
        let of_it = || {
            let probes = outcome.sums.probes.iter();
            probes.filter(move |it| it.kind == Kind::Planted && it.shape == Some(shape))
        };
        let told = json!({
            "asked": of_it().count(),
            "in_view": of_it().filter(|it| it.in_view).count(),
            "in_line": of_it().filter(|it| it.in_line).count(),
            "reachable": of_it().filter(|it| it.reachable).count(),
        });
        (shape.word(), told)
    });
    named(shapes.into_iter())
}

fn found(tally: Tally) -> Value {
    told(tally, "asked", "in_view", tally.found)
}

fn told(tally: Tally, all: &str, part: &str, count: usize) -> Value {
    let fields = [(all, json!(tally.asked)), (part, json!(count))];
    Value::Object(owned(fields))
}

fn owned<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    fields.into_iter().collect()
}

fn named<'a>(fields: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect())
}

const HEADER: [&str; 8] = [
    "quality",
    "requests",
    "next action",
    "edits",
    "lines",
    "orders",
    "stale",
    "planted",
];

/// A row for each run: shares, and behind each how many were missed for each
/// hundred requests whose view differed from the history.
pub fn table(report: &Report<'_>) -> String {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    for run in 0..=report.variations.len() {
        rows.push(row(&report.title(run), &report.total(run)));
    }
    let lines = report.total(0).sums.lines();
    let asked = lines.in_line.total().asked;
    let share = |found: usize| percent(Tally { asked, found }.share());
    let soup = format!(
        "of the same probes, by name alone: the view {}, a bag of the rarest names of the same \
         length {}, of any names {}\n",
        share(lines.named),
        share(lines.rarest),
        share(lines.random)
    );
    let decay = decay(&report.total(0));
    format!("\n{}{soup}{decay}", aligned(&rows))
}

fn row(name: &str, outcome: &Outcome) -> Vec<String> {
    let (quality, signals) = (&outcome.sums.quality, outcome.signals());
    let lines = outcome.sums.lines().in_line;
    vec![
        name.to_owned(),
        quality.requests.to_string(),
        cell(quality, &quality.next_action),
        cell(quality, &quality.edits),
        cell(quality, &lines),
        cell(quality, &quality.rules),
        stale_cell(quality),
        percent(signals.planted_recovery),
    ]
}

fn cell(quality: &Quality, counts: &ByPass) -> String {
    with_missed(quality, counts.total().share(), counts.total())
}

fn stale_cell(quality: &Quality) -> String {
    let total = quality.fresh_values.total();
    with_missed(quality, total.share().map(|it| 1.0 - it), total)
}

fn with_missed(quality: &Quality, share: Option<f64>, total: Tally) -> String {
    let missed = quality.per_hundred(total.missed());
    match (share, missed) {
        (Some(share), Some(missed)) => format!("{:.1}% ({missed:.1})", share * 100.0),
        _ => "-".to_owned(),
    }
}

/// The same by the number of the pass, where there was more than one.
fn decay(outcome: &Outcome) -> String {
    let quality = &outcome.sums.quality;
    let counts = [
        ("next action", quality.next_action),
        ("edits", quality.edits),
        ("lines", outcome.sums.lines().in_line),
        ("orders", quality.rules),
    ];
    let of = |(name, counts): (&str, ByPass)| {
        let each = counts.each().map(|(_, tally)| percent(tally.share()));
        format!("{name} {}", each.collect::<Vec<_>>().join(", "))
    };
    let told = counts.map(of).join("; ");
    format!("after the first, second, third and later passes: {told}\n")
}
