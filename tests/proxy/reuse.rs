//! Connections used again, on both sides, and when a request may be sent twice:
//! only if no upstream can have begun to work on it.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::http::{Message, Reader};
use crate::support::{GET, Proxy, Step, Tap, plain, text};

/// Answers the first request, does `second` with the second, answers the others.
fn second(second: Vec<Step>) -> Tap {
    let served = AtomicUsize::new(0);
    Tap::start(move |_| match served.fetch_add(1, Ordering::SeqCst) {
        0 => plain(b"ok"),
        1 => second.clone(),
        _ => plain(b"second time"),
    })
}

#[test]
fn a_request_that_upstream_began_to_process_is_not_sent_twice() {
    let tap = second(vec![Step::Pause(Duration::from_secs(2)), Step::Close]);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").answer();
    tap.seen();
    client.post("/v1/messages", "", b"{\"pay\":1}").answer();
    tap.seen();
    assert!(tap.saw_nothing(), "sent again after two seconds of work");
}

#[test]
fn a_request_that_got_a_malformed_answer_is_not_sent_twice() {
    let tap = second(vec![
        Step::Send(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n".to_vec()),
        Step::Close,
    ]);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").answer();
    tap.seen();
    client.post("/v1/messages", "", b"{\"pay\":1}").answer();
    tap.seen();
    assert!(tap.saw_nothing(), "sent again although an answer had begun");
}

/// However soon the connection breaks: an API that has read all of a request may
/// have begun to work on it, and to bill it.
#[test]
fn a_request_that_upstream_has_read_is_not_sent_again_after_a_reset() {
    for end in [Step::Reset, Step::Close] {
        let tap = second(vec![end]);
        let proxy = Proxy::before(&tap.url());
        let mut client = proxy.client();
        client.post("/v1/messages", "", b"{}").answer();
        tap.seen();
        let lost = client.post("/v1/messages", "", b"{\"pay\":1}").answer();
        assert_eq!(lost.status(), 502, "{}", text(&lost.body));
        assert_eq!(tap.seen().body, b"{\"pay\":1}");
        assert!(tap.saw_nothing(), "sent again although it had been read");
        // The client decides; what it sends again goes by a new connection.
        let again = client.post("/v1/messages", "", b"{\"pay\":1}").answer();
        assert_eq!(again.body, b"second time");
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Reads a request to its end.
fn request(reader: &mut Reader<TcpStream>) -> Message {
    let mut message = reader.head().unwrap().unwrap();
    reader.body(&mut message, false).unwrap();
    message
}

/// Upstream closes the connection on which it has just answered, before anything
/// more is sent on it.
#[test]
fn an_idle_connection_that_was_closed_costs_the_client_nothing() {
    for reset in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (read, was_read) = channel::<()>();
        let (close, closed) = channel::<()>();
        let upstream = std::thread::spawn(move || {
            for _ in 0..5 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = Reader::new(stream.try_clone().unwrap());
                request(&mut reader);
                stream.write_all(OK).unwrap();
                // A reset could overtake the answer.
                was_read.recv().unwrap();
                if reset {
                    let socket = socket2::SockRef::from(&stream);
                    socket.set_linger(Some(Duration::ZERO)).unwrap();
                }
                drop((reader, stream));
                close.send(()).unwrap();
            }
        });
        let proxy = Proxy::before(&url);
        let mut client = proxy.client();
        for _ in 0..5 {
            let answer = client.post("/v1/messages", "", b"{}").answer();
            assert_eq!(answer.body, b"ok", "{answer:?}");
            read.send(()).unwrap();
            closed.recv().unwrap();
        }
        upstream.join().unwrap();
    }
}

/// Upstream drops a connection while a large request is being written to it: it
/// has no whole request to work on, so the same goes on a new connection.
#[test]
fn a_request_that_was_not_written_whole_is_sent_again() {
    let body = [&b"{\"x\":\""[..], &vec![b'a'; 24 << 20], b"\"}"].concat();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let upstream = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let mut reader = Reader::new(first.try_clone().unwrap());
        request(&mut reader);
        first.write_all(OK).unwrap();
        // Some of the second request, and no more: what is left unread makes a
        // reset of closing.
        reader.some().unwrap();
        drop((reader, first));
        let (mut second, _) = listener.accept().unwrap();
        let mut reader = Reader::new(second.try_clone().unwrap());
        let request = request(&mut reader);
        second.write_all(OK).unwrap();
        assert_eq!(request.body.len(), length);
    });
    let proxy = Proxy::before(&url);
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").answer();
    let answer = client.post("/v1/messages", "", &body).answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
    upstream.join().unwrap();
}

#[test]
fn stale_bytes_on_a_pooled_connection_never_answer_the_next_request() {
    let served = AtomicUsize::new(0);
    let two = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let tap = Tap::start(move |_| match served.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Send(two.to_vec())],
        _ => plain(b"good"),
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    assert_eq!(client.post("/v1/messages", "", b"{}").answer().body, b"ok");
    let next = client.post("/v1/messages", "", b"{}").answer();
    assert_eq!(text(&next.body), "good");
}

#[test]
fn pipelined_requests_are_all_answered() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send(GET.repeat(20));
    for _ in 0..20 {
        assert_eq!(client.answer().body, b"ok");
    }
}

#[test]
fn garbage_after_a_pipelined_request_gets_the_api_s_shape() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send(GET).send("garbage\r\n\r\n");
    assert_eq!(client.answer().body, b"ok");
    let refused = client.answer();
    assert_eq!(refused.status(), 400);
    assert!(text(&refused.body).contains("longhaul"), "{refused:?}");
}

/// Codex asks for a WebSocket first, and for nothing more after a 426; any other
/// answer costs it seven visible attempts, or the session.
#[test]
fn a_websocket_for_responses_is_declined_at_once_and_nothing_else_is() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    let get = |path: &str, upgrade: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: {upgrade}\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    for path in [
        "/v1/responses",
        "/backend-api/codex/responses",
        "/responses?x=1",
    ] {
        let declined = client.send(get(path, "websocket")).answer();
        assert_eq!(declined.status(), 426, "{path}");
        assert_eq!(declined.header("upgrade"), Some("HTTP/1.1"));
        let body: serde_json::Value = serde_json::from_slice(&declined.body).unwrap();
        assert_eq!(body["error"]["type"], "invalid_request_error");
        let message = body["error"]["message"].as_str().unwrap();
        let path = path.split('?').next().unwrap();
        assert!(
            message.contains("WebSocket") && message.contains(path),
            "{message}"
        );
    }
    assert!(tap.saw_nothing(), "upstream was asked");
    // What the client sends instead passes, on the same connection too, and so does
    // any other upgrade, without the offer.
    let posted = client.post("/v1/responses", "", b"{}").answer();
    assert_eq!(posted.body, b"ok");
    for (path, upgrade) in [("/v1/responses", "h2c"), ("/v1/realtime", "websocket")] {
        tap.seen();
        assert_eq!(
            client.send(get(path, upgrade)).answer().body,
            b"ok",
            "{path}"
        );
    }
    assert_eq!(tap.seen().header("upgrade"), None);
}

/// Java's client offers h2c with every first request.
#[test]
fn an_offer_to_upgrade_is_ignored_and_the_connection_goes_on() {
    let offer = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n";
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    for path in ["/v1/messages", "/v1/files"] {
        for _ in 0..3 {
            assert_eq!(client.post(path, offer, b"{}").answer().body, b"ok");
            let seen = tap.seen();
            assert!(seen.header("http2-settings").is_none() && seen.body == b"{}");
        }
    }
}
