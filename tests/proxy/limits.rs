//! Requests that are too large, too slow, malformed or half sent.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{Answer, Client, Proxy, Tap, plain};

fn quiet() -> Tap {
    Tap::start(|_| plain(b"{}"))
}

fn message_of(answer: &Answer) -> String {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
        panic!(
            "not JSON: {} {:?}",
            answer.line,
            String::from_utf8_lossy(&answer.body)
        )
    });
    assert_eq!(body["type"], "error");
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn malformed_heads_get_an_error_in_the_api_s_shape() {
    let tap = quiet();
    let proxy = Proxy::before(&tap.url());
    let long_header = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(300_000));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(500));
    let long_target = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(70_000));
    let rows: [(&[u8], u16); 7] = [
        (b"garbage\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nbad header line\r\n\r\n", 400),
        (long_header.as_bytes(), 431),
        (many_headers.as_bytes(), 431),
        (long_target.as_bytes(), 414),
    ];
    for (head, status) in rows {
        let answer = proxy.client().try_send(head).answer();
        let shown = String::from_utf8_lossy(&head[..head.len().min(40)]);
        assert_eq!(answer.status(), status, "{shown}");
        assert!(message_of(&answer).starts_with("longhaul: "), "{shown}");
    }
    assert!(tap.saw_nothing());
    assert_eq!(
        proxy
            .client()
            .post("/v1/messages", "", b"{}")
            .answer()
            .status(),
        200
    );
}

#[test]
fn a_body_over_the_limit_is_refused_with_the_limit_in_the_message() {
    let tap = quiet();
    let proxy = Proxy::with(&tap.url(), "limits.body_bytes = \"1MiB\"");
    let large = vec![b' '; 4 << 20];
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    let answer = proxy.client().send(head).try_send(&large).answer();
    assert_eq!(answer.status(), 413);
    assert!(message_of(&answer).contains("1048576"));
    // Without a declared length it is noticed on the way.
    let mut client = proxy.client();
    client.send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for piece in large.chunks(100_000) {
        client.try_send(crate::support::chunk(piece));
    }
    assert_eq!(client.answer().status(), 413);
    // A bomb is noticed before it unfolds.
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    writer.write_all(&large).unwrap();
    let bomb = writer.finish().unwrap();
    let answer = proxy
        .client()
        .post("/v1/messages", "content-encoding: gzip\r\n", &bomb)
        .answer();
    assert_eq!(answer.status(), 413);
    assert!(message_of(&answer).contains("once decoded"));
    assert!(tap.saw_nothing());
}

#[test]
fn a_path_that_is_not_read_has_no_limit_of_size() {
    let tap = quiet();
    let proxy = Proxy::with(&tap.url(), "limits.body_bytes = \"1MiB\"");
    let large = vec![b'x'; 4 << 20];
    assert_eq!(
        proxy
            .client()
            .post("/v1/files", "", &large)
            .answer()
            .status(),
        200
    );
    assert!(tap.seen().body == large);
}

#[test]
fn a_slow_head_and_a_slow_body_are_given_up_with_a_408() {
    let tap = quiet();
    let proxy = Proxy::with(
        &tap.url(),
        "limits.header_timeout = \"1s\"\nlimits.body_idle = \"1s\"",
    );
    let begun = Instant::now();
    let mut head = proxy.client();
    let mut body = proxy.client();
    head.send("POST /v1/messages HTTP/1.1\r\nho");
    body.send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n12345");
    let answer = head.answer();
    assert_eq!(answer.status(), 408);
    assert!(message_of(&answer).contains("header_timeout"));
    let answer = body.answer();
    assert_eq!(answer.status(), 408);
    assert!(message_of(&answer).contains("after 5 bytes"));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(tap.saw_nothing());
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let tap = quiet();
    let proxy = Proxy::with(&tap.url(), "limits.header_timeout = \"1s\"");
    let mut client = proxy.client();
    assert_eq!(
        client.post("/v1/messages", "", b"{}").answer().status(),
        200
    );
    assert!(client.some().is_empty());
}

#[test]
fn a_half_sent_body_is_a_400_and_nothing_goes_upstream() {
    let tap = quiet();
    let proxy = Proxy::before(&tap.url());
    let answer = proxy
        .client()
        .send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"half\":")
        .finish()
        .answer();
    assert_eq!(answer.status(), 400);
    assert!(message_of(&answer).contains("after 8 bytes"));
    assert!(tap.saw_nothing());
}

#[test]
fn bodies_together_stay_within_their_room_and_the_rest_gets_a_529() {
    let tap = quiet();
    let file = "limits.body_bytes = \"1MiB\"\nlimits.buffered_bytes = \"1MiB\"\nlimits.buffer_wait = \"200ms\"";
    let proxy = Proxy::with(&tap.url(), file);
    // One client holds most of the room by not finishing its body.
    let held = vec![b' '; 900_000];
    let mut holder = proxy.client();
    holder
        .send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 900001\r\n\r\n")
        .send(&held);
    while proxy.metric("longhaul_buffered_bytes").unwrap() < 900_000.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let answer = proxy.client().post("/v1/messages", "", &held).answer();
    assert_eq!(answer.status(), 529);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(message_of(&answer).contains("limits.buffered_bytes"));
    assert_eq!(holder.send(" ").answer().status(), 200);
    assert_eq!(
        proxy
            .client()
            .post("/v1/messages", "", &held)
            .answer()
            .status(),
        200
    );
    assert_eq!(proxy.metric("longhaul_buffered_bytes"), Some(0.0));
}

/// Nobody needs a token to send one.
#[test]
fn bodies_of_tool_calls_take_their_room_too() {
    let tap = quiet();
    let file = "limits.body_bytes = \"1MiB\"\nlimits.buffered_bytes = \"4MiB\"\nlimits.buffer_wait = \"200ms\"";
    let proxy = Proxy::with(&tap.url(), file);
    let most = vec![b' '; 1_800_000];
    let holders: Vec<Client> = (0..2)
        .map(|_| {
            let mut holder = proxy.client();
            holder
                .send("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1900000\r\n\r\n")
                .send(&most);
            holder
        })
        .collect();
    crate::support::eventually("they take no room", || {
        proxy.metric("longhaul_buffered_bytes").unwrap() >= 3_600_000.0
    });
    let body = vec![b' '; 900_000];
    let send = |path| proxy.client().post(path, "", &body).answer();
    assert_eq!(send("/v1/messages").status(), 529);
    assert_eq!(
        send("/mcp").status(),
        403,
        "an unknown host is refused before"
    );
    let answer = proxy
        .client()
        .send("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n")
        .send(&body)
        .answer();
    assert_eq!(answer.status(), 529);
    assert!(message_of(&answer).contains("limits.buffered_bytes"));
    drop(holders);
    crate::support::eventually("the room is not given back", || {
        proxy.metric("longhaul_buffered_bytes") == Some(0.0)
    });
    assert_eq!(send("/v1/messages").status(), 200);
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    let tap = quiet();
    let proxy = Proxy::with(&tap.url(), "limits.connections = 2");
    let mut first = proxy.client();
    let mut second = proxy.client();
    for client in [&mut first, &mut second] {
        assert_eq!(
            client.post("/v1/messages", "", b"{}").answer().status(),
            200
        );
    }
    let mut third: Client = proxy.client();
    third.post("/v1/messages", "", b"{}");
    drop(first);
    assert_eq!(third.answer().status(), 200);
}
