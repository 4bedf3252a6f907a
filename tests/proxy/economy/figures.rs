//! The figures of a run, and how they are shown.

use std::fmt::Write;

use super::compare::Case;
use super::judge;
use super::play::Run;

/// What became of a session under one policy; sums of them for many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub policy: String,
    pub requests: usize,
    pub micro_dollars: u64,
    /// Input tokens, and those of them that a cache held.
    pub input: u64,
    pub read: u64,
    /// The largest prompt.
    pub peak: u64,
    /// Requests whose prompt departs from the one before.
    pub breaks: usize,
    /// Those of them without a pass, that the client's own history is not the cause of.
    pub stray_breaks: usize,
    pub passes: usize,
    pub over_budget: usize,
    /// Refusals by upstream, but for the one that tells of bound thinking.
    pub refusals: usize,
}

impl Figures {
    pub fn new(run: &Run, none: &Run, model: &str, budget: u64) -> Self {
        let count =
            |which: &dyn Fn(usize) -> bool| (0..run.played.len()).filter(|at| which(*at)).count();
        let played = &run.played;
        let input = |at: usize| played[at].tokens.prompt();
        let bound = |why: &&String| why.contains("bound to a different conversation");
        let learnt = run.refusals.iter().filter(bound).count().min(1);
        Self {
            policy: run.name.clone(),
            requests: played.len(),
            micro_dollars: run.cost(model).micro_dollars(),
            input: (0..played.len()).map(input).sum(),
            read: played.iter().map(|one| one.tokens.read).sum(),
            peak: run.peak(),
            breaks: count(&|at| played[at].broken),
            stray_breaks: count(&|at| {
                played[at].broken && !played[at].passed && !none.played[at].broken
            }),
            passes: count(&|at| played[at].passed),
            over_budget: count(&|at| input(at) > budget),
            refusals: run.refusals.len() - learnt,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            policy: other.policy.clone(),
            requests: self.requests + other.requests,
            micro_dollars: self.micro_dollars + other.micro_dollars,
            input: self.input + other.input,
            read: self.read + other.read,
            peak: self.peak.max(other.peak),
            breaks: self.breaks + other.breaks,
            stray_breaks: self.stray_breaks + other.stray_breaks,
            passes: self.passes + other.passes,
            over_budget: self.over_budget + other.over_budget,
            refusals: self.refusals + other.refusals,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn cells(&self, none: &Self) -> String {
        format!(
            "{} | {} | {:.4} | {:.3} | {:.3} | {} | {} | {} | {} |",
            self.policy,
            self.requests,
            self.micro_dollars as f64 / 1e6,
            self.micro_dollars as f64 / none.micro_dollars.max(1) as f64,
            self.read as f64 / self.input.max(1) as f64,
            self.breaks,
            self.peak,
            self.passes,
            self.over_budget,
        )
    }
}

impl Case {
    /// The figures of every policy, `none` first.
    pub fn rows(&self) -> Vec<&Figures> {
        let mut rows = vec![&self.none];
        rows.extend(&self.rivals);
        rows.extend(&self.batch);
        rows.push(&self.longhaul);
        rows
    }
}

const COLUMNS: &str = "policy | requests | dollars | to none | read share | breaks | peak tokens | passes | over budget |";

/// The sums over all sessions of a setting.
pub fn totals(cases: &[Case]) -> String {
    let mut text = String::new();
    let Some(first) = cases.first() else {
        return text;
    };
    let beyond = cases.iter().filter(|case| case.beyond > 0).count();
    let won = cases.iter().filter(|case| judge::wins(case)).count();
    let _ = writeln!(
        text,
        "### {}: {} sessions, {beyond} past the watermark, longhaul cheapest in {won} of them\n",
        first.setting,
        cases.len()
    );
    let _ = writeln!(text, "| {COLUMNS}\n|---|---|---|---|---|---|---|---|---|");
    let rows: Vec<Vec<&Figures>> = cases.iter().map(Case::rows).collect();
    let sum = |at: usize| {
        rows.iter()
            .fold(Figures::default(), |sum, row| sum.plus(row[at]))
    };
    let none = sum(0);
    for at in 0..rows[0].len() {
        let _ = writeln!(text, "| {}", sum(at).cells(&none));
    }
    text
}

/// A line for each session and policy; set in, so that only sums are recorded.
pub fn details(cases: &[Case]) -> String {
    let mut text =
        format!("  | session | {COLUMNS}\n  |---|---|---|---|---|---|---|---|---|---|\n");
    for case in cases {
        for row in case.rows() {
            let _ = writeln!(
                text,
                "  | {} ({} beyond) | {}",
                case.session,
                case.beyond,
                row.cells(&case.none)
            );
        }
    }
    text
}
