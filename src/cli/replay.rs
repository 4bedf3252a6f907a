//! `longhaul replay`: what would have become of recorded sessions.
//!
//! It needs no key and sends nothing anywhere: client, proxy and simulated
//! upstream are all in this process. A file that cannot be played is named with
//! its line and the others go on; the exit code is 1 then, and 2 if what was
//! asked for makes no sense.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::progress::Progress;
use super::{BAD_CONFIGURATION, OverrideArgs};
use crate::replay::all::Plan;
use crate::replay::conditions::Conditions;
use crate::replay::read::{Unreadable, read, recordings_at};
use crate::replay::report::{self, Report};
use crate::replay::session::Session;
use crate::replay::settings::{ALL_AIMS, BadSettings, Set, Settings, presets, variations};
use crate::sim::models;

/// The longest pause in seconds, about thirty years.
const LONGEST: u64 = 1_000_000_000;

/// What the figures mean that no column name explains.
const FIGURES: &str = "\
hindsight_usd  the cost with the same means and knowledge of the whole recording
regret         by how much more was paid than that
worst_cut      the request with which the session would have ended at the worst moment
aims           with --aim: cost, passes and recovery of each preset
not_played     requests of a recording that are not played, and why";

/// Arguments of `longhaul replay`.
#[derive(Clone, clap::Args)]
#[command(after_help = FIGURES)]
pub struct ReplayArgs {
    /// Recordings: sessions of Claude Code, rollouts of Codex, messages a line, request bodies;
    /// folders of them; - for standard input
    #[arg(required = true, value_name = "TRANSCRIPT")]
    pub transcripts: Vec<PathBuf>,
    /// Model that is asked, with its window and prices
    #[arg(long, default_value = "claude-opus-5-5")]
    pub model: String,
    /// Window in tokens, instead of the model's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub window: Option<u64>,
    /// Tokens that a conversation may occupy
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub budget: Option<u64>,
    /// Play once more with a key set; several values are played side by side
    #[arg(long, value_name = "KEY=VALUE[,VALUE]")]
    pub set: Vec<String>,
    /// Play the presets of policy.aim side by side, or one of them; needs the = before a value
    #[arg(long, value_name = "AIM", num_args = 0..=1, require_equals = true,
        default_missing_value = ALL_AIMS, value_parser = ["faithful", "balanced", "thrifty", ALL_AIMS])]
    pub aim: Option<String>,
    /// Seconds between two requests where no times were recorded
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    pub pause: u64,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Draw the sizes and costs of each session
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a page with the table and the pictures
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Plays the recordings and tells what came of it.
pub fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    if args.svg.is_some() && args.svg == args.html {
        complain(&"--svg and --html name the same file")?;
        return Ok(ExitCode::from(BAD_CONFIGURATION));
    }
    let (mut plan, conditions) = match plan(args) {
        Ok(planned) => planned,
        Err(problem) => {
            complain(&problem)?;
            return Ok(ExitCode::from(BAD_CONFIGURATION));
        }
    };
    let mut code = if sessions(args, &mut plan.sessions)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    if plan.sessions.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if conditions.other_prices {
        complain(&"warning: configured prices steer the policy; dollars are at the model's own")?;
    }
    let progress = Progress::new(plan.requests());
    let told = plan.play(&|_| false, &|_, _| progress.step());
    progress.end();
    let told = told?;
    for told in &told {
        let runs = told.with.iter().map(|(_, run)| run);
        for why in runs.filter_map(|run| run.refused.as_ref()) {
            complain(&format!("{}: did not come to its end: {why}", told.name))?;
            code = ExitCode::FAILURE;
        }
    }
    let report = Report {
        model: &args.model,
        window: plan.settings.window,
        conditions: &conditions,
        pause: Duration::from_secs(args.pause).as_secs_f64(),
        variations: &plan.variations,
        aims: presets_of(args).len(),
        told: &told,
    };
    let drawn = [
        (&args.svg, report::svg as fn(&Report<'_>) -> String),
        (&args.html, report::html),
    ];
    for (path, draw) in drawn {
        if let Some(path) = path {
            let written = std::fs::write(path, draw(&report));
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let text = if args.json {
        format!("{:#}\n", report::json(&report))
    } else {
        report::table(&report)
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("cannot write to standard output")?;
    Ok(code)
}

/// Reads everything that is named; `false` if some of it cannot be played.
fn sessions(args: &ReplayArgs, sessions: &mut Vec<Session>) -> anyhow::Result<bool> {
    let pause = Duration::from_secs(args.pause);
    let mut fine = true;
    let mut other_models = BTreeSet::new();
    let found = args.transcripts.iter().map(|given| recordings_at(given));
    let read = found.flat_map(|found| match found {
        Ok(paths) => paths.iter().map(|path| read(path)).collect(),
        Err(problem) => vec![Err(problem)],
    });
    for read in read {
        match read {
            Ok(read) => {
                for warning in &read.warnings {
                    complain(&format!("warning: {warning}"))?;
                }
                for recording in std::iter::once(&read.recording).chain(&read.others) {
                    sessions.push(Session::new(recording, pause));
                    let asked = recording.model.clone();
                    other_models.extend(asked.filter(|it| !is_model(it, &args.model)));
                }
            }
            // Sub-agents have files of their own beside the sessions'.
            Err(problem @ Unreadable::SubAgents { .. }) => {
                complain(&format!("warning: {problem}"))?;
            }
            Err(problem) => {
                complain(&problem)?;
                fine = false;
            }
        }
    }
    if !other_models.is_empty() {
        let asked: Vec<String> = other_models.into_iter().collect();
        let (asked, model) = (asked.join(", "), &args.model);
        complain(&format!(
            "warning: requests to {asked} are played as requests to {model}: --model chooses"
        ))?;
    }
    Ok(fine)
}

fn complain(problem: &dyn std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "longhaul: {problem}").context("cannot write to standard error")
}

/// Whether two names are of one model; a date suffix is ignored.
fn is_model(one: &str, other: &str) -> bool {
    let known = |name| models::find(name).map(|model| model.id);
    one == other || (known(one).is_some() && known(one) == known(other))
}

/// The presets that were asked for.
fn presets_of(args: &ReplayArgs) -> Vec<Vec<Set>> {
    args.aim.as_deref().map(presets).unwrap_or_default()
}

/// What is to be played, still without sessions.
fn plan(args: &ReplayArgs) -> Result<(Plan, Conditions), BadSettings> {
    let overrides = OverrideArgs {
        config: args.config.clone(),
        ..OverrideArgs::default()
    };
    let sources = overrides.into_sources();
    let plan = Plan {
        sessions: Vec::new(),
        settings: Settings::new(&args.model, args.window, args.budget, sources)?,
        variations: [variations(&args.set)?, presets_of(args)].concat(),
    };
    let conditions = plan.conditions()?;
    Ok((plan, conditions))
}
