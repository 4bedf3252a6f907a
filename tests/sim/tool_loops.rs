//! The rule that keeps a tool loop going.

use crate::support::{BINDING, Bench, PLAIN, Talk, read_tool};
use longhaul::sim::{Options, Rule};
use serde_json::json;

/// A loop of n calls ends by itself, on a model that binds thinking too.
#[tokio::test]
async fn a_tool_is_called_n_times_then_the_turn_ends() {
    for model in [PLAIN, BINDING] {
        let bench = Bench::new().await;
        bench.sim.set_rule(Rule::call_tool("read", 4));
        let mut talk = Talk::new(model).with("tools", read_tool());
        talk.user("go");
        let mut calls = 0;
        while talk.turn(&bench).await["stop_reason"] == "tool_use" {
            talk.answer_calls("contents");
            calls += 1;
        }
        assert_eq!(calls, 4);
        assert_eq!(
            bench.sim.ledger().totals.breaks,
            0,
            "a growing conversation is never broken"
        );
    }
}

/// Several calls in one reply are answered in one message.
#[tokio::test]
async fn parallel_calls_are_answered_together() {
    let bench = Bench::new().await;
    let rule =
        json!({"type": "call_tool", "times": 1, "parallel": 3, "words": 5, "finish": "done"});
    bench
        .sim
        .set_rule(serde_json::from_value::<Rule>(rule).unwrap());
    let mut talk = Talk::new(PLAIN).with("tools", read_tool());
    talk.user("go");
    let message = talk.turn(&bench).await;
    assert_eq!(message["content"].as_array().unwrap().len(), 4);
    talk.answer_calls("contents");
    assert_eq!(talk.turn(&bench).await["content"][0]["text"], "done");
}

/// Fact: thinking comes with each reply in adaptive mode; with omitted text it
/// is empty but signed.
#[tokio::test]
async fn thinking_is_omitted_but_signed() {
    let bench = Bench::new().await;
    let mut talk = Talk::new(BINDING);
    talk.user("go");
    let block = talk.turn(&bench).await["content"][0].clone();
    assert_eq!(block["type"], "thinking");
    assert_eq!(block["thinking"], "");
    assert!(block["signature"].as_str().unwrap().len() > 50);
    talk.user("on");
    talk.body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    assert_ne!(talk.turn(&bench).await["content"][0]["thinking"], "");
}

/// Fact: in manual mode thinking comes at the start of the turn only, unless
/// interleaved thinking is asked for; `between_tools` thinks only inside a loop.
#[tokio::test]
async fn where_thinking_comes_depends_on_the_mode() {
    let manual = json!({"type": "enabled", "budget_tokens": 1024});
    let table = [
        ("claude-haiku-4-5", manual.clone(), None, [true, false]),
        (
            "claude-haiku-4-5",
            manual,
            Some("interleaved-thinking-2025-05-14"),
            [true, true],
        ),
        (
            "claude-sonnet-5-5",
            json!({"type": "between_tools"}),
            None,
            [false, true],
        ),
        (
            "claude-sonnet-5-5",
            json!({"type": "adaptive"}),
            None,
            [true, true],
        ),
        (
            "claude-opus-4-6",
            json!({"type": "disabled"}),
            None,
            [false, false],
        ),
    ];
    for (model, thinking, beta, expected) in table {
        let mut bench = Bench::with(Options::default()).await;
        bench.betas.extend(beta.map(str::to_owned));
        bench.sim.set_rule(Rule::call_tool("read", 1));
        let mut talk = Talk::new(model)
            .with("tools", read_tool())
            .with("thinking", thinking);
        talk.user("go");
        let first = talk.turn(&bench).await["content"][0]["type"] == "thinking";
        talk.answer_calls("contents");
        let second = talk.turn(&bench).await["content"][0]["type"] == "thinking";
        assert_eq!([first, second], expected, "{model} {beta:?}");
    }
}
