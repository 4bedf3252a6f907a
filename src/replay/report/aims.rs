//! The presets of `policy.aim` side by side: a column each.

use super::layout::{aligned, percent, worst_cut};
use super::{Report, cents};
use crate::replay::figures::Outcome;

/// What is told of each: its name, and how it is written.
type Line = (&'static str, fn(&Outcome) -> String);

const LINES: [Line; 13] = [
    ("with $", |outcome| cents(outcome.compared.dollars.1)),
    ("of the cost without", |outcome| {
        percent(outcome.compared.cost_share())
    }),
    ("passes", |outcome| outcome.sums.passes.0.to_string()),
    ("probes", |outcome| {
        percent(outcome.signals().probe_recovery)
    }),
    ("recall", |outcome| {
        percent(outcome.signals().recall_recovery)
    }),
    ("next action", |outcome| {
        percent(outcome.signals().next_action_support)
    }),
    ("edits", |outcome| percent(outcome.signals().edit_support)),
    ("lines", |outcome| percent(outcome.signals().line_recovery)),
    ("orders", |outcome| {
        percent(outcome.signals().constraint_survival)
    }),
    ("stale", |outcome| percent(outcome.signals().stale_facts)),
    ("hindsight $", |outcome| cents(outcome.hindsight)),
    ("regret", |outcome| percent(outcome.regret())),
    ("worst cut", |outcome| worst_cut(outcome)),
];

/// The presets that were played; nothing, if none were asked for.
pub fn aims(report: &Report<'_>) -> String {
    let aims: Vec<(&str, usize)> = report.aims().collect();
    if aims.is_empty() {
        return String::new();
    }
    let row = |name: &str, cell: &dyn Fn(&str, usize) -> String| {
        let cells = aims.iter().map(|(aim, run)| cell(aim, *run));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![row("policy.aim", &|aim, _| aim.to_owned())];
    let totals: Vec<Outcome> = aims.iter().map(|(_, run)| report.total(*run)).collect();
    for (name, written) in LINES {
        let cells = totals.iter().map(written);
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    if report.told.len() > 1 {
        for told in report.told {
            let share = |_: &str, run: usize| {
                let outcome = told.with.get(run).map(|(outcome, _)| outcome);
                percent(outcome.and_then(|outcome| outcome.compared.cost_share()))
            };
            rows.push(row(&format!("  {}", told.name), &share));
        }
    }
    format!("\n{}", aligned(&rows))
}
