//! The two breakers: the session's, by its requests, and the summarizer's, by
//! the clock and across sessions.

use std::time::Duration;

use longhaul::sim::{Fault, Options, Persona, Queued, Target};

use super::stage::Stage;
use crate::views::agent::Agent;
use crate::views::cast::NOW;

const SUMMARY: &str = "[longhaul: summary of messages";

fn transitions(stage: &Stage, scope: &str, from: &str, to: &str) -> i64 {
    stage.number(&format!(
        "breaker_transitions_total{{from=\"{from}\",scope=\"{scope}\",to=\"{to}\"}}"
    ))
}

fn states(stage: &Stage, scope: &str) -> (i64, i64) {
    let how_many = |phase: &str| {
        stage.number(&format!(
            "breaker_state{{scope=\"{scope}\",state=\"{phase}\"}}"
        ))
    };
    (how_many("open"), how_many("half_open"))
}

/// Goes on until an answer says this of the breaker.
#[track_caller]
fn until(stage: &mut Stage, wanted: &str, words: usize) {
    for _ in 0..30 {
        if stage.breakers.last().is_some_and(|last| last == wanted) {
            return;
        }
        stage.talk("Go on.", words);
        stage.begins();
        stage.lands();
    }
    panic!("never {wanted}: {:?} {:?}", stage.breakers, stage.sizes);
}

/// A session that is about to need a summary.
fn due(stage: &mut Stage) {
    while stage.sizes.last().is_none_or(|size| *size < 17_500) {
        stage.talks(1, 1_500);
    }
}

#[test]
fn it_opens_after_so_many_failures_and_tries_once_after_so_many_requests() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"\ndeadline = \"300ms\"\n[breaker]\nmax_failures = 3\ncooldown_turns = 4";
    let mut stage = Stage::small(Options::default(), settings);
    stage.persona(Persona::Malformed);
    due(&mut stage);
    until(&mut stage, "open", 100);
    // Three flights, each with its one repair.
    assert_eq!(stage.summaries().len(), 6, "{:?}", stage.breakers);
    assert_eq!(transitions(&stage, "session", "closed", "open"), 1);
    assert_eq!(states(&stage, "session"), (1, 0));
    assert_eq!(states(&stage, "summarizer"), (0, 0), "it does answer");

    // As many requests as configured nobody is asked; then once.
    let opened = stage.breakers.len();
    until(&mut stage, "half_open", 100);
    let open = &stage.breakers[opened - 1..stage.breakers.len() - 1];
    assert_eq!(open, ["open"; 4]);
    assert_eq!(states(&stage, "session"), (0, 1));
    until(&mut stage, "open", 100);
    assert_eq!(stage.summaries().len(), 8, "one trial");
    assert_eq!(transitions(&stage, "session", "half_open", "open"), 1);

    // What was decided is in the mark: another process goes on from there.
    stage.restart();
    stage.talk("Go on.", 100);
    assert_eq!(stage.breakers.last().unwrap(), "open");
    assert_eq!(states(&stage, "session"), (1, 0));
    stage.persona(Persona::Good);
    until(&mut stage, "half_open", 100);
    assert_eq!(stage.summaries().len(), 9, "{:?}", stage.breakers);
    until(&mut stage, "closed", 100);
    assert_eq!(stage.summaries().len(), 9, "one trial");
    assert_eq!(transitions(&stage, "session", "half_open", "closed"), 1);
    assert_eq!(states(&stage, "session"), (0, 0));
    stage.assert_accepted();
}

#[test]
fn a_provider_that_is_down_is_not_asked_by_other_sessions_for_a_while() {
    let settings = "mode = \"model\"\ntimeout = \"1s\"\ndeadline = \"100ms\"\n[breaker]\nmax_failures = 1\nsummarizer_cooldown = \"1h\"";
    let mut stage = Stage::small(Options::default(), settings);
    stage.persona(Persona::Overloaded);
    due(&mut stage);
    until(&mut stage, "open", 100);
    // The summarizer's model and the one that was fallen back on.
    assert_eq!(transitions(&stage, "summarizer", "closed", "open"), 2);
    assert_eq!(states(&stage, "summarizer"), (2, 0));

    let mut other = Agent::new(&stage.agent.model);
    other.fields = stage.agent.fields.clone();
    other.user("Something else altogether.");
    stage.agent = other;
    stage.persona(Persona::Good);
    let asked = stage.summaries().len();
    stage.sizes.clear();
    due(&mut stage);
    for _ in 0..4 {
        stage.talks(1, 1_500);
    }
    assert_eq!(stage.summaries().len(), asked, "nobody is asked");
    assert_eq!(stage.breakers.last().unwrap(), "closed", "nor blamed");
    // Clearing needs nobody.
    for _ in 0..5 {
        stage.call("src/lib.rs", 3_000);
    }
    stage.agent.user("Tidy up.");
    stage.ask(NOW);
    assert!(stage.passes.last().unwrap().contains("clear"));

    stage.clock.advance(Duration::from_hours(1));
    for _ in 0..12 {
        stage.talks(1, 1_500);
        stage.begins();
        stage.lands();
    }
    assert!(stage.text().contains(SUMMARY), "{:?}", stage.passes);
    assert_eq!(transitions(&stage, "summarizer", "open", "half_open"), 1);
    assert_eq!(transitions(&stage, "summarizer", "half_open", "closed"), 1);
    // The fallback that nobody needed is due for a trial.
    assert_eq!(states(&stage, "summarizer"), (0, 1));
    stage.assert_accepted();
}

#[test]
fn a_model_that_is_down_is_passed_over_for_the_one_that_is_not() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"\n[breaker]\nmax_failures = 1\nsummarizer_cooldown = \"1h\"";
    let mut stage = Stage::small(Options::default(), settings);
    for _ in 0..3 {
        stage.upstream.sim.push_persona(Persona::ServerError);
    }
    for _ in 0..40 {
        stage.talks(1, 1_500);
        stage.begins();
        stage.lands();
        if stage.summaries().len() >= 5 {
            break;
        }
    }
    let models: Vec<_> = stage
        .summaries()
        .into_iter()
        .filter_map(|e| e.model)
        .collect();
    let own = stage.agent.model.clone();
    assert_eq!(models[3..5], [own.clone(), own.clone()], "{models:?}");
    assert_eq!(states(&stage, "summarizer"), (1, 0));
    assert_eq!(stage.sum("summarizer_failures_total"), 3);
    stage.assert_accepted();
}

#[test]
fn a_refused_credential_counts_against_its_own_session_only() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"\ndeadline = \"100ms\"\n[breaker]\nmax_failures = 2\ncooldown_turns = 50";
    let mut stage = Stage::small(Options::default(), settings);
    stage.upstream.sim.queue_fault(Queued {
        fault: Fault::status(401),
        target: Target::Summary,
        times: 2,
    });
    due(&mut stage);
    until(&mut stage, "open", 100);
    assert_eq!(stage.summaries().len(), 2, "once for each flight");
    assert_eq!(states(&stage, "summarizer"), (0, 0));

    let mut other = Agent::new(&stage.agent.model);
    other.fields = stage.agent.fields.clone();
    other.user("Something else altogether.");
    stage.agent = other;
    stage.sizes.clear();
    due(&mut stage);
    for _ in 0..8 {
        stage.talks(1, 1_500);
        stage.begins();
        stage.lands();
    }
    assert!(stage.text().contains(SUMMARY), "{:?}", stage.passes);
    assert_eq!(stage.breakers.last().unwrap(), "closed");
    stage.assert_accepted();
}

#[test]
fn nothing_is_asked_beside_a_conversation_that_is_told_to_slow_down() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(Options::default(), settings);
    due(&mut stage);
    let asked = stage.summaries().len();
    assert_eq!(asked, 0, "{:?}", stage.sizes);
    stage.upstream.sim.queue_fault(Queued {
        fault: Fault::parse("429:120").unwrap(),
        target: Target::Main,
        times: 1,
    });
    stage.agent.user("Go on.");
    let answer = stage.agent.send(&stage.proxy, "");
    assert_eq!(answer.status(), 429);
    stage.ask("");
    for _ in 0..2 {
        stage.talk("Go on.", 1_500);
        assert!(!stage.begins(), "{:?}", stage.sizes);
    }
    assert!(*stage.sizes.last().unwrap() > 21_500, "{:?}", stage.sizes);
    stage.clock.advance(Duration::from_mins(2));
    stage.talk("Go on.", 100);
    // However busy the machine is.
    let begun = (0..40).any(|_| stage.begins());
    assert!(begun, "{:?} {:?}", stage.sizes, stage.passes);
    stage.settle();
}
