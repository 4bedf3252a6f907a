//! Signed thinking: what may change before it, and what may not.

use crate::support::{BINDING, Bench, PLAIN, Response, Talk, read_tool};
use longhaul::sim::{Enforcement, Key, Options, Rule};
use serde_json::{Value, json};

const BETA: &str = "thinking-binding-controls-2026-08-01";

/// A conversation of two finished turns with thinking, and a third question.
async fn talk_of(bench: &Bench, model: &str) -> Talk {
    let mut talk = Talk::new(model)
        .with("system", json!("be brief"))
        .with("tools", read_tool())
        .with("thinking", json!({"type": "adaptive"}));
    for question in ["one", "two"] {
        talk.user(question);
        talk.turn(bench).await;
    }
    talk.user("three");
    talk
}

/// A conversation with an open tool loop.
async fn loop_of(bench: &Bench, model: &str, thinking: Value) -> Talk {
    bench.sim.set_rule(Rule::call_tool("read", 2));
    let mut talk = Talk::new(model)
        .with("tools", read_tool())
        .with("thinking", thinking);
    talk.user("go");
    talk.turn(bench).await;
    talk.answer_calls("contents");
    talk
}

fn mismatch(place: &str) -> String {
    format!(
        "{place}: Invalid `signature` in `thinking` block. The block is bound to a different \
         conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \
         \"drop_block\"."
    )
}

/// Fact: unchanged history is accepted, with moved cache marks and with strings turned into blocks.
#[tokio::test]
async fn an_unchanged_history_fits() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, BINDING).await;
    talk.messages()[0]["content"] =
        json!([{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}]);
    talk.body["system"] =
        json!([{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(bench.send(&talk.body).await.status, 200);
}

/// Fact: a change of system, loaded tools or an earlier message invalidates all
/// thinking after it; a deferred tool does not count.
#[tokio::test]
async fn what_the_binding_covers() {
    type Change = fn(&mut Talk);
    let changes: [(&str, Change, Option<&str>); 6] = [
        (
            "system",
            |talk| talk.body["system"] = json!("be verbose"),
            Some("messages.1.content.0"),
        ),
        (
            "tools",
            |talk| talk.body["tools"][0]["description"] = json!("x"),
            Some("messages.1.content.0"),
        ),
        (
            "a deferred tool",
            |talk| {
                let tool = json!({"name": "late", "input_schema": {"type": "object"}, "defer_loading": true});
                talk.body["tools"].as_array_mut().unwrap().push(tool);
            },
            None,
        ),
        (
            "the first message",
            |talk| talk.messages()[0]["content"] = json!("uno"),
            Some("messages.1.content.0"),
        ),
        (
            "a later message",
            |talk| talk.messages()[2]["content"] = json!("due"),
            Some("messages.3.content.0"),
        ),
        (
            "the newest message",
            |talk| talk.messages()[4]["content"] = json!("tre"),
            None,
        ),
    ];
    for (what, change, broken) in changes {
        let bench = Bench::new().await;
        let mut talk = talk_of(&bench, BINDING).await;
        change(&mut talk);
        let response = bench.send(&talk.body).await;
        match broken {
            Some(place) => assert_eq!(response.error(), mismatch(place), "{what}"),
            None => assert_eq!(response.status, 200, "{what}"),
        }
    }
}

/// Fact: leaving out a thinking block that sits before others fails as well;
/// leaving out all of them does not.
#[tokio::test]
async fn thinking_is_left_out_from_the_front_or_not_at_all() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, BINDING).await;
    talk.messages()[1]["content"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    assert_eq!(
        bench.send(&talk.body).await.error(),
        mismatch("messages.3.content.0")
    );
    talk.messages()[3]["content"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    assert_eq!(bench.send(&talk.body).await.status, 200);
}

/// Fact: thinking made after a change is bound to the changed history and stays valid.
#[tokio::test]
async fn later_thinking_is_bound_to_what_was_sent() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, BINDING).await;
    talk.messages()[0]["content"] = json!("uno");
    for at in [1, 3] {
        talk.messages()[at]["content"]
            .as_array_mut()
            .unwrap()
            .remove(0);
    }
    talk.turn(&bench).await;
    talk.user("four");
    assert_eq!(bench.send(&talk.body).await.status, 200);
    talk.messages()[0]["content"] = json!("one");
    assert_eq!(
        bench.send(&talk.body).await.error(),
        mismatch("messages.5.content.0")
    );
}

/// Fact: older models do not run the check.
#[tokio::test]
async fn older_models_do_not_bind() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, "claude-opus-5").await;
    talk.messages()[0]["content"] = json!("uno");
    assert_eq!(bench.send(&talk.body).await.status, 200);
}

fn drop_block(talk: &mut Talk) {
    talk.body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
}

/// Fact: with `drop_block` the blocks that do not fit are dropped, reported and not billed.
#[tokio::test]
async fn drop_block_drops_and_reports() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = talk_of(&bench, BINDING).await;
    let whole = bench.send(&talk.body).await.message();
    assert_eq!(whole["input_transformations"], json!([]));
    talk.messages()[0]["content"] = json!("uno");
    drop_block(&mut talk);
    let message = bench.send(&talk.body).await.message();
    let dropped = |place: &str| json!({"type": "thinking_dropped", "path": place, "reason": "prefix_binding_mismatch"});
    assert_eq!(
        message["input_transformations"],
        json!([
            dropped("messages.1.content.0"),
            dropped("messages.3.content.0")
        ])
    );
    let input = |message: &Value| message["usage"]["input_tokens"].as_u64().unwrap();
    assert!(input(&message) + 20 < input(&whole));
    assert_eq!(bench.sim.ledger().last().unwrap().transformations.len(), 2);
}

/// Fact: the behaviour must be asked for on every later request.
#[tokio::test]
async fn drop_block_is_not_remembered() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = talk_of(&bench, BINDING).await;
    talk.messages()[0]["content"] = json!("uno");
    drop_block(&mut talk);
    talk.turn(&bench).await;
    talk.user("four");
    assert_eq!(bench.send(&talk.body).await.status, 200);
    talk.body["thinking"] = json!({"type": "adaptive"});
    assert_eq!(bench.send(&talk.body).await.status, 400);
}

/// Fact: on older accounts a mismatch is only recorded, in a header, unless the
/// request itself says what to do.
#[tokio::test]
async fn older_accounts_only_record() {
    let options = Options {
        enforcement: Enforcement::Recorded,
        ..Options::default()
    };
    let bench = Bench::with(options).await.beta(BETA);
    let mut talk = talk_of(&bench, BINDING).await;
    assert_eq!(
        bench
            .send(&talk.body)
            .await
            .header("anthropic-thinking-prefix-mismatch"),
        None
    );
    talk.messages()[0]["content"] = json!("uno");
    let response = bench.send(&talk.body).await;
    assert_eq!(
        response.header("anthropic-thinking-prefix-mismatch"),
        Some("block=messages.1.content.0; kind=prefix")
    );
    assert_eq!(
        response.message()["input_transformations"][0]["type"],
        "thinking_mismatch_allowed"
    );
    talk.body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}});
    assert_eq!(
        bench.send(&talk.body).await.error(),
        mismatch("messages.1.content.0")
    );
    drop_block(&mut talk);
    let message = bench.send(&talk.body).await.message();
    assert_eq!(
        message["input_transformations"][0]["type"],
        "thinking_dropped"
    );
}

/// Fact: thinking of another model is dropped silently.
#[tokio::test]
async fn another_models_thinking_is_dropped() {
    let bench = Bench::new().await.beta(BETA);
    let talk = talk_of(&bench, BINDING)
        .await
        .with("model", json!("claude-fable-5-2"));
    let message = bench.send(&talk.body).await.message();
    assert_eq!(
        message["input_transformations"][0]["reason"],
        "model_binding_mismatch"
    );
}

/// Fact: on some models thinking is also locked to its organization.
#[tokio::test]
async fn another_organizations_thinking_is_dropped() {
    let key = |name: &str| Key {
        credential: name.to_owned(),
        organization: format!("org_{name}"),
        workspace: "w".to_owned(),
    };
    for (model, dropped) in [("claude-sonnet-5-5", 2), (BINDING, 0)] {
        let options = Options {
            keys: vec![key("a"), key("b")],
            ..Options::default()
        };
        let mut bench = Bench::with(options).await.beta(BETA);
        bench.key = "a".to_owned();
        let talk = talk_of(&bench, model).await;
        bench.key = "b".to_owned();
        let list = bench.send(&talk.body).await.message()["input_transformations"].clone();
        assert_eq!(list.as_array().unwrap().len(), dropped, "{model}: {list}");
    }
}

fn forge(block: &mut Value) {
    let signature = block["signature"].as_str().unwrap();
    block["signature"] = json!(format!("{}0", &signature[..signature.len() - 1]));
}

/// Fact: a signature the API did not issue is refused.
#[tokio::test]
async fn forged_signatures_are_refused() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, PLAIN).await;
    forge(&mut talk.messages()[1]["content"][0]);
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    );
}

/// Fact: redacted thinking has its own text.
#[tokio::test]
async fn forged_redacted_thinking_is_refused() {
    let bench = Bench::new().await;
    let mut talk = talk_of(&bench, PLAIN).await;
    talk.messages()[1]["content"][0] = json!({"type": "redacted_thinking", "data": "nonsense"});
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
    );
}

fn modified(response: &Response) -> bool {
    response.status == 400
        && response
            .error()
            .contains("blocks in the latest assistant message cannot be modified")
}

/// Fact: in the latest assistant message thinking can be neither changed, nor
/// reordered, nor, inside a tool loop, left out. All models check this.
#[tokio::test]
async fn the_latest_assistant_message_is_untouchable() {
    for model in [PLAIN, BINDING] {
        let bench = Bench::new().await;
        let shown = json!({"type": "adaptive", "display": "summarized"});
        let talk = loop_of(&bench, model, shown).await;
        assert_eq!(bench.send(&talk.body).await.status, 200);
        let mut changed = talk.clone();
        changed.messages()[1]["content"][0]["thinking"] = json!("something else");
        assert!(modified(&bench.send(&changed.body).await), "{model}");
        let mut left_out = talk.clone();
        left_out.messages()[1]["content"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        assert!(modified(&bench.send(&left_out.body).await), "{model}");
    }
}

/// Fact: several thinking blocks of one reply come back all, in order.
#[tokio::test]
async fn thinking_of_one_reply_comes_back_whole() {
    let bench = Bench::new().await;
    let thought = |text: &str| json!({"type": "thinking", "thinking": text});
    let reply = json!({"content": [thought("a"), {"type": "text", "text": "x"}, thought("b")], "text": "y"});
    bench.sim.push_reply(serde_json::from_value(reply).unwrap());
    let mut talk = Talk::new(PLAIN).with("thinking", json!({"type": "adaptive"}));
    talk.user("go");
    talk.turn(&bench).await;
    talk.user("on");
    assert_eq!(bench.send(&talk.body).await.status, 200);
    let mut swapped = talk.clone();
    swapped.messages()[1]["content"]
        .as_array_mut()
        .unwrap()
        .swap(0, 2);
    assert!(modified(&bench.send(&swapped.body).await));
    let mut filtered = talk.clone();
    filtered.messages()[1]["content"]
        .as_array_mut()
        .unwrap()
        .remove(2);
    assert!(modified(&bench.send(&filtered.body).await));
    let mut none = talk.clone();
    none.messages()[1]["content"]
        .as_array_mut()
        .unwrap()
        .retain(|block| block["type"] == "text");
    assert_eq!(
        bench.send(&none.body).await.status,
        200,
        "of a finished turn it may be left out"
    );
}

/// Fact: in manual mode the turn of an open loop must begin with thinking;
/// adaptive mode has no such rule.
#[tokio::test]
async fn manual_mode_wants_thinking_first() {
    let options = Options {
        loop_thinking_required: false,
        ..Options::default()
    };
    let bench = Bench::with(options).await;
    let manual = json!({"type": "enabled", "budget_tokens": 1024});
    for (thinking, refused) in [(manual, true), (json!({"type": "adaptive"}), false)] {
        let mut talk = loop_of(&bench, PLAIN, thinking).await;
        talk.messages()[1]["content"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        let response = bench.send(&talk.body).await;
        assert_eq!(response.status == 400, refused);
        if refused {
            let start = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but \
                         found `tool_use`.";
            assert!(response.error().starts_with(start), "{}", response.error());
        }
    }
}

/// Fact: switching thinking off in mid-turn is no error; the blocks are stripped.
#[tokio::test]
async fn thinking_may_be_switched_off_in_mid_turn() {
    let bench = Bench::new().await;
    let talk = loop_of(&bench, PLAIN, json!({"type": "adaptive"})).await;
    let on = bench.send(&talk.body).await.message()["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    let off = talk.with("thinking", json!({"type": "disabled"}));
    let off = bench.send(&off.body).await.message()["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    assert!(off < on);
}

/// Fact: omitted thinking is still billed as what was thought.
#[tokio::test]
async fn omitted_thinking_is_billed() {
    let bench = Bench::with(Options {
        thinking_words: 500,
        ..Options::default()
    })
    .await;
    let mut talk = Talk::new(BINDING);
    talk.user("go");
    let first = talk.turn(&bench).await;
    assert!(first["usage"]["output_tokens"].as_u64().unwrap() > 400);
    talk.user("on");
    assert!(
        talk.turn(&bench).await["usage"]["input_tokens"]
            .as_u64()
            .unwrap()
            > 400
    );
}
