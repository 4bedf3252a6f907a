//! Server-held threads.

use crate::support::{BINDING, Bench, PLAIN, Talk, read_tool};
use longhaul::sim::{Options, Rule};
use serde_json::json;

const BETA: &str = "message-threads-2026-08-12";

/// Fact: a continued thread sends only what is new; the API holds the rest,
/// `system` and `tools` included, so that thinking still fits them.
#[tokio::test]
async fn a_thread_is_continued_by_its_last_message() {
    let bench = Bench::new().await.beta(BETA);
    bench.sim.set_rule(Rule::call_tool("read", 2));
    let mut talk = Talk::new(BINDING)
        .with("tools", read_tool())
        .with("system", json!("Be brief."))
        .with("thread", json!({"type": "create"}));
    talk.user("go");
    let mut sizes = Vec::new();
    loop {
        let message = talk.turn(&bench).await;
        sizes.push(message["usage"]["input_tokens"].as_u64().unwrap());
        if message["stop_reason"] != "tool_use" {
            break;
        }
        talk.answer_calls("contents");
        let last = talk.messages().pop().unwrap();
        *talk.messages() = vec![last];
        let body = talk.body.as_object_mut().unwrap();
        body.remove("tools");
        body.remove("system");
        talk.body["thread"] = json!({"type": "continue", "previous_message_id": message["id"]});
    }
    assert_eq!(sizes.len(), 3);
    assert!(
        sizes.is_sorted() && sizes[0] < sizes[2],
        "the held history is billed: {sizes:?}"
    );
    assert_eq!(bench.sim.ledger().totals.breaks, 0);
}

/// Fact: a thread is continued from the message it names, so one message may be
/// continued twice and neither continuation knows of the other.
#[tokio::test]
async fn a_thread_may_fork() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = Talk::new(PLAIN).with("thread", json!({"type": "create"}));
    talk.user("go");
    let first = bench.send(&talk.body).await.message();
    let from = |id: &serde_json::Value, question: &str| {
        let mut talk = Talk::new(PLAIN);
        talk.body["thread"] = json!({"type": "continue", "previous_message_id": id});
        talk.user(question);
        talk.body
    };
    let left = bench.send(&from(&first["id"], "left")).await.message();
    let right = bench.send(&from(&first["id"], "left")).await.message();
    assert_eq!(left["usage"], right["usage"]);
    let deeper = bench.send(&from(&left["id"], "on")).await.message();
    let input = |message: &serde_json::Value| message["usage"]["input_tokens"].as_u64().unwrap();
    assert!(input(&deeper) > input(&left));
}

/// Fact: what the thread holds must not be sent again.
#[tokio::test]
async fn a_continued_thread_repeats_neither_system_nor_tools() {
    let bench = Bench::new().await.beta(BETA);
    let mut talk = Talk::new(PLAIN).with("thread", json!({"type": "create"}));
    talk.user("go");
    let id = bench.send(&talk.body).await.message()["id"].clone();
    talk.body["thread"] = json!({"type": "continue", "previous_message_id": id});
    for (field, value) in [("system", json!("s")), ("tools", read_tool())] {
        let mut body = talk.body.clone();
        body[field] = value;
        assert_eq!(bench.send(&body).await.status, 400, "{field}");
    }
}

/// Fact: an unknown message cannot be continued, nor can somebody else's.
#[tokio::test]
async fn an_unknown_thread_is_refused() {
    let mut bench = Bench::new().await.beta(BETA);
    let mut talk = Talk::new(PLAIN).with("thread", json!({"type": "create"}));
    talk.user("go");
    let id = bench.send(&talk.body).await.message()["id"].clone();
    talk.body["thread"] = json!({"type": "continue", "previous_message_id": id});
    assert_eq!(bench.send(&talk.body).await.status, 200);
    bench.key = "somebody else".to_owned();
    assert_eq!(bench.send(&talk.body).await.status, 400);
}

/// Fact: the refusal that makes SDKs resend the full history carries a code.
#[tokio::test]
async fn threads_may_be_declined_with_a_code() {
    let bench = Bench::with(Options {
        threads: false,
        ..Options::default()
    })
    .await
    .beta(BETA);
    let mut talk = Talk::new(PLAIN).with("thread", json!({"type": "create"}));
    talk.user("go");
    let response = bench.send(&talk.body).await;
    assert_eq!(response.status, 400);
    let details = &response.json()["error"]["details"];
    assert_eq!(details["error_code"], "thread_unsupported_request");
}

/// Fact: the field needs its beta.
#[tokio::test]
async fn threads_need_their_beta() {
    let bench = Bench::new().await;
    let mut talk = Talk::new(PLAIN).with("thread", json!({"type": "create"}));
    talk.user("go");
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "thread: Extra inputs are not permitted"
    );
}
