//! An upstream that speaks HTTP/2, where many exchanges share a connection.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::http2::{Flood, Reply, Upstream};
use crate::support::{Client, text};

fn unfinished(pieces: usize, asked: &Arc<AtomicUsize>) -> Reply {
    Reply::Flood(Flood {
        pieces,
        unfinished: true,
        asked: asked.clone(),
    })
}

#[test]
fn an_upstream_that_allows_few_streams_is_served_over_more_connections() {
    let upstream = Upstream::start(1, |number| {
        if number == 0 {
            unfinished(1, &Arc::default())
        } else {
            Reply::Whole(200, "ok")
        }
    });
    let proxy = upstream.proxy();
    let mut first = Client::connect(proxy.address);
    first.post("/v1/messages", "", b"{}").head();
    let mut second = Client::connect(proxy.address);
    let answer = second.post("/v1/messages", "", b"{}").answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
}

#[test]
fn slow_clients_do_not_hold_up_strangers() {
    const SLOW: usize = 24;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let upstream = Upstream::start(200, move |number| {
        if number < SLOW {
            unfinished(400, &counted)
        } else {
            Reply::Whole(200, "ok")
        }
    });
    let proxy = upstream.proxy();
    let mut held = Vec::new();
    for _ in 0..SLOW {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        socket.connect(&proxy.address.into()).unwrap();
        let mut stream: TcpStream = socket.into();
        stream
            .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        held.push(stream);
    }
    // Until nothing moves any more: every window and buffer is full.
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = asked.load(Ordering::SeqCst);
        if upstream.requests.load(Ordering::SeqCst) == SLOW && now == before {
            break;
        }
        before = now;
    }
    let mut stranger = Client::connect(proxy.address);
    let answer = stranger.post("/v1/messages", "", b"{}").answer();
    assert_eq!(text(&answer.body), "ok");
}

#[test]
fn a_reset_stream_is_not_sent_again() {
    let upstream = Upstream::start(100, |number| {
        if number == 1 {
            Reply::Reset
        } else {
            Reply::Whole(200, "ok")
        }
    });
    let proxy = upstream.proxy();
    for status in [200, 502] {
        let mut client = Client::connect(proxy.address);
        let answer = client.post("/v1/messages", "", b"{}").answer();
        assert_eq!(answer.status(), status);
    }
    assert_eq!(upstream.requests.load(Ordering::SeqCst), 2);
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    let upstream = Upstream::start(100, |_| Reply::Whole(413, "big"));
    let proxy = upstream.proxy();
    let body = vec![b'x'; 5 << 20];
    for path in ["/v1/messages", "/v1/files"] {
        for round in 0..10 {
            let mut client = Client::connect(proxy.address);
            client.try_send(format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ));
            let answer = client.try_send(&body).answer();
            let seen = (answer.status(), text(&answer.body));
            assert_eq!(seen, (413, "big".to_owned()), "{path} {round}");
        }
    }
}

#[test]
fn large_bodies_pass_both_ways() {
    let upstream = Upstream::start(100, |_| {
        Reply::Flood(Flood {
            pieces: 400,
            unfinished: false,
            asked: Arc::default(),
        })
    });
    let proxy = upstream.proxy();
    let answer = Client::connect(proxy.address)
        .post("/v1/messages", "", &vec![b'x'; 20 << 20])
        .answer();
    assert!(answer.complete && answer.body.len() == 400 * (64 << 10));
}
