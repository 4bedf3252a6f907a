//! Streamed or not, a reply is the same message with the same usage.

use crate::support::{Bench, PLAIN, Talk, assemble, read};
use longhaul::sim::{Options, Reply};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

fn block() -> impl Strategy<Value = Value> {
    let text = "\\PC{1,60}";
    prop_oneof![
        text.prop_map(|text| json!({"type": "text", "text": text})),
        text.prop_map(|text| json!({"type": "thinking", "thinking": text})),
        Just(json!({"type": "redacted_thinking"})),
        (text, any::<i64>(), prop::bool::ANY).prop_map(|(text, number, empty)| {
            let input = if empty {
                json!({})
            } else {
                json!({"b": text, "a": [number, null]})
            };
            json!({"type": "tool_use", "name": "read", "input": input})
        }),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let reason = prop_oneof![Just(None), Just(Some("refusal".to_owned()))];
    (prop::collection::vec(block(), 0..5), reason).prop_map(|(content, stop_reason)| Reply {
        content,
        stop_reason,
        ..Reply::default()
    })
}

/// Fact: the events of a stream add up to the message that is answered without one.
#[test]
fn streaming_changes_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bench = runtime.block_on(Bench::with(Options {
        delta_chars: 7,
        ..Options::default()
    }));
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let both = |reply: Reply| {
        let shown = json!({"type": "adaptive", "display": "summarized"});
        let mut talk = Talk::new(PLAIN).with("thinking", shown);
        talk.user("hello");
        runtime.block_on(async {
            bench.sim.reset();
            bench.sim.push_reply(reply.clone());
            let plain = bench.send(&talk.body).await.message();
            bench.sim.reset();
            bench.sim.push_reply(reply);
            let streamed = talk.with("stream", json!(true));
            let response = read(bench.request("/v1/messages", &streamed.body)).await;
            assert_eq!(
                response.header("content-type"),
                Some("text/event-stream; charset=utf-8")
            );
            (plain, assemble(&response.events()))
        })
    };
    runner
        .run(&reply(), |reply| {
            let (plain, streamed) = both(reply);
            prop_assert_eq!(plain, streamed);
            Ok(())
        })
        .unwrap();
}
