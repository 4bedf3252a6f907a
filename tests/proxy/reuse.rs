//! Connections used again, on both sides, and when a request may be sent twice:
//! only if no upstream can have begun to work on it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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

/// Guards against a race every pooled client has: the server closes an idle
/// connection just as it is used again.
#[test]
fn an_idle_connection_that_died_costs_the_client_nothing() {
    let served = AtomicUsize::new(0);
    let tap = Tap::start(move |_| {
        // Every connection serves one request and tears down on the second.
        if served.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
            vec![Step::Reset]
        } else {
            plain(b"ok")
        }
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    for _ in 0..5 {
        assert_eq!(client.post("/v1/messages", "", b"{}").answer().body, b"ok");
        assert_eq!(client.send(GET).answer().body, b"ok");
        assert_eq!(client.send(GET).answer().body, b"ok");
    }
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
