//! Forks and sub-agents that share a beginning share its summary.

use std::time::Duration;

use longhaul::sim::{Options, Persona};

use super::stage::{Stage, settings};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, compaction};

/// A beginning that is too long for what a view may have.
fn stage() -> Stage {
    stage_of(3_000)
}

fn stage_of(budget: u64) -> Stage {
    let options = Options {
        slow_summary: Duration::from_millis(700),
        ..Options::default()
    };
    let file = settings(budget, "mode = \"model\"\n[policy]\ntail_messages = 2");
    let mut stage = Stage::set(FREE, options, &file);
    stage.agent.fields["system"] = serde_json::json!("Be brief.");
    stage.persona(Persona::Slow);
    stage
}

/// Sends all at once; what was done for each.
fn at_once(stage: &Stage, agents: &mut [Agent]) -> Vec<String> {
    let proxy = &stage.proxy;
    std::thread::scope(|scope| {
        let asked: Vec<_> = agents
            .iter_mut()
            .map(|agent| scope.spawn(move || compaction(&agent.ask(proxy, "")).to_owned()))
            .collect();
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    })
}

/// Sub-agents of one beginning; each says something else, of another length.
fn sub_agents(stage: &Stage, count: usize, longest: usize) -> Vec<Agent> {
    let agent = |number: usize| {
        let mut agent = stage.agent.clone();
        let words = "and so on ".repeat(number * longest / count);
        agent.user(&format!("You are number {number}: do your part {words}"));
        agent
    };
    (0..count).map(agent).collect()
}

#[test]
fn fifty_sub_agents_share_one_summary() {
    let mut stage = stage();
    stage.recall(12, 220);
    let mut agents = sub_agents(&stage, 50, 0);
    let done = at_once(&stage, &mut agents);
    assert!(done.iter().all(|done| done == "summary"), "{done:?}");
    assert_eq!(stage.summaries().len(), 1);
    stage.assert_accepted();
}

#[test]
fn sub_agents_that_were_told_more_or_less_share_it_too() {
    let mut stage = stage();
    stage.recall(12, 220);
    let mut agents = sub_agents(&stage, 12, 150);
    let done = at_once(&stage, &mut agents);
    assert!(done.iter().all(|done| done == "summary"), "{done:?}");
    assert_eq!(stage.summaries().len(), 1);
    stage.assert_accepted();
}

/// Two ways to go on from one beginning, by steps of some words each; the calls
/// it took until both show a summary.
fn forks(words: [usize; 2], together: bool) -> usize {
    let mut stage = stage_of(8_000);
    stage.recall(12, 350);
    let mut forks: Vec<Agent> = (0..2)
        .map(|number| {
            let mut fork = stage.agent.clone();
            fork.user(&format!("Try way {number}."));
            fork
        })
        .collect();
    let mut done = vec![false; 2];
    for turn in 0..20 {
        for (fork, done) in forks.iter_mut().zip(&mut done).filter(|_| !together) {
            if !*done {
                *done = at_once(&stage, std::slice::from_mut(fork)) == ["summary"];
                stage.settle();
            }
        }
        if together {
            let passes = at_once(&stage, &mut forks);
            for (done, pass) in done.iter_mut().zip(passes) {
                *done |= pass == "summary";
            }
            stage.settle();
        }
        if done == [true, true] {
            stage.assert_accepted();
            return stage.summaries().len();
        }
        for (fork, words) in forks.iter_mut().zip(words) {
            fork.user(&format!("Step {turn}. {}", "More of it. ".repeat(words)));
        }
    }
    panic!("no summary was taken");
}

#[test]
fn two_forks_share_a_summary_that_is_prepared() {
    assert_eq!(forks([80, 80], true), 1);
    assert_eq!(forks([60, 110], false), 1);
    assert_eq!(forks([110, 60], false), 1);
}
