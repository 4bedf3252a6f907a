//! Invariant 10, byte honesty: what passes is not changed, in either direction.

use std::io::Write;

use proptest::prelude::*;

use crate::support::{LAST_CHUNK, Proxy, STREAM_HEAD, Step, Tap, chunk, plain};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 5, 20)
        .write_all(text)
        .unwrap();
    out
}

/// Bodies that a parser which rebuilds what it read would change.
pub fn corpus() -> Vec<(&'static str, String, Vec<u8>)> {
    let json = |name, text: &str| (name, String::new(), text.as_bytes().to_vec());
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let long = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "é😀x".repeat(200_000)
    );
    let small = br#"{"model":"m","messages":[]}"#;
    vec![
        json(
            "plain",
            r#"{"model":"claude-opus-5-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#,
        ),
        json(
            "unknown fields and spaces",
            "{ \"x\" :\t[ 1 ,2 ]\r\n, \"model\":\"m\" }\n\n",
        ),
        json(
            "lone surrogates",
            r#"{"messages":[{"content":"\ud800 \udfff \uD83D"}]}"#,
        ),
        json(
            "big numbers",
            r#"{"a":123456789012345678901234567890,"b":1E5,"c":0.1000,"d":-0,"e":1e-400}"#,
        ),
        json(
            "escaped keys",
            r#"{"\u006dodel":"m","mess\u0061ges":[],"a\/b":"\u00e9\n"}"#,
        ),
        json(
            "duplicate keys",
            r#"{"model":"a","model":"b","messages":[],"messages":[1]}"#,
        ),
        json("deep nesting", &deep),
        json("long", &long),
        json("empty", ""),
        json("not json", "model=claude&stream=true"),
        (
            "not utf-8",
            String::new(),
            vec![0xff, 0xfe, 0, 1, 2, b'\r', b'\n', 0x80],
        ),
        ("gzip", "content-encoding: gzip\r\n".into(), gzip(small)),
        (
            "gzip twice",
            "content-encoding: gzip, gzip\r\n".into(),
            gzip(&gzip(small)),
        ),
        (
            "zstd",
            "content-encoding: zstd\r\n".into(),
            zstd::encode_all(&small[..], 3).unwrap(),
        ),
        ("brotli", "content-encoding: br\r\n".into(), brotli(small)),
        (
            "says gzip but is not",
            "content-encoding: gzip\r\n".into(),
            small.to_vec(),
        ),
        (
            "unknown coding",
            "content-encoding: squeeze\r\n".into(),
            small.to_vec(),
        ),
    ]
}

#[test]
fn upstream_receives_what_the_client_sent_and_the_client_what_upstream_sent() {
    let bodies = corpus();
    // The n-th request asks for the n-th body as its answer.
    let answers: Vec<_> = bodies
        .iter()
        .map(|(_, headers, body)| (headers.clone(), body.clone()))
        .collect();
    let tap = Tap::start(move |request| {
        let which: usize = request.header("x-which").unwrap().parse().unwrap();
        let (headers, body) = &answers[which];
        if request.header("x-chunked").is_some() {
            let mut sent = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}transfer-encoding: chunked\r\n\r\n").into_bytes();
            body.chunks(7000)
                .for_each(|piece| sent.extend(chunk(piece)));
            sent.extend(LAST_CHUNK);
            return vec![Step::Send(sent)];
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send([head.as_bytes(), body].concat())]
    });
    let proxy = Proxy::before(&tap.url());
    let paths = [
        "/v1/messages?beta=true",
        "/v1/messages/count_tokens",
        "/v1/files?a=%20b&c",
        "//odd/./path/../x?q='{}%22|",
    ];
    for path in paths {
        for (which, (name, headers, body)) in bodies.iter().enumerate() {
            for chunked in ["", "x-chunked: 1\r\n"] {
                let headers = format!("{headers}{chunked}x-which: {which}\r\n");
                let answer = proxy.client().post(path, &headers, body).answer();
                let seen = tap.seen();
                assert!(seen.body == *body, "request body changed: {name} to {path}");
                assert_eq!(seen.line, format!("POST {path} HTTP/1.1"), "{name}");
                assert_eq!(
                    seen.header("content-encoding"),
                    answer.header("content-encoding"),
                    "{name}"
                );
                assert!(
                    answer.complete && answer.body == *body,
                    "answer changed: {name} to {path}"
                );
            }
        }
    }
}

#[test]
fn a_chunked_request_arrives_whole_on_every_path() {
    let tap = Tap::start(|_| plain(b"{}"));
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/files"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
        let sent = [head.as_bytes(), &chunk("{\"a\":"), &chunk("1}"), LAST_CHUNK].concat();
        assert_eq!(proxy.client().send(sent).answer().status(), 200);
        assert_eq!(tap.seen().body, b"{\"a\":1}");
    }
}

#[test]
fn every_method_passes_and_a_head_answer_keeps_its_length() {
    let tap = Tap::start(|request| {
        if request.line.starts_with("HEAD") {
            return vec![Step::Send(
                b"HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n".to_vec(),
            )];
        }
        plain(b"ok")
    });
    let proxy = Proxy::before(&tap.url());
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] {
        let request = format!("{method} /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(
            proxy.client().send(request).answer().body,
            b"ok",
            "{method}"
        );
        assert!(tap.seen().line.starts_with(method));
    }
    let head = proxy
        .client()
        .send("HEAD /api/hello HTTP/1.1\r\nhost: x\r\n\r\n")
        .head();
    assert_eq!(head.header("content-length"), Some("77"));
}

#[test]
fn errors_of_upstream_pass_byte_for_byte() {
    let body = br#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 212345 tokens > 200000 maximum"},"request_id":"req_1"}"#;
    let tap = Tap::start(|request| {
        let status = request.header("x-status").unwrap();
        let head = format!(
            "HTTP/1.1 {status} Odd Words\r\nretry-after: 7\r\nrequest-id: req_1\r\nx-should-retry: false\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send([head.as_bytes(), body].concat())]
    });
    let proxy = Proxy::before(&tap.url());
    for status in [400, 401, 402, 403, 404, 409, 413, 429, 500, 503, 529, 599] {
        let answer = proxy
            .client()
            .post("/v1/messages", &format!("x-status: {status}\r\n"), b"{}")
            .answer();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.body, body);
        assert_eq!(answer.header("retry-after"), Some("7"));
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert!(answer.header("x-longhaul-request").is_some());
    }
}

#[test]
fn the_upstream_s_base_path_goes_before_the_request_s_own() {
    let tap = Tap::start(|_| plain(b"{}"));
    for base in ["/gateway/anthropic", "/gateway/anthropic/"] {
        let proxy = Proxy::before(&format!("{}{base}", tap.url()));
        proxy
            .client()
            .post("/v1/messages?beta=true", "", b"{}")
            .answer();
        assert_eq!(
            tap.seen().line,
            "POST /gateway/anthropic/v1/messages?beta=true HTTP/1.1"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any body, in any pieces, both ways at once.
    #[test]
    fn any_body_in_any_pieces_passes_unchanged(
        body in prop::collection::vec(any::<u8>(), 0..5000),
        cut in 1usize..600,
        chunked in any::<bool>(),
        read in any::<bool>(),
    ) {
        thread_local! {
            static CAST: (Tap, Proxy) = {
                let tap = Tap::start(|request| {
                    let mut sent = STREAM_HEAD.as_bytes().to_vec();
                    request.body.chunks(97).for_each(|piece| sent.extend(chunk(piece)));
                    sent.extend(LAST_CHUNK);
                    vec![Step::Send(sent)]
                });
                let proxy = Proxy::before(&tap.url());
                (tap, proxy)
            };
        }
        CAST.with(|(tap, proxy)| {
            let path = if read { "/v1/messages" } else { "/v1/other" };
            let mut client = proxy.client();
            if chunked {
                client.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"));
                for piece in body.chunks(cut) {
                    client.send(chunk(piece));
                }
                client.send(LAST_CHUNK);
            } else {
                client.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len()));
                for piece in body.chunks(cut) {
                    client.send(piece);
                }
            }
            let answer = client.answer();
            prop_assert_eq!(&tap.seen().body, &body);
            prop_assert!(answer.complete);
            prop_assert_eq!(&answer.body, &body);
            Ok(())
        })?;
    }
}
