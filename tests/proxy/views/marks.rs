//! Cache marks: ours beside the client's, as the API's rules allow.

use longhaul::sim::Options;
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{BOUND, FREE, NOW, compaction, marks};
use crate::support::{Proxy, simulated::Simulated};

type Change = fn(&mut Agent);

/// How clients mark: system, tools, the whole request, and the last block.
const SHAPES: [(&str, Change); 7] = [
    ("no marks at all", |agent| {
        agent.marks = false;
        agent.fields["system"] = json!("You are an agent.");
    }),
    ("only the last block", |agent| {
        agent.fields["system"] = json!("You are an agent.");
    }),
    ("four", |agent| {
        agent.fields["system"] = system(&[short(), short()]);
        agent.fields["tools"][1]["cache_control"] = short();
    }),
    ("the whole request", |agent| {
        agent.marks = false;
        agent.fields["cache_control"] = short();
    }),
    ("the whole request and three more", |agent| {
        agent.marks = false;
        agent.fields["cache_control"] = short();
        agent.fields["system"] = system(&[short(), short()]);
        agent.fields["tools"][1]["cache_control"] = short();
    }),
    ("an hour for what stays, minutes for what moves", |agent| {
        agent.fields["system"] = system(&[long(), long()]);
    }),
    ("an hour for the tools only", |agent| {
        agent.fields["system"] = system(&[short()]);
        agent.fields["tools"][0]["cache_control"] = long();
    }),
];

fn short() -> Value {
    json!({"type": "ephemeral"})
}

fn long() -> Value {
    json!({"type": "ephemeral", "ttl": "1h"})
}

fn system(marks: &[Value]) -> Value {
    let text = "You are an agent. ".repeat(150);
    let block = |mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});
    marks.iter().map(block).collect()
}

#[test]
fn marks_of_ours_are_never_one_too_many_and_never_out_of_order() {
    for (shape, change) in SHAPES {
        for model in [FREE, BOUND] {
            let upstream = Simulated::start(Options::default());
            let proxy = Proxy::before(&upstream.sim.url());
            let mut agent = Agent::new(model);
            change(&mut agent);
            agent.turn(&upstream, &proxy, 4);
            agent.turn(&upstream, &proxy, 3);
            let answer = agent.chat(&upstream, &proxy, NOW);
            assert_eq!(compaction(&answer), "clear", "{shape}");
            agent.turn(&upstream, &proxy, 12);
            agent.user("Far from the last mark.");
            agent.cycle(&upstream, &proxy, "");
            for entry in upstream.entries() {
                assert!(entry.is_answered(), "{shape}: {:?}", entry.outcome);
            }
            if shape == "no marks at all" {
                assert_eq!(marks(&upstream.last().body.unwrap()), 0);
            }
        }
    }
}
