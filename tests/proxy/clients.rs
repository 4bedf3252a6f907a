//! The official SDKs, as people install them, through the proxy.
//!
//! Each SDK runs the session in `tests/clients` twice: through the proxy and
//! straight against a simulator of its own. What it prints must be the same,
//! and so must everything that the simulators noted down.

use std::io::Write;

use longhaul::sim::{Entry, Key, Options, Outcome};

use crate::support::sdk::{KEY, Sdk};
use crate::support::simulated::Simulated;
use crate::support::{LAST_CHUNK, Proxy, Step, Tap, chunk};

/// A simulator with a key, and a model with a small window.
fn simulated(threads: bool) -> Simulated {
    Simulated::start(Options {
        threads,
        keys: vec![Key {
            credential: KEY.to_owned(),
            organization: "org_clients".to_owned(),
            workspace: "wrkspc_clients".to_owned(),
        }],
        ..Options::default().with_window("claude-haiku-4-5", 5_000)
    })
}

/// Headers that belong to one connection, and one that tells how often the SDK
/// itself sent the request: where an idle connection turns out to be dead the
/// proxy is first to try a new one.
const OWN_HEADERS: [&str; 3] = ["host", "connection", "x-stainless-retry-count"];

/// What a simulator noted about the requests.
fn noted(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let mut headers: Vec<String> = entry
            .headers
            .iter()
            .filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort();
        format!(
            "{} {} {:?} {:?} {:?} {headers:?} {}",
            entry.method,
            entry.path,
            entry.outcome,
            entry.tokens,
            entry.written_positions,
            String::from_utf8_lossy(entry.body.as_deref().unwrap_or_default())
        )
    };
    let mut lines: Vec<String> = entries.iter().map(line).collect();
    // Some requests are made at once.
    lines.sort();
    lines
}

fn assert_same(through: &[String], direct: &[String]) {
    for (ours, theirs) in through.iter().zip(direct) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(through.len(), direct.len());
}

/// The whole session: the SDK notices nothing, and neither does the API.
fn whole_session(sdk: &Sdk) {
    let (upstream, alone) = (simulated(true), simulated(true));
    let proxy = Proxy::with(&upstream.sim.url(), "threads = \"pass\"");
    let base = format!("http://{}", proxy.address);
    let through = sdk.session(&base, &upstream.sim.url(), &[]);
    let direct = sdk.session(&alone.sim.url(), &alone.sim.url(), &[]);
    assert_same(&through, &direct);

    let entries = upstream.entries();
    assert_same(&noted(&entries), &noted(&alone.entries()));
    let refusals: Vec<&str> = entries
        .iter()
        .filter_map(|entry| match &entry.outcome {
            Outcome::Refused { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    let wanted = [
        "`tool_use` ids were found without",
        "prompt is too long",
        "invalid x-api-key",
    ];
    assert_eq!(refusals.len(), wanted.len(), "{refusals:?}");
    for (refusal, wanted) in refusals.iter().zip(wanted) {
        assert!(refusal.contains(wanted), "{refusal}");
    }
    for entry in &entries {
        // Only a compaction that the SDK asked for changes a history.
        let first = entry
            .json()
            .map(|body| body["messages"][0]["content"][0]["type"].clone());
        if first.is_none_or(|first| first != "compaction") {
            assert_eq!(entry.broken_at, None, "a history changed: {}", entry.path);
        }
        assert_eq!(entry.prefix_mismatch, None);
        assert!(entry.transformations.is_empty());
    }
    let continued = entries.iter().filter(|entry| thread(entry) == "continue");
    assert_eq!(continued.count(), 14, "of two runners and two that compact");
}

fn thread(entry: &Entry) -> String {
    let kind = entry.json().map(|body| body["thread"]["type"].clone());
    let kind = kind.and_then(|kind| kind.as_str().map(str::to_owned));
    kind.unwrap_or_default()
}

/// An API without threads: the runner sends its whole history instead.
fn refused_threads(sdk: &Sdk) {
    let checks = ["tool_runner", "tool_runner_streamed"];
    let (upstream, alone) = (simulated(false), simulated(false));
    let proxy = Proxy::with(&upstream.sim.url(), "threads = \"pass\"");
    let base = format!("http://{}", proxy.address);
    let through = sdk.session(&base, &upstream.sim.url(), &checks);
    let direct = sdk.session(&alone.sim.url(), &alone.sim.url(), &checks);
    assert_same(&through, &direct);

    let entries = upstream.entries();
    assert_same(&noted(&entries), &noted(&alone.entries()));
    let sent: Vec<(String, usize, bool)> = entries
        .iter()
        .map(|entry| {
            let body = entry.json().unwrap();
            let messages = body["messages"].as_array().unwrap().len();
            (thread(entry), messages, entry.is_answered())
        })
        .collect();
    let one = [
        ("create".to_owned(), 1, false),
        (String::new(), 1, true),
        (String::new(), 3, true),
        (String::new(), 5, true),
        (String::new(), 7, true),
    ];
    assert_eq!(sent, [one.clone(), one].concat());
}

/// Threads are declined by default, in the way that makes the runner send its
/// whole history: the API never sees one.
fn declined_threads(sdk: &Sdk) {
    let upstream = simulated(true);
    let proxy = Proxy::before(&upstream.sim.url());
    let base = format!("http://{}", proxy.address);
    let checks = ["tool_runner", "tool_runner_streamed"];
    sdk.session(&base, &upstream.sim.url(), &checks);
    let sent: Vec<(String, usize, bool)> = upstream
        .entries()
        .iter()
        .map(|entry| {
            let messages = entry.json().unwrap()["messages"].as_array().unwrap().len();
            (thread(entry), messages, entry.is_answered())
        })
        .collect();
    let one = [1, 3, 5, 7].map(|messages| (String::new(), messages, true));
    assert_eq!(sent, [one.clone(), one].concat());
}

/// Invariant 5: thinking that no longer fits is dropped instead of refused.
fn healed_thinking(sdk: &Sdk) {
    let upstream = simulated(true);
    sdk.session(
        &upstream.sim.url(),
        &upstream.sim.url(),
        &["changed_thinking"],
    );
    let proxy = Proxy::before(&upstream.sim.url());
    let base = format!("http://{}", proxy.address);
    sdk.session(&base, &upstream.sim.url(), &["healed_thinking"]);
    let entries = upstream.entries();
    let [.., refused, answered] = entries.as_slice() else {
        panic!("{} requests", entries.len());
    };
    assert!(!refused.is_answered() && answered.is_answered());
    assert_eq!(answered.transformations.len(), 1);
}

const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"unpacked"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}}"#;
const EVENTS: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-5-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"unpacked\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// An API that compresses its answers, as it does for those who accept it.
fn compressed(sdk: &Sdk) {
    let tap = Tap::start(|request| {
        assert!(request.header("accept-encoding").unwrap().contains("gzip"));
        let streamed = memchr::memmem::find(&request.body, b"\"stream\":true").is_some();
        let (kind, text) = if streamed {
            ("text/event-stream; charset=utf-8", EVENTS)
        } else {
            ("application/json", MESSAGE)
        };
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        let mut answer = head.into_bytes();
        for piece in packed.finish().unwrap().chunks(37) {
            answer.extend(chunk(piece));
        }
        answer.extend(LAST_CHUNK);
        vec![Step::Send(answer)]
    });
    let proxy = Proxy::before(&tap.url());
    let base = format!("http://{}", proxy.address);
    sdk.session(&base, &tap.url(), &["compressed"]);
}

#[test]
fn the_python_sdk_notices_nothing() {
    whole_session(&Sdk::python());
}

#[test]
fn the_python_tool_runner_does_without_threads() {
    refused_threads(&Sdk::python());
}

#[test]
fn the_python_tool_runner_is_told_to_send_its_history() {
    declined_threads(&Sdk::python());
}

#[test]
fn the_python_sdk_survives_thinking_that_no_longer_fits() {
    healed_thinking(&Sdk::python());
}

#[test]
fn the_typescript_tool_runner_is_told_to_send_its_history() {
    declined_threads(&Sdk::typescript());
}

#[test]
fn the_typescript_sdk_survives_thinking_that_no_longer_fits() {
    healed_thinking(&Sdk::typescript());
}

#[test]
fn the_python_sdk_reads_compressed_answers() {
    compressed(&Sdk::python());
}

#[test]
fn the_typescript_sdk_notices_nothing() {
    whole_session(&Sdk::typescript());
}

#[test]
fn the_typescript_tool_runner_does_without_threads() {
    refused_threads(&Sdk::typescript());
}

#[test]
fn the_typescript_sdk_reads_compressed_answers() {
    compressed(&Sdk::typescript());
}
