//! Recordings of real agents: nothing the user said is lost, and nobody waits.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`. A usual
//! run takes the beginnings of some; with `LONGHAUL_CASES` each is played to its
//! end.

use std::collections::BTreeSet;
use std::time::Duration;

use longhaul::engine::conversation::Conversation;
use longhaul::engine::pinned::genuine;
use longhaul::sim::{Options, Persona, Reply};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

use super::facts::words;
use super::stage::{Stage, settings};
use crate::recordings;
use crate::views::cast::{FREE, NOW};
use crate::views::transcripts::stretches;

/// Messages of a recording in a usual run, and recordings.
const PIECE: usize = 60;
const RECORDINGS: usize = 4;

fn whole() -> bool {
    std::env::var_os("LONGHAUL_CASES").is_some()
}

/// Each recording's longest stretch, with its name.
fn recordings() -> Vec<(String, Vec<Value>)> {
    let paths = recordings::all();
    let most = if whole() { usize::MAX } else { RECORDINGS };
    let found = paths.into_iter().take(most).filter_map(|path| {
        let stretches = stretches(&path).into_iter();
        let mut longest = stretches.max_by_key(Vec::len)?;
        if !whole() {
            longest.truncate(PIECE);
        }
        Some((recordings::name(&path), longest))
    });
    found.collect()
}

/// The blocks of an answer without thinking, which nobody has signed.
fn answered(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().unwrap().iter();
    let spoken = |block: &&Value| !block["type"].as_str().unwrap().contains("thinking");
    let mut blocks: Vec<Value> = blocks.filter(spoken).cloned().collect();
    if blocks.is_empty() {
        blocks.push(json!({"type": "text", "text": "…"}));
    }
    blocks
}

fn tools(messages: &[Value]) -> Value {
    let blocks = messages.iter().filter_map(|m| m["content"].as_array());
    let names: BTreeSet<&str> = blocks
        .flatten()
        .filter_map(|b| b["name"].as_str())
        .collect();
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    names.into_iter().map(tool).collect()
}

/// Plays a recording; `wish` says what to wish for with each request.
fn play(stage: &mut Stage, messages: &[Value], wish: impl Fn(usize) -> &'static str) {
    stage.agent.fields["tools"] = tools(messages);
    for (number, pair) in messages.chunks(2).enumerate() {
        let [asked, answer] = pair else {
            break;
        };
        stage.agent.history.push(asked.clone());
        stage
            .upstream
            .sim
            .push_reply(Reply::blocks(answered(answer)));
        stage.ask(wish(number));
        // Where a user asks for a summary, the simulator writes its own.
        *stage.agent.history.last_mut().unwrap() =
            json!({"role": "assistant", "content": answered(answer)});
    }
    stage.assert_accepted();
}

/// Every line that the user wrote in these messages.
fn said(messages: &[Value]) -> Vec<String> {
    let bytes = json!({"model": "m", "messages": messages}).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    let words = (0..conversation.len()).filter_map(|at| genuine(&conversation, at));
    let lines: Vec<String> = words
        .flat_map(|words| words.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .into_iter()
        .filter(|line| !line.trim().is_empty())
        .collect()
}

#[test]
fn what_real_users_said_is_not_lost_to_a_forgetful_summarizer() {
    for (name, messages) in recordings() {
        let file = settings(9_000, "mode = \"model\"");
        let mut stage = Stage::set(FREE, Options::default(), &file);
        stage.persona(Persona::Forgetful);
        play(
            &mut stage,
            &messages,
            |at| if at % 9 == 8 { NOW } else { "" },
        );
        let shown = words(&stage.shown());
        let sent = stage.agent.history.len() - 1;
        let lines = said(&stage.agent.history[..sent]);
        // More than there is room for is shortened, and says so.
        let fits = !shown.contains(" left out here]\n> ") && !shown.contains(" had no room]");
        let lost: Vec<&String> = lines.iter().filter(|line| !shown.contains(*line)).collect();
        println!(
            "{name}: {} lines of the user's, {} truncations, {} lost{}",
            lines.len(),
            stage.count("truncate"),
            lost.len(),
            if fits {
                ""
            } else {
                ", more than there is room for"
            }
        );
        assert!(lost.is_empty() || !fits, "{name}: {lost:?}");
    }
}

#[test]
fn no_turn_of_a_real_session_waits() {
    let (mut turns, mut delayed, mut summaries) = (0, 0.0, 0);
    for (name, messages) in recordings() {
        let options = Options {
            slow_summary: Duration::from_millis(400),
            ..Options::default()
        };
        let budget = if whole() { 100_000 } else { 30_000 };
        let mut stage = Stage::set(FREE, options, &settings(budget, "mode = \"model\""));
        stage.persona(Persona::Slow);
        play(&mut stage, &messages, |_| "");
        let waited = stage.metric("turns_delayed_total ");
        println!(
            "{name}: {} turns, {waited} delayed, {:?}",
            stage.passes.len(),
            stage
                .passes
                .iter()
                .filter(|pass| *pass != "none")
                .collect::<Vec<_>>()
        );
        turns += stage.passes.len();
        delayed += waited;
        summaries += stage.count("summary");
    }
    println!("{delayed} of {turns} turns were delayed, {summaries} summaries taken");
    // A small budget is jumped past by a single large result; an ordinary one is
    // not.
    assert!(!whole() || delayed < 1.0);
}
