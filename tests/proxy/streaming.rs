//! Frames go out as they come in.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::http::Reader;
use crate::support::{
    Gate, LAST_CHUNK, Proxy, STREAM_HEAD, Step, Tap, chunk, eventually, raw, swallow,
};

const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// Upstream sends a frame only after the client has confirmed the one before:
/// anything held back anywhere would be a deadlock, and the gate would time out.
#[test]
fn each_frame_reaches_the_client_while_upstream_is_still_sending() {
    let frames = [
        PING,
        ": a comment\n\n",
        "event: x\ndata: {\"type\":\"x\"",
        "}\n\n",
    ];
    let gate = Gate::new();
    let mut steps = vec![Step::Send(STREAM_HEAD.into())];
    for frame in frames {
        steps.extend([Step::Wait(gate.clone()), Step::Send(chunk(frame))]);
    }
    steps.extend([Step::Wait(gate.clone()), Step::Send(LAST_CHUNK.to_vec())]);
    let tap = Tap::start(move |_| steps.clone());
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/anything"] {
        let mut client = proxy.client();
        assert_eq!(client.post(path, "", b"{}").head().status(), 200);
        for frame in frames {
            gate.open();
            client.until(frame);
        }
        gate.open();
        client.until("0\r\n\r\n");
    }
}

#[test]
fn a_request_that_need_not_be_read_is_passed_on_while_it_arrives() {
    let (seen, arrived) = channel();
    let url = raw(move |stream| {
        let mut reader = Reader::new(stream);
        reader.head().unwrap();
        while let Ok(some) = reader.some()
            && seen.send(some).is_ok()
        {}
    });
    let proxy = Proxy::before(&url);
    let mut client = proxy.client();
    client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nfirst");
    let first = arrived.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(first, b"first");
}

#[test]
fn a_cut_upstream_stream_is_a_cut_client_stream() {
    for last in [Step::Close, Step::Reset] {
        let steps = vec![
            Step::Send(STREAM_HEAD.into()),
            Step::Send(chunk(PING)),
            Step::Pause(Duration::from_millis(100)),
            last,
        ];
        let tap = Tap::start(move |_| steps.clone());
        let proxy = Proxy::before(&tap.url());
        let answer = proxy.client().post("/v1/messages", "", b"{}").answer();
        assert_eq!(
            answer.body,
            PING.as_bytes(),
            "what came before the cut is delivered"
        );
        assert!(!answer.complete, "the end must not look like one");
    }
}

/// Frames and the cut arrive in one read: none of the frames may be lost.
#[test]
fn what_arrives_together_with_the_cut_is_still_delivered() {
    let steps = vec![
        Step::Send([STREAM_HEAD.as_bytes(), &chunk(PING), &chunk(PING)].concat()),
        Step::Close,
    ];
    let tap = Tap::start(move |_| steps.clone());
    let proxy = Proxy::before(&tap.url());
    for _ in 0..50 {
        let answer = proxy.client().post("/v1/messages", "", b"{}").answer();
        assert_eq!(answer.body, PING.repeat(2).as_bytes());
        assert!(!answer.complete);
    }
}

#[test]
fn an_answer_shorter_than_its_length_is_cut_too() {
    let steps = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".to_vec()),
        Step::Close,
    ];
    let tap = Tap::start(move |_| steps.clone());
    let proxy = Proxy::before(&tap.url());
    let answer = proxy.client().post("/v1/messages", "", b"{}").answer();
    assert_eq!(answer.body, b"only this");
    assert!(!answer.complete);
}

#[test]
fn a_client_that_goes_away_ends_the_exchange_upstream() {
    for before_head in [true, false] {
        let (closed, noticed) = channel();
        let mut steps = vec![Step::UntilClosed(closed)];
        if !before_head {
            steps.insert(
                0,
                Step::Send([STREAM_HEAD.as_bytes(), &chunk(PING)].concat()),
            );
        }
        let tap = Tap::start(move |_| steps.clone());
        let proxy = Proxy::before(&tap.url());
        let mut client = proxy.client();
        client.post("/v1/messages", "", b"{}");
        tap.seen();
        if !before_head {
            client.until(PING);
        }
        drop(client);
        noticed
            .recv_timeout(Duration::from_secs(10))
            .expect("upstream was not told that the client left");
    }
}

#[test]
fn what_came_before_a_cut_reaches_a_slow_reader() {
    const PIECE: usize = 50 << 10;
    const MANY: usize = 200;
    // Sizes differ a little, so that buffers end at different places.
    let answered = AtomicUsize::new(0);
    let url = raw(move |mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        let mut request = reader.head().unwrap().unwrap();
        reader.body(&mut request, false).unwrap();
        stream.write_all(STREAM_HEAD.as_bytes()).unwrap();
        for _ in 0..MANY + answered.fetch_add(1, Ordering::SeqCst) {
            stream.write_all(&chunk(vec![b'Z'; PIECE])).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        swallow(&mut stream);
    });
    let read_slowly = || {
        let proxy = Proxy::before(&url);
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.connect(&proxy.address.into()).unwrap();
        let mut client: TcpStream = socket.into();
        client
            .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        let mut seen = 0;
        let mut buffer = [0; 16 << 10];
        std::thread::sleep(Duration::from_millis(500));
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            seen += memchr::memchr_iter(b'Z', &buffer[..count]).count();
            std::thread::sleep(Duration::from_millis(1));
        }
        seen
    };
    let mut seen = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..6).map(|_| scope.spawn(read_slowly)).collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect::<Vec<_>>()
    });
    seen.sort_unstable();
    let sent: Vec<_> = (MANY..MANY + 6).map(|pieces| pieces * PIECE).collect();
    assert_eq!(seen, sent);
}

#[test]
fn a_client_that_leaves_within_an_upload_ends_it_upstream_and_leaves_nothing_behind() {
    let (begun, noticed_begin) = channel();
    let (closed, noticed) = channel();
    let url = raw(move |mut stream| {
        stream.read_exact(&mut [0; 1]).unwrap();
        let _ = begun.send(());
        swallow(&mut stream);
        let _ = closed.send(());
    });
    let proxy = Proxy::before(&url);
    let upload =
        |path| format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n");
    for _ in 0..20 {
        let mut streamed = proxy.client();
        streamed.send(upload("/v1/files")).send("begun");
        noticed_begin
            .recv_timeout(Duration::from_secs(10))
            .expect("nothing reached upstream");
        drop(streamed);
        noticed
            .recv_timeout(Duration::from_secs(10))
            .expect("upstream was not told");
        let mut held = proxy.client();
        held.send(upload("/v1/messages")).send("begun".repeat(5000));
        eventually("nothing is held", || {
            proxy.metric("longhaul_buffered_bytes") > Some(0.0)
        });
    }
    for (metric, value) in [
        ("longhaul_buffered_bytes", 0.0),
        ("longhaul_requests_in_flight", 0.0),
        // The one that asks.
        ("longhaul_client_connections", 1.0),
    ] {
        eventually(metric, || proxy.metric(metric) == Some(value));
    }
}

/// A client that does not read must not make the proxy collect the answer.
#[test]
fn a_slow_client_slows_upstream_down() {
    let (sent, progress) = channel();
    let url = raw(move |mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        let mut request = reader.head().unwrap().unwrap();
        reader.body(&mut request, false).unwrap();
        stream.write_all(STREAM_HEAD.as_bytes()).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let piece = chunk(vec![b'x'; 1 << 20]);
        let mut pieces = 0;
        while pieces < 256 && stream.write_all(&piece).is_ok() {
            pieces += 1;
        }
        sent.send(pieces).unwrap();
    });
    let proxy = Proxy::before(&url);
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}");
    let pieces = progress.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(
        pieces < 64,
        "{pieces} MB were taken from upstream for a client that reads nothing"
    );
}
