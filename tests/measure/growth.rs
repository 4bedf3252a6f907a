//! Sessions grow; at each step the estimate is compared with the count.

use std::fmt::Write;

use longhaul::engine::measure::{
    Anchor, Counter, Factor, Raw, Size, learn, measure, prior, raw_base, raw_message,
};
use longhaul::sim::canonical::Digest;
use longhaul::sim::seal::ThinkingSeal;
use longhaul::sim::{Options, Running, Sim};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

use super::sessions::{self, Session};

/// The drift of the simulator, the model, and how many messages of a session are
/// used: to count all of the long ones takes minutes.
const RUNS: [(f64, &str, usize); 4] = [
    (1.31, "claude-opus-4-8", 120),
    (1.0, "claude-opus-4-6", 30),
    (1.15, "claude-opus-4-6", 30),
    (1.4, "claude-opus-4-8", 30),
];

/// Every step is measured up to this many messages, then every so many.
const FIRST: usize = 12;
const EVERY: usize = 40;

/// The largest error allowed, in percent.
const AFTER_A_REPLY: f64 = 3.0;
const TOO_LOW: f64 = 5.0;

#[derive(Default)]
struct Worst {
    after_a_reply: f64,
    too_low: f64,
    too_high: f64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn estimates_are_near_after_the_first_reply_and_not_low_before() {
    let sessions = sessions::all();
    let mut table =
        String::from("worst error in percent: after a reply, and before any (low, high)\n");
    for (drift, model, most) in RUNS {
        let options = Options {
            drift,
            calls_without_tools: true,
            split_results: true,
            keep_bodies: false,
            ..Options::default()
        };
        let sim = Sim::start(options).await.unwrap();
        for session in &sessions {
            let worst = grow(&sim, model, session, most).await;
            let name = &session.name;
            writeln!(
                table,
                "{drift:<5} {name:<24} {:>6.2} {:>7.2} {:>6.2}",
                worst.after_a_reply, worst.too_low, worst.too_high
            )
            .unwrap();
            assert!(
                worst.after_a_reply <= AFTER_A_REPLY,
                "{name} at {drift}\n{table}"
            );
            assert!(worst.too_low <= TOO_LOW, "{name} at {drift}\n{table}");
        }
    }
    println!("{table}");
}

async fn grow(sim: &Running, model: &str, session: &Session, most: usize) -> Worst {
    let used = session.messages.len().min(most);
    let messages = signed(&session.messages[..used], model, sim);
    let raw = raw_of(&messages);
    let first = prior(model);
    let (mut factor, mut anchor) = (first, None);
    let mut worst = Worst::default();
    for count in steps(&messages) {
        let size = size(&raw[..count]);
        let real = counted(sim, model, &messages[..count]).await;
        let assumed = error(measure(None, &size, &first).tokens, real);
        worst.too_low = worst.too_low.max(-assumed);
        worst.too_high = worst.too_high.max(assumed);
        if anchor.is_some() {
            let estimate = measure(anchor.as_ref(), &size, &factor).tokens;
            worst.after_a_reply = worst.after_a_reply.max(error(estimate, real).abs());
        }
        learn(&mut factor, anchor.as_ref(), &size, real);
        anchor = Some(Anchor { tokens: real, size });
    }
    worst
}

/// How far an estimate is off, in percent.
#[allow(clippy::cast_precision_loss, reason = "a ratio of token counts")]
fn error(estimate: u64, real: u64) -> f64 {
    (estimate as f64 / real as f64 - 1.0) * 100.0
}

/// Lengths at which the session is a request: it ends with the user.
fn steps(messages: &[Value]) -> Vec<usize> {
    let mut last = 0;
    (1..=messages.len())
        .filter(|count| {
            let asks = messages[count - 1]["role"] == "user";
            let due = *count <= FIRST || *count >= last + EVERY || *count == messages.len();
            if asks && due {
                last = *count;
            }
            asks && due
        })
        .collect()
}

fn request(model: &str, messages: &[Value]) -> Value {
    json!({
        "model": model,
        "thinking": {"type": "adaptive"},
        "system": "You are a careful assistant that works on a code base with tools. \
                   Read before you write, and say what you did.\n".repeat(8),
        "messages": messages,
    })
}

async fn counted(sim: &Running, model: &str, messages: &[Value]) -> u64 {
    let response = reqwest::Client::new()
        .post(format!("{}/v1/messages/count_tokens", sim.url()))
        .header("x-api-key", "test-key")
        .header("anthropic-version", "2023-06-01")
        .body(request(model, messages).to_string())
        .send()
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    answer["input_tokens"]
        .as_u64()
        .unwrap_or_else(|| panic!("{answer}"))
}

/// The raw count of each message, and of what stands before them last.
fn raw_of(messages: &[Value]) -> Vec<(Raw, Size)> {
    let bytes = request("m", messages).to_string().into_bytes();
    let body = Body::split(&bytes).unwrap();
    let mut counter = Counter::exact();
    let base = raw_base(&bytes, &body, &mut counter);
    let mut size = Size {
        base,
        messages: Raw::default(),
    };
    let messages = body.messages().iter();
    messages
        .map(|message| {
            let raw = raw_message(&bytes, message, &mut counter);
            size.messages += raw;
            (raw, size)
        })
        .collect()
}

fn size(raw: &[(Raw, Size)]) -> Size {
    raw.last().unwrap().1
}

/// The same messages with thinking that this simulator believes is its own.
fn signed(messages: &[Value], model: &str, sim: &Sim) -> Vec<Value> {
    let mut messages = messages.to_vec();
    for (number, message) in messages.iter_mut().enumerate() {
        let Some(blocks) = message["content"].as_array_mut() else {
            continue;
        };
        let thoughts: Vec<_> = blocks
            .iter_mut()
            .filter(|block| block["type"] == "thinking")
            .collect();
        let total = thoughts.len() as u64;
        for (index, block) in (0..).zip(thoughts) {
            let text = block["thinking"].as_str().unwrap();
            let seal = ThinkingSeal {
                model: model.to_owned(),
                organization: "o".to_owned(),
                prefix: Digest::of(""),
                content: Digest::of(text),
                reply: format!("reply {number}"),
                index,
                total,
                tokens: sim.counter().text(text),
            };
            block["signature"] = json!(seal.sign());
        }
    }
    messages
}

#[test]
fn a_factor_that_was_stored_goes_on_where_it_was() {
    let mut factor = prior("claude-opus-5-5");
    factor.observe(
        Raw {
            text: 40_000,
            ..Raw::default()
        },
        52_000,
    );
    let back = Factor::from_text(&factor.to_text()).unwrap();
    let raw = Raw {
        text: 10_000,
        thinking: 500,
        fixed: 80,
    };
    assert_eq!(back.tokens(raw), factor.tokens(raw));
}
