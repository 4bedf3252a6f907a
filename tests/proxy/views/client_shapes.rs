//! Histories as real clients send them: they move marks, turn strings into
//! blocks, speak as the system, rewrite what is old, and run several at once.

use std::io::Write;

use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, all_answered, compacted, compaction, continues, figure, last_body, same,
    session, shown, stubs, worked,
};
use crate::support::{Client, Proxy, simulated::Simulated};

const HINT: &str = "x-claude-code-session-id: 5f0c\r\n";
const OTHER: &str = "x-claude-code-session-id: 77aa\r\n";
const WORKER: &str = "x-claude-code-session-id: 5f0c\r\nx-claude-code-agent-id: a1\r\n";

/// Claude Code: marks on two system blocks and on the last block of all.
fn claude_code(model: &str) -> Agent {
    let mut agent = Agent::new(model).saying(HINT);
    let mark = json!({"type": "ephemeral"});
    agent.fields["system"] = json!([
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325; cc_entrypoint=cli;"},
        {"type": "text", "text": "You are Claude Code. ".repeat(100), "cache_control": mark},
        {"type": "text", "text": "Be brief. ".repeat(100), "cache_control": mark},
    ]);
    agent.fields["context_management"] =
        json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]});
    agent.fields["thinking"] = json!({"type": "adaptive"});
    agent.headers = format!("{HINT}anthropic-beta: context-management-2025-06-27\r\n");
    agent
}

fn mark(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    let last = message["content"].as_array_mut().unwrap().last_mut();
    last.unwrap()["cache_control"] = json!({"type": "ephemeral"});
}

/// One reset of the prefix for the pass, and none besides.
fn one_break(upstream: &Simulated) -> bool {
    let entries = upstream.entries();
    entries.iter().filter(|e| e.broken_at.is_some()).count() == 1
}

/// System messages are a block with a mark while they are last, and a plain
/// string afterwards.
#[test]
fn claude_code_s_moving_marks_and_system_messages_keep_the_view() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = claude_code(BOUND);
    let mut name = None;
    let mut view: Option<Vec<Value>> = None;
    for turn in 0..4 {
        agent.user(&format!("Do step {turn}."));
        let note = format!("Reminder {turn}: the to-do list is empty.");
        agent
            .history
            .push(json!({"role": "system", "content": note}));
        for _ in 0..3 {
            agent.cycle(&upstream, &proxy, "");
            if let Some(view) = &view {
                assert!(continues(&shown(&upstream), view));
            }
        }
        upstream.sim.push_reply(Reply::text("Done."));
        agent.ask(&proxy, "");
        if turn == 1 {
            agent.user("Smaller, please.");
            upstream.sim.push_reply(Reply::text("Yes."));
            assert_eq!(compaction(&agent.ask(&proxy, NOW)), "clear");
            view = Some(shown(&upstream));
        }
        let now = session(&agent.chat(&upstream, &proxy, ""));
        assert_eq!(*name.get_or_insert(now.clone()), now);
    }
    assert!(all_answered(&upstream) && one_break(&upstream));
}

#[test]
fn opencode_s_marks_on_the_last_two_messages_keep_the_view() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = worked(&upstream, &proxy, FREE);
    agent.marks = false;
    let mut view: Option<Vec<Value>> = None;
    for turn in 0..4 {
        agent.user(&format!("Step {turn}."));
        let plain = agent.history.clone();
        for message in agent.history.iter_mut().rev().take(2) {
            mark(message);
        }
        let wish = if turn == 1 { NOW } else { "" };
        let answer = agent.ask(&proxy, wish);
        let reply = agent.history.pop().unwrap();
        agent.history = plain;
        agent.history.push(reply);
        if let Some(view) = &view {
            assert!(continues(&shown(&upstream), view));
            assert_eq!(figure(&answer, "stubs"), 4);
        }
        if turn == 1 {
            view = Some(shown(&upstream));
        }
    }
    assert!(all_answered(&upstream) && one_break(&upstream));
}

#[test]
fn text_as_a_string_or_as_a_block_is_one_conversation() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, BOUND);
    let name = session(&agent.chat(&upstream, &proxy, ""));
    let view = shown(&upstream);
    for message in &mut agent.history {
        if let Some(text) = message["content"].as_str() {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
    }
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), name);
    assert!(continues(&shown(&upstream), &view));
    assert!(all_answered(&upstream));
}

/// Rewrites the first tool result, which the view does not show.
fn rewrite(agent: &mut Agent) {
    let result = |message: &&mut Value| message["content"][0]["type"] == "tool_result";
    let old = agent.history.iter_mut().find(result).unwrap();
    old["content"][0]["content"] = json!("[Old tool result content cleared]");
}

/// As Claude Code does after idling.
#[test]
fn a_history_rewritten_where_the_view_does_not_look_keeps_its_overlay() {
    for model in [FREE, BOUND] {
        for restart in [false, true] {
            let upstream = Simulated::start(Options::default());
            let folder = tempfile::tempdir().unwrap();
            let mut proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
            let mut agent = hinted(&upstream, &proxy, model);
            let name = session(&agent.chat(&upstream, &proxy, ""));
            let view = shown(&upstream);
            if restart {
                proxy.join();
                proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
            }
            rewrite(&mut agent);
            for _ in 0..2 {
                assert_eq!(session(&agent.chat(&upstream, &proxy, "")), name);
                assert!(continues(&shown(&upstream), &view), "{model}");
            }
            agent.turn(&upstream, &proxy, 2);
            assert!(continues(&shown(&upstream), &view), "{model}");
            assert!(all_answered(&upstream) && one_break(&upstream));
        }
    }
}

fn hinted(upstream: &Simulated, proxy: &Proxy, model: &str) -> Agent {
    let mut agent = Agent::new(model).saying(HINT);
    agent.turn(upstream, proxy, 4);
    agent.turn(upstream, proxy, 3);
    assert_eq!(compaction(&agent.chat(upstream, proxy, NOW)), "clear");
    agent
}

/// The same where whole messages are hidden, not only results.
#[test]
fn a_history_rewritten_inside_a_hidden_span_keeps_its_overlay() {
    let upstream = Simulated::start(Options::default());
    let file = "clear.enabled = false\npolicy.floor = 0.009\n";
    let proxy = Proxy::with(&upstream.sim.url(), file);
    let mut agent = Agent::new(FREE).saying(HINT);
    for _ in 0..4 {
        agent.turn(&upstream, &proxy, 4);
    }
    let answer = agent.chat(&upstream, &proxy, NOW);
    assert_eq!(compaction(&answer), "truncate");
    assert_eq!(figure(&answer, "segments"), 1);
    let view = shown(&upstream);
    rewrite(&mut agent);
    assert_eq!(
        session(&agent.chat(&upstream, &proxy, "")),
        session(&answer)
    );
    assert!(continues(&shown(&upstream), &view));
    assert!(all_answered(&upstream));
}

#[test]
fn without_the_session_s_name_a_rewritten_history_is_another_conversation() {
    for headers in ["", OTHER, WORKER] {
        let upstream = Simulated::start(Options::default());
        let proxy = Proxy::before(&upstream.sim.url());
        let mut agent = hinted(&upstream, &proxy, FREE);
        rewrite(&mut agent);
        let mut agent = agent.saying(headers);
        agent.user("Who am I?");
        let body = agent.body();
        let answer = agent.ask(&proxy, "");
        same(&last_body(&upstream), &body, headers);
        assert_eq!(figure(&answer, "stubs"), 0);
    }
}

/// What the view shows is not to be taken for what it showed before.
#[test]
fn a_history_rewritten_where_the_view_does_look_is_another_conversation() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = hinted(&upstream, &proxy, FREE);
    agent.history[0] = json!({"role": "user", "content": "Another task."});
    agent.user("Who am I?");
    let body = agent.body();
    assert_eq!(figure(&agent.ask(&proxy, ""), "stubs"), 0);
    same(&last_body(&upstream), &body, "bytes");
}

#[test]
fn a_client_s_own_compaction_begins_anew() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = hinted(&upstream, &proxy, BOUND);
    agent.user("Your task is to create a detailed summary of the conversation so far.");
    upstream.sim.push_reply(Reply::text("They built it."));
    let old = session(&agent.ask(&proxy, ""));
    agent.history.clear();
    agent.user("This session is being continued from a previous conversation: they built it.");
    let body = agent.body();
    let answer = agent.ask(&proxy, "");
    assert_ne!(session(&answer), old);
    same(&last_body(&upstream), &body, "bytes");
    agent.turn(&upstream, &proxy, 3);
    assert!(all_answered(&upstream));
}

#[test]
fn sub_agents_of_one_session_do_not_meet() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut main = hinted(&upstream, &proxy, BOUND);
    let mut worker = Agent::new(BOUND).saying(WORKER);
    worker.user("Look for it.");
    let view = shown(&upstream);
    let (mut names, mut views) = (Vec::new(), Vec::new());
    main.user("Go on.");
    for round in 0..8 {
        let wish = if round == 6 { NOW } else { "" };
        let answer = worker.cycle(&upstream, &proxy, wish);
        names.push(session(&answer));
        views.push(shown(&upstream));
        let answer = main.cycle(&upstream, &proxy, "");
        assert_ne!(session(&answer), names[0]);
        assert!(continues(&shown(&upstream), &view));
    }
    assert!(names.iter().all(|name| *name == names[0]));
    assert_eq!(stubs(&views[5]), 0);
    assert!(stubs(&views[6]) > 0 && continues(&views[7], &views[6]));
}

#[test]
fn other_tools_and_another_system_are_the_same_conversation() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, FREE);
    let name = session(&agent.chat(&upstream, &proxy, ""));
    let view = shown(&upstream);
    let tools = agent.fields["tools"].as_array_mut().unwrap();
    let more =
        json!({"name": "Grep", "description": "Searches.", "input_schema": {"type": "object"}});
    tools.insert(1, more);
    let tools = agent.fields["tools"].clone();
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), name);
    agent.fields["system"] = json!("You are somebody else.");
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), name);
    let sent = upstream.last().json().unwrap();
    assert_eq!(
        (&sent["tools"], &sent["system"]),
        (&tools, &json!("You are somebody else."))
    );
    assert!(continues(&shown(&upstream), &view));
}

#[test]
fn another_model_takes_the_overlay_over_and_back() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, FREE);
    let view = shown(&upstream);
    for model in [
        "claude-sonnet-4-6",
        "claude-opus-5",
        FREE,
        "claude-sonnet-4-6",
        FREE,
    ] {
        agent.model = model.to_owned();
        for _ in 0..2 {
            agent.turn(&upstream, &proxy, 1);
            assert!(continues(&shown(&upstream), &view), "{model}");
            assert_eq!(stubs(&shown(&upstream)), stubs(&view), "{model}");
        }
    }
    assert!(all_answered(&upstream));
}

#[test]
fn a_question_on_the_side_never_replaces_the_main_model_s_overlay() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, BOUND);
    let view = shown(&upstream);
    agent.turn(&upstream, &proxy, 4);
    let mut aside = agent.clone();
    aside.model = "claude-haiku-4-5".to_owned();
    let answer = aside.chat(&upstream, &proxy, NOW);
    assert!(figure(&answer, "stubs") > stubs(&view) as u64);
    agent.turn(&upstream, &proxy, 1);
    assert!(continues(&shown(&upstream), &view));
    assert_eq!(stubs(&shown(&upstream)), stubs(&view));
    assert!(all_answered(&upstream));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn compressed_requests_go_as_they_came_unless_they_are_changed() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let agent = Agent::seasoned(FREE, 8, 2000);
    let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n";
    let packed = gzip(&agent.body());
    let send = |wish: &str| {
        let mut client = Client::connect(proxy.address);
        let headers = format!("{headers}{wish}");
        client.post("/v1/messages", &headers, &packed).answer()
    };
    assert_eq!(send("").status(), 200);
    same(&last_body(&upstream), &packed, "bytes");
    assert_eq!(upstream.last().header("content-encoding"), Some("gzip"));
    let mut other = agent.clone();
    other.history[0] = json!({"role": "user", "content": "Else."});
    let packed = gzip(&other.body());
    let mut client = Client::connect(proxy.address);
    let answer = client
        .post("/v1/messages", &format!("{headers}{NOW}"), &packed)
        .answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(compaction(&answer), "clear");
    let entry = upstream.last();
    assert_eq!(entry.header("content-encoding"), None);
    let length = entry.body.as_ref().unwrap().len().to_string();
    assert_eq!(entry.header("content-length"), Some(length.as_str()));
    assert!(stubs(&shown(&upstream)) > 0);
}
