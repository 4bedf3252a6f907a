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
/// interleaved thinking is asked for, which Haiku 4.5 does not have;
/// `between_tools` thinks only inside a loop.
#[tokio::test]
async fn where_thinking_comes_depends_on_the_mode() {
    let manual = json!({"type": "enabled", "budget_tokens": 1024});
    let interleaved = Some("interleaved-thinking-2025-05-14");
    let between = json!({"type": "between_tools"});
    let table = [
        ("claude-sonnet-4-5", manual.clone(), None, [true, false]),
        (
            "claude-sonnet-4-5",
            manual.clone(),
            interleaved,
            [true, true],
        ),
        ("claude-haiku-4-5", manual, interleaved, [true, false]),
        ("claude-sonnet-5-5", between, None, [false, true]),
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

/// Fact: on models of the 5.5 class prose between tool calls comes as thinking.
#[tokio::test]
async fn prose_between_calls_may_be_thinking() {
    for (model, kind) in [(BINDING, "thinking"), (PLAIN, "text")] {
        let bench = Bench::new().await;
        let rule = json!({"type": "call_tool", "times": 1, "words": 5});
        bench
            .sim
            .set_rule(serde_json::from_value::<Rule>(rule).unwrap());
        let mut talk = Talk::new(model).with("tools", read_tool());
        talk.user("go");
        assert_eq!(
            talk.turn(&bench).await["content"][0]["type"],
            kind,
            "{model}"
        );
        talk.answer_calls("contents");
        talk.turn(&bench).await;
    }
}

/// Fact: the API may answer with an empty text block next to a call; sending it
/// back is refused.
#[tokio::test]
async fn an_empty_text_block_cannot_be_echoed() {
    let bench = Bench::new().await;
    let reply =
        json!({"content": [{"type": "text", "text": ""}, {"type": "tool_use", "name": "read"}]});
    bench.sim.push_reply(serde_json::from_value(reply).unwrap());
    let mut talk = Talk::new(PLAIN).with("tools", read_tool());
    talk.user("go");
    assert_eq!(talk.turn(&bench).await["content"][0]["text"], "");
    talk.answer_calls("contents");
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "messages: text content blocks must be non-empty"
    );
}

/// Fact: thinking of the message whose calls are answered comes back in its order:
/// behind the call it came before is a change, on models that bind nothing too.
#[tokio::test]
async fn thinking_stays_on_its_side_of_a_call() {
    let bench = Bench::new().await;
    bench.sim.set_rule(Rule::call_tool("read", 1));
    let mut talk = Talk::new(PLAIN)
        .with("thinking", json!({"type": "adaptive"}))
        .with("tools", read_tool());
    talk.user("go");
    talk.turn(&bench).await;
    talk.answer_calls("done");
    assert_eq!(bench.send(&talk.body).await.status, 200);
    let content = talk.messages()[1]["content"].as_array_mut().unwrap();
    assert_eq!(content[0]["type"], "thinking");
    content.rotate_left(1);
    let error = bench.send(&talk.body).await.error();
    assert!(error.contains("cannot be modified"), "{error}");
}

/// Fact: in manual mode a final assistant message begins with thinking, so words
/// cannot be put into the model's mouth there.
#[tokio::test]
async fn manual_thinking_takes_no_prefill() {
    let bench = Bench::new().await;
    let mut talk = Talk::new("claude-haiku-4-5");
    talk.user("go");
    talk.push("assistant", "The answer is");
    assert_eq!(bench.send(&talk.body).await.status, 200);
    let manual = json!({"type": "enabled", "budget_tokens": 1024});
    let error = bench
        .send(&talk.with("thinking", manual).body)
        .await
        .error();
    assert!(
        error.starts_with(
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."
        ),
        "{error}"
    );
}

/// Not verified: whether a history with tool calls needs `tools`. The strict
/// answer is the default; the other one can be set.
#[tokio::test]
async fn a_history_of_calls_needs_tools() {
    for (accepted, status) in [(false, 400), (true, 200)] {
        let bench = Bench::with(Options {
            calls_without_tools: accepted,
            ..Options::default()
        })
        .await;
        bench.sim.set_rule(Rule::call_tool("read", 1));
        let mut talk = Talk::new(PLAIN).with("tools", read_tool());
        talk.user("go");
        talk.turn(&bench).await;
        talk.answer_calls("done");
        assert_eq!(bench.send(&talk.body).await.status, 200);
        talk.body.as_object_mut().unwrap().remove("tools");
        assert_eq!(bench.send(&talk.body).await.status, status);
    }
}
