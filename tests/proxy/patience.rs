//! Slow or silent clients and uploads: whoever goes on is waited for, whoever
//! stops is let go, and nobody is blamed for another's silence.

use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::http::Reader;
use crate::support::{GET, Proxy, STREAM_HEAD, Tap, chunk, eventually, plain, raw, text};

#[test]
fn a_slow_upload_is_not_upstream_s_silence() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(&tap.url(), "limits.upstream_idle = \"1s\"");
    let mut client = proxy.client();
    client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n");
    for _ in 0..20 {
        client.try_send("x");
        std::thread::sleep(Duration::from_millis(100));
    }
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
}

#[test]
fn a_stalled_streamed_body_is_a_408() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(&tap.url(), "limits.body_idle = \"1s\"");
    let mut client = proxy.client();
    client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\nx");
    let answer = client.answer();
    assert_eq!(answer.status(), 408, "{}", text(&answer.body));
}

/// The client is not silent as long as it is upstream that does not read.
#[test]
fn a_body_is_not_stalled_while_nobody_asks_for_it() {
    let url = raw(|mut stream| {
        std::thread::sleep(Duration::from_secs(3));
        let mut reader = Reader::new(stream.try_clone().unwrap());
        let mut request = reader.head().unwrap().unwrap();
        reader.body(&mut request, false).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let proxy = Proxy::with(&url, "limits.body_idle = \"1s\"");
    // More than all the buffers of all the sockets on the way.
    let body = vec![b'x'; 60 << 20];
    let mut client = proxy.client();
    client.try_send(format!(
        "POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    let answer = client.try_send(&body).answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
}

#[test]
fn a_client_that_never_reads_is_let_go() {
    let (closed, noticed) = channel();
    let url = raw(move |mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        reader.head().unwrap();
        stream.write_all(STREAM_HEAD.as_bytes()).unwrap();
        let piece = chunk(vec![b'x'; 1 << 20]);
        while stream.write_all(&piece).is_ok() {}
        let _ = closed.send(());
    });
    let proxy = Proxy::with(
        &url,
        "limits.upstream_idle = \"1s\"\nlimits.header_timeout = \"1s\"\nlimits.body_idle = \"1s\"",
    );
    let mut client = proxy.client();
    client.send(GET);
    noticed
        .recv_timeout(Duration::from_secs(15))
        .expect("still held after fifteen seconds");
}

#[test]
fn a_body_that_trickles_does_not_hold_its_room_for_ever() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(
        &tap.url(),
        "limits.body_bytes = \"1MiB\"\nlimits.buffered_bytes = \"1MiB\"\nlimits.buffer_wait = \"200ms\"\nlimits.body_idle = \"1s\"",
    );
    let mut holder = proxy.client();
    holder
        .send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n")
        .send(vec![b' '; 1_000_000]);
    eventually("the room is not taken", || {
        proxy.metric("longhaul_buffered_bytes").unwrap() >= 1_000_000.0
    });
    // A byte each time: never silent for as long as the limit.
    eventually("the room is held for ever", || {
        holder.try_send(" ");
        let answer = proxy
            .client()
            .post("/v1/messages", "", &vec![b' '; 100_000])
            .answer();
        assert!(matches!(answer.status(), 200 | 529), "{}", answer.line);
        answer.status() == 200
    });
}
