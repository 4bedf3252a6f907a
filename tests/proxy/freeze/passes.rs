//! Sessions with passes of every kind: clearing, digests, trimming, summaries in
//! every way they are asked for, and thinking.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::record::Record;
use super::stage::Stage;
use crate::recordings;
use crate::views::agent::Agent;
use crate::views::cast::{BOUND, FREE, NOW, session};
use crate::views::transcripts::{said, stretches};
use crate::views::wishes::{HERE, order};

/// A made-up recording that ships with the project.
pub fn recording(name: &str) -> Vec<Value> {
    let shipped = recordings::shipped();
    let named = |path: &&std::path::PathBuf| recordings::name(path) == name;
    let path: &Path = shipped.iter().find(named).unwrap();
    stretches(path).swap_remove(0)
}

/// An agent with the tools that a recording uses, and some more.
fn agent(model: &str, messages: &[Value], more: &[&str]) -> Agent {
    let mut agent = Agent::new(model);
    let blocks = messages.iter().filter_map(|m| m["content"].as_array());
    let names = blocks.flatten().filter_map(|block| block["name"].as_str());
    let names: BTreeSet<&str> = names.chain(more.iter().copied()).collect();
    let tool = |name: &&str| json!({"name": name, "input_schema": {"type": "object"}});
    agent.fields["tools"] = names.iter().map(tool).collect();
    agent.fields["thinking"] = json!({"type": "adaptive"});
    agent.fields["max_tokens"] = json!(4_000);
    agent
}

/// Plays a recording: the assistant's part comes out of the simulator.
fn play(record: &mut Record, stage: &mut Stage, agent: &mut Agent, messages: &[Value]) {
    for pair in messages.chunks(2) {
        let [asked, answer] = pair else { break };
        agent.history.push(asked.clone());
        let wish = if agent.history.len() == 31 { NOW } else { "" };
        let reply = said(answer, false);
        stage.ask(record, 0, agent, reply, wish);
    }
}

#[test]
fn sessions_with_passes_are_as_they_were() {
    let mut record = Record::new("passes.txt");
    recorded_sessions(&mut record);
    long_talk(&mut record);
    in_journal_style(&mut record);
    clearing_for_a_client(&mut record);
    wishes(&mut record);
    record.check();
}

fn recorded_sessions(record: &mut Record) {
    let port = recording("made-up-port");
    let service = recording("made-up-service");
    let tools = ["mcp__longhaul__recall", "mcp__longhaul__expand"];
    let scenes = [
        (BOUND, &port, &[][..], 16_000, "mode = \"native\""),
        (FREE, &port, &[][..], 12_000, "mode = \"model\""),
        (FREE, &port, &tools[..], 16_000, "mode = \"fork\""),
        (
            FREE,
            &service,
            &tools[..],
            7_000,
            "mode = \"auto\"\n[policy]\naim = \"thrifty\"",
        ),
        (
            BOUND,
            &service,
            &[][..],
            7_000,
            "mode = \"auto\"\n[policy]\naim = \"balanced\"",
        ),
    ];
    for (number, (model, messages, tools, budget, more)) in scenes.into_iter().enumerate() {
        record.scene(&format!(
            "recording {number} on {model}, {budget} tokens, {more:?}"
        ));
        let file = format!("[window]\nbudget = {budget}\n[summarizer]\n{more}\n");
        let mut stage = Stage::start(Options::default(), &file);
        let mut agent = agent(model, messages, tools);
        agent.fields["stream"] = json!(number % 2 == 1);
        play(record, &mut stage, &mut agent, messages);
    }
}

/// A turn of words.
pub fn talk(record: &mut Record, stage: &mut Stage, agent: &mut Agent, words: usize) {
    let number = agent.history.len();
    agent.user(&format!(
        "Please do step {number} of src/part_{number}.rs now."
    ));
    let reply = format!("Answer {number}: I decided on plan {number}. ");
    let reply = reply + &"It is the better one because of what was found. ".repeat(words / 9);
    stage.ask(record, 0, agent, Reply::text(reply), "");
}

/// A tool call and its result, with thinking.
pub fn call(record: &mut Record, stage: &mut Stage, agent: &mut Agent, size: usize) {
    let number = agent.history.len();
    let path = format!("src/part_{}.rs", number % 7);
    agent.user(&format!("Look at {path}."));
    let thought = format!("I weigh {number} against the rest. ").repeat(4);
    let reply = Reply::call("Read", &json!({"file_path": path})).after_thinking(&thought);
    stage.ask(record, 0, agent, reply, "");
    agent.results(size);
    let reply = Reply::text("I have read it.").after_thinking(&thought);
    stage.ask(record, 0, agent, reply, "");
}

/// Summaries side by side until they are merged, over a restart and a pause.
fn long_talk(record: &mut Record) {
    record.scene("a long talk, summaries merged, a restart and pauses");
    let file = "[window]\nbudget = 9000\n[policy]\nmax_segments = 2\n\
                [summarizer]\nmode = \"model\"\nparallel = 1\ninstructions = \"Mind the colours.\"\n";
    let mut stage = Stage::start(Options::default(), file);
    let mut agent = Agent::new(FREE);
    agent.fields["thinking"] = json!({"type": "adaptive"});
    agent.user("Build a compiler. Never modify files under legacy/.");
    for turn in 0..44 {
        if turn % 5 == 0 {
            call(record, &mut stage, &mut agent, 1_500);
        }
        talk(record, &mut stage, &mut agent, 220);
        if turn == 20 {
            stage.restart();
        }
        if turn % 15 == 10 {
            stage.pass(900);
        }
    }
}

fn in_journal_style(record: &mut Record) {
    record.scene("the journal style");
    let file = "window.budget = 8000\npolicy.style = \"journal\"\njournal.live_turns = 3\n\
                recall.mcp = true\n[summarizer]\nmode = \"auto\"\n";
    let mut stage = Stage::start(Options::default(), file);
    let mut agent = Agent::new(FREE);
    for turn in 0..12 {
        if turn % 3 == 0 {
            call(record, &mut stage, &mut agent, 3_000);
        }
        talk(record, &mut stage, &mut agent, 200);
    }
}

/// The client asks the API for clearing, which the proxy does in its place.
fn clearing_for_a_client(record: &mut Record) {
    record.scene("a client that asks for clearing");
    let mut stage = Stage::start(Options::default(), "upstream_features = []\n");
    let clear = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    let agent = Agent::seasoned(FREE, 8, 4_000).with("context_management", clear);
    let mut agent = agent.saying("anthropic-beta: context-management-2025-06-27\r\n");
    for (streams, wish) in [(false, ""), (true, NOW), (true, ""), (false, "")] {
        agent.fields["stream"] = streams.into();
        stage.ask(record, 0, &mut agent, Reply::text("Yes."), wish);
        agent.user("And then?");
    }
}

/// Passes that somebody asks for, counts, oversized results, and another model.
fn wishes(record: &mut Record) {
    record.scene("passes on request, counts, oversized results, another model");
    let file = "[trim]\nmax_chars = 6000\n[summarizer]\nmode = \"fork\"\n";
    let mut stage = Stage::start(Options::default(), file);
    let mut agent = Agent::new(BOUND);
    for size in [900, 20_000, 4_000, 4_000, 4_000, 4_000] {
        call(record, &mut stage, &mut agent, size);
    }
    agent.user("Tidy up.");
    let wish = format!("{NOW}x-longhaul-instructions: Keep the names.\r\n");
    let answer = stage.ask(record, 0, &mut agent, Reply::text("Tidy."), &wish);
    let body = r#"{"instructions": "Keep the numbers."}"#;
    let noted = order(&stage.proxies[0], &session(&answer), HERE, body);
    record.note(&format!("ordered: {}", noted.status()));
    for _ in 0..4 {
        talk(record, &mut stage, &mut agent, 900);
    }
    counts(record, &mut stage, &agent);
    FREE.clone_into(&mut agent.model);
    talk(record, &mut stage, &mut agent, 100);
    agent.user("As it is, please.");
    let off = "x-longhaul-compact: off\r\nx-longhaul-session: seven\r\n";
    stage.ask(record, 0, &mut agent, Reply::text("As it is."), off);
    talk(record, &mut stage, &mut agent, 100);
}

fn counts(record: &mut Record, stage: &mut Stage, agent: &Agent) {
    let mut counts = agent.clone();
    counts.fields.as_object_mut().unwrap().remove("max_tokens");
    counts.user("How much is it?");
    let path = "/v1/messages/count_tokens";
    stage.post(record, 0, path, "", &counts.body());
}
