//! Plain requests: answers, headers, counts, models, refusals.

use crate::support::{Bench, PLAIN, Talk, read};
use longhaul::sim::{Key, Options, Outcome, Reply};
use serde_json::{Value, json};

fn hello() -> Talk {
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    talk
}

/// Fact: the message object, its usage fields and the headers of an answer.
#[tokio::test]
async fn an_answer_has_the_shape_of_a_message() {
    let bench = Bench::new().await;
    let response = bench.send(&hello().body).await;
    let message = response.message();
    assert_eq!(message["type"], "message");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["stop_reason"], "end_turn");
    assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    let usage = &message["usage"];
    for field in [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ] {
        assert!(usage[field].is_u64(), "{field}");
    }
    assert!(usage["cache_creation"]["ephemeral_5m_input_tokens"].is_u64());
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert!(response.header("request-id").unwrap().starts_with("req_"));
    assert!(response.header("anthropic-organization-id").is_some());
    assert!(
        response
            .header("anthropic-ratelimit-input-tokens-remaining")
            .is_some()
    );
    assert!(
        response
            .header("anthropic-ratelimit-requests-reset")
            .unwrap()
            .ends_with('Z')
    );
}

/// Fact: the same request gets the same unscripted answer.
#[tokio::test]
async fn unscripted_answers_are_a_function_of_the_request() {
    let bench = Bench::new().await;
    let first = bench.send(&hello().body).await.message();
    let second = bench.send(&hello().body).await.message();
    assert_eq!(first["content"], second["content"]);
}

/// Fact: 404 `not_found_error` with `model: NAME` for an unknown model.
#[tokio::test]
async fn an_unknown_model_is_not_found() {
    let bench = Bench::new().await;
    let response = bench
        .send(&hello().with("model", json!("claude-foo")).body)
        .await;
    assert_eq!(response.status, 404);
    assert_eq!(
        response.json()["error"],
        json!({"type": "not_found_error", "message": "model: claude-foo"})
    );
    assert_eq!(
        response.json()["request_id"],
        response.header("request-id").unwrap()
    );
}

/// Fact: credentials are required; an unknown one is refused with 401.
#[tokio::test]
async fn credentials_are_checked() {
    let key = Key {
        credential: "good".to_owned(),
        organization: "org_1".to_owned(),
        workspace: "w_1".to_owned(),
    };
    let mut bench = Bench::with(Options {
        keys: vec![key],
        ..Options::default()
    })
    .await;
    assert_eq!(bench.send(&hello().body).await.status, 401);
    bench.key = "good".to_owned();
    let response = bench.send(&hello().body).await;
    assert_eq!(response.header("anthropic-organization-id"), Some("org_1"));
    let both = bench
        .request("/v1/messages", &hello().body)
        .header("authorization", "Bearer good");
    assert_eq!(read(both).await.status, 401);
}

/// Fact: version 2026-10-21 refuses sampling parameters; older versions take them.
#[tokio::test]
async fn versions_differ_in_sampling() {
    let mut bench = Bench::new().await;
    let body = hello().with("temperature", json!(1)).body;
    assert_eq!(bench.send(&body).await.status, 200);
    bench.version = "2026-10-21".to_owned();
    assert_eq!(bench.send(&body).await.status, 400);
    assert_eq!(bench.send(&hello().body).await.status, 200);
}

/// Fact: gzip'd request bodies exist.
#[tokio::test]
async fn compressed_requests_are_understood() {
    use std::io::Write;
    let bench = Bench::new().await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(hello().body.to_string().as_bytes())
        .unwrap();
    let request = bench
        .request("/v1/messages", &Value::Null)
        .header("content-encoding", "gzip")
        .body(encoder.finish().unwrap());
    assert_eq!(read(request).await.status, 200);
    assert_eq!(
        bench.sim.ledger().last().unwrap().json().unwrap(),
        hello().body
    );
}

/// Fact: a body over the limit is answered with 413 `request_too_large`.
#[tokio::test]
async fn large_bodies_are_refused() {
    let bench = Bench::with(Options {
        body_limit: 1_000,
        ..Options::default()
    })
    .await;
    let mut talk = hello();
    talk.user("x".repeat(2_000));
    let response = bench.send(&talk.body).await;
    assert_eq!(response.status, 413);
    assert_eq!(response.json()["error"]["type"], "request_too_large");
    let outcome = bench.sim.ledger().last().unwrap().outcome.clone();
    assert!(matches!(outcome, Outcome::Refused { status: 413, .. }));
}

/// Fact: a prompt over the window is refused with both numbers, verbatim.
#[tokio::test]
async fn a_small_window_refuses_a_long_prompt() {
    let bench = Bench::with(Options::default().with_window(PLAIN, 1_000)).await;
    let mut talk = hello();
    talk.user(crate::support::filler(2_000));
    let error = bench.send(&talk.body).await.error();
    assert!(
        error.starts_with("prompt is too long: ") && error.ends_with(" tokens > 1000 maximum"),
        "{error}"
    );
    talk.body.as_object_mut().unwrap().remove("max_tokens");
    let count = bench.post("/v1/messages/count_tokens", &talk.body);
    let count = count.await.message()["input_tokens"].as_u64().unwrap();
    assert_eq!(
        error,
        format!("prompt is too long: {count} tokens > 1000 maximum")
    );
}

/// Fact: `count_tokens` equals what the message itself is billed for.
#[tokio::test]
async fn counting_equals_billing() {
    let bench = Bench::new().await;
    let mut talk = hello().with("system", json!("be brief"));
    talk.body["tools"] = crate::support::read_tool();
    let billed = bench.send(&talk.body).await.message()["usage"]["input_tokens"].clone();
    talk.body.as_object_mut().unwrap().remove("max_tokens");
    let counted = bench
        .post("/v1/messages/count_tokens", &talk.body)
        .await
        .message();
    assert_eq!(counted, json!({"input_tokens": billed}));
}

/// Fact: drift scales counts, and the client is not told.
#[tokio::test]
async fn drift_changes_the_counts() {
    let mut talk = hello();
    talk.user(crate::support::filler(1_000));
    let mut counts = Vec::new();
    for drift in [1.0, 1.3] {
        let bench = Bench::with(Options {
            drift,
            ..Options::default()
        })
        .await;
        counts.push(
            bench.send(&talk.body).await.message()["usage"]["input_tokens"]
                .as_u64()
                .unwrap(),
        );
    }
    assert!(
        counts[1] * 100 > counts[0] * 128 && counts[1] * 100 < counts[0] * 132,
        "{counts:?}"
    );
}

/// Fact: `max_tokens: 0` warms the cache: no content, stop reason `max_tokens`.
#[tokio::test]
async fn warming_the_cache_says_nothing() {
    let bench = Bench::new().await;
    let message = bench
        .send(&hello().with("max_tokens", json!(0)).body)
        .await
        .message();
    assert_eq!(message["content"], json!([]));
    assert_eq!(message["stop_reason"], "max_tokens");
}

/// Fact: what such a request writes is read by the next one, and it has no output.
#[tokio::test]
async fn a_warmed_cache_is_read() {
    let bench = Bench::new().await;
    let system = json!([{"type": "text", "text": crate::support::filler(5_000),
        "cache_control": {"type": "ephemeral"}}]);
    let talk = hello().with("system", system);
    let warm = bench
        .send(&talk.clone().with("max_tokens", json!(0)).body)
        .await
        .message();
    assert_eq!(warm["usage"]["output_tokens"], 0);
    let usage = bench.send(&talk.body).await.message()["usage"].clone();
    assert!(usage["cache_read_input_tokens"].as_u64() > Some(4_096));
    assert_eq!(
        usage["cache_read_input_tokens"],
        warm["usage"]["cache_creation_input_tokens"]
    );
}

/// Fact: a refusal has `stop_details`, in a stream in the delta that ends it.
#[tokio::test]
async fn a_refusal_has_details() {
    let bench = Bench::new().await;
    for streamed in [false, true] {
        bench
            .sim
            .push_reply(Reply::text("no").stopping_with("refusal"));
        let response = bench
            .send(&hello().with("stream", json!(streamed)).body)
            .await;
        let details = if streamed {
            let events = response.events();
            assert!(events[0]["message"].get("stop_details").is_none());
            let end = events.iter().find(|event| event["type"] == "message_delta");
            end.unwrap()["delta"]["stop_details"].clone()
        } else {
            response.message()["stop_details"].clone()
        };
        assert_eq!(details["type"], "refusal", "streamed: {streamed}");
    }
}

/// Fact: output beyond `max_tokens` is cut with stop reason `max_tokens`; a stop
/// sequence ends it with its own.
#[tokio::test]
async fn output_is_cut() {
    let bench = Bench::new().await;
    bench.sim.push_reply(Reply::text(
        "one two three four five six seven eight nine ten ".repeat(20),
    ));
    let message = bench
        .send(&hello().with("max_tokens", json!(20)).body)
        .await
        .message();
    assert_eq!(message["stop_reason"], "max_tokens");
    assert!(message["usage"]["output_tokens"].as_u64().unwrap() <= 20);
    bench.sim.push_reply(Reply::text("one two STOP three"));
    let message = bench
        .send(&hello().with("stop_sequences", json!(["STOP"])).body)
        .await
        .message();
    assert_eq!(message["stop_reason"], "stop_sequence");
    assert_eq!(message["stop_sequence"], "STOP");
    assert_eq!(message["content"][0]["text"], "one two ");
}

/// Fact: from 4.5 on, output that meets the window ends with its own stop reason.
#[tokio::test]
async fn the_window_ends_the_output() {
    let bench = Bench::with(Options::default().with_window(PLAIN, 300)).await;
    bench
        .sim
        .push_reply(Reply::text(crate::support::filler(1_000)));
    let message = bench.send(&hello().body).await.message();
    assert_eq!(message["stop_reason"], "model_context_window_exceeded");
}

/// Fact: the models API lists ids, windows and output limits.
#[tokio::test]
async fn models_are_listed() {
    let bench = Bench::new().await;
    let list = bench.get("/v1/models?limit=1000").await.message();
    assert!(
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["id"] == "claude-haiku-5-5")
    );
    assert_eq!(
        bench.get("/v1/models/claude-opus-5-5").await.message()["max_tokens"],
        128_000
    );
    assert_eq!(bench.get("/v1/models/claude-foo").await.status, 404);
}

/// Every request is in the ledger, with its credential hashed.
#[tokio::test]
async fn the_ledger_has_every_request() {
    let bench = Bench::new().await;
    bench.send(&hello().body).await;
    bench.send(&hello().with("wibble", json!(1)).body).await;
    let ledger = bench.sim.ledger();
    assert_eq!((ledger.totals.answered, ledger.totals.refused), (1, 1));
    assert!(
        ledger.entries[0]
            .header("x-api-key")
            .unwrap()
            .starts_with("hash:")
    );
    assert_eq!(ledger.entries[0].json().unwrap(), hello().body);
    assert!(ledger.entries[0].cost.micro_dollars() > 0);
    let refused = Outcome::Refused {
        status: 400,
        message: "wibble: Extra inputs are not permitted".to_owned(),
    };
    assert_eq!(ledger.entries[1].outcome, refused);
}

/// What is not for messages is recorded too, so that a proxy's passing on shows.
#[tokio::test]
async fn other_paths_are_recorded() {
    let mut bench = Bench::new().await;
    assert_eq!(
        bench.post("/v1/files?x=1", &json!({"a": 1})).await.status,
        404
    );
    let ledger = bench.sim.ledger();
    let entry = ledger.last().unwrap();
    assert_eq!(
        (entry.method.as_str(), entry.path.as_str()),
        ("POST", "/v1/files?x=1")
    );
    assert_eq!(entry.json(), Some(json!({"a": 1})));
    bench.key.clear();
    assert_eq!(bench.get("/v1/models").await.status, 401);
    assert_eq!(bench.get("/api/hello").await.status, 200);
}
