//! The proxy is killed in the middle of a summary pass, at every step of one and
//! at any moment.
//!
//! What upstream sees afterwards is the old view or the new one, never a
//! mixture, and a summary that was finished is not paid for again.

use std::time::{Duration, Instant};

use longhaul::sim::{Kind, Persona};

use super::doomed::{Death, Doomed};
use super::stage::settings;
use super::witness::Witness;
use crate::support::{Process, Proxy, eventually};

/// Enough for a summary every twenty turns.
const BUDGET: u64 = 12_000;
const WORDS: usize = 250;
/// More turns than a summary takes.
const TURNS: usize = 60;

fn file() -> String {
    // Many turns between the first thought of a summary and the need for one, so
    // that none has to wait or go without on a busy machine.
    let policy = "[policy]\nclear_at = 0.45\nsummarize_at = 0.5\nfloor = 0.25\n";
    settings(BUDGET, "mode = \"model\"") + policy
}

/// Talks to a proxy until it dies; how many passes were told of before.
fn until_it_dies(witness: &mut Witness, doomed: &mut Doomed) -> usize {
    let (mut passes, mut paid) = (0, 0);
    for _ in 0..TURNS {
        let Some(pass) = witness.talk(doomed.address, WORDS) else {
            eventually("it dies by itself", || doomed.is_dead());
            return passes;
        };
        passes += usize::from(pass != "none");
        witness.look();
        // Time for a summary to be stored, as a session at its usual pace has it.
        if std::mem::replace(&mut paid, witness.summaries().len()) < paid {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(1) && !doomed.is_dead() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    panic!("it lives");
}

/// What is left by a proxy that dies so is taken up by another one. Summaries
/// that were paid for until the first is in use, whether the first view after
/// the death is a new one, and whether it took a pass.
fn survived(death: Death) -> (usize, bool, bool) {
    let mut witness = Witness::new();
    let folder = tempfile::tempdir().unwrap();
    let url = witness.upstream.sim.url();
    let mut doomed = Doomed::start(&url, &file(), folder.path(), death);
    assert_eq!(until_it_dies(&mut witness, &mut doomed), 0, "{death:?}");
    let proxy = Proxy::keeping(&url, &file(), folder.path());
    let pass = witness.talk(proxy.address, WORDS).unwrap();
    let mut swaps = witness.look();
    let new = swaps > 0;
    let sent = witness.last().body.unwrap();
    assert!(witness.again(proxy.address) == sent, "{death:?}");
    witness.look();
    for _ in 0..TURNS {
        if swaps > 0 {
            break;
        }
        witness.talk(proxy.address, WORDS).unwrap();
        swaps += witness.look();
    }
    assert_eq!(swaps, 1, "{death:?}");
    let paid = witness.summaries().len();
    // The view that holds now goes on holding.
    witness.talk(proxy.address, WORDS).unwrap();
    assert_eq!(witness.look(), 0, "{death:?}");
    (paid, new, pass != "none")
}

const fn death(write: &'static str, moment: &'static str) -> Death {
    Death {
        write,
        moment,
        number: 1,
    }
}

#[test]
fn a_summary_that_was_not_stored_is_lost_and_the_old_view_holds() {
    let (paid, new, pass) = survived(death("segment", "before"));
    assert_eq!(paid, 2, "the lost one, and one more");
    assert_eq!(new, pass, "nothing new without a pass");
}

#[test]
fn a_summary_that_was_stored_is_found_again_and_not_paid_for_twice() {
    let (paid, new, pass) = survived(death("segment", "after"));
    assert_eq!(paid, 1);
    assert_eq!(new, pass, "nothing new without a pass");
}

#[test]
fn before_the_commit_the_old_view_holds_and_the_summary_is_not_paid_for_twice() {
    for (write, moment) in [
        ("archive", "before"),
        ("archive", "after"),
        ("commit", "before"),
    ] {
        let (paid, new, pass) = survived(death(write, moment));
        assert_eq!(paid, 1, "{moment} {write}");
        assert_eq!(new, pass, "{moment} {write}: nothing new without a pass");
    }
}

#[test]
fn after_the_commit_the_new_view_holds_although_nobody_was_told() {
    let (paid, new, pass) = survived(death("commit", "after"));
    assert_eq!(paid, 1);
    assert!(new && !pass, "it is there already");
}

#[test]
fn a_summary_that_is_under_way_is_asked_for_again() {
    let mut witness = Witness::new();
    witness.upstream.sim.set_persona(Persona::Hanging);
    let folder = tempfile::tempdir().unwrap();
    let url = witness.upstream.sim.url();
    let never = death("nothing", "before");
    let mut doomed = Doomed::start(&url, &file(), folder.path(), never);
    let asked = |witness: &Witness| {
        let entries = witness.upstream.entries();
        entries.iter().any(|entry| entry.kind == Kind::Summary)
    };
    for _ in 0..TURNS {
        assert_eq!(witness.talk(doomed.address, WORDS).unwrap(), "none");
        std::thread::sleep(Duration::from_millis(20));
        if asked(&witness) {
            break;
        }
    }
    assert!(asked(&witness));
    doomed.kill();
    witness.upstream.sim.set_persona(Persona::Good);
    let proxy = Proxy::keeping(&url, &file(), folder.path());
    let mut swaps = witness.look();
    for _ in 0..TURNS {
        witness.talk(proxy.address, WORDS).unwrap();
        swaps += witness.look();
        if swaps > 0 {
            break;
        }
    }
    assert_eq!((swaps, witness.summaries().len()), (1, 1));
}

/// The second pass appends to what the first has made.
#[test]
fn a_death_in_a_later_pass_leaves_what_the_earlier_one_made() {
    for (write, moment) in [
        ("segment", "after"),
        ("commit", "before"),
        ("commit", "after"),
    ] {
        let mut witness = Witness::new();
        let folder = tempfile::tempdir().unwrap();
        let url = witness.upstream.sim.url();
        let death = Death {
            number: 2,
            ..death(write, moment)
        };
        let mut doomed = Doomed::start(&url, &file(), folder.path(), death);
        assert_eq!(
            until_it_dies(&mut witness, &mut doomed),
            1,
            "{moment} {write}"
        );
        let paid = witness.summaries().len();
        let proxy = Proxy::keeping(&url, &file(), folder.path());
        let mut swaps = 0;
        for _ in 0..TURNS {
            witness.talk(proxy.address, WORDS).unwrap();
            swaps += witness.look();
            if swaps > 0 {
                break;
            }
        }
        assert_eq!(swaps, 1, "{moment} {write}");
        assert_eq!(
            (paid, witness.summaries().len()),
            (2, 2),
            "{moment} {write}"
        );
    }
}

/// Rounds: 5, because each waits for a new process to load its vocabulary, or as
/// many as `LONGHAUL_CASES` says. A summary can be paid for twice only if its
/// process was killed before it was stored.
#[test]
fn killed_at_any_moment_no_view_is_a_mixture_and_hardly_a_summary_is_paid_twice() {
    let rounds = std::env::var("LONGHAUL_CASES").ok();
    let rounds: usize = rounds.and_then(|count| count.parse().ok()).unwrap_or(5);
    let mut random = fastrand::Rng::with_seed(11);
    let mut witness = Witness::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let budget = BUDGET.to_string();
    let variables = [
        ("HOME", path.as_str()),
        ("LONGHAUL_DATA_DIR", path.as_str()),
        ("LONGHAUL_LOG__LEVEL", "error"),
        ("LONGHAUL_STORE__TIMEOUT", "20s"),
        ("LONGHAUL_WINDOW__BUDGET", budget.as_str()),
        ("LONGHAUL_SUMMARIZER__MODE", "model"),
    ];
    let (mut swaps, mut again) = (0, 0);
    for _ in 0..rounds {
        let process = Process::start(&witness.upstream.sim.url(), &variables);
        let paid_before = witness.summaries();
        let calm = random.usize(4..24);
        let moment = Duration::from_millis(random.u64(..60));
        for _ in 0..calm {
            witness.talk(process.address, WORDS).unwrap();
            swaps += witness.look();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(moment);
                process.signal("-9");
            });
            while witness.talk(process.address, WORDS).is_some() {
                swaps += witness.look();
            }
        });
        swaps += witness.look();
        let known = |entry: &longhaul::sim::Entry| {
            let mut before = paid_before.iter();
            before.any(|paid| paid.body == entry.body)
        };
        again += witness
            .summaries()
            .iter()
            .skip(paid_before.len())
            .filter(|e| known(e))
            .count();
    }
    println!(
        "{rounds} kills: {swaps} new views, {} summaries, {again} asked for again",
        witness.summaries().len()
    );
    assert!(swaps > 0, "there was something to spoil");
    assert!(again <= rounds);
}
