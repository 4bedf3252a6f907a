//! Which headers pass in which direction.

use crate::support::{Proxy, Step, Tap, plain};

#[test]
fn end_to_end_headers_pass_both_ways_known_or_not_with_their_spelling() {
    let tap = Tap::start(|_| {
        vec![Step::Send(
            b"HTTP/1.1 200 OK\r\nAnthropic-Organization-Id: org\r\nrequest-id: req_1\r\nX-ODD: \xe9\xff\r\nset-cookie: a\r\nset-cookie: b\r\nKeep-Alive: timeout=5\r\nconnection: x-private\r\nx-private: 1\r\nx-longhaul-fake: kept\r\ncontent-length: 2\r\n\r\nok".to_vec(),
        )]
    });
    let proxy = Proxy::before(&tap.url());
    let answer = proxy
        .client()
        .post(
            "/v1/messages",
            "X-Api-Key: secret\r\nanthropic-beta: a,b\r\nanthropic-beta: c\r\nAnthropic-Future: é\r\nx-stainless-retry-count: 0\r\naccept-encoding: gzip, br\r\nX-Longhaul-Compact: off\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\nte: trailers\r\nproxy-authorization: Basic eA==\r\n",
            b"{}",
        )
        .answer();
    let seen = tap.seen();
    let named: Vec<_> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(named.contains(&"X-Api-Key"), "{named:?}");
    assert_eq!(seen.all("anthropic-beta"), [b"a,b".as_slice(), b"c"]);
    assert_eq!(seen.all("anthropic-future"), ["é".as_bytes()]);
    assert_eq!(seen.header("accept-encoding"), Some("gzip, br"));
    assert_eq!(seen.header("host"), tap.url().strip_prefix("http://"));
    for gone in [
        "x-longhaul-compact",
        "x-hop",
        "te",
        "proxy-authorization",
        "transfer-encoding",
    ] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    assert_eq!(answer.all("x-odd"), [[0xe9, 0xff].as_slice()]);
    assert_eq!(answer.all("set-cookie"), [b"a", b"b"]);
    assert_eq!(answer.header("anthropic-organization-id"), Some("org"));
    assert_eq!(answer.header("x-longhaul-fake"), Some("kept"));
    for gone in ["keep-alive", "x-private"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
}

/// Without them upstream, or the client, would read the body as something else.
#[test]
fn a_connection_header_takes_nothing_away_that_the_body_needs() {
    let tap = Tap::start(|_| {
        vec![Step::Send(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\nconnection: content-encoding\r\ncontent-length: 2\r\n\r\nok".to_vec(),
        )]
    });
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/files"] {
        let answer = proxy
            .client()
            .post(
                path,
                "content-type: application/json\r\ncontent-encoding: gzip\r\nconnection: content-encoding, Content-Type, content-length\r\n",
                b"no gzip",
            )
            .answer();
        let seen = tap.seen();
        assert_eq!(seen.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(
            seen.header("content-type"),
            Some("application/json"),
            "{path}"
        );
        assert_eq!(seen.body, b"no gzip", "{path}");
        assert_eq!(answer.header("content-encoding"), Some("br"), "{path}");
    }
}

#[test]
fn nothing_is_added_to_a_request() {
    let tap = Tap::start(|_| plain(b"{}"));
    let proxy = Proxy::before(&tap.url());
    proxy
        .client()
        .send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        .answer();
    let mut names: Vec<_> = tap
        .seen()
        .headers
        .into_iter()
        .map(|(name, _)| name.to_lowercase())
        .collect();
    names.sort();
    assert_eq!(names, ["content-length", "host"]);
}

#[test]
fn an_absolute_target_does_not_choose_the_upstream() {
    let tap = Tap::start(|_| plain(b"{}"));
    let proxy = Proxy::before(&tap.url());
    let answer = proxy.client().send("GET http://elsewhere.invalid/v1/models?x=1 HTTP/1.1\r\nhost: elsewhere.invalid\r\n\r\n").answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(tap.seen().line, "GET /v1/models?x=1 HTTP/1.1");
    let refused = proxy
        .client()
        .send("CONNECT elsewhere.invalid:443 HTTP/1.1\r\nhost: elsewhere.invalid\r\n\r\n")
        .head();
    assert_eq!(refused.status(), 405);
    assert!(tap.saw_nothing());
}
