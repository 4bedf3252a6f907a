//! Compaction by the API itself, on demand and at a threshold.

use crate::support::{BINDING, Bench, PLAIN, Talk, filler};
use longhaul::sim::{Kind, Options, Persona};
use serde_json::{Value, json};

const ON_DEMAND: &str = "compact-2026-09-04";
const THRESHOLD: &str = "compact-2026-01-12";

async fn talk_of(bench: &Bench, turns: usize) -> Talk {
    let mut talk = Talk::new(BINDING).with("system", json!("be brief"));
    for turn in 0..turns {
        talk.user(format!("question {turn}"));
        talk.turn(bench).await;
    }
    talk
}

/// Asks for a compaction of the first messages and puts its answer in their place.
async fn compact(bench: &Bench, talk: &Talk, messages: usize) -> (Talk, Value) {
    let mut request = talk
        .clone()
        .with("compaction", json!({"type": "summarize"}));
    request.messages().truncate(messages);
    let message = bench.send(&request.body).await.message();
    let mut compacted = talk.clone();
    let block = json!({"role": "assistant", "content": message["content"]});
    compacted.messages().splice(0..messages, [block]);
    (compacted, message)
}

/// Fact: the answer is one signed block with stop reason `compaction`, and its
/// cost stands in usage.iterations, not in the usage itself.
#[tokio::test]
async fn the_answer_is_one_signed_block() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 3).await;
    let (_, message) = compact(&bench, &talk, 6).await;
    assert_eq!(message["stop_reason"], "compaction");
    assert_eq!(message["content"].as_array().unwrap().len(), 1);
    let block = &message["content"][0];
    assert_eq!(block["type"], "compaction");
    assert!(block["content"].as_str().unwrap().contains("question 0"));
    assert!(block["signature"].is_string());
    assert_eq!(message["usage"]["input_tokens"], 0);
    let iterations = &message["usage"]["iterations"];
    assert_eq!(iterations[0]["type"], "compaction");
    assert!(iterations[0]["input_tokens"].as_u64().unwrap() > 0);
    let ledger = bench.sim.ledger();
    assert_eq!(ledger.last().unwrap().kind, Kind::Compaction);
    assert!(ledger.last().unwrap().cost.micro_dollars() > 0);
}

/// Fact: kept turns that directly follow what was summarised keep their bound
/// thinking, and so do the turns after them.
#[tokio::test]
async fn kept_thinking_stays_valid() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 4).await;
    for kept_from in [3, 4, 5, 6, 8] {
        let (mut compacted, _) = compact(&bench, &talk, kept_from).await;
        for question in ["next", "after"] {
            compacted.user(question);
            compacted.turn(&bench).await;
        }
    }
}

/// Fact: a second compaction keeps thinking valid that is older than the first.
#[tokio::test]
async fn compactions_follow_each_other() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 5).await;
    let (once, _) = compact(&bench, &talk, 4).await;
    let (mut twice, _) = compact(&bench, &once, 3).await;
    twice.user("next");
    assert_eq!(twice.body["messages"][1]["content"], "question 3");
    twice.turn(&bench).await;
}

/// Fact: the exemption ends where kept turns are changed, something is skipped,
/// or the system prompt is another.
#[tokio::test]
async fn the_exemption_has_conditions() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 4).await;
    let (mut compacted, _) = compact(&bench, &talk, 4).await;
    compacted.user("next");
    assert_eq!(bench.send(&compacted.body).await.status, 200);
    let mut changed = compacted.clone();
    changed.messages()[1]["content"] = json!("another question");
    let mut skipped = compacted.clone();
    skipped.messages().drain(1..3);
    let mut inserted = compacted.clone();
    inserted
        .messages()
        .insert(1, json!({"role": "user", "content": "by the way"}));
    let system = compacted.clone().with("system", json!("be verbose"));
    for (what, talk) in [
        ("changed", changed),
        ("skipped", skipped),
        ("inserted", inserted),
        ("system", system),
    ] {
        let response = bench.send(&talk.body).await;
        assert!(
            response.status == 400 && response.error().contains("different conversation"),
            "{what}"
        );
    }
}

/// Fact: the first kept message has another role than the last summarised one.
#[tokio::test]
async fn a_cut_between_two_user_messages_is_not_exempt() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let mut talk = Talk::new(BINDING);
    talk.user("question 0");
    talk.user("and one more thing");
    talk.turn(&bench).await;
    for (kept_from, good) in [(1, false), (2, true)] {
        let (mut compacted, _) = compact(&bench, &talk, kept_from).await;
        compacted.user("next");
        let response = bench.send(&compacted.body).await;
        assert_eq!(response.status == 200, good, "{}", response.text);
    }
}

/// Fact: what on-demand compaction returned comes first in `messages`, in place of
/// what it summarises.
#[tokio::test]
async fn the_block_comes_first() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 2).await;
    let (mut compacted, _) = compact(&bench, &talk, 4).await;
    compacted.user("next");
    assert_eq!(bench.send(&compacted.body).await.status, 200);
    compacted
        .messages()
        .insert(0, json!({"role": "user", "content": "hello"}));
    let response = bench.send(&compacted.body).await;
    assert!(response.error().contains("must come first"));
}

/// Fact: everything before the last compaction block is ignored, thinking that no
/// longer fits included.
#[tokio::test]
async fn thinking_before_a_compaction_is_ignored() {
    let bench = Bench::new().await.beta("compact-2026-01-12");
    let mut talk = talk_of(&bench, 3).await;
    let block = json!({"type": "compaction", "content": "so far"});
    talk.user("go on");
    talk.push(
        "assistant",
        json!([block, {"type": "text", "text": "well"}]),
    );
    talk.user("next");
    talk.messages()[0]["content"] = json!("another question");
    assert_eq!(bench.send(&talk.body).await.status, 200);
}

/// Fact: a summary somebody else wrote is not exempt.
#[tokio::test]
async fn a_foreign_summary_is_not_exempt() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let mut talk = talk_of(&bench, 4).await;
    talk.messages().splice(
        0..4,
        [json!({"role": "user", "content": "so far: two questions"})],
    );
    talk.user("next");
    assert!(
        bench
            .send(&talk.body)
            .await
            .error()
            .contains("different conversation")
    );
}

/// Fact: the block must come back verbatim, with its signature and the beta.
#[tokio::test]
async fn the_block_comes_back_verbatim() {
    let mut bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 2).await;
    let (mut compacted, _) = compact(&bench, &talk, 4).await;
    compacted.user("next");
    let mut edited = compacted.clone();
    edited.messages()[0]["content"][0]["content"] = json!("my own words");
    assert_eq!(
        bench.send(&edited.body).await.error(),
        "messages.0.content.0: Invalid `signature` in `compaction` block"
    );
    let mut unsigned = compacted.clone();
    unsigned.messages()[0]["content"][0]
        .as_object_mut()
        .unwrap()
        .remove("signature");
    assert!(
        bench
            .send(&unsigned.body)
            .await
            .error()
            .ends_with("signature: Field required")
    );
    bench.betas.clear();
    assert!(
        bench
            .send(&compacted.body)
            .await
            .error()
            .contains("'compaction'")
    );
}

/// Fact: what was summarised is no longer billed; the cache reads the rest.
#[tokio::test]
async fn the_summary_takes_the_place_of_what_it_summarises() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let mut talk = Talk::new(BINDING);
    talk.user(filler(5_000));
    talk.turn(&bench).await;
    let (mut compacted, _) = compact(&bench, &talk, 2).await;
    compacted.user("next");
    let message = compacted.turn(&bench).await;
    assert!(message["usage"]["input_tokens"].as_u64().unwrap() < 1_000);
    let ledger = bench.sim.ledger();
    assert_eq!(
        ledger.entries[0].conversation,
        ledger.last().unwrap().conversation
    );
}

/// Fact: an upstream without it knows neither the beta nor the field; Haiku 4.5
/// does not support it; it excludes `context_management`.
#[tokio::test]
async fn compaction_may_be_refused() {
    let mut bench = Bench::with(Options {
        compaction: false,
        ..Options::default()
    })
    .await;
    let mut talk = Talk::new(BINDING).with("compaction", json!({"type": "summarize"}));
    talk.user("x");
    assert_eq!(
        bench.send(&talk.body).await.error(),
        "compaction: Extra inputs are not permitted"
    );
    bench.betas.push(ON_DEMAND.to_owned());
    assert!(
        bench
            .send(&talk.body)
            .await
            .error()
            .starts_with("Unexpected value(s) `compact-2026-09-04`")
    );
    let bench = Bench::new().await.beta(ON_DEMAND);
    let old = talk.clone().with("model", json!("claude-haiku-4-5"));
    assert_eq!(bench.send(&old.body).await.status, 400);
}

/// Fact: another stop reason means there is no summary.
#[tokio::test]
async fn a_failed_compaction_has_no_block() {
    let bench = Bench::new().await.beta(ON_DEMAND);
    let talk = talk_of(&bench, 1).await;
    for (persona, reason) in [
        (Persona::CutOff, "max_tokens"),
        (Persona::Empty, "end_turn"),
    ] {
        bench.sim.set_persona(persona);
        let (_, message) = compact(&bench, &talk, 2).await;
        assert_eq!(message["stop_reason"], reason);
        assert_eq!(message["content"], json!([]));
    }
    bench.sim.set_persona(Persona::Good);
    let (_, message) = compact(&bench, &talk.with("max_tokens", json!(8)), 2).await;
    assert_eq!(message["stop_reason"], "max_tokens");
    assert_eq!(message["content"], json!([]));
}

fn threshold(pause: bool) -> Value {
    json!({"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000},
        "pause_after_compaction": pause}]})
}

/// Fact: beyond the trigger the answer starts with a compaction block, everything
/// before it is ignored from then on, and usage lists both iterations.
#[tokio::test]
async fn a_threshold_starts_a_compaction() {
    let bench = Bench::new().await.beta(THRESHOLD);
    let mut talk = Talk::new(PLAIN).with("context_management", threshold(false));
    talk.user(filler(60_000));
    let message = talk.turn(&bench).await;
    assert_eq!(message["content"][0]["type"], "compaction");
    assert_eq!(message["content"][1]["type"], "text");
    let kinds: Vec<_> = message["usage"]["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| &i["type"])
        .collect();
    assert_eq!(kinds, ["compaction", "message"]);
    assert!(
        message["usage"]["iterations"][0]["input_tokens"]
            .as_u64()
            .unwrap()
            > 50_000
    );
    talk.user("next");
    let full = talk.turn(&bench).await;
    assert!(full["usage"]["input_tokens"].as_u64().unwrap() < 2_000);
    talk.messages().remove(0);
    talk.user("after");
    assert_eq!(
        bench.send(&talk.body).await.status,
        200,
        "the client may drop what is dead"
    );
}

/// Fact: with `pause_after_compaction` the answer ends behind the summary.
#[tokio::test]
async fn a_threshold_compaction_may_pause() {
    let bench = Bench::new().await.beta(THRESHOLD);
    let mut talk = Talk::new(PLAIN).with("context_management", threshold(true));
    talk.user(filler(60_000));
    let message = talk.turn(&bench).await;
    assert_eq!(message["stop_reason"], "compaction");
    assert_eq!(message["content"].as_array().unwrap().len(), 1);
}

/// Fact: bound thinking in the same answer as a threshold compaction stays valid.
#[tokio::test]
async fn thinking_behind_a_threshold_compaction_is_bound_to_it() {
    let bench = Bench::new().await.beta(THRESHOLD);
    let mut talk = Talk::new(BINDING).with("context_management", threshold(false));
    talk.user(filler(60_000));
    let message = talk.turn(&bench).await;
    assert_eq!(message["content"][1]["type"], "thinking");
    talk.user("next");
    talk.turn(&bench).await;
    talk.messages().remove(0);
    talk.user("after");
    assert_eq!(bench.send(&talk.body).await.status, 200);
}

/// Fact: the trigger is at least 50,000 tokens.
#[tokio::test]
async fn a_threshold_has_a_minimum() {
    let bench = Bench::new().await.beta(THRESHOLD);
    let mut edits = threshold(false);
    edits["edits"][0]["trigger"]["value"] = json!(49_999);
    let mut talk = Talk::new(PLAIN).with("context_management", edits);
    talk.user("x");
    assert_eq!(bench.send(&talk.body).await.status, 400);
}
