//! What is wished of a summary reaches whoever writes it, and nothing of the
//! client's reaches anybody else.

use longhaul::sim::{Entry, Kind, Options};

use super::stage::{Stage, settings};
use crate::support::simulated::Simulated;
use crate::views::cast::{FREE, NOW, compaction, session};
use crate::views::wishes::order;

const WISH: &str = "Mind every port number, and Zephyr above all.";

fn asked(entry: &Entry) -> String {
    String::from_utf8(entry.body.clone().unwrap().to_vec()).unwrap()
}

/// A session that is ripe for a summary.
fn ripe(more: &str) -> Stage {
    let mut stage = Stage::set(FREE, Options::default(), &settings(10_000, more));
    stage.recall(8, 500);
    stage
}

#[test]
fn the_header_s_instructions_reach_the_summarizer_and_nobody_else() {
    for mode in ["model", "fork"] {
        let mut stage = ripe(&format!("mode = {mode:?}"));
        stage.agent.user("What now?");
        let header = format!("{NOW}x-longhaul-instructions: {WISH}\r\n");
        let answer = stage.ask(&header);
        assert_eq!(compaction(&answer), "summary");
        let [summary] = &stage.summaries()[..] else {
            panic!("not one summary");
        };
        assert!(asked(summary).contains(WISH));
        // The conversation itself hears nothing of it.
        let entries = stage.upstream.entries();
        let talk = entries.iter().filter(|entry| entry.kind == Kind::Message);
        for entry in talk {
            assert!(!asked(entry).contains(WISH));
            assert_eq!(entry.header("x-longhaul-instructions"), None);
        }
    }
}

#[test]
fn the_header_s_instructions_reach_a_summary_that_is_prepared() {
    for mode in ["model", "fork"] {
        let mut stage = ripe(&format!("mode = {mode:?}"));
        stage.agent.headers = format!("x-longhaul-instructions: {WISH}\r\n");
        while stage.count("summary") == 0 {
            assert!(stage.passes.len() < 20, "{:?}", stage.passes);
            stage.talk("Go on.", 400);
            stage.settle();
        }
        let summaries = stage.summaries();
        assert!(!summaries.is_empty());
        assert!(summaries.iter().all(|entry| asked(entry).contains(WISH)));
    }
}

#[test]
fn an_operator_s_instructions_reach_the_summarizer() {
    let mut stage = ripe("mode = \"model\"");
    // Small enough for now, so that nothing is prepared.
    stage.agent.history.truncate(14);
    let session = session(&stage.talk("Go on.", 60));
    let body = format!("{{\"instructions\": {WISH:?}}}");
    let wished = order(&stage.proxy, &session, "host: localhost\r\n", &body);
    assert_eq!(wished.status(), 202);
    let answer = stage.talk("And on.", 60);
    assert_eq!(compaction(&answer), "summary");
    let summaries = stage.summaries();
    assert!(summaries.iter().any(|entry| asked(entry).contains(WISH)));
}

/// One that was prepared without them is not what was asked for.
#[test]
fn instructions_are_minded_even_if_a_summary_lies_ready() {
    let mut stage = ripe("mode = \"model\"");
    while stage.summaries().is_empty() {
        stage.talk("Go on.", 200);
        stage.settle();
    }
    assert_eq!(stage.count("summary"), 0, "it was prepared, and lies ready");
    stage.agent.user("What now?");
    let header = format!("{NOW}x-longhaul-instructions: {WISH}\r\n");
    let answer = stage.ask(&header);
    assert_eq!(compaction(&answer), "summary");
    let summaries = stage.summaries();
    assert!(summaries.iter().any(|entry| asked(entry).contains(WISH)));
}

#[test]
fn another_upstream_hears_nothing_of_the_client() {
    let other = Simulated::start(Options::default());
    let more = format!(
        "mode = \"auto\"\nupstream = {:?}\napi_key_env = \"SUMMARIES\"",
        other.sim.url()
    );
    let mut stage = ripe(&more);
    stage.agent.fields["metadata"] = serde_json::json!({"user_id": "user-of-mine"});
    stage.agent.headers =
        "x-claude-code-session-id: session-of-mine\r\nuser-agent: agent-of-mine\r\n\
                           anthropic-beta: context-1m-2025-08-07\r\n"
            .to_owned();
    stage.agent.user("What now?");
    let answer = stage.ask(NOW);
    assert_eq!(compaction(&answer), "summary");
    assert!(
        stage.summaries().is_empty(),
        "the main upstream is not asked"
    );
    let [summary] = &other.entries()[..] else {
        panic!("not one summary");
    };
    assert_eq!(summary.kind, Kind::Summary);
    assert!(!asked(summary).contains("of-mine"));
    assert!(asked(&stage.upstream.last()).contains("user-of-mine"));
    let known = [
        "host",
        "content-type",
        "content-length",
        "x-api-key",
        "anthropic-version",
        "accept",
        "accept-encoding",
        "user-agent",
    ];
    for (name, value) in &summary.headers {
        assert!(known.contains(&name.as_str()), "{name}: {value}");
        assert!(!value.contains("of-mine"), "{name}: {value}");
    }
    let key = |entry: &Entry| entry.header("x-api-key").unwrap().to_owned();
    assert_ne!(key(summary), key(&stage.upstream.last()));
}
