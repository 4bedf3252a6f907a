//! Passes that nobody asked for: when they come, and what they are judged by.

#![allow(clippy::float_cmp, reason = "what is counted is whole")]

use std::time::Duration;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, all_answered, compaction, continues, figure, messages, shown, stubs,
};
use crate::support::{Answer, Proxy, simulated::Simulated};

/// A budget of 20,000 tokens: clear at 12,000, hard at 19,000, floor 7,000.
pub const BUDGET: &str = "[window]\nbudget = 20000\n[clear]\nat_least = 500\n";

/// An API and a proxy by one clock, which only moves when it is told to.
pub struct Stage {
    clock: Clock,
    pub upstream: Simulated,
    pub proxy: Proxy,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub fn set(file: &str) -> Self {
        let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
        let options = Options {
            clock: clock.clone(),
            ..Options::default()
        };
        let upstream = Simulated::start(options);
        let folder = tempfile::tempdir().unwrap();
        let url = upstream.sim.url();
        let proxy = Proxy::keeping_time(&url, file, folder.path(), clock.clone());
        Self {
            clock,
            upstream,
            proxy,
            _folder: folder,
        }
    }

    pub fn pause(&self, minutes: u64) {
        self.clock.advance(Duration::from_mins(minutes));
    }

    pub fn chat(&self, agent: &mut Agent) -> Answer {
        agent.chat(&self.upstream, &self.proxy, "")
    }

    pub fn turn(&self, agent: &mut Agent, cycles: usize) {
        agent.turn(&self.upstream, &self.proxy, cycles);
    }

    /// A call of a tool with this input, answered with so many characters.
    pub fn call(&self, agent: &mut Agent, tool: &str, input: &Value, chars: usize) -> Answer {
        self.upstream.sim.push_reply(Reply::call(tool, input));
        let answer = agent.ask(&self.proxy, "");
        agent.results(chars);
        answer
    }

    /// Passes that were committed, by what started them.
    pub fn passes(&self, kind: &str, trigger: &str) -> u64 {
        self.count(&format!(
            "compactions_total{{kind=\"{kind}\",outcome=\"committed\",trigger=\"{trigger}\"}}"
        ))
    }

    /// A counter.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn count(&self, series: &str) -> u64 {
        self.metric(series).round() as u64
    }

    pub fn metric(&self, series: &str) -> f64 {
        let series = format!("longhaul_{series}");
        self.proxy.metric(&series).unwrap_or(0.0)
    }
}

#[test]
fn a_cold_cache_is_the_moment_to_tidy_up_and_a_warm_one_is_not() {
    let stage = Stage::set(BUDGET);
    let mut agent = Agent::new(FREE);
    stage.turn(&mut agent, 14);
    for minutes in [1, 5] {
        stage.pause(minutes);
        assert_eq!(compaction(&stage.chat(&mut agent)), "none", "{minutes}");
    }
    stage.pause(7);
    assert_eq!(compaction(&stage.chat(&mut agent)), "clear");
    assert_eq!(stage.passes("clear", "temporal"), 1);
    assert_eq!(stage.count("cold_predictions_total{outcome=\"right\"}"), 1);
    let view = shown(&stage.upstream);
    assert_eq!(compaction(&stage.chat(&mut agent)), "none");
    assert!(continues(&shown(&stage.upstream), &view));
    let saved = stage.metric("saved_usd{model=\"claude-opus-4-8\"}");
    assert!(saved > 0.0, "{saved}");
    assert_eq!(stage.count("prefix_breaks_total{cause=\"unexplained\"}"), 0);
    assert_eq!(stage.count("prefix_breaks_total{cause=\"compaction\"}"), 1);
    assert!(stage.metric("tokens_removed_total{kind=\"clear\"}") > 2_000.0);
    assert!(stage.metric("compression_ratio_count{kind=\"clear\"}") > 0.0);
    assert!(stage.metric("cache_read_ratio_count") > 10.0);
}

#[test]
fn predictions_that_do_not_come_true_are_not_believed_for_long() {
    let file = format!("{BUDGET}[cache]\nttl = \"10s\"\nmargin = \"1s\"\n");
    let stage = Stage::set(&file);
    let mut agent = Agent::new(FREE);
    let mut passes = Vec::new();
    for _ in 0..6 {
        stage.turn(&mut agent, 6);
        // The cache lives for five minutes, whatever the settings say.
        stage.pause(2);
        passes.push(compaction(&stage.chat(&mut agent)) != "none");
    }
    let wrong = stage.metric("cold_predictions_total{outcome=\"wrong\"}");
    assert!(wrong >= 2.0, "{wrong}");
    assert!(wrong <= 3.0, "then nothing is predicted any more: {wrong}");
}

#[test]
fn an_oversized_result_is_trimmed_as_it_arrives_and_breaks_nothing() {
    let stage = Stage::set("");
    let mut agent = Agent::new(BOUND);
    stage.turn(&mut agent, 3);
    agent.user("Show me everything.");
    stage.call(&mut agent, "Bash", &json!({"command": "cat all"}), 60_000);
    let before = shown(&stage.upstream);
    let answer = stage.call(&mut agent, "Bash", &json!({"command": "ls"}), 100);
    assert_eq!(compaction(&answer), "trim");
    let view = shown(&stage.upstream);
    assert!(continues(&view, &before));
    let result = view.last().unwrap()["content"][0]["content"]
        .as_str()
        .unwrap();
    assert!(result.contains("were cut out here") && result.contains("archived as lh-"));
    assert!((10_000..20_000).contains(&result.len()), "{}", result.len());
    assert_eq!(figure(&answer, "stubs"), 0);
    let answer = stage.chat(&mut agent);
    assert_eq!(compaction(&answer), "none");
    assert!(continues(&shown(&stage.upstream), &view));
    assert!(all_answered(&stage.upstream));
    for cause in ["compaction", "client_edit", "ttl", "unexplained"] {
        let breaks = stage.count(&format!("prefix_breaks_total{{cause=\"{cause}\"}}"));
        assert_eq!(breaks, 0, "{cause}");
    }
    assert!(stage.metric("saved_usd{model=\"claude-opus-5-5\"}") > 0.0);
}

#[test]
fn a_trimmed_result_can_still_be_cleared() {
    let stage = Stage::set("");
    let mut agent = Agent::new(FREE);
    agent.user("Show me everything.");
    stage.call(&mut agent, "Bash", &json!({"command": "cat all"}), 60_000);
    for number in 0..4 {
        stage.call(
            &mut agent,
            "Bash",
            &json!({"command": format!("x {number}")}),
            900,
        );
    }
    assert!(
        shown(&stage.upstream)[2]
            .to_string()
            .contains("were cut out")
    );
    let answer = agent.ask(&stage.proxy, "x-longhaul-compact: now\r\n");
    assert_eq!(compaction(&answer), "clear");
    let cleared = shown(&stage.upstream)[2].to_string();
    assert!(cleared.contains("was cleared") && !cleared.contains("were cut out"));
}

#[test]
fn passes_that_are_refilled_at_once_stop_and_say_so() {
    let file = "[window]\nbudget = 6000\n[policy]\ntail_messages = 40\n";
    let stage = Stage::set(file);
    let mut agent = Agent::new(FREE);
    let mut told = 0;
    for _ in 0..12 {
        agent.user("More.");
        let answer = stage.call(&mut agent, "Bash", &json!({"command": "x"}), 9_000);
        told += usize::from(answer.header("x-longhaul-notice") == Some("thrash"));
        stage.chat(&mut agent);
    }
    assert!(told > 0);
    assert_eq!(stage.count("thrash_total"), 1);
    assert!(all_answered(&stage.upstream));
}

#[test]
fn an_observer_decides_and_changes_nothing() {
    let stage = Stage::set(&format!("{BUDGET}[policy]\nmode = \"observe\"\n"));
    let mut agent = Agent::new(FREE);
    stage.turn(&mut agent, 45);
    assert_eq!(compaction(&stage.chat(&mut agent)), "none");
    let before: Vec<_> = agent.history[..agent.history.len() - 1].to_vec();
    assert_eq!(messages(&stage.upstream.last()).len(), before.len());
    assert_eq!(stubs(&shown(&stage.upstream)), 0);
    let would =
        stage.metric("compactions_total{kind=\"clear\",outcome=\"abandoned\",trigger=\"budget\"}");
    assert!(would > 0.0);
}

#[test]
fn what_is_fetched_again_after_a_pass_is_counted_once() {
    let stage = Stage::set("");
    let mut agent = Agent::new(FREE);
    agent.user("Look around.");
    let read = |path: &str| json!({ "file_path": path });
    for path in ["/a", "/b", "/c", "/d", "/e", "/f"] {
        stage.call(&mut agent, "Read", &read(path), 3_000);
    }
    let pass = agent.ask(&stage.proxy, "x-longhaul-compact: now\r\n");
    assert_eq!(compaction(&pass), "clear");
    agent.user("Again.");
    for (path, expected) in [("/a", 1), ("/f", 1), ("/a", 1), ("/b", 2)] {
        stage.call(&mut agent, "Read", &read(path), 3_000);
        stage.chat(&mut agent);
        agent.user("Again.");
        assert_eq!(stage.count("rereads_total"), expected, "{path}");
    }
}

/// Bound thinking: nothing that fits is lost, and nothing that does not is sent.
#[test]
fn a_pass_between_two_turns_drops_the_thinking_behind_it_and_no_other() {
    let stage = Stage::set(BUDGET);
    let mut agent = Agent::new(BOUND);
    for _ in 0..6 {
        stage.turn(&mut agent, 4);
    }
    stage.pause(30);
    let thoughts = |view: &[Value]| {
        Value::from(view.to_vec())
            .to_string()
            .matches("\"signature\"")
            .count()
    };
    let all = thoughts(&agent.history);
    let answer = stage.chat(&mut agent);
    assert_eq!(compaction(&answer), "clear");
    let view = shown(&stage.upstream);
    let first = view
        .iter()
        .position(|message| message.to_string().contains("was cleared"))
        .unwrap();
    assert_eq!(thoughts(&view[..first]), thoughts(&agent.history[..first]));
    assert_eq!(thoughts(&view[first..]), 0);
    assert!(thoughts(&view) < all);
    // What is thought from now on belongs to the view, and stays.
    stage.turn(&mut agent, 3);
    assert_eq!(compaction(&stage.chat(&mut agent)), "none");
    assert_eq!(thoughts(&shown(&stage.upstream)), thoughts(&view) + 3);
    assert!(all_answered(&stage.upstream));
}

/// Inside a loop the pass waits, unless there is no room.
#[test]
fn in_a_loop_with_bound_thinking_a_pass_waits_until_it_must_be() {
    let stage = Stage::set(BUDGET);
    let mut agent = Agent::new(BOUND);
    agent.user("Work long.");
    let mut sizes = Vec::new();
    for _ in 0..60 {
        let answer = agent.cycle(&stage.upstream, &stage.proxy, "");
        sizes.push((figure(&answer, "sent"), compaction(&answer) != "none"));
    }
    let passes: Vec<u64> = sizes
        .windows(2)
        .filter(|pair| pair[1].1)
        .map(|pair| pair[0].0)
        .collect();
    assert!(!passes.is_empty());
    assert!(passes.iter().all(|size| *size > 16_000), "{sizes:?}");
    let refused = stage
        .upstream
        .entries()
        .iter()
        .filter(|entry| !entry.is_answered())
        .count();
    assert!(refused <= 1, "once, to learn that it is enforced");
}
