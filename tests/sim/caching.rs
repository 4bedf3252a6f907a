//! The prompt cache and its bill over whole conversations.

use std::time::Duration;

use crate::support::{Bench, PLAIN, Talk, filler, read_tool};
use longhaul::sim::{Key, Options};
use serde_json::{Value, json};

fn marked(text: &str) -> Value {
    json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
}

/// A conversation whose newest message carries the mark, as clients do.
fn conversation(turns: usize) -> Talk {
    let mut talk = Talk::new("claude-opus-5").with("system", json!(filler(600)));
    for turn in 0..turns {
        talk.user(format!("question {turn} {}", filler(50)));
        talk.push("assistant", format!("answer {turn}"));
    }
    talk.user(marked("and now?"));
    talk
}

fn usage(message: &Value) -> (u64, u64, u64) {
    let number = |field: &str| message["usage"][field].as_u64().unwrap();
    (
        number("cache_read_input_tokens"),
        number("cache_creation_input_tokens"),
        number("input_tokens"),
    )
}

/// Fact: what one request writes the next one reads, also when the mark moved on
/// and string content became a block.
#[tokio::test]
async fn a_growing_conversation_reads_what_it_wrote() {
    let bench = Bench::new().await;
    let mut talk = conversation(3);
    let (read, written, rest) = usage(&bench.send(&talk.body).await.message());
    assert_eq!((read, rest), (0, 0));
    assert!(written > 600);
    talk.messages().pop();
    talk.user("and now?");
    talk.push("assistant", "this");
    talk.user(marked("and then?"));
    let (read, more, _) = usage(&bench.send(&talk.body).await.message());
    assert_eq!(read, written);
    assert!(more > 0 && more < 40);
    let ledger = bench.sim.ledger();
    let entry = ledger.last().unwrap();
    assert_eq!(entry.broken_at, None);
    assert_eq!(entry.read_position, Some(7));
    assert_eq!(entry.written_positions, [9]);
}

/// Fact: one changed early message loses the cache from there on; the ledger
/// says where.
#[tokio::test]
async fn an_edit_breaks_the_prefix_where_it_is() {
    let bench = Bench::new().await;
    let mut talk = conversation(3);
    talk.body["system"] = marked(&filler(600));
    bench.send(&talk.body).await.message();
    talk.messages()[1]["content"] = json!("another answer");
    let (read, written, _) = usage(&bench.send(&talk.body).await.message());
    assert!(
        read > 590 && written > 100,
        "the system mark still hits: {read} {written}"
    );
    let broken = bench
        .sim
        .ledger()
        .last()
        .unwrap()
        .broken_at
        .clone()
        .unwrap();
    assert_eq!(
        (broken.position, broken.path.as_str()),
        (2, "messages.1.content.0")
    );
}

/// Fact: five minutes without use and the entry is gone.
#[tokio::test]
async fn entries_expire_by_the_settable_clock() {
    let bench = Bench::new().await;
    bench.sim.clock().freeze();
    let talk = conversation(2);
    bench.send(&talk.body).await.message();
    bench.sim.clock().advance(Duration::from_secs(299));
    assert!(usage(&bench.send(&talk.body).await.message()).0 > 0);
    bench.sim.clock().advance(Duration::from_secs(301));
    assert_eq!(usage(&bench.send(&talk.body).await.message()).0, 0);
}

/// Fact: an entry is readable only after the first answer has begun.
#[tokio::test]
async fn two_requests_at_once_do_not_share() {
    let options = Options {
        first_byte_delay: Duration::from_millis(150),
        ..Options::default()
    };
    let bench = Bench::with(options).await;
    let talk = conversation(2);
    let (first, second) = tokio::join!(bench.send(&talk.body), bench.send(&talk.body));
    assert_eq!(usage(&first.message()).0, 0);
    assert_eq!(usage(&second.message()).0, 0);
    assert!(usage(&bench.send(&talk.body).await.message()).0 > 0);
}

/// Fact: the cache is scoped by workspace and model.
#[tokio::test]
async fn the_cache_is_scoped() {
    let key = |credential: &str, workspace: &str| Key {
        credential: credential.to_owned(),
        organization: "org".to_owned(),
        workspace: workspace.to_owned(),
    };
    let keys = vec![key("a", "w1"), key("b", "w1"), key("c", "w2")];
    let mut bench = Bench::with(Options {
        keys,
        ..Options::default()
    })
    .await;
    let talk = conversation(2);
    bench.key = "a".to_owned();
    bench.send(&talk.body).await.message();
    for (credential, model, hit) in [
        ("b", "claude-opus-5", true),
        ("c", "claude-opus-5", false),
        ("a", "claude-fable-5", false),
    ] {
        bench.key = credential.to_owned();
        let body = talk.clone().with("model", json!(model)).body;
        assert_eq!(
            usage(&bench.send(&body).await.message()).0 > 0,
            hit,
            "{credential} {model}"
        );
    }
}

/// Fact: `tool_choice`, thinking settings and images invalidate the messages but
/// not the system prompt; an explicit default does not.
#[tokio::test]
async fn settings_invalidate_the_messages() {
    let image = json!([{"type": "image", "source": {"type": "url", "url": "u"},
        "cache_control": {"type": "ephemeral"}}]);
    let changes: Vec<(&str, Value, bool)> = vec![
        ("tool_choice", json!({"type": "auto"}), true),
        ("tool_choice", json!({"type": "none"}), false),
        ("thinking", json!({"type": "adaptive"}), true),
        ("thinking", json!({"type": "disabled"}), false),
        ("output_config", json!({"effort": "low"}), false),
        ("image", image, false),
    ];
    for (field, value, whole) in changes {
        let bench = Bench::new().await;
        let mut talk = conversation(2).with("tools", read_tool());
        talk.body["system"] = marked(&filler(600));
        let (_, written, _) = usage(&bench.send(&talk.body).await.message());
        if field == "image" {
            talk.user(value);
        } else {
            talk.body[field] = value;
        }
        let (read, _, _) = usage(&bench.send(&talk.body).await.message());
        assert!(read > 590, "the system prompt survives {field}");
        assert_eq!(read == written, whole, "{field}");
    }
}

/// Fact: below the model's minimum nothing is cached and both counters are zero.
#[tokio::test]
async fn short_prompts_are_not_cached() {
    let bench = Bench::new().await;
    let mut talk = Talk::new(PLAIN).with("system", json!(filler(3_000)));
    talk.user(marked("short of 4096"));
    for _ in 0..2 {
        let (read, written, rest) = usage(&bench.send(&talk.body).await.message());
        assert_eq!((read, written), (0, 0));
        assert!(rest > 2_900);
    }
}

/// Fact: the bill is the sum over the classes at the model's prices; Haiku 5.5
/// is five times as dear beyond 100,000 prompt tokens.
#[tokio::test]
async fn the_bill_follows_the_price_steps() {
    let bench = Bench::new().await;
    for (size, input_price) in [(50_000, 100), (120_000, 500)] {
        let mut talk = Talk::new("claude-haiku-5-5");
        talk.user(filler(size));
        let message = bench.send(&talk.body).await.message();
        let (_, _, input) = usage(&message);
        let output = message["usage"]["output_tokens"].as_u64().unwrap();
        let expected = (input * input_price + output * input_price * 5) / 1_000;
        assert_eq!(
            bench.sim.ledger().last().unwrap().cost.micro_dollars(),
            expected
        );
    }
}

/// Fact: `diagnostics` say which layer changed since the previous message.
#[tokio::test]
async fn diagnostics_name_the_layer_that_changed() {
    let bench = Bench::new().await;
    let first = conversation(2).with("diagnostics", json!({"previous_message_id": null}));
    let message = bench.send(&first.body).await.message();
    assert_eq!(message["diagnostics"], Value::Null);
    let next = first.with("diagnostics", json!({"previous_message_id": message["id"]}));
    let mut messages = next.clone();
    messages.messages()[0]["content"] = json!("another question");
    let mut grown = next.clone();
    grown.push("assistant", "so");
    grown.user("and?");
    let unknown = json!({"previous_message_id": "msg_unknown"});
    let table = [
        (grown, None),
        (messages, Some("messages_changed")),
        (
            next.clone().with("system", json!("other")),
            Some("system_changed"),
        ),
        (
            next.clone().with("tools", read_tool()),
            Some("tools_changed"),
        ),
        (
            next.clone().with("model", json!("claude-fable-5")),
            Some("model_changed"),
        ),
        (
            next.with("diagnostics", unknown),
            Some("previous_message_not_found"),
        ),
    ];
    for (talk, reason) in table {
        let message = bench.send(&talk.body).await.message();
        let found = message["diagnostics"]["cache_miss_reason"]["type"].as_str();
        assert_eq!(found, reason);
    }
}
