//! A session that is really held: replies, hidden thinking and all.

use longhaul::engine::measure::{
    Anchor, Counter, Raw, Size, learn, measure, prior, raw_base, raw_message,
};
use longhaul::sim::{Options, Running, Sim};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

const MODEL: &str = "claude-opus-5-5";

async fn send(sim: &Running, body: &Value) -> Value {
    let response = reqwest::Client::new()
        .post(format!("{}/v1/messages", sim.url()))
        .header("x-api-key", "test-key")
        .header("anthropic-version", "2023-06-01")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(answer["type"], "message", "{answer}");
    answer
}

fn sized(body: &Value) -> (Size, Raw) {
    let bytes = body.to_string().into_bytes();
    let body = Body::split(&bytes).unwrap();
    let mut counter = Counter::exact();
    let base = raw_base(&bytes, &body, &mut counter);
    let messages: Vec<Raw> = body
        .messages()
        .iter()
        .map(|message| raw_message(&bytes, message, &mut counter))
        .collect();
    (
        Size {
            base,
            messages: messages.iter().copied().sum(),
        },
        messages.last().copied().unwrap_or_default(),
    )
}

/// Output is exact as well, so thinking that is not shown does no harm.
#[tokio::test]
async fn with_the_reply_counted_in_hidden_thinking_is_measured_too() {
    let options = Options {
        drift: 1.37,
        thinking_words: 400,
        ..Options::default()
    };
    let sim = Sim::start(options).await.unwrap();
    let mut body = json!({"model": MODEL, "max_tokens": 4096, "messages": [],
        "system": "You are a careful assistant. ".repeat(20)});
    let (mut factor, mut anchor) = (prior(MODEL), None::<Anchor>);
    for turn in 0..12 {
        let question =
            format!("Question {turn}: why does the {turn}th test fail? ").repeat(1 + turn % 4);
        body["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": question}));
        let (size, _) = sized(&body);
        let estimate = measure(anchor.as_ref(), &size, &factor).tokens;
        let reply = send(&sim, &body).await;
        let real = reply["usage"]["input_tokens"].as_u64().unwrap();
        if anchor.is_some() {
            assert!(
                estimate.abs_diff(real) * 100 <= real * 3,
                "turn {turn}: {estimate} {real}"
            );
        } else {
            assert!(estimate * 100 >= real * 95, "{estimate} {real}");
        }
        learn(&mut factor, anchor.as_ref(), &size, real);
        let output = reply["usage"]["output_tokens"].as_u64().unwrap();
        body["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "assistant", "content": reply["content"]}));
        let (_, last) = sized(&body);
        anchor = Some(Anchor { tokens: real, size }.with_reply(output, last));
    }
}
