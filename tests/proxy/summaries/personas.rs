//! Every way a summarizer can be, alone and mixed, over whole sessions: the
//! session goes on, nobody waits for long, and what was lost is made good.

use std::time::Duration;

use longhaul::sim::{Options, Persona};

use super::stage::{LEFT_OUT, Stage};
use crate::views::cast::FREE;

const ALL: [Persona; 13] = [
    Persona::Good,
    Persona::Forgetful,
    Persona::Empty,
    Persona::Malformed,
    Persona::CutOff,
    Persona::InventingPaths,
    Persona::CallsTool,
    Persona::Slow,
    Persona::Hanging,
    Persona::RateLimited,
    Persona::ServerError,
    Persona::Overloaded,
    Persona::ContextExceeded,
];

/// What one request may wait for summaries, and what a call may take; on a busy
/// machine it is as long as the longest that waited for nothing.
const DEADLINE: Duration = Duration::from_millis(300);
const CALL: Duration = Duration::from_secs(1);

fn settings(mode: &str) -> String {
    let deadline = DEADLINE.as_millis();
    format!(
        "mode = \"{mode}\"\ntimeout = \"1s\"\ndeadline = \"{deadline}ms\"\n[breaker]\nmax_failures = 2\nsummarizer_cooldown = \"20s\""
    )
}

fn options() -> Options {
    Options {
        slow_summary: Duration::from_millis(400),
        ..Options::default()
    }
}

/// What holds of every session, whatever its summarizer does.
#[track_caller]
fn assert_went_on(stage: &Stage, what: &str) {
    stage.assert_accepted();
    assert!(
        stage.longest < DEADLINE + CALL.max(stage.calm) * 3,
        "{what}: {:?}",
        stage.longest
    );
    assert!(
        stage.sum("fail_open_total") == 0,
        "{what}: something failed"
    );
}

/// The summarizer is good from now on: what was left out is summed up, and the
/// breaker closes.
#[track_caller]
fn recovers(stage: &mut Stage, what: &str) {
    stage.persona(Persona::Good);
    // Another provider breaker may be open, a trial under way.
    for _ in 0..40 {
        stage.talks(1, 200);
        stage.begins();
        stage.lands();
        let closed = stage.breakers.last().is_some_and(|last| last == "closed");
        if closed && !stage.text().contains(LEFT_OUT) {
            return;
        }
    }
    panic!(
        "{what} has not healed: {:?} {:?}",
        stage.passes, stage.breakers
    );
}

fn alone(mode: &str, persona: Persona) {
    let what = format!("{mode} {persona:?}");
    let mut stage = Stage::small(options(), &settings(mode));
    stage.persona(persona);
    for _ in 0..22 {
        stage.talks(1, 1_500);
        stage.lands();
    }
    assert_went_on(&stage, &what);
    let good = matches!(persona, Persona::Good | Persona::Slow);
    let opened =
        stage.number("breaker_transitions_total{from=\"closed\",scope=\"session\",to=\"open\"}");
    let failures = stage.sum("summarizer_failures_total");
    assert_eq!(failures > 0, !good, "{what}: {failures} failures");
    // What is healed is summed up from a record, where there is no tool to call: if
    // that comes between two failures, the breaker has no reason to open.
    if persona != Persona::CallsTool {
        assert_eq!(opened > 0, !good, "{what}: {:?}", stage.breakers);
        let summed_up = stage.text().contains("[longhaul: summary of messages");
        assert_eq!(summed_up, good, "{what}: {:?}", stage.passes);
    }
    recovers(&mut stage, &what);
    assert_went_on(&stage, &what);
    println!(
        "{what}: {} requests, {} calls, the longest took {:?}",
        stage.passes.len(),
        stage.summaries().len(),
        stage.longest
    );
}

/// Each in a session of its own, some at once: mostly they wait.
fn each(cast: &[(&str, Persona)]) {
    for some in cast.chunks(3) {
        std::thread::scope(|scope| {
            for (mode, persona) in some {
                scope.spawn(|| alone(mode, *persona));
            }
        });
    }
}

#[test]
fn a_session_goes_on_whatever_its_summarizer_writes() {
    each(&[
        ("model", Persona::Good),
        ("model", Persona::Forgetful),
        ("model", Persona::Empty),
        ("fork", Persona::Malformed),
        ("fork", Persona::CutOff),
        ("model", Persona::InventingPaths),
    ]);
}

#[test]
fn a_session_goes_on_whatever_its_summarizer_does_instead() {
    each(&[
        ("fork", Persona::CallsTool),
        ("model", Persona::Slow),
        ("model", Persona::Hanging),
    ]);
}

#[test]
fn a_session_goes_on_when_its_summarizer_refuses() {
    each(&[
        ("fork", Persona::RateLimited),
        ("model", Persona::ServerError),
        ("fork", Persona::Overloaded),
        ("model", Persona::ContextExceeded),
    ]);
}

/// A number after a number.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*seed >> 33).unwrap()
}

fn mixed(stage: &mut Stage, mut seed: u64, turns: usize, words: usize) {
    let what = format!("seed {seed}");
    for _ in 0..turns {
        stage.persona(ALL[next(&mut seed) % ALL.len()]);
        stage.talks(1, words / 2 + next(&mut seed) % words);
        if !next(&mut seed).is_multiple_of(3) {
            stage.lands();
        }
        if next(&mut seed).is_multiple_of(16) {
            stage.restart();
        }
    }
    assert_went_on(stage, &what);
    recovers(stage, &what);
    assert_went_on(stage, &what);
    println!(
        "mixed personas, {what}: {} requests, {} calls, the longest took {:?}",
        stage.passes.len(),
        stage.summaries().len(),
        stage.longest
    );
}

fn seeds(usual: u64) -> u64 {
    let set = std::env::var("LONGHAUL_SEEDS").ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(usual)
}

#[test]
fn a_session_goes_on_with_one_that_is_different_every_time() {
    for seed in 0..seeds(2) {
        let mode = ["model", "fork", "auto"][usize::try_from(seed % 3).unwrap()];
        let mut stage = Stage::small(options(), &settings(mode));
        mixed(&mut stage, seed, 24, 1_500);
    }
}

#[test]
fn the_same_in_an_ordinary_window() {
    for seed in 0..seeds(1) {
        let options = options().with_window(FREE, 200_000);
        let file = format!(
            "[models.\"{FREE}\"]\nwindow = 200000\n[summarizer]\n{}\n",
            settings("auto")
        );
        let mut stage = Stage::set(FREE, options, &file);
        stage.agent.fields["max_tokens"] = 30_000.into();
        stage
            .agent
            .user("Build it. Never touch files under legacy/.");
        mixed(&mut stage, seed + 100, 14, 12_000);
        assert!(stage.sizes.iter().any(|size| *size > 100_000));
    }
}
