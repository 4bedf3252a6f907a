//! Faults on demand, as a client sees them.

use std::time::Duration;

use crate::support::{Bench, PLAIN, Response, Talk, events, read};
use longhaul::sim::{Fault, Queued, Target};
use serde_json::{Value, json};

fn streamed() -> Value {
    let mut talk = Talk::new(PLAIN).with("stream", json!(true));
    talk.user("hello");
    talk.body
}

fn plain() -> Value {
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    talk.body
}

/// Reads as much of a body as comes, and how it ended.
async fn drain(bench: &Bench, body: &Value) -> (String, Result<(), reqwest::Error>) {
    let mut response = bench.request("/v1/messages", body).send().await.unwrap();
    let mut text = String::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.push_str(&String::from_utf8_lossy(&chunk)),
            Ok(None) => return (text, Ok(())),
            Err(error) => return (text, Err(error)),
        }
    }
}

/// Fact: error statuses with their types, retry-after and x-should-retry.
#[tokio::test]
async fn error_statuses_come_with_their_headers() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::Status {
        status: 429,
        message: None,
        retry_after: Some(7),
        should_retry: Some(true),
    });
    let response = bench.send(&plain()).await;
    assert_eq!(response.status, 429);
    assert_eq!(response.header("retry-after"), Some("7"));
    assert_eq!(response.header("x-should-retry"), Some("true"));
    assert_eq!(response.json()["error"]["type"], "rate_limit_error");
    assert_eq!(
        bench.send(&plain()).await.status,
        200,
        "a fault strikes once"
    );
    for (status, kind) in [
        (500, "api_error"),
        (529, "overloaded_error"),
        (504, "timeout_error"),
    ] {
        bench.sim.push_fault(Fault::status(status));
        let response: Response = bench.send(&plain()).await;
        assert_eq!(response.json()["error"]["type"], kind);
    }
}

/// A reset before the headers is a connection error, not a response.
#[tokio::test]
async fn a_reset_comes_before_any_header() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::Reset);
    let error = bench
        .request("/v1/messages", &plain())
        .send()
        .await
        .unwrap_err();
    assert!(error.is_request() || error.is_connect(), "{error:?}");
}

/// A reset or a cut in mid-stream keeps what was sent and then fails.
#[tokio::test]
async fn a_cut_stream_looks_cut() {
    for fault in [
        Fault::ResetAfter { events: 4 },
        Fault::CutAfter { events: 4 },
    ] {
        let bench = Bench::new().await;
        bench.sim.push_fault(fault.clone());
        let (text, end) = drain(&bench, &streamed()).await;
        assert_eq!(events(&text).len(), 4, "{fault:?}");
        assert!(end.is_err(), "{fault:?}");
    }
}

/// A plain answer can be cut too.
#[tokio::test]
async fn a_cut_plain_answer_looks_cut() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::ResetAfter { events: 3 });
    let (text, end) = drain(&bench, &plain()).await;
    assert!(!text.is_empty() && end.is_err());
}

/// A stream that ends properly, but without `message_stop`.
#[tokio::test]
async fn a_stream_may_end_too_early() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::EndAfter { events: 5 });
    let (text, end) = drain(&bench, &streamed()).await;
    assert_eq!(events(&text).len(), 5);
    assert!(end.is_ok());
}

/// Fact: an error in mid-stream is an `error` event, and the stream ends.
#[tokio::test]
async fn an_error_event_ends_the_stream() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::ErrorAfter {
        events: 3,
        error: "overloaded_error".to_owned(),
    });
    let (text, end) = drain(&bench, &streamed()).await;
    let events = events(&text);
    assert_eq!(events.len(), 4);
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    assert_eq!(events[3]["error"], error);
    assert!(end.is_ok());
}

/// A stalled stream sends nothing more and stays open.
#[tokio::test]
async fn a_stalled_stream_stays_open() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::StallAfter { events: 2 });
    let waited = tokio::time::timeout(Duration::from_millis(150), drain(&bench, &streamed())).await;
    assert!(waited.is_err());
}

/// A hanging upstream never sends a header.
#[tokio::test]
async fn a_hanging_upstream_sends_nothing() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::Hang);
    let request = bench.request("/v1/messages", &plain()).send();
    assert!(
        tokio::time::timeout(Duration::from_millis(150), request)
            .await
            .is_err()
    );
}

/// Wrong content types and garbage.
#[tokio::test]
async fn other_peoples_pages() {
    let bench = Bench::new().await;
    bench.sim.push_fault(Fault::WrongContentType);
    assert_eq!(
        bench.send(&plain()).await.header("content-type"),
        Some("text/html")
    );
    bench.sim.push_fault(Fault::Garbage);
    let page = bench.send(&plain()).await;
    assert_eq!(page.status, 200);
    assert!(serde_json::from_str::<Value>(&page.text).is_err());
    bench.sim.push_fault(Fault::GarbageAfter { events: 2 });
    let (text, end) = drain(&bench, &streamed()).await;
    assert!(text.contains("not an event") && text.contains("message_stop") && end.is_ok());
}

/// A header names the fault for its own request only.
#[tokio::test]
async fn a_header_names_a_fault() {
    let bench = Bench::new().await;
    let request = bench
        .request("/v1/messages", &plain())
        .header("x-sim-fault", "529");
    assert_eq!(read(request).await.status, 529);
    let request = bench
        .request("/v1/messages", &plain())
        .header("x-sim-fault", "misspelt");
    assert_eq!(read(request).await.status, 400);
    assert_eq!(bench.send(&plain()).await.status, 200);
}

/// A fault may wait for a certain kind of request.
#[tokio::test]
async fn a_fault_waits_for_its_target() {
    let bench = Bench::new().await;
    bench.sim.queue_fault(Queued {
        fault: Fault::status(500),
        target: Target::Summary,
        times: 2,
    });
    assert_eq!(bench.send(&plain()).await.status, 200);
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    talk.user("write a session_intent");
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(bench.send(&talk.body).await.status);
    }
    assert_eq!(statuses, [500, 500, 200]);
}
