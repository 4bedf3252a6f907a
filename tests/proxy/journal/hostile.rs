//! Callers who send nonsense, or try to see what is not theirs. They get a clear
//! answer, never somebody else's words and never a failure of ours.

use serde_json::{Value, json};

use super::stock::{TOKEN, house};
use crate::support::{Client, Proxy, Tap, plain};

/// Words of the other tenant's.
const FOREIGN: &str = "omega";

#[test]
fn every_wrong_argument_is_answered_with_what_would_be_right() {
    let house = house();
    let own = &house.own.span;
    let rows = [
        ("recall", json!({}), "\"ref\" is missing"),
        ("recall", json!({"ref": own}), "\"query\" is missing"),
        (
            "recall",
            json!({"ref": own, "query": 7}),
            "\"query\" must be a text",
        ),
        (
            "recall",
            json!({"ref": own, "query": {"a": 1}}),
            "\"query\" must be a text",
        ),
        (
            "recall",
            json!({"ref": own, "query": "x", "limit": 100_000}),
            "from 1 to 20",
        ),
        (
            "recall",
            json!({"ref": own, "query": "x", "limit": -1}),
            "from 1 to 20",
        ),
        (
            "recall",
            json!({"ref": own, "query": "x", "limit": "many"}),
            "from 1 to 20",
        ),
        (
            "recall",
            json!({"ref": own, "query": "x", "limit": 1e308}),
            "from 1 to 20",
        ),
        (
            "recall",
            json!({"ref": own, "query": "x", "session": "y"}),
            "it takes ref, query, limit",
        ),
        (
            "recall",
            json!({"ref": 5, "query": "x"}),
            "\"ref\" must be a text",
        ),
        (
            "recall",
            json!({"ref": "lh-", "query": "x"}),
            "\"ref\" must be one reference",
        ),
        (
            "recall",
            json!({"ref": "\u{0}", "query": "x"}),
            "\"ref\" must be one reference",
        ),
        (
            "recall",
            json!({"ref": format!("{own} {}", house.foreign.span), "query": "x"}),
            "must be one reference",
        ),
        (
            "recall",
            json!({"ref": "a".repeat(10_000), "query": "x"}),
            "at most 4096",
        ),
        ("expand", json!({"ref": own, "page": 0}), "from 1 to"),
        ("expand", json!({"ref": own, "page": []}), "from 1 to"),
        ("session_status", json!({"ref": null}), "\"ref\" is missing"),
        (
            "compact_now",
            json!({"ref": own, "instructions": ["x"]}),
            "\"instructions\" must be a text",
        ),
        (
            "compact_now",
            json!({"ref": own, "instructions": "x".repeat(20_000)}),
            "at most 16384",
        ),
    ];
    for (tool, arguments, expected) in rows {
        let (text, failed) = house.call("", tool, &arguments);
        assert!(failed && text.contains(expected), "{tool}: {text}");
    }
    let long = json!({"ref": own, "query": "x ".repeat(500_000)});
    let (text, failed) = house.call("", "recall", &long);
    assert!(failed && text.contains("at most 4096"), "{text}");
}

#[test]
fn no_reference_can_be_guessed_and_none_says_more_than_another() {
    let house = house();
    let nothing = "nothing is known under this reference";
    for guess in [
        "0".repeat(20),
        "f".repeat(20),
        "0123456789abcdef0123".to_owned(),
    ] {
        for tool in ["recall", "expand", "session_status", "compact_now"] {
            let mut arguments = json!({"ref": format!("lh-{guess}")});
            if tool == "recall" {
                arguments["query"] = json!("scheduler");
            }
            let (text, failed) = house.call("", tool, &arguments);
            assert!(!failed && text.starts_with(nothing), "{tool}: {text}");
        }
    }
    // One digit from a right one is as far away as any other.
    let mut near = house.foreign.span.clone();
    let last = near.pop().unwrap();
    near.push(if last == '0' { '1' } else { '0' });
    assert!(
        house
            .told("expand", &json!({"ref": near}))
            .starts_with(nothing)
    );
}

#[test]
fn what_is_searched_for_is_never_a_command() {
    let house = house();
    let queries = [
        "' OR 1=1 --",
        "\"; DROP TABLE entries; --",
        "scheduler OR *",
        "NEAR(scheduler omega, 5)",
        "scope:omega",
        "zz00000000000000000000000000000000 omega",
        "-omega ^omega {omega} (omega",
        "omega\0alpha",
        "%' UNION SELECT * FROM blobs",
        "\u{202e}\u{1f600}\u{fffd}",
        "!!!",
        "的調度程序",
        "\\x00\\",
    ];
    for query in queries {
        let found = house.told("recall", &json!({"ref": house.own.span, "query": query}));
        assert!(!found.contains(FOREIGN), "{query}: {found}");
    }
    let status = house.ask("GET", "/metrics");
    assert_eq!(status.status(), 200);
}

#[test]
fn what_is_no_call_is_refused_and_the_next_one_is_answered() {
    let house = house();
    let here = "host: localhost\r\n";
    let bodies: [&[u8]; 8] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{\"jsonrpc\":\"1.0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
        b"\xff\xfe",
    ];
    for body in bodies {
        let answer = house.post(here, body);
        let status = answer.status();
        assert!((200..500).contains(&status), "{status} for {body:?}");
    }
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    assert!((200..500).contains(&house.post(here, &deep).status()));
    let huge = vec![b' '; 3 << 20];
    assert_eq!(house.post(here, &huge).status(), 413);
    let unknown = json!({"name": "drop_tables", "arguments": {}});
    let answer = house.rpc("", "tools/call", &unknown);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no such tool")
    );
    let listed = house.rpc("", "tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(4));
}

/// A page in somebody's browser must not reach the tools, by whatever name.
#[test]
fn a_foreign_page_reaches_nothing() {
    let house = house();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let rows = [
        ("host: localhost\r\n", 200),
        ("host: 127.0.0.1:4180\r\n", 200),
        (
            "host: localhost:4180\r\norigin: http://localhost:4180\r\n",
            200,
        ),
        ("host: evil.example\r\n", 403),
        ("host: localhost\r\norigin: http://evil.example\r\n", 403),
        ("host: evil.example\r\norigin: http://evil.example\r\n", 403),
        ("host: localhost\r\norigin: null\r\n", 403),
    ];
    for (headers, expected) in rows {
        let answer = house.post(headers, list.as_bytes());
        assert_eq!(answer.status(), expected, "{headers}");
    }
    let named = format!("host: proxy.example\r\nauthorization: Bearer {TOKEN}\r\n");
    assert_eq!(house.post(&named, list.as_bytes()).status(), 200);
}

#[test]
fn the_tools_move_with_the_admin_surface() {
    let upstream = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::with(&upstream.url(), "admin.listen = \"127.0.0.1:0\"");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let head = "host: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{head}content-length: {}\r\n\r\n{list}",
        list.len()
    );
    let there = Client::connect(proxy.admin.unwrap())
        .send(&request)
        .answer();
    let told: Value = serde_json::from_slice(&there.body).unwrap();
    assert!(told["result"]["tools"].is_array(), "{told}");
    let here = Client::connect(proxy.address).send(&request).answer();
    assert_eq!(here.status(), 404);
    assert!(upstream.saw_nothing());
}

#[test]
fn wrong_questions_about_sessions_are_answered_with_what_would_be_right() {
    let house = house();
    let id = house.own.id.to_string();
    let base = format!("/longhaul/sessions/{id}");
    let rows = [
        (
            "/longhaul/sessions?limit=0".to_owned(),
            400,
            "limit must be",
        ),
        (
            "/longhaul/sessions?limit=99999999999".to_owned(),
            400,
            "limit must be",
        ),
        (
            "/longhaul/sessions?before=x".to_owned(),
            400,
            "said as next",
        ),
        (
            "/longhaul/sessions?order=1".to_owned(),
            400,
            "\"order\" is not known",
        ),
        (
            "/longhaul/sessions/x".to_owned(),
            404,
            "no session \"x\" is known",
        ),
        (
            format!("/longhaul/sessions/{}", "0".repeat(32)),
            404,
            "no session",
        ),
        (
            format!("/longhaul/sessions/{}", "..%2f".repeat(60)),
            404,
            "no session",
        ),
        (
            format!("/longhaul/sessions/{}/journal", "0".repeat(32)),
            404,
            "no session",
        ),
        (
            format!("/longhaul/sessions/{}/export", "0".repeat(32)),
            404,
            "no session",
        ),
        (
            format!("/longhaul/sessions/{}/handoff", "0".repeat(32)),
            404,
            "no session",
        ),
        (format!("{base}/journal?kind=x"), 400, "kind must be one of"),
        (
            format!("{base}/journal?q={}", "x".repeat(5_000)),
            400,
            "at most 4096",
        ),
        (format!("{base}/journal/x"), 400, "a reference is lh-"),
        (
            format!("{base}/journal/lh-{}", "0".repeat(20)),
            404,
            "nothing is known",
        ),
        (
            format!("{base}/journal/{}", house.foreign.span),
            404,
            "nothing is known",
        ),
        (
            format!("{base}/journal/{}?page=x", house.own.span),
            400,
            "page must be",
        ),
    ];
    for (path, status, expected) in rows {
        let wrong = house.wrong("GET", &path, status);
        assert!(
            wrong.contains(expected) && !wrong.contains(FOREIGN),
            "{path}: {wrong}"
        );
    }
    house.wrong(
        "DELETE",
        &format!("/longhaul/sessions/{}", "0".repeat(32)),
        404,
    );
}
