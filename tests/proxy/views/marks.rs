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

/// A client may mark the text inside a result, and the results of this one are
/// trimmed as they arrive. What was trimmed keeps no mark: they would add up.
#[test]
fn a_mark_inside_a_trimmed_result_does_not_stay_behind() {
    let upstream = Simulated::start(Options::default());
    let trim = "[trim]\nmax_chars = 3000\n[trim.tools.\"Bash\"]\nhead = 400\ntail = 400\n";
    let proxy = Proxy::with(&upstream.sim.url(), trim);
    let mut agent = Agent::new(FREE);
    agent.marks = false;
    agent.fields["system"] = system(&[short()]);
    agent.user("Do it.");
    for number in 0..8 {
        agent.cycle(&upstream, &proxy, "");
        agent.history.pop();
        agent.results(9_000);
        // The newest is marked; what was marked before no longer is.
        let newest = agent.history.len() - 1;
        for (at, message) in agent.history.iter_mut().enumerate() {
            let blocks = message["content"].as_array_mut().into_iter().flatten();
            for block in blocks.filter(|block| block["type"] == "tool_result") {
                let text = match &block["content"] {
                    Value::Array(texts) => texts[0]["text"].clone(),
                    text => text.clone(),
                };
                block["content"] = json!([{"type": "text", "text": text}]);
                if at == newest {
                    let mark = if number % 2 == 0 { short() } else { long() };
                    block["content"][0]["cache_control"] = mark;
                }
            }
        }
        agent.fields["system"] = system(&[if number % 2 == 0 { short() } else { long() }]);
        let answer = agent.send(&proxy, "");
        assert_eq!(
            answer.status(),
            200,
            "{number}: {}",
            crate::support::text(&answer.body)
        );
        let shape = answer.header("x-longhaul-view").unwrap();
        assert!(shape.contains(";stubs=0;"), "{number}: {shape}");
        let sent = upstream.last().json().unwrap();
        let messages = sent["messages"].as_array().unwrap();
        let inside = messages.iter().filter_map(|message| {
            let result = &message["content"].get(0)?["content"];
            result.get(0)?.get("cache_control")
        });
        assert_eq!(inside.count(), 0, "{number}: {sent}");
        let newest = &messages.last().unwrap()["content"][0];
        let mark = if number % 2 == 0 { short() } else { long() };
        assert_eq!(
            newest["cache_control"], mark,
            "it goes on the result itself"
        );
    }
    for entry in upstream.entries() {
        assert!(entry.is_answered(), "{:?}", entry.outcome);
    }
}
