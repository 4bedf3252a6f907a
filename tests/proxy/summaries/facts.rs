//! What the user said is never lost, whatever a summarizer forgets.
//!
//! Facts of the kinds that hurt most when they are lost are planted in generated
//! sessions, and passes are forced at fixed and at random places. Code copies
//! the user's words, so a summarizer that forgets everything loses none of them;
//! one that does its work keeps what the assistant decided as well.

use std::collections::BTreeSet;

use fastrand::Rng;
use longhaul::sim::{Options, Persona, Reply};
use serde_json::{Value, json};

use super::stage::{Stage, settings};
use crate::views::cast::{FREE, NOW};

/// The rule of the story, byte for byte.
const RULE: &str = "Never modify files under legacy/";

/// Something the user says once: of each kind in turn.
fn fact(number: usize) -> String {
    let n = number * 37 + 1009;
    match number % 7 {
        0 => format!("Never touch the table audit_{n}: it belongs to finance."),
        1 => format!("The staging database listens on port {n}."),
        2 => format!("My notes are in /home/kim/notes/{n}/plan-v{number}.md, read only."),
        3 => format!("The ticket is OPS-{n}, the commit {n:x}c0ffee."),
        4 => format!("It failed with error E{n}: \"quota\\exceeded\" <again>."),
        5 => format!("We decided on retry limit {n}, not on exponential back-off.\nAnd {n} stays."),
        _ => format!("Grüße an Zoë №{n}; the account id is acc_{n:08}."),
    }
}

/// Every string of the newest request, one behind the other.
pub fn words(messages: &[Value]) -> String {
    fn gather(value: &Value, words: &mut String) {
        match value {
            Value::String(text) => {
                words.push_str(text);
                words.push('\n');
            }
            Value::Array(list) => list.iter().for_each(|inner| gather(inner, words)),
            Value::Object(object) => object.values().for_each(|inner| gather(inner, words)),
            _ => {}
        }
    }
    let mut words = String::new();
    for message in messages {
        gather(message, &mut words);
    }
    words
}

/// Asserts that all of this is in the newest view, line by line.
#[track_caller]
fn assert_all_there(stage: &Stage, facts: &[String]) {
    let shown = words(&stage.shown());
    for fact in facts {
        for line in fact.lines() {
            assert!(
                shown.contains(line),
                "{line:?} is lost after {:?}",
                stage.passes
            );
        }
    }
}

/// A tool call that touches a file; its result says nothing of the user's.
fn touches(stage: &mut Stage, path: &str) {
    let call = Reply::call("Read", &json!({"file_path": path}));
    stage.upstream.sim.push_reply(call);
    stage.ask("");
    stage.agent.results(300);
}

struct Told {
    facts: Vec<String>,
    paths: BTreeSet<String>,
    decisions: Vec<String>,
    forced: usize,
}

/// Tells a fact each turn; passes are forced where `forces` says.
fn tell(stage: &mut Stage, turns: usize, mut forces: impl FnMut(usize) -> bool) -> Told {
    let mut told = Told {
        facts: vec![format!("Port it to the new API. {RULE}.")],
        paths: BTreeSet::new(),
        decisions: Vec::new(),
        forced: 0,
    };
    stage.agent.user(&told.facts[0]);
    stage.upstream.sim.push_reply(Reply::text("I begin."));
    stage.ask("");
    for number in 0..turns {
        let said = fact(number);
        stage.agent.user(&said);
        told.facts.push(said);
        if number % 4 == 1 {
            let path = format!("src/module_{number}/file_{}.rs", number * 3);
            touches(stage, &path);
            told.paths.insert(path);
        }
        let decision = format!("I settled on layout {}: it must stay flat", number * 11 + 7);
        // Long enough for few turns in a span: the simulated summarizer notes a
        // dozen rules and no more.
        let filler = "This was looked into at some length and found good. ".repeat(60);
        let reply = Reply::text(format!("{decision}.\n{filler}"));
        told.decisions.push(decision);
        stage.upstream.sim.push_reply(reply);
        let now = forces(number);
        told.forced += usize::from(now);
        stage.ask(if now { NOW } else { "" });
        assert_all_there(stage, &told.facts);
    }
    told
}

/// Small enough for many passes, and for room to pin all that is said.
fn file(more: &str) -> String {
    settings(10_000, more)
}

#[test]
fn a_forgetful_summarizer_loses_nothing_that_the_user_said() {
    let mut figures = (0, 0, 0);
    for seed in 0..3_u64 {
        let mut rng = Rng::with_seed(seed);
        let mut stage = Stage::set(FREE, Options::default(), &file("mode = \"model\""));
        stage.persona(Persona::Forgetful);
        let told = tell(&mut stage, 22, |number| match seed {
            0 => number % 6 == 5,
            _ => rng.u8(0..5) == 0,
        });
        stage.assert_accepted();
        assert!(stage.count("truncate") >= 1, "{:?}", stage.passes);
        assert_eq!(stage.count("summary"), 0, "{:?}", stage.passes);
        figures.0 += told.facts.len();
        figures.1 += told.forced;
        figures.2 += stage.count("truncate");
    }
    println!(
        "{} facts, {} passes forced, {} truncations: all facts in every view",
        figures.0, figures.1, figures.2
    );
}

#[test]
fn a_good_summarizer_keeps_decisions_and_paths_as_well() {
    for (seed, mode) in [(0, "model"), (1, "model"), (2, "fork")] {
        let mut rng = Rng::with_seed(seed);
        let more = format!("mode = {mode:?}\n[policy]\nmax_segments = 20");
        let mut stage = Stage::set(FREE, Options::default(), &file(&more));
        let told = tell(&mut stage, 22, |number| match seed {
            0 => number % 6 == 5,
            _ => rng.u8(0..5) == 0,
        });
        stage.assert_accepted();
        assert!(stage.count("summary") >= 2, "{:?}", stage.passes);
        assert_eq!(stage.count("truncate"), 0, "{:?}", stage.passes);
        let shown = words(&stage.shown());
        // The last reply has not been sent yet. A fork sees the tail as well, and
        // the simulated one names the twelve newest decisions of all it sees.
        let decisions = told.decisions.iter().rev().skip(1);
        let decisions = decisions.filter(|_| mode == "model");
        for kept in decisions.chain(&told.paths) {
            assert!(shown.contains(kept), "{mode}: {kept:?} is lost");
        }
    }
}

#[test]
fn a_rule_survives_ten_passes_byte_for_byte() {
    for persona in [Persona::Good, Persona::Forgetful] {
        let mut stage = Stage::set(FREE, Options::default(), &file("mode = \"model\""));
        stage.persona(persona);
        stage.talk("Let us begin with the parser.", 60);
        // Not in the head, which is never touched: in the middle of things.
        stage.talk(RULE, 60);
        let mut passes = 0;
        while passes < 11 {
            assert!(stage.passes.len() < 200, "{:?}", stage.passes);
            stage.talk("Go on with the next one, please.", 400);
            let answer = stage.passes.last().unwrap();
            passes += usize::from(answer.contains("summary") || answer.contains("truncate"));
            let shown = words(&stage.shown());
            assert!(shown.contains(RULE), "{persona:?}: after {passes} passes");
            // The words stand alone, as the user wrote them.
            let stands = |line: &str| line == RULE || line == format!("> {RULE}");
            assert!(shown.lines().any(stands), "{persona:?}: {shown}");
        }
        stage.assert_accepted();
    }
}
