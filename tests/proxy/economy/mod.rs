//! What policies cost, on recorded and generated sessions.
//!
//! Each session is played as a growing conversation against the simulator with
//! its billing, by a virtual clock, once under each policy: nothing is cleared,
//! the client clears, the API clears, the proxy does. The pauses and replies are
//! the same each time. A usual run plays a few short ones;
//! `LONGHAUL_ECONOMY=all` every one under every setting, and any other value
//! those with it in their name.

mod both;
mod coding;
mod compare;
mod figures;
mod history;
mod in_journal;
mod judge;
mod personas;
mod play;
mod policy;
pub mod session;
mod setting;
mod text;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use compare::{Case, compare};
use figures::Figures;
use play::Stage;
use policy::Policy;
use session::Session;
use setting::Setting;

/// Whether the proxy clears by itself yet, so that it can be cheaper.
const AUTOMATIC: bool = true;

/// Sessions, each with the settings that it is played under.
fn selection() -> Vec<(Session, Vec<Setting>)> {
    if let Ok(part) = std::env::var("LONGHAUL_ECONOMY") {
        let mut sessions = session::recorded(&[], usize::MAX);
        sessions.extend(session::all_generated());
        sessions.retain(|session| part == "all" || session.name.contains(&part));
        return sessions
            .into_iter()
            .map(|session| (session, setting::ALL.to_vec()))
            .collect();
    }
    let short = |seed| session::generated(seed, 60, 70_000);
    let mut sessions = vec![short(21), short(22)];
    sessions.extend(session::recorded(&["codex-agentv-198k"], 60));
    let settings = setting::FEW.into_iter().map(|setting| vec![setting]);
    sessions.into_iter().zip(settings).collect()
}

/// Two sessions at a time.
fn play(selection: &[(Session, Vec<Setting>)]) -> Vec<Case> {
    let thorough = std::env::var_os("LONGHAUL_ECONOMY").is_some();
    let (next, cases) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((session, settings)) = selection.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let played = compare(session, settings, thorough);
            let (name, time) = (&session.name, begun.elapsed().as_secs());
            println!(
                "{name}: {} requests, played in {time} s",
                session.steps.len()
            );
            cases.lock().unwrap().extend(played);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let mut cases = cases.into_inner().unwrap();
    cases.sort_by(|one, other| one.session.cmp(&other.session));
    cases
}

#[test]
fn clearing_never_costs_more_and_pays_where_there_is_something_to_clear() {
    let selection = selection();
    let cases = play(&selection);
    let (mut harm, mut missed) = (Vec::new(), Vec::new());
    for setting in setting::ALL {
        let name = setting.name();
        let of_it: Vec<Case> = cases
            .iter()
            .filter(|case| case.setting == name)
            .cloned()
            .collect();
        if of_it.is_empty() {
            continue;
        }
        // The runner may have begun a line of its own.
        println!(
            "\n{}\n{}",
            figures::totals(&of_it),
            figures::details(&of_it)
        );
        harm.extend(judge::harm(&of_it));
        missed.extend(judge::worth(&of_it));
    }
    assert!(harm.is_empty(), "{harm:#?}");
    assert!(!AUTOMATIC || missed.is_empty(), "{missed:#?}");
}

/// The figures that the judge goes by, on passes that were asked for.
#[test]
fn passes_and_the_breaks_they_make_are_counted() {
    let session = session::generated(23, 24, 30_000);
    let stage = Stage::new();
    for model in ["claude-opus-4-8", "claude-opus-5-5"] {
        let setting = setting::ALL.into_iter().find(|one| one.model == model);
        let setting = setting.unwrap();
        let none = stage.play(&session, Policy::None, &setting);
        let asked = stage.play(&session, Policy::Asked(10), &setting);
        let figures = |run| Figures::new(run, &none, model, 28_000);
        let (none, asked) = (figures(&none), figures(&asked));
        assert_eq!((none.passes, none.breaks, none.refusals), (0, 0, 0));
        assert_eq!((asked.passes, asked.breaks), (2, 2), "{asked:?}");
        assert_eq!((asked.stray_breaks, asked.refusals), (0, 0), "{asked:?}");
        assert!(asked.peak < none.peak && asked.read < none.read);
        assert!(asked.over_budget < none.over_budget);
    }
}
