//! `context_management`: tool results and thinking cleared by the API.

use crate::support::{BINDING, Bench, PLAIN, Talk, filler, read_tool};
use longhaul::sim::{Options, Rule};
use serde_json::{Value, json};

const BETA: &str = "context-management-2025-06-27";

async fn long_loop(bench: &Bench, model: &str, cycles: u64) -> Talk {
    bench.sim.set_rule(Rule::call_tool("read", cycles));
    let mut talk = Talk::new(model).with("tools", read_tool());
    talk.user("go");
    for _ in 0..cycles {
        talk.turn(bench).await;
        talk.answer_calls(&filler(300));
    }
    talk
}

fn clear(more: &Value) -> Value {
    let mut edit =
        json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 4}});
    for (key, value) in more.as_object().unwrap() {
        edit[key] = value.clone();
    }
    json!({"edits": [edit]})
}

/// Fact: beyond the trigger the oldest results are cleared and the newest three
/// kept, reported in `applied_edits`; the request itself stays as it is.
#[tokio::test]
async fn old_tool_results_are_cleared() {
    let bench = Bench::new().await.beta(BETA);
    let talk = long_loop(&bench, PLAIN, 6).await;
    let plain = bench.send(&talk.body).await.message();
    let edited = talk.with("context_management", clear(&json!({})));
    let message = bench.send(&edited.body).await.message();
    let applied = &message["context_management"]["applied_edits"][0];
    assert_eq!(applied["type"], "clear_tool_uses_20250919");
    assert_eq!(applied["cleared_tool_uses"], 3);
    let input = |message: &Value| message["usage"]["input_tokens"].as_u64().unwrap();
    let saved = applied["cleared_input_tokens"].as_u64().unwrap();
    assert_eq!(input(&message) + saved, input(&plain));
    assert!(saved > 800);
}

/// Fact: `exclude_tools` are left alone, `clear_at_least` must be reached, and below
/// the trigger nothing happens.
#[tokio::test]
async fn clearing_has_conditions() {
    let bench = Bench::new().await.beta(BETA);
    let talk = long_loop(&bench, PLAIN, 6).await;
    let conditions = [
        json!({"exclude_tools": ["read"]}),
        json!({"clear_at_least": {"type": "input_tokens", "value": 100_000}}),
        json!({"trigger": {"type": "tool_uses", "value": 6}}),
        json!({"trigger": {"type": "input_tokens", "value": 100_000}}),
        json!({"keep": {"type": "tool_uses", "value": 6}}),
    ];
    for more in conditions {
        let body = talk.clone().with("context_management", clear(&more)).body;
        let message = bench.send(&body).await.message();
        assert_eq!(
            message["context_management"]["applied_edits"],
            json!([]),
            "{more}"
        );
    }
}

/// Fact: inputs are cleared too when asked for.
#[tokio::test]
async fn inputs_are_cleared_on_request() {
    let bench = Bench::new().await.beta(BETA);
    let talk = long_loop(&bench, PLAIN, 6).await;
    let mut saved = Vec::new();
    for inputs in [json!(false), json!(true), json!(["read"])] {
        let more = json!({"clear_tool_inputs": inputs});
        let message = bench
            .send(&talk.clone().with("context_management", clear(&more)).body)
            .await
            .message();
        saved.push(
            message["context_management"]["applied_edits"][0]["cleared_input_tokens"]
                .as_u64()
                .unwrap(),
        );
    }
    assert!(saved[0] < saved[1] && saved[1] == saved[2], "{saved:?}");
}

fn keep(keep: &Value) -> Value {
    json!({"edits": [{"type": "clear_thinking_20251015", "keep": keep}]})
}

/// Thinking turns that an edit cleared, 0 if it was not applied.
async fn cleared(bench: &Bench, talk: &Talk, what: &Value) -> u64 {
    let edited = talk.clone().with("context_management", keep(what));
    let message = bench.send(&edited.body).await.message();
    let applied = message["context_management"]["applied_edits"].clone();
    applied[0]["cleared_thinking_turns"].as_u64().unwrap_or(0)
}

/// Fact: thinking of older turns is cleared, but not with keep all; bound
/// thinking stays valid, because the client's history is unchanged.
#[tokio::test]
async fn old_thinking_is_cleared() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = Talk::new(BINDING);
    for question in ["one", "two", "three", "four"] {
        talk.user(question);
        talk.turn(&bench).await;
    }
    talk.user("five");
    let one = json!({"type": "thinking_turns", "value": 1});
    assert_eq!(cleared(&bench, &talk, &one).await, 3);
    for all in [json!("all"), json!({"type": "all"})] {
        assert_eq!(cleared(&bench, &talk, &all).await, 0);
    }
}

/// Fact: a tool loop is one assistant turn, so its thinking is kept or cleared as one.
#[tokio::test]
async fn a_loop_is_one_thinking_turn() {
    let bench = Bench::new().await.beta(BETA);
    let one = json!({"type": "thinking_turns", "value": 1});
    let mut talk = long_loop(&bench, BINDING, 4).await;
    assert_eq!(cleared(&bench, &talk, &one).await, 0);
    talk.turn(&bench).await;
    talk.user("and then?");
    talk.turn(&bench).await;
    talk.answer_calls("done");
    assert_eq!(cleared(&bench, &talk, &one).await, 1);
}

/// Fact: older models strip earlier thinking only by default; what the edit says
/// to keep is kept, and counted.
#[tokio::test]
async fn what_is_kept_may_be_more_than_the_model_keeps() {
    let bench = Bench::new().await.beta(BETA);
    let budget = json!({"type": "enabled", "budget_tokens": 1024});
    let mut talk = Talk::new("claude-haiku-4-5").with("thinking", budget);
    for question in ["one", "two"] {
        talk.user(question);
        talk.turn(&bench).await;
    }
    talk.user("three");
    let mut sizes = Vec::new();
    for edits in [
        json!({"edits": []}),
        keep(&json!({"type": "thinking_turns", "value": 1})),
        keep(&json!("all")),
    ] {
        let edited = talk.clone().with("context_management", edits);
        let message = bench.send(&edited.body).await.message();
        sizes.push(message["usage"]["input_tokens"].as_u64().unwrap());
    }
    assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
}

/// Fact: fields the API does not know are refused inside edits too; a number of
/// thinking turns is greater than 0; amounts have their own units.
#[tokio::test]
async fn the_fields_of_edits_are_checked() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    let refused = [
        json!({"edits": [], "extra": 1}),
        json!({"edits": {}}),
        json!([]),
        clear(&json!({"keep_last": 3})),
        clear(&json!({"keep": {"type": "input_tokens", "value": 3}})),
        clear(&json!({"trigger": {"type": "messages", "value": 3}})),
        clear(&json!({"clear_at_least": {"type": "input_tokens"}})),
        keep(&json!({"type": "thinking_turns", "value": 0})),
        keep(&json!("some")),
        keep(&json!(3)),
    ];
    for management in refused {
        let body = talk.clone().with("context_management", management).body;
        let response = bench.send(&body).await;
        assert_eq!(response.status, 400, "{}", body["context_management"]);
    }
    let body = talk.with("context_management", clear(&json!({"keep_last": 3})));
    assert_eq!(
        bench.send(&body.body).await.error(),
        "context_management.edits.0.clear_tool_uses_20250919.keep_last: Extra inputs are not permitted"
    );
}

/// Fact: `clear_thinking` must be the first edit; unknown edits are refused; each
/// edit needs its own beta.
#[tokio::test]
async fn edits_are_checked() {
    let bench = Bench::new().await.beta(BETA);
    let send = async |edits: Value| {
        let mut talk = Talk::new(PLAIN).with("context_management", json!({"edits": edits}));
        talk.user("x");
        bench.send(&talk.body).await.status
    };
    let (thinking, tools) = ("clear_thinking_20251015", "clear_tool_uses_20250919");
    assert_eq!(
        send(json!([{"type": thinking}, {"type": tools}])).await,
        200
    );
    assert_eq!(
        send(json!([{"type": tools}, {"type": thinking}])).await,
        400
    );
    assert_eq!(send(json!([{"type": "clear_everything"}])).await, 400);
    assert_eq!(send(json!([{"type": "compact_20260112"}])).await, 400);
}

/// Fact: an upstream without context editing knows neither the beta nor the field.
#[tokio::test]
async fn context_editing_may_be_refused() {
    let mut bench = Bench::with(Options {
        context_management: false,
        ..Options::default()
    })
    .await;
    let mut talk = Talk::new(PLAIN).with("context_management", json!({"edits": []}));
    talk.user("x");
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "context_management: Extra inputs are not permitted"
    );
    bench.betas.push(BETA.to_owned());
    assert!(
        bench
            .send(&talk.body)
            .await
            .error()
            .starts_with("Unexpected value(s)")
    );
}

/// Fact: counting applies the edits and reports the size without them.
#[tokio::test]
async fn counting_applies_the_edits() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = long_loop(&bench, PLAIN, 6)
        .await
        .with("context_management", clear(&json!({})));
    talk.body.as_object_mut().unwrap().remove("max_tokens");
    let count = bench
        .post("/v1/messages/count_tokens", &talk.body)
        .await
        .message();
    let original = count["context_management"]["original_input_tokens"]
        .as_u64()
        .unwrap();
    assert!(count["input_tokens"].as_u64().unwrap() + 800 < original);
}
