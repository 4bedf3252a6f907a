//! An upstream that fails: clear errors in the API's shape, no hanging.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Answer, Proxy, Step, Tap, plain};

fn error_of(answer: &Answer) -> (u16, String, String) {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["type"], "error");
    assert_eq!(
        body["request_id"].as_str(),
        answer.header("x-longhaul-request")
    );
    let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (answer.status(), text("type"), text("message"))
}

#[test]
fn an_upstream_that_is_not_there_is_a_502_that_says_so() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let proxy = Proxy::before(&format!("http://{free}"));
    let (status, kind, message) =
        error_of(&proxy.client().post("/v1/messages", "", b"{}").answer());
    assert_eq!((status, kind.as_str()), (502, "api_error"));
    assert!(message.contains("refused"), "{message}");
}

#[test]
fn a_connection_lost_before_the_answer_is_a_502() {
    for step in [Step::Close, Step::Reset] {
        let tap = Tap::start(move |_| vec![step.clone()]);
        let proxy = Proxy::before(&tap.url());
        let (status, kind, _) = error_of(&proxy.client().post("/v1/messages", "", b"{}").answer());
        assert_eq!((status, kind.as_str()), (502, "api_error"));
    }
}

#[test]
fn garbage_instead_of_an_answer_is_a_502() {
    let tap = Tap::start(|_| {
        vec![
            Step::Send(b"\x16\x03\x01 not http at all\r\n\r\n".to_vec()),
            Step::Close,
        ]
    });
    let proxy = Proxy::before(&tap.url());
    assert_eq!(
        error_of(&proxy.client().post("/v1/messages", "", b"{}").answer()).0,
        502
    );
}

#[test]
fn silence_before_the_answer_is_a_504_and_within_it_a_cut() {
    let tap = Tap::start(|request| {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n".to_vec();
        let silence = Step::Pause(Duration::from_secs(5));
        if request.header("x-begin").is_some() {
            vec![Step::Send(head), silence]
        } else {
            vec![silence]
        }
    });
    let proxy = Proxy::with(&tap.url(), "limits.upstream_idle = \"1s\"");
    let (status, kind, message) =
        error_of(&proxy.client().post("/v1/messages", "", b"{}").answer());
    assert_eq!((status, kind.as_str()), (504, "timeout_error"));
    assert!(message.contains("1s"), "{message}");
    let answer = proxy
        .client()
        .post("/v1/messages", "x-begin: 1\r\n", b"{}")
        .answer();
    assert_eq!(answer.body, b"ok");
    assert!(!answer.complete);
}

#[test]
fn silence_shorter_than_the_limit_is_borne() {
    let tap = Tap::start(|_| {
        let mut steps = vec![Step::Send(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
        )];
        for _ in 0..4 {
            steps.extend([
                Step::Pause(Duration::from_millis(600)),
                Step::Send(b"1\r\nx\r\n".to_vec()),
            ]);
        }
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        steps
    });
    let proxy = Proxy::with(&tap.url(), "limits.upstream_idle = \"1s\"");
    let answer = proxy.client().post("/v1/messages", "", b"{}").answer();
    assert!(answer.complete && answer.body == b"xxxx");
}

#[test]
fn an_upstream_that_closes_after_each_answer_is_served_well() {
    let tap = Tap::start(|_| {
        let mut steps = plain(b"ok");
        steps.push(Step::Close);
        steps
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    // A body that is passed on as it arrives cannot be sent again: none here.
    for (path, body) in [("/v1/messages", "{}"), ("/v1/streamed", "")].repeat(10) {
        let answer = client.post(path, "", body.as_bytes()).answer();
        assert_eq!(answer.body, b"ok");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn connections_to_upstream_are_used_again() {
    let connections = std::sync::Arc::new(AtomicUsize::new(0));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let counted = connections.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                use std::io::Write;
                let mut stream = stream.unwrap();
                let mut reader = crate::support::http::Reader::new(stream.try_clone().unwrap());
                let mut which = 0;
                while let Ok(Some(mut request)) = reader.head() {
                    reader.body(&mut request, false).unwrap();
                    which += 1;
                    let answer: &[u8] = if which % 2 == 0 {
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
                    } else {
                        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
                    };
                    stream.write_all(answer).unwrap();
                }
            });
        }
    });
    let proxy = Proxy::before(&url);
    for _ in 0..20 {
        assert_eq!(
            proxy.client().post("/v1/messages", "", b"{}").answer().body,
            b"ok"
        );
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
