//! The summarizer persona, as a caller sees it.

use std::time::Duration;

use crate::support::{Bench, PLAIN, Talk};
use longhaul::sim::{Kind, Options, Persona, Reply};
use serde_json::{Value, json};

fn asking() -> Talk {
    let mut talk = Talk::new(PLAIN);
    talk.user("Port src/net/tcp.rs. Never touch src/main.rs.");
    talk.push("assistant", "I begin with the tests");
    talk.user("Answer with a JSON object: session_intent, constraints and so on");
    talk
}

/// A good summary is complete, truthful and in the wanted form.
#[tokio::test]
async fn a_good_summary_is_json_with_all_keys() {
    let bench = Bench::new().await;
    let message = bench.send(&asking().body).await.message();
    let text = message["content"][0]["text"].as_str().unwrap();
    let summary: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        summary["files_touched"],
        json!(["src/main.rs", "src/net/tcp.rs"])
    );
    assert_eq!(summary["constraints"], json!(["Never touch src/main"]));
    assert_eq!(bench.sim.ledger().last().unwrap().kind, Kind::Summary);
}

/// Scripted replies are for the main line; a summary in between does not take one.
#[tokio::test]
async fn a_summary_does_not_use_up_scripted_replies() {
    let bench = Bench::new().await;
    bench.sim.push_reply(Reply::text("scripted"));
    bench.send(&asking().body).await.message();
    let mut talk = Talk::new(PLAIN);
    talk.user("hello");
    assert_eq!(talk.turn(&bench).await["content"][0]["text"], "scripted");
}

/// Each way to fail, and a queue of them in front of the standing persona.
#[tokio::test]
async fn personas_fail_in_turn() {
    let bench = Bench::new().await;
    let failing = [
        (Persona::RateLimited, 429),
        (Persona::ServerError, 500),
        (Persona::Overloaded, 529),
        (Persona::ContextExceeded, 400),
    ];
    for (persona, _) in failing {
        bench.sim.push_persona(persona);
    }
    for (persona, status) in failing {
        let response = bench.send(&asking().body).await;
        assert_eq!(response.status, status, "{persona:?}");
    }
    assert_eq!(bench.send(&asking().body).await.status, 200);
}

/// The slow one answers late, the hanging one never.
#[tokio::test]
async fn slow_and_hanging_summarizers() {
    let options = Options {
        slow_summary: Duration::from_millis(200),
        ..Options::default()
    };
    let bench = Bench::with(options).await;
    let within = async |persona: Persona, millis: u64| {
        bench.sim.set_persona(persona);
        let body = asking().body;
        tokio::time::timeout(Duration::from_millis(millis), bench.send(&body))
            .await
            .is_ok()
    };
    assert!(!within(Persona::Slow, 100).await);
    assert!(within(Persona::Slow, 2_000).await);
    assert!(!within(Persona::Hanging, 300).await);
}

/// A summarizer that calls a tool instead of writing is still the summarizer
/// when the call is answered.
#[tokio::test]
async fn a_summarizer_may_call_a_tool() {
    let bench = Bench::new().await;
    bench.sim.push_persona(Persona::CallsTool);
    let mut talk = asking().with("tools", crate::support::read_tool());
    assert_eq!(talk.turn(&bench).await["stop_reason"], "tool_use");
    talk.answer_calls("write the summary, do not call tools");
    let message = talk.turn(&bench).await;
    let text = message["content"][0]["text"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    assert_eq!(bench.sim.ledger().last().unwrap().kind, Kind::Summary);
}

/// A long transcript with the instruction behind it is recognised.
#[tokio::test]
async fn a_long_transcript_is_recognised() {
    let bench = Bench::new().await;
    let mut talk = Talk::new(PLAIN);
    let transcript = crate::support::filler(20_000);
    talk.user(format!(
        "user: port src/a.rs\n{transcript}\nNow write session_intent and the rest."
    ));
    talk.turn(&bench).await;
    assert_eq!(bench.sim.ledger().last().unwrap().kind, Kind::Summary);
}
