//! The report for a person at a terminal.

use std::fmt::Write as _;

use super::aims::aims;
use super::layout::{aligned, percent, worst_cut};
use super::quality;
use super::{Report, cents, thousands};
use crate::replay::figures::{Figures, Outcome, cache_read_share};
use crate::replay::signals::WITHIN;

const HEADER: [&str; 19] = [
    "session",
    "requests",
    "without $",
    "with $",
    "saved $",
    "hindsight $",
    "regret",
    "worst cut",
    "peak",
    "with",
    "clear",
    "trim",
    "summary",
    "truncate",
    "ratio",
    "precise",
    "probes",
    "recall",
    "re-read",
];

/// The table, with a line below that says what the columns mean.
pub fn table(report: &Report<'_>) -> String {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    let runs = report.set().len() + 1;
    for told in report.told {
        for (variation, (outcome, _)) in told.with.iter().enumerate().take(runs) {
            rows.push(row(
                &named(report, &told.name, variation),
                &told.alone.0,
                outcome,
            ));
        }
    }
    let alone = report.alone();
    if report.told.len() > 1 {
        for variation in 0..runs {
            let name = named(report, "all", variation);
            rows.push(row(&name, &alone, &report.total(variation)));
        }
    }
    let mut text = format!("{}\n", report.heading());
    let _ = writeln!(text, "{}\n", report.origins().join("; "));
    text.push_str(&aligned(&rows));
    text.push_str(&aims(report));
    text.push_str(&quality::table(report));
    text.push_str(&refusals(report));
    text.push_str(&not_played(report));
    for variation in 0..runs {
        text.push_str(&sentence(report, variation, &alone));
    }
    let _ = write!(
        text,
        "\n\
        without, with   dollars; without: on a window without end, * marks runs that the window would have ended, or that were refused as told above\n\
        saved           net of everything that compaction cost\n\
        hindsight       dollars of the cheapest plan of somebody who knew the whole recording: the same means, no window\n\
        regret          by how much more was paid than that\n\
        worst cut       had the session ended with this request (@): what was paid by then, of what was paid without\n\
        ratio           tokens sent with the last request, of the whole history's\n\
        precise         passes that were needed within {WITHIN} requests or paid for themselves\n\
        probes, recall  what later turns use of what was left out: still in view; or a reference in view leads to it\n\
        re-read         of what was removed, fetched again, at least\n\
        quality         over requests whose view differs from the history; in brackets: missed (stale: shown) for each 100 of them; see docs/quality.md\n\
        next action     of the specific words of the next call that the history has, in view\n\
        edits           edits whose old lines, as far as the history has them, are all in view\n\
        lines           probes in view within the line they come from, with where that is\n\
        orders          the user's orders, word for word in view after a pass\n\
        stale           of replaced values, shown without the new one after a pass\n\
        planted         planted facts that a pass took out of view and that the view has all the same\n"
    );
    let _ = write!(text, "\n{}\n", verdict(report));
    text
}

fn named(report: &Report<'_>, name: &str, variation: usize) -> String {
    match variation {
        0 => name.to_owned(),
        _ => format!("  {}", report.title(variation)),
    }
}

fn row(name: &str, alone: &Figures, outcome: &Outcome) -> Vec<String> {
    let signals = outcome.signals();
    let count = |kind: &str| {
        let count = outcome.compactions.get(kind).copied().unwrap_or(0);
        count.to_string()
    };
    let mark = |figures: &Figures| if figures.completed { "" } else { "*" };
    vec![
        name.to_owned(),
        outcome.with.requests.to_string(),
        cents(alone.dollars) + mark(alone),
        cents(outcome.with.dollars) + mark(&outcome.with),
        cents(outcome.compared.saved()),
        cents(outcome.hindsight),
        percent(outcome.regret()),
        worst_cut(outcome),
        thousands(alone.peak),
        thousands(outcome.with.peak),
        count("clear"),
        count("trim"),
        count("summary"),
        count("truncate"),
        percent(signals.compression_ratio),
        percent(signals.trigger_precision),
        percent(signals.probe_recovery),
        percent(signals.recall_recovery),
        percent(signals.reread_rate),
    ]
}

/// Requests that were not played, a line for each session that has some.
fn not_played(report: &Report<'_>) -> String {
    let mut text = String::new();
    for told in report.told.iter().filter(|it| !it.not_played.is_empty()) {
        let each = told.not_played.iter().map(|one| {
            let ending = if one.requests == 1 { "" } else { "s" };
            format!("{} request{ending} ({})", one.requests, one.why)
        });
        let each = each.collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\nnot played of {}: {each}\n", told.name);
    }
    text
}

/// Everything in one sentence.
fn verdict(report: &Report<'_>) -> String {
    let compared = report.total(0).compared;
    let (without, with) = compared.dollars;
    let sessions = if report.told.len() == 1 {
        "this session"
    } else {
        "these sessions"
    };
    format!(
        "With Longhaul {sessions} would have cost ${} instead of ${} ({}).",
        cents(with),
        cents(without),
        percent(compared.cost_share()),
    )
}

/// Runs that were refused, a line each, with the reason.
fn refusals(report: &Report<'_>) -> String {
    let mut text = String::new();
    for told in report.told {
        let alone = (&told.alone.0, "without Longhaul".to_owned());
        let with = told.with.iter().enumerate();
        let with = with.map(|(at, (outcome, _))| (&outcome.with, report.title(at)));
        for (figures, run) in std::iter::once(alone).chain(with) {
            if let (Some(why), Some(at)) = (&figures.refused, figures.ends_at) {
                let name = &told.name;
                let _ = write!(text, "\n* {name}, {run}: refused at request {at}: {why}\n");
            }
        }
    }
    text
}

/// The rest of what is known of all sessions together.
fn sentence(report: &Report<'_>, variation: usize, alone: &Figures) -> String {
    let total = report.total(variation);
    let signals = total.signals();
    let compared = &total.compared;
    let share = compared.cost_share();
    let share = share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0));
    let of_them = if compared.requests < alone.requests {
        format!(
            ", of the {} requests out of {} that came through",
            compared.requests, alone.requests
        )
    } else {
        String::new()
    };
    let number = |signal: Option<f64>| {
        signal.map_or_else(|| "-".to_owned(), |signal| format!("{signal:.4}"))
    };
    format!(
        "\n{}: {share} of the cost without{of_them}, {:.2} of it for summaries; {:.1}% of prompts read \
         from the cache, {:.1}% without; degradation {} a pass; a pass costs {} dollars for each \
         request it serves\n",
        report.title(variation),
        total.summarizer,
        cache_read_share(&compared.tokens.1) * 100.0,
        cache_read_share(&compared.tokens.0) * 100.0,
        number(signals.degradation),
        number(signals.amortization_usd_per_turn),
    )
}
