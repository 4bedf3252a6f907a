//! Whole sessions with a pass in the middle.

use longhaul::sim::{Options, Reply};
use serde_json::Value;

use super::agent::Agent;
use crate::support::{Proxy, simulated::Simulated};

/// Models of both kinds: thinking that stands alone, and thinking that is bound.
const MODELS: [&str; 2] = ["claude-opus-4-8", "claude-opus-5-5"];

fn sent(upstream: &Simulated) -> Value {
    serde_json::from_slice(&upstream.last().body.unwrap()).unwrap()
}

#[test]
fn a_session_goes_on_after_a_pass_with_a_stable_view() {
    for model in MODELS {
        let upstream = Simulated::start(Options::default());
        let proxy = Proxy::before(&upstream.sim.url());
        let mut agent = Agent::new(model);
        for _ in 0..3 {
            agent.turn(&upstream, &proxy, 3);
        }
        agent.user("And now?");
        upstream.sim.push_reply(Reply::text("Now."));
        let answer = agent.ask(&proxy, "x-longhaul-compact: now\r\n");
        assert_eq!(
            answer.header("x-longhaul-compaction"),
            Some("clear"),
            "{model}"
        );
        let view = sent(&upstream);
        assert!(view.to_string().contains("was cleared"), "{model}");
        for _ in 0..3 {
            agent.turn(&upstream, &proxy, 2);
        }
        let later = sent(&upstream);
        let (view, later) = (&view["messages"], &later["messages"]);
        let shown = view.as_array().unwrap().len();
        assert_eq!(
            unmarked(view),
            unmarked(&Value::from(later.as_array().unwrap()[..shown].to_vec()))
        );
        let breaks: Vec<usize> = upstream
            .entries()
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.broken_at.is_some())
            .map(|(at, _)| at)
            .collect();
        assert_eq!(breaks.len(), 1, "{model}: {breaks:?}");
        assert!(
            upstream
                .entries()
                .iter()
                .all(longhaul::sim::Entry::is_answered)
        );
    }
}

/// Invariant 1: only a pass may make a view smaller, and a retry is none.
#[test]
fn a_retry_goes_as_it_went_before_however_large_it_is() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "[window]\nbudget = 1000\n");
    let mut agent = Agent::new("claude-opus-4-8");
    agent.turn(&upstream, &proxy, 4);
    agent.user("Again?");
    assert_eq!(agent.send(&proxy, "").status(), 200);
    let first = upstream.last().body.unwrap();
    for _ in 0..3 {
        assert_eq!(agent.send(&proxy, "").status(), 200);
        assert_eq!(upstream.last().body.unwrap(), first);
    }
}

fn unmarked(messages: &Value) -> Vec<Value> {
    let mut messages = messages.as_array().unwrap().clone();
    for message in &mut messages {
        if let Some(text) = message["content"].as_str() {
            message["content"] = serde_json::json!([{"type": "text", "text": text}]);
        }
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}
