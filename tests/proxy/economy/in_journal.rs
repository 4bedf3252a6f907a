//! Sessions in the journal style, from their first request to their last.
//!
//! No model is asked for anything but the conversation itself, upstream refuses
//! nothing, no prompt is over its budget, and every break of a prefix belongs to
//! a pass. A usual run plays some short ones; `LONGHAUL_ECONOMY` as for the rest.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::figures::Figures;
use super::play::{Run, Stage};
use super::policy::Policy;
use super::session::{self, Session};
use super::setting::{IN_JOURNAL, SMALL_JOURNAL, Setting};

/// What became of a session, without a proxy and with.
type Outcome = (String, String, Figures, Figures);

fn selection() -> Vec<(Session, Vec<Setting>)> {
    let Ok(part) = std::env::var("LONGHAUL_ECONOMY") else {
        let mut sessions = session::recorded(&["cc-entire-113k", "pi-large-session"], 90);
        sessions.push(session::generated(24, 60, 80_000));
        let all = sessions.into_iter();
        return all.map(|one| (one, vec![SMALL_JOURNAL])).collect();
    };
    let mut sessions = session::recorded(&[], usize::MAX);
    sessions.extend(session::all_generated());
    sessions.extend(session::all_wordy());
    sessions.retain(|session| part == "all" || session.name.contains(&part));
    let all = sessions.into_iter();
    all.map(|session| (session, IN_JOURNAL.to_vec())).collect()
}

/// A session under each setting, and once for each model without a proxy.
fn play_all(session: &Session, settings: &[Setting]) -> Vec<Outcome> {
    let stage = Stage::new();
    let mut plain: Vec<(&str, Run)> = Vec::new();
    let mut outcomes = Vec::new();
    for setting in settings {
        let known = plain.iter().position(|(model, _)| *model == setting.model);
        let at = known.unwrap_or_else(|| {
            let run = stage.play(session, Policy::None, setting);
            plain.push((setting.model, run));
            plain.len() - 1
        });
        outcomes.push(play(&stage, session, setting, &plain[at].1));
    }
    outcomes
}

fn play(stage: &Stage, session: &Session, setting: &Setting, none: &Run) -> Outcome {
    let budget = setting.budget(none);
    let run = stage.play(session, Policy::Longhaul(budget), setting);
    let what = format!("{}, {}", session.name, setting.name());
    assert_eq!(run.summaries, 0, "{what}: somebody was asked for a summary");
    assert!(!run.unexplained, "{what}: a break nobody can explain");
    let [without, with] = [none, &run].map(|run| Figures::new(run, none, setting.model, budget));
    assert_eq!(with.refusals, 0, "{what}: {:?}", run.refusals);
    assert_eq!(with.over_budget, 0, "{what}: over the budget");
    assert_eq!(with.stray_breaks, 0, "{what}: a break without a pass");
    (session.name.clone(), setting.name(), without, with)
}

#[test]
fn sessions_in_the_journal_style_come_to_their_end() {
    let selection = selection();
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((session, settings)) = selection.get(next.fetch_add(1, Ordering::Relaxed)) {
            let played = play_all(session, settings);
            outcomes.lock().unwrap().extend(played);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
    let passes: usize = outcomes.iter().map(|(_, _, _, with)| with.passes).sum();
    let outgrown = outcomes.iter().any(|(_, _, none, _)| none.over_budget > 0);
    assert!(passes > 0 || !outgrown, "nothing was hidden");
    for (session, setting, none, with) in &outcomes {
        let percent = with.micro_dollars * 100 / none.micro_dollars.max(1);
        println!(
            "  {setting}, {session}: {percent}% of none, {} requests, {} passes, peak {} of {}",
            with.requests, with.passes, with.peak, none.peak
        );
    }
    for setting in IN_JOURNAL.iter().chain([&SMALL_JOURNAL]) {
        let name = setting.name();
        let of_it = || outcomes.iter().filter(|outcome| outcome.1 == name);
        let sum = |of: &dyn Fn(&Outcome) -> u64| of_it().map(of).sum::<u64>();
        let without = sum(&|outcome| outcome.2.micro_dollars);
        let with = sum(&|outcome| outcome.3.micro_dollars);
        if let Some(percent) = (with * 100).checked_div(without) {
            let count = of_it().count();
            println!("every tier, {name}: {count} sessions at {percent}% of none");
            assert!(percent <= 100, "{name}");
        }
    }
}
