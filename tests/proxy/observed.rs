//! What the relay reads from what passes, seen in the metrics.

use std::io::Write;

use crate::support::{LAST_CHUNK, Proxy, Step, Tap, chunk};

const EVENTS: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-opus-5-5\",",
    "\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":50,\"cache_read_input_tokens\":700,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","model":"claude-opus-5-5","content":[],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_creation_input_tokens":50,"cache_read_input_tokens":700,"output_tokens":9}}"#;

fn gzip(text: &str) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

#[test]
fn tokens_are_counted_from_streams_and_messages_compressed_or_not() {
    let rows: [(&str, &str, Vec<u8>); 5] = [
        ("text/event-stream", "", EVENTS.as_bytes().to_vec()),
        (
            "text/event-stream; charset=utf-8",
            "content-encoding: gzip\r\n",
            gzip(EVENTS),
        ),
        ("application/json", "", MESSAGE.as_bytes().to_vec()),
        (
            "application/json",
            "content-encoding: gzip\r\n",
            gzip(MESSAGE),
        ),
        (
            "application/json",
            "content-encoding: zstd\r\n",
            zstd::encode_all(MESSAGE.as_bytes(), 1).unwrap(),
        ),
    ];
    for (kind, coding, body) in rows {
        for size in [1, 37, body.len()] {
            let sent = body.clone();
            let tap = Tap::start(move |_| {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{coding}transfer-encoding: chunked\r\n\r\n"
                );
                let mut answer = head.into_bytes();
                sent.chunks(size)
                    .for_each(|piece| answer.extend(chunk(piece)));
                answer.extend(LAST_CHUNK);
                vec![Step::Send(answer)]
            });
            let proxy = Proxy::before(&tap.url());
            let answer = proxy.client().post("/v1/messages", "", b"{}").answer();
            assert!(answer.body == body, "{kind} {coding}");
            for (class, count) in [
                ("input", 3.0),
                ("cache_write", 50.0),
                ("cache_read", 700.0),
                ("output", 9.0),
            ] {
                let series = format!(
                    "longhaul_upstream_tokens_total{{class=\"{class}\",model=\"claude-opus-5-5\"}}"
                );
                assert_eq!(
                    proxy.metric(&series),
                    Some(count),
                    "{kind} {coding} in pieces of {size}: {class}"
                );
            }
        }
    }
}

#[test]
fn a_model_nobody_knows_is_counted_as_other() {
    let tap = Tap::start(|_| {
        crate::support::plain(MESSAGE.replace("claude-opus-5-5", "x\\\"}evil").as_bytes())
    });
    let proxy = Proxy::before(&tap.url());
    proxy.client().post("/v1/messages", "", b"{}").answer();
    assert_eq!(
        proxy.metric("longhaul_upstream_tokens_total{class=\"output\",model=\"other\"}"),
        Some(9.0)
    );
}
