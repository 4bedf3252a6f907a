//! The control surface over HTTP.

use crate::support::{Bench, PLAIN, Talk, read, read_tool};
use serde_json::json;

fn hello() -> Talk {
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    talk
}

#[tokio::test]
async fn replies_and_rules_are_set_from_outside() {
    let bench = Bench::new().await;
    bench
        .post("/_sim/replies", &json!([{"text": "one"}, {"text": "two"}]))
        .await
        .message();
    for expected in ["one", "two"] {
        assert_eq!(
            bench.send(&hello().body).await.message()["content"][0]["text"],
            expected
        );
    }
    bench
        .post(
            "/_sim/rule",
            &json!({"type": "call_tool", "name": "read", "times": 1}),
        )
        .await
        .message();
    let message = bench
        .send(&hello().with("tools", read_tool()).body)
        .await
        .message();
    assert_eq!(message["stop_reason"], "tool_use");
}

#[tokio::test]
async fn faults_come_in_three_forms() {
    let bench = Bench::new().await;
    let forms = json!(["529", {"type": "status", "status": 500},
        {"fault": {"type": "status", "status": 429}, "target": "main", "times": 2}]);
    bench.post("/_sim/faults", &forms).await.message();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(bench.send(&hello().body).await.status);
    }
    assert_eq!(statuses, [529, 500, 429, 429, 200]);
    assert_eq!(
        bench.post("/_sim/faults", &json!("nonsense")).await.status,
        400
    );
}

#[tokio::test]
async fn personas_are_set_for_good_or_for_the_next_call() {
    let bench = Bench::new().await;
    bench
        .post("/_sim/persona", &json!({"next": ["overloaded", "empty"]}))
        .await
        .message();
    bench
        .post("/_sim/persona", &json!("malformed"))
        .await
        .message();
    let mut talk = hello();
    talk.user("write a session_intent");
    assert_eq!(bench.send(&talk.body).await.status, 529);
    assert_eq!(bench.send(&talk.body).await.message()["content"], json!([]));
    let text = bench.send(&talk.body).await.message()["content"][0]["text"].clone();
    assert!(text.as_str().unwrap().starts_with("Sure!"));
}

#[tokio::test]
async fn the_clock_and_the_ledger_are_reachable() {
    let bench = Bench::new().await;
    let before = bench
        .post("/_sim/clock", &json!({"freeze": true}))
        .await
        .message();
    let after = bench
        .post("/_sim/clock", &json!({"advance_ms": 1000}))
        .await
        .message();
    assert_eq!(
        after["now_ms"].as_u64().unwrap(),
        before["now_ms"].as_u64().unwrap() + 1_000
    );
    bench.send(&hello().body).await.message();
    let ledger = bench.get("/_sim/ledger").await.message();
    assert_eq!(ledger["totals"]["answered"], 1);
    assert_eq!(ledger["entries"][0]["outcome"]["type"], "answered");
    assert!(
        ledger["entries"][0]["body"]
            .as_str()
            .unwrap()
            .contains("hello")
    );
    bench.post("/_sim/reset", &json!({})).await.message();
    assert_eq!(
        bench.get("/_sim/ledger").await.message()["totals"]["requests"],
        0
    );
}

#[tokio::test]
async fn a_header_scripts_its_own_reply() {
    let bench = Bench::new().await;
    let request = bench
        .request("/v1/messages", &hello().body)
        .header("x-sim-reply", r#"{"text":"scripted"}"#);
    assert_eq!(
        read(request).await.message()["content"][0]["text"],
        "scripted"
    );
    let request = bench
        .request("/v1/messages", &hello().body)
        .header("x-sim-reply", "nonsense");
    assert_eq!(read(request).await.status, 400);
}
