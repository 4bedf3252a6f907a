//! Lengths, chunks, versions and odd statuses: a message that comes in whole
//! goes out whole, one that was cut stays cut, and none can be read two ways.

use std::io::ErrorKind;

use crate::support::{GET, Gate, LAST_CHUNK, Proxy, STREAM_HEAD, Step, Tap, chunk, plain, text};

const HEAD: &str = "HEAD /v1/x HTTP/1.1\r\nhost: x\r\n\r\n";

/// What the client gets when upstream says `response`, to the last byte. The
/// connection has to go on: a second request on it is answered, and its answer
/// marks where the first one ends.
fn relayed(response: &[u8], request: &str) -> String {
    let response = response.to_vec();
    let tap = Tap::start(move |_| vec![Step::Send(response.clone())]);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send(request);
    client.send("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let (seen, ended) = client.rest();
    let seen = text(&seen);
    ended.unwrap();
    let (first, second) = seen.split_at(seen.rfind("HTTP/1.1 ").unwrap());
    assert!(second.contains("alive"), "{seen}");
    first.to_owned()
}

#[test]
fn a_head_answer_without_a_length_gets_none() {
    let seen = relayed(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        HEAD,
    );
    assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
    assert!(!seen.contains("content-length: 0"), "{seen}");
}

#[test]
fn a_304_without_a_length_gets_none() {
    let seen = relayed(b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n", GET);
    assert!(
        seen.contains("304") && !seen.contains("content-length"),
        "{seen}"
    );
}

#[test]
fn a_204_gets_no_length() {
    let seen = relayed(b"HTTP/1.1 204 No Content\r\n\r\n", GET);
    assert!(
        seen.contains("204") && !seen.contains("content-length"),
        "{seen}"
    );
}

#[test]
fn an_answer_with_length_and_chunks_is_delivered_whole() {
    let seen = relayed(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", GET);
    assert!(seen.contains("hello"), "{seen}");
}

#[test]
fn a_length_larger_than_the_chunks_beside_it_does_not_hang() {
    let seen = relayed(b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", GET);
    assert!(
        seen.contains("hello") && !seen.contains("content-length: 30"),
        "{seen}"
    );
}

#[test]
fn early_hints_before_the_answer_are_survived() {
    let seen = relayed(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", GET);
    assert!(seen.contains("200 OK") && seen.ends_with("ok"), "{seen}");
}

#[test]
fn an_http_1_0_answer_is_passed_on_in_the_client_s_version() {
    let seen = relayed(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", GET);
    assert!(
        seen.starts_with("HTTP/1.1 200") && seen.ends_with("ok"),
        "{seen}"
    );
}

#[test]
fn an_answer_with_many_headers_passes() {
    let many = format!(
        "HTTP/1.1 200 OK\r\n{}content-length: 2\r\n\r\nok",
        "x-a: b\r\n".repeat(150)
    );
    let seen = relayed(many.as_bytes(), GET);
    assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
    assert_eq!(seen.matches("x-a: b\r\n").count(), 150);
}

#[test]
fn an_unasked_switch_of_protocols_is_an_error_the_client_sees() {
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let tap = Tap::start(move |_| vec![Step::Send(switch.to_vec())]);
    let proxy = Proxy::before(&tap.url());
    let answer = proxy.client().send(GET).answer();
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
    let conversation = br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let answer = proxy
        .client()
        .post("/v1/messages", "", conversation)
        .answer();
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
}

#[test]
fn a_body_that_looks_like_an_answer_is_delivered() {
    let body = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    let gate = Gate::new();
    let steps = vec![
        Step::Send(
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes(),
        ),
        Step::Wait(gate.clone()),
        Step::Send(body.into()),
    ];
    let tap = Tap::start(move |_| steps.clone());
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send("GET /v1/files/f/content HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.head().status(), 200);
    gate.open();
    assert_eq!(client.until("\r\n\r\n"), body);
}

#[test]
fn a_get_with_a_chunked_body_keeps_it() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    proxy.client().send("GET /v1/search HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").answer();
    assert_eq!(text(&tap.seen().body), "hello");
}

#[test]
fn a_length_beside_chunks_from_the_client_cannot_smuggle() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/files"] {
        for order in [
            "content-length: 3\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
        ] {
            let request =
                format!("POST {path} HTTP/1.1\r\nhost: x\r\n{order}\r\n5\r\nhello\r\n0\r\n\r\n");
            proxy.client().send(request).answer();
            let seen = tap.seen();
            let shown = format!("{path} {order} {:?}", seen.headers);
            assert_eq!(text(&seen.body), "hello", "{shown}");
        }
    }
}

#[test]
fn transfer_codings_other_than_chunked_are_not_forwarded_as_plain() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let answer = proxy.client().send("POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").answer();
    assert!(answer.status() >= 400, "{}", answer.line);
}

#[test]
fn expect_continue_works_on_every_path() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/files"] {
        let mut client = proxy.client();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        ));
        let seen = client.until("\r\n\r\n");
        assert!(seen.starts_with("HTTP/1.1 100"), "{path} {seen}");
        let seen = client.send("{}").until("\r\n\r\nok");
        assert!(seen.starts_with("HTTP/1.1 200"), "{path} {seen}");
    }
}

#[test]
fn an_http_1_0_client_gets_a_plain_stream() {
    let stream = [STREAM_HEAD.as_bytes(), &chunk("hello"), LAST_CHUNK].concat();
    let tap = Tap::start(move |_| vec![Step::Send(stream.clone())]);
    let proxy = Proxy::before(&tap.url());
    let (seen, ended) = proxy.client().send("GET /v1/x HTTP/1.0\r\n\r\n").rest();
    let seen = text(&seen);
    ended.unwrap();
    assert!(
        seen.ends_with("\r\n\r\nhello") && !seen.contains("chunked"),
        "{seen}"
    );
}

/// An upstream that begins like this and is torn down when the gate opens.
fn torn(begin: Vec<u8>, gate: &Gate) -> Tap {
    let steps = vec![Step::Send(begin), Step::Wait(gate.clone()), Step::Reset];
    Tap::start(move |_| steps.clone())
}

/// To a client of HTTP/1.0 the end of the connection is the end of the body, so
/// a cut has to be a reset.
#[test]
fn a_cut_is_a_cut_for_an_http_1_0_client_too() {
    let gate = Gate::new();
    let tap = torn([STREAM_HEAD.as_bytes(), &chunk("hello")].concat(), &gate);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send("GET /v1/x HTTP/1.0\r\n\r\n").until("hello");
    gate.open();
    let (rest, ended) = client.rest();
    let ended = ended.map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{}", text(&rest));
}

#[test]
fn a_cut_of_an_http_1_0_upstream_is_a_cut() {
    let gate = Gate::new();
    let begin = b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\nhello";
    let tap = torn(begin.to_vec(), &gate);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    let mut seen = client.send(GET).until("hello");
    gate.open();
    let (rest, ended) = client.rest();
    seen.push_str(&text(&rest));
    assert!(
        ended.is_err() || (seen.contains("chunked") && !seen.ends_with("0\r\n\r\n")),
        "looks like a proper end: {seen}"
    );
}
