//! A client asks for old tool results to be cleared, and is told that they were.

use std::io::Write;

use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{FREE, NOW, figure, json_of, last_body, response, same};
use crate::support::{
    Client, Gate, LAST_CHUNK, Proxy, STREAM_HEAD, Step, Tap, chunk, simulated::Simulated, text,
};

const HERE: &str = "upstream_features = []\n";
const BETA: &str = "anthropic-beta: context-management-2025-06-27\r\n";
const BEGIN: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":9}}}\n\n",
    ": still there\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
);
const DELTA: &str =
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}";
const END: &str = "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const NOTHING: &str = r#","context_management":{"applied_edits":[]}"#;

fn wanting(agent: &Agent) -> Agent {
    let clear = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    agent.with("context_management", clear).saying(BETA)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

/// What an answer says was cleared, streamed or not.
fn told(body: &[u8]) -> Value {
    let body = text(body);
    let delta = body.lines().find(|line| line.contains("message_delta\","));
    let json = delta.map_or(&*body, |line| &line["data: ".len()..]);
    let value: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{body}"));
    value["context_management"]["applied_edits"].clone()
}

#[test]
fn an_upstream_that_does_not_clear_is_not_asked_and_the_client_is_told() {
    for streams in [false, true] {
        let upstream = Simulated::start(Options::default());
        let proxy = Proxy::with(&upstream.sim.url(), HERE);
        let agent = Agent::seasoned(FREE, 8, 4000).with("stream", streams.into());
        let mut agent = wanting(&agent);
        for (headers, clears) in [("", false), (NOW, true), ("", true)] {
            upstream.sim.push_reply(Reply::text("Yes."));
            let answer = agent.send(&proxy, headers);
            assert_eq!(answer.status(), 200, "{}", text(&answer.body));
            let sent: Value = serde_json::from_slice(&last_body(&upstream)).unwrap();
            assert_eq!(sent.get("context_management"), None);
            let stubs = figure(&answer, "stubs");
            assert_eq!(stubs > 0, clears);
            let expected = if clears {
                let tokens = figure(&answer, "original") - figure(&answer, "sent");
                json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": stubs,
                    "cleared_input_tokens": tokens}])
            } else {
                json!([])
            };
            assert_eq!(told(&answer.body), expected);
            let reply = json!([{"type": "text", "text": "Yes."}]);
            let reply = json!({"role": "assistant", "content": reply});
            agent.history.push(reply);
            agent.user("Go on.");
        }
    }
}

/// Also one that is asked in a way nobody understands.
#[test]
fn an_upstream_that_clears_is_asked_and_speaks_for_itself() {
    let upstream = Simulated::start(Options::default());
    let agent = wanting(&Agent::seasoned(FREE, 8, 4000));
    for file in ["", "upstream_features = ['clear_tool_uses_20250919']\n"] {
        let proxy = Proxy::with(&upstream.sim.url(), file);
        upstream.sim.push_reply(Reply::text("Yes."));
        let answer = agent.send(&proxy, "");
        same(&last_body(&upstream), &agent.body(), "forwarded");
        assert_eq!(told(&answer.body), json!([]));
    }
    let proxy = Proxy::with(&upstream.sim.url(), HERE);
    let odd = json!({"edits": [{"type": "clear_tool_uses_20250919", "from": "the future"}]});
    let odd = agent.with("context_management", odd);
    assert_eq!(odd.send(&proxy, "").status(), 400);
}

#[test]
fn an_answer_streams_on_and_only_the_report_is_new() {
    let gate = Gate::new();
    let waits = gate.clone();
    let tap = Tap::start(move |_| {
        let (delta, rest) = DELTA.split_at(30);
        vec![
            Step::Send([STREAM_HEAD.as_bytes(), &chunk(BEGIN)].concat()),
            Step::Wait(waits.clone()),
            Step::Send(chunk(delta)),
            Step::Send(chunk(rest)),
            Step::Wait(waits.clone()),
            Step::Send([&chunk(END)[..], LAST_CHUNK].concat()),
        ]
    });
    let proxy = Proxy::with(&tap.url(), HERE);
    let agent = wanting(&Agent::seasoned(FREE, 8, 4000)).with("stream", true.into());
    let mut client = Client::connect(proxy.address);
    client.post("/v1/messages", "", &agent.body());
    let seen = client.until(": still there\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n");
    assert!(seen.contains("x-longhaul-session"), "{seen}");
    gate.open();
    gate.open();
    let rest = client.until("0\r\n\r\n");
    let whole = format!("{DELTA}{NOTHING}{END}");
    let (name, data) = whole.split_once("data: ").unwrap();
    let (data, last) = data.split_once("\n\nevent: message_stop").unwrap();
    assert!(rest.contains(name) && rest.contains(data), "{rest}");
    assert!(rest.contains(last), "{rest}");
}

#[test]
fn a_compressed_answer_arrives_unfolded() {
    let events = format!("{BEGIN}{DELTA}{END}");
    let message = r#"{"id":"msg_1","type":"message","content":[],"usage":{"input_tokens":9}}"#;
    let rows = [
        (
            "text/event-stream",
            events.clone(),
            format!("{BEGIN}{DELTA}{NOTHING}{END}"),
        ),
        (
            "application/json",
            message.to_owned(),
            format!("{}{NOTHING}}}", message.strip_suffix('}').unwrap()),
        ),
    ];
    for (kind, plain, expected) in rows {
        for packs in [false, true] {
            let (body, coding) = if packs {
                (gzip(&plain), "content-encoding: gzip\r\n")
            } else {
                (plain.clone().into_bytes(), "")
            };
            let tap = Tap::start(move |_| {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{coding}content-length: {}\r\n\r\n",
                    body.len()
                );
                vec![Step::Send([head.as_bytes(), &body].concat())]
            });
            let proxy = Proxy::with(&tap.url(), HERE);
            let answer = wanting(&Agent::seasoned(FREE, 2, 100)).send(&proxy, "");
            assert_eq!(text(&answer.body), expected);
            assert!(answer.complete);
            assert_eq!(answer.header("content-encoding"), None);
            assert_eq!(answer.header("content-length"), None);
        }
    }
}

/// And one that is not packed as it says has no proper end.
#[test]
fn errors_and_answers_of_other_kinds_are_not_touched() {
    let packed = gzip("{}");
    let rows: [(u16, &str, &[u8]); 4] = [
        (400, "", br#"{"type":"message"}"#),
        (529, "content-encoding: gzip\r\n", &packed),
        (200, "content-encoding: compress\r\n", b"???"),
        (200, "", br#"{"type":"error","error":{"type":"x"}}"#),
    ];
    for (status, headers, body) in rows {
        let (headers, owned) = (headers.to_owned(), body.to_vec());
        let tap = Tap::start(move |_| response(status, &headers, &owned));
        let proxy = Proxy::with(&tap.url(), HERE);
        let answer = wanting(&Agent::seasoned(FREE, 2, 100)).send(&proxy, "");
        assert_eq!(answer.status(), status);
        same(&answer.body, body, "untouched");
        assert!(answer.complete);
    }
    let tap = Tap::start(|_| response(200, "content-encoding: gzip\r\n", b"this is not gzip"));
    let proxy = Proxy::with(&tap.url(), HERE);
    let answer = wanting(&Agent::seasoned(FREE, 2, 100)).send(&proxy, "");
    assert!(!answer.complete);
}

#[test]
fn an_answer_that_breaks_off_breaks_off_with_all_that_came() {
    for part in [BEGIN.to_owned(), format!("{BEGIN}{DELTA}")] {
        let sent = part.clone();
        let tap = Tap::start(move |_| {
            vec![
                Step::Send([STREAM_HEAD.as_bytes(), &chunk(&sent)].concat()),
                Step::Close,
            ]
        });
        let proxy = Proxy::with(&tap.url(), HERE);
        let answer = wanting(&Agent::seasoned(FREE, 2, 100)).send(&proxy, "");
        assert_eq!(text(&answer.body), part);
        assert!(!answer.complete);
    }
}

/// Its usage is of less than what was sent.
#[test]
fn nothing_is_learned_from_a_prompt_that_upstream_cleared() {
    let learns = |edits: Value| {
        let tap = Tap::start(move |request| {
            let body = json!({"id": "msg_1", "type": "message", "role": "assistant",
                "model": json_of(request)["model"], "content": [], "stop_reason": "end_turn",
                "usage": {"input_tokens": request.body.len() / 9, "output_tokens": 5},
                "context_management": {"applied_edits": edits}});
            response(200, "", body.to_string().as_bytes())
        });
        let proxy = Proxy::before(&tap.url());
        let first = wanting(&Agent::seasoned(FREE, 8, 4000)).send(&proxy, "");
        let mut other = Agent::new(FREE);
        other.user(&"Something else altogether. ".repeat(4000));
        let before = figure(&first, "original");
        (before, figure(&other.send(&proxy, ""), "original"))
    };
    let cleared = json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 5, "cleared_input_tokens": 9000}]);
    let (before, cleared) = learns(cleared);
    let (same_before, plain) = learns(json!([]));
    assert_eq!(before, same_before);
    assert!(plain * 10 < cleared * 9, "{plain} {cleared}");
}
