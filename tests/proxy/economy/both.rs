//! What every tier together costs: clearing, trimming, and summaries where these
//! are not enough, or old turns left to the journal, against nothing at all on a
//! window without end.
//!
//! The summarizer's own calls are in the bill. A usual run plays one short
//! session; `LONGHAUL_ECONOMY` as for the rest, and with it the sessions of
//! 600,000 tokens for which the aim is set.

use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use longhaul::sim::models;
use longhaul::sim::prices::Tokens;

use super::figures::Figures;
use super::play::{Run, Stage};
use super::policy::Policy;
use super::session::{self, Session};
use super::setting::{BOTH, SMALL, Setting};

/// A session under one setting, without a proxy and with, in either style.
struct Pair {
    session: String,
    setting: String,
    none: Figures,
    longhaul: Figures,
    journal: Figures,
    summaries: usize,
    /// Micro-dollars that they cost.
    summing_up: u64,
    /// Tokens of the conversation itself.
    tokens: Tokens,
}

fn selection() -> Vec<(Session, Vec<Setting>)> {
    let Ok(part) = std::env::var("LONGHAUL_ECONOMY") else {
        return vec![(session::wordy(31, 70, 100_000), vec![SMALL])];
    };
    let mut sessions = session::recorded(&[], usize::MAX);
    sessions.extend(session::all_generated());
    sessions.extend(session::all_wordy());
    sessions.retain(|session| part == "all" || session.name.contains(&part));
    let all = sessions.into_iter();
    all.map(|session| (session, BOTH.to_vec())).collect()
}

fn play(session: &Session, settings: &[Setting]) -> Vec<Pair> {
    let stage = Stage::new();
    // What a client sends without a proxy depends on these alone.
    let mut played: Vec<((bool, &str), Rc<Run>)> = Vec::new();
    let pair = |setting: &Setting| {
        let binds = models::find(setting.model).unwrap().binds_thinking;
        let key = (binds, setting.lifetime);
        let known = played.iter().find(|(known, _)| *known == key);
        let none = if let Some((_, run)) = known {
            run.clone()
        } else {
            let run = Rc::new(stage.play(session, Policy::None, setting));
            played.push((key, run.clone()));
            run
        };
        let budget = setting.budget(&none);
        let longhaul = stage.play(session, Policy::Longhaul(budget), setting);
        // The simulator's summarizer invents nothing unless it is told to.
        assert!(!longhaul.rejected, "{}, {}", session.name, setting.name());
        let styled = setting.in_journal_style();
        let journal = stage.play(session, Policy::Longhaul(budget), &styled);
        assert_eq!(journal.summaries, 0, "{}, {}", session.name, styled.name());
        Pair {
            session: session.name.clone(),
            setting: setting.name(),
            none: Figures::new(&none, &none, setting.model, budget),
            longhaul: Figures::new(&longhaul, &none, setting.model, budget),
            journal: Figures::new(&journal, &none, setting.model, budget),
            summaries: longhaul.summaries,
            summing_up: longhaul.summing_up.micro_dollars(),
            tokens: longhaul.tokens(),
        }
    };
    settings.iter().map(pair).collect()
}

/// Two sessions at a time.
fn play_all(selection: &[(Session, Vec<Setting>)]) -> Vec<Pair> {
    let (next, pairs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((session, settings)) = selection.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let played = play(session, settings);
            let (name, time) = (&session.name, begun.elapsed().as_secs());
            println!("{name}: every tier, played in {time} s");
            pairs.lock().unwrap().extend(played);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let mut pairs = pairs.into_inner().unwrap();
    pairs.sort_by(|one, other| one.session.cmp(&other.session));
    pairs
}

/// Percent that the proxy costs of what nothing costs, in either style.
#[allow(clippy::cast_precision_loss)]
fn percent(pairs: &[&Pair]) -> [f64; 2] {
    let sum = |of: &dyn Fn(&Pair) -> u64| pairs.iter().map(|pair| of(pair)).sum::<u64>();
    let none = sum(&|pair| pair.none.micro_dollars);
    let compact = sum(&|pair| pair.longhaul.micro_dollars);
    let journal = sum(&|pair| pair.journal.micro_dollars);
    [compact, journal].map(|cost| cost as f64 * 100.0 / none.max(1) as f64)
}

#[allow(clippy::cast_precision_loss)]
fn line(pair: &Pair) -> String {
    let Pair {
        none,
        longhaul,
        journal,
        ..
    } = pair;
    let [compact, in_journal] = percent(&[pair]);
    let dollars = |micro: u64| micro as f64 / 1e6;
    format!(
        "  | {} | {} | {:.3} | {:.3} | {compact:.1}% | {in_journal:.1}% | {} | {:.3} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        pair.session,
        longhaul.requests,
        dollars(none.micro_dollars),
        dollars(longhaul.micro_dollars),
        pair.summaries,
        dollars(pair.summing_up),
        longhaul.passes,
        journal.passes,
        none.peak,
        longhaul.peak,
        journal.peak,
        longhaul.over_budget,
        pair.tokens.read / 1_000,
        (pair.tokens.write_5m + pair.tokens.write_1h + pair.tokens.input) / 1_000,
        pair.tokens.output / 1_000,
    )
}

const COLUMNS: &str = "  | session | requests | dollars without | with | share | in journal | summaries | for them | passes | in journal | peak without | with | in journal | over budget | K read | K written | K output |";

#[test]
fn with_every_tier_long_sessions_cost_less_than_on_a_window_without_end() {
    let pairs = play_all(&selection());
    let mut dearer = Vec::new();
    for setting in BOTH.iter().chain([&SMALL]) {
        let name = setting.name();
        let of_it: Vec<&Pair> = pairs.iter().filter(|pair| pair.setting == name).collect();
        if of_it.is_empty() {
            continue;
        }
        println!(
            "\n  {name}\n{COLUMNS}\n  |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        );
        for pair in &of_it {
            println!("{}", line(pair));
        }
        let long: Vec<&Pair> = of_it
            .iter()
            .filter(|pair| pair.session.starts_with("wordy"))
            .copied()
            .collect();
        let [compact, journal] = percent(&of_it);
        let [long_compact, long_journal] = percent(&long);
        println!(
            "every tier, {name}: {} sessions at {compact:.1}% of none, in the journal style at \
             {journal:.1}%; {} wordy ones at {long_compact:.1}% and {long_journal:.1}%",
            of_it.len(),
            long.len(),
        );
        if compact.max(journal) > 100.0 {
            dearer.push(name);
        }
    }
    assert!(dearer.is_empty(), "{dearer:#?}");
    for pair in &pairs {
        for figures in [&pair.longhaul, &pair.journal] {
            let (name, refused) = (&pair.session, figures.refusals);
            assert_eq!(refused, 0, "{name}, {}: refusals", pair.setting);
            let over = figures.over_budget;
            assert_eq!(over, 0, "{name}, {}: over the budget", pair.setting);
        }
    }
    let summaries: usize = pairs.iter().map(|pair| pair.summaries).sum();
    assert!(summaries > 0, "nothing was summed up");
}
