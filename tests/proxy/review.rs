//! Reproductions from a review: each test states what should hold.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::support::http::Reader;
use crate::support::{Client, LAST_CHUNK, Proxy, STREAM_HEAD, Step, Tap, chunk, plain};

/// An upstream that does `serve` with each raw connection.
fn raw(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(number, stream.unwrap()));
        }
    });
    url
}

/// Everything that comes within `time`.
fn drain_for(stream: &mut TcpStream, time: Duration) -> Vec<u8> {
    let begun = Instant::now();
    let mut seen = Vec::new();
    let mut buffer = [0; 65536];
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    while begun.elapsed() < time {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
    }
    seen
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A body that looks like hyper's own refusal is swallowed by `Socket`.
#[test]
fn a_body_that_looks_like_a_refusal_is_delivered() {
    let body = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    let tap = Tap::start(move |_| {
        vec![
            Step::Send(
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes(),
            ),
            Step::Pause(Duration::from_millis(200)),
            Step::Send(body.to_vec()),
        ]
    });
    let proxy = Proxy::before(&tap.url());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream
        .write_all(b"GET /v1/files/f/content HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let seen = drain_for(&mut stream, Duration::from_secs(2));
    assert!(text(&seen).contains("404 Not Found"), "{}", text(&seen));
}

#[test]
fn what_came_before_a_cut_reaches_a_slow_reader() {
    let mut lost = Vec::new();
    for more in 0..6 {
        let count = 200 + more;
        let size = count * (50 << 10);
        let url = raw(move |_, mut stream| {
            let mut reader = Reader::new(stream.try_clone().unwrap());
            let mut request = reader.head().unwrap().unwrap();
            reader.body(&mut request, false).unwrap();
            stream.write_all(STREAM_HEAD.as_bytes()).unwrap();
            for _ in 0..count {
                stream.write_all(&chunk(vec![b'Z'; 50 << 10])).unwrap();
            }
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            drain_for(&mut stream, Duration::from_secs(20));
        });
        let proxy = Proxy::before(&url);
        for direct in [true, false] {
            let address: std::net::SocketAddr = if direct {
                url.strip_prefix("http://").unwrap().parse().unwrap()
            } else {
                proxy.address
            };
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(64 << 10).unwrap();
            socket.connect(&address.into()).unwrap();
            let mut client: TcpStream = socket.into();
            client
                .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
                .unwrap();
            let mut seen = 0;
            let mut buffer = [0; 16 << 10];
            std::thread::sleep(Duration::from_millis(500));
            while let Ok(count @ 1..) = client.read(&mut buffer) {
                seen += buffer[..count].iter().filter(|byte| **byte == b'Z').count();
                std::thread::sleep(Duration::from_millis(1));
            }
            if seen != size {
                lost.push(format!(
                    "direct {direct}: {} of {size} bytes lost",
                    size - seen
                ));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// Upstream answers early, reads on, and keeps the connection.
#[test]
fn an_early_answer_does_not_stop_the_upload_when_upstream_reads_on() {
    for path in ["/v1/messages", "/v1/files"] {
        let url = raw(|_, mut stream| {
            let mut reader = Reader::new(stream.try_clone().unwrap());
            reader.head().unwrap();
            stream
                .write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
                .unwrap();
            drain_for(&mut stream, Duration::from_secs(30));
        });
        let proxy = Proxy::before(&url);
        let mut client = proxy.client();
        let body = vec![b'x'; 40 << 20];
        let begun = Instant::now();
        client.try_send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        ));
        client.try_send(&body);
        let took = begun.elapsed();
        let answer = client.answer();
        eprintln!(
            "{path}: upload took {took:?}, {} {:?}",
            answer.line,
            text(&answer.body)
        );
        assert_eq!(answer.status(), 413, "{path}");
        assert!(took < Duration::from_secs(10), "{path}: {took:?}");
    }
}

/// Upstream answers early, reads nothing more, and keeps the connection open.
#[test]
fn an_early_answer_frees_the_body_and_the_connection() {
    let url = raw(|_, mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        reader.head().unwrap();
        stream
            .write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
            .unwrap();
        std::thread::sleep(Duration::from_secs(60));
    });
    let proxy = Proxy::before(&url);
    let body = vec![b'x'; 20 << 20];
    let answer = proxy.client().post("/v1/messages", "", &body).answer();
    assert_eq!(answer.status(), 413);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(proxy.metric("longhaul_buffered_bytes"), Some(0.0));
}

/// Upstream answers 413 after 10 KB and closes.
#[test]
fn an_early_answer_and_a_close_reach_the_client() {
    let mut bad = Vec::new();
    for linger in [true, false] {
        for path in ["direct", "/v1/messages", "/v1/files"] {
            for round in 0..10 {
                let url = raw(move |_, mut stream| {
                    let mut buffer = vec![0; 10_000];
                    stream.read_exact(&mut buffer).unwrap();
                    stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig").unwrap();
                    if linger {
                        stream.shutdown(std::net::Shutdown::Write).unwrap();
                        drain_for(&mut stream, Duration::from_secs(5));
                    }
                });
                let proxy = Proxy::before(&url);
                let mut client = if path == "direct" {
                    Client::connect(url.strip_prefix("http://").unwrap().parse().unwrap())
                } else {
                    proxy.client()
                };
                let body = vec![b'x'; 5 << 20];
                client.try_send(format!(
                    "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                ));
                client.try_send(&body);
                let outcome =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.answer()));
                match outcome {
                    Ok(answer) if answer.status() == 413 && answer.body == b"big" => {}
                    Ok(answer) => bad.push(format!(
                        "linger {linger} {path} {round}: {} {}",
                        answer.line,
                        text(&answer.body)
                    )),
                    Err(_) => bad.push(format!("linger {linger} {path} {round}: no answer")),
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}\n{}", bad.len(), bad.join("\n"));
}

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

/// A request that upstream was already working on must not be sent again.
#[test]
fn a_request_that_upstream_began_to_process_is_not_sent_twice() {
    let served = AtomicUsize::new(0);
    let tap = Tap::start(move |_| match served.fetch_add(1, Ordering::SeqCst) {
        0 => plain(b"ok"),
        1 => vec![Step::Pause(Duration::from_secs(2)), Step::Close],
        _ => plain(b"second time"),
    });
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
    let served = AtomicUsize::new(0);
    let tap = Tap::start(move |_| match served.fetch_add(1, Ordering::SeqCst) {
        0 => plain(b"ok"),
        1 => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n".to_vec()),
            Step::Close,
        ],
        _ => plain(b"second time"),
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").answer();
    tap.seen();
    client.post("/v1/messages", "", b"{\"pay\":1}").answer();
    tap.seen();
    assert!(tap.saw_nothing(), "sent again although an answer had begun");
}

#[test]
fn a_get_on_a_connection_that_died_costs_the_client_nothing() {
    let served = AtomicUsize::new(0);
    let tap = Tap::start(move |_| {
        if served.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
            vec![Step::Reset]
        } else {
            plain(b"ok")
        }
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    for _ in 0..4 {
        let answer = client
            .send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
            .answer();
        assert_eq!(answer.status(), 200, "{}", text(&answer.body));
    }
}

#[test]
fn a_get_with_a_chunked_body_keeps_it() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    proxy.client().send("GET /v1/search HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").answer();
    assert_eq!(text(&tap.seen().body), "hello");
}

fn relayed(response: &'static [u8], request: &str) -> String {
    let tap = Tap::start(move |_| {
        vec![
            Step::Send(response.to_vec()),
            Step::Pause(Duration::from_millis(300)),
            Step::Close,
        ]
    });
    let proxy = Proxy::before(&tap.url());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    text(&drain_for(&mut stream, Duration::from_secs(1)))
}

const GET: &str = "GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\n";
const HEAD: &str = "HEAD /v1/x HTTP/1.1\r\nhost: x\r\n\r\n";

#[test]
fn a_head_answer_without_a_length_gets_none() {
    let seen = relayed(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        HEAD,
    );
    assert!(!seen.contains("content-length: 0"), "{seen}");
}

#[test]
fn a_304_without_a_length_gets_none() {
    let seen = relayed(b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n", GET);
    assert!(!seen.contains("content-length"), "{seen}");
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
fn a_short_length_beside_chunks_does_not_hang() {
    let seen = relayed(b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", GET);
    assert!(
        seen.contains("hello") && !seen.contains("content-length: 30"),
        "{seen}"
    );
}

#[test]
fn an_unasked_switch_of_protocols_is_an_error_the_client_sees() {
    let seen = relayed(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", GET);
    assert!(seen.starts_with("HTTP/1.1 502"), "{seen}");
}

#[test]
fn early_hints_before_the_answer_are_survived() {
    let seen = relayed(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", GET);
    assert!(seen.contains("200 OK") && seen.ends_with("ok"), "{seen}");
}

#[test]
fn an_http_1_0_answer_keeps_the_client_s_version_and_a_cut_stays_a_cut() {
    let seen = relayed(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", GET);
    assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
}

#[test]
fn an_answer_with_many_headers_passes() {
    let many = format!(
        "HTTP/1.1 200 OK\r\n{}content-length: 2\r\n\r\nok",
        "x-a: b\r\n".repeat(150)
    );
    let many: &'static str = many.leak();
    let seen = relayed(many.as_bytes(), GET);
    assert!(
        seen.starts_with("HTTP/1.1 200"),
        "{}",
        &seen[..seen.len().min(400)]
    );
}

#[test]
fn stale_bytes_on_a_pooled_connection_never_answer_the_next_request() {
    let served = AtomicUsize::new(0);
    let tap = Tap::start(move |_| {
        match served.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil".to_vec())],
        _ => plain(b"good"),
    }
    });
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    assert_eq!(client.post("/v1/messages", "", b"{}").answer().body, b"ok");
    assert_eq!(
        text(&client.post("/v1/messages", "", b"{}").answer().body),
        "good"
    );
}

#[test]
fn garbage_after_a_pipelined_request_gets_the_api_s_shape() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send("GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\ngarbage\r\n\r\n");
    assert_eq!(client.answer().body, b"ok");
    let refused = client.answer();
    assert_eq!(refused.status(), 400);
    assert!(text(&refused.body).contains("longhaul"), "{refused:?}");
}

#[test]
fn pipelined_requests_are_all_answered() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.send("GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20));
    for _ in 0..20 {
        assert_eq!(client.answer().body, b"ok");
    }
}

/// "Whatever happens, a request is counted once."
#[test]
fn a_request_whose_client_left_before_the_answer_is_counted() {
    let (closed, noticed) = channel();
    let tap = Tap::start(move |_| vec![Step::UntilClosed(closed.clone())]);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}");
    tap.seen();
    drop(client);
    noticed.recv_timeout(Duration::from_secs(5)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let page = Client::connect(proxy.address)
        .send("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .answer();
    let page = text(&page.body);
    assert!(
        page.contains("longhaul_requests_total{route=\"messages\""),
        "{page}"
    );
}

#[test]
fn the_admin_surface_answers_every_time_while_draining() {
    let tap = Tap::start(|_| {
        vec![
            Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat()),
            Step::Pause(Duration::from_secs(8)),
            Step::Send(LAST_CHUNK.to_vec()),
        ]
    });
    let mut proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").head();
    client.until("first");
    proxy.tell_to_stop();
    std::thread::sleep(Duration::from_millis(300));
    let mut bad = 0;
    for _ in 0..50 {
        let mut stream = TcpStream::connect(proxy.admin.unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let seen = drain_for(&mut stream, Duration::from_secs(1));
        if !text(&seen).starts_with("HTTP/1.1 503") {
            bad += 1;
        }
    }
    assert_eq!(bad, 0, "of 50 probes");
}

#[test]
fn one_place_is_enough_for_one_connection_beside_an_admin_listener() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(
        &tap.url(),
        "admin.listen = \"127.0.0.1:0\"\nlimits.connections = 1",
    );
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    let seen = drain_for(&mut stream, Duration::from_secs(2));
    assert!(text(&seen).starts_with("HTTP/1.1 200"), "{}", text(&seen));
}

#[test]
fn a_full_house_still_answers_health_on_its_own_address() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(
        &tap.url(),
        "[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\nconnections = 4",
    );
    let _held: Vec<_> = (0..6)
        .map(|_| TcpStream::connect(proxy.address).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    for round in 0..3 {
        let mut stream = TcpStream::connect(proxy.admin.unwrap()).unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        let seen = drain_for(&mut stream, Duration::from_secs(2));
        assert!(
            text(&seen).starts_with("HTTP/1.1 200"),
            "round {round}: {}",
            text(&seen)
        );
    }
}

#[test]
fn an_http_1_0_client_gets_a_plain_stream() {
    let tap = Tap::start(|_| {
        vec![Step::Send(
            [STREAM_HEAD.as_bytes(), &chunk("hello"), LAST_CHUNK].concat(),
        )]
    });
    let proxy = Proxy::before(&tap.url());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.write_all(b"GET /v1/x HTTP/1.0\r\n\r\n").unwrap();
    let seen = text(&drain_for(&mut stream, Duration::from_secs(2)));
    assert!(
        seen.ends_with("\r\n\r\nhello") && !seen.contains("chunked"),
        "{seen}"
    );
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
            proxy
                .client()
                .send(format!(
                    "POST {path} HTTP/1.1\r\nhost: x\r\n{order}\r\n5\r\nhello\r\n0\r\n\r\n"
                ))
                .answer();
            let seen = tap.seen();
            assert_eq!(
                text(&seen.body),
                "hello",
                "{path} {order} {:?}",
                seen.headers
            );
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
fn a_request_after_the_drain_began_on_a_kept_connection_is_refused_or_served_not_lost() {
    let tap = Tap::start(|_| {
        vec![
            Step::Pause(Duration::from_millis(700)),
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()),
        ]
    });
    let mut proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}");
    tap.seen();
    proxy.tell_to_stop();
    let answer = client.answer();
    assert_eq!(answer.body, b"ok");
    assert_eq!(answer.header("connection"), Some("close"));
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

#[test]
fn expect_continue_works_on_every_path() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    for path in ["/v1/messages", "/v1/files"] {
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.write_all(format!("POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n").as_bytes()).unwrap();
        let seen = text(&drain_for(&mut stream, Duration::from_millis(500)));
        assert!(seen.starts_with("HTTP/1.1 100"), "{path} {seen}");
        stream.write_all(b"{}").unwrap();
        let seen = text(&drain_for(&mut stream, Duration::from_millis(500)));
        assert!(seen.starts_with("HTTP/1.1 200"), "{path} {seen}");
    }
}

/// What a step of compressed bytes becomes must be bounded for every coding.
#[test]
fn a_compressed_answer_unfolds_in_bounded_pieces() {
    use longhaul::wire::encoding::{Coding, Decoder};
    let zeros = vec![0; 256 << 20];
    let zstd = zstd::encode_all(&zeros[..], 3).unwrap();
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 1 << 16, 5, 22)
        .write_all(&zeros)
        .unwrap();
    for (coding, bytes) in [(Coding::Zstd, zstd), (Coding::Brotli, brotli)] {
        let mut largest = 0;
        Decoder::new(coding).push(&bytes, |piece| largest = largest.max(piece.len()));
        eprintln!(
            "{coding:?}: {} bytes unfold into a piece of {} MB",
            bytes.len(),
            largest >> 20
        );
        assert!(largest <= 16 << 20, "{coding:?} {largest}");
    }
}

/// A client that has begun to stream up must not be cut because connecting took
/// longer than the silence allowed inside a body.
#[test]
fn a_body_is_not_stalled_while_nobody_asks_for_it() {
    // The upstream reads nothing for two seconds, then everything.
    let url = raw(|_, mut stream| {
        std::thread::sleep(Duration::from_secs(3));
        let mut reader = Reader::new(stream.try_clone().unwrap());
        let mut request = reader.head().unwrap().unwrap();
        reader.body(&mut request, false).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let proxy = Proxy::with(&url, "limits.body_idle = \"1s\"");
    let body = vec![b'x'; 60 << 20];
    let mut client = proxy.client();
    client.try_send(format!(
        "POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    client.try_send(&body);
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
}

/// After an early answer the kept client connection must go on.
#[test]
fn a_client_connection_goes_on_after_an_early_answer() {
    let url = raw(|_, mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        while let Ok(Some(_)) = reader.head() {
            stream
                .write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
                .unwrap();
        }
    });
    let proxy = Proxy::before(&url);
    let mut client = proxy.client();
    client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n01234");
    assert_eq!(client.answer().status(), 413);
    let begun = Instant::now();
    client.try_send("56789").try_send(GET);
    let mut rest = Vec::new();
    // Either the next answer or the end of the connection, but soon.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest = client.some()));
    eprintln!("{:?} {}", begun.elapsed(), text(&rest));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?} {}",
        begun.elapsed(),
        text(&rest)
    );
}

/// To a client of HTTP/1.0 the end of the connection is the end of the body, so
/// a cut has to be a reset.
#[test]
fn a_cut_is_a_cut_for_an_http_1_0_client_too() {
    let tap = Tap::start(|_| {
        vec![
            Step::Send([STREAM_HEAD.as_bytes(), &chunk("hello")].concat()),
            Step::Pause(Duration::from_millis(100)),
            Step::Reset,
        ]
    });
    let proxy = Proxy::before(&tap.url());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.write_all(b"GET /v1/x HTTP/1.0\r\n\r\n").unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut seen = Vec::new();
    let outcome = stream.read_to_end(&mut seen);
    assert!(outcome.is_err(), "looks like a proper end: {}", text(&seen));
}

#[test]
fn a_cut_of_an_http_1_0_upstream_is_a_cut() {
    let tap = Tap::start(|_| {
        vec![
            Step::Send(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\nhello".to_vec()),
            Step::Pause(Duration::from_millis(100)),
            Step::Reset,
        ]
    });
    let proxy = Proxy::before(&tap.url());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut seen = Vec::new();
    let outcome = stream.read_to_end(&mut seen);
    let seen = text(&seen);
    assert!(
        outcome.is_err() || (seen.contains("chunked") && !seen.ends_with("0\r\n\r\n")),
        "looks like a proper end: {seen}"
    );
}

#[test]
fn an_answer_to_a_client_that_still_sends_survives_the_drain() {
    let mut lost = 0;
    for _ in 0..5 {
        let tap = Tap::start(|_| plain(b"ok"));
        let mut proxy = Proxy::with(&tap.url(), "limits.body_bytes = \"1MiB\"");
        let mut client = proxy.client();
        client.send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
        client.send(chunk(vec![b' '; 1000]));
        std::thread::sleep(Duration::from_millis(100));
        proxy.tell_to_stop();
        std::thread::sleep(Duration::from_millis(100));
        for _ in 0..40 {
            client.try_send(chunk(vec![b' '; 100_000]));
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.answer()));
        if !outcome.is_ok_and(|answer| answer.status() == 413) {
            lost += 1;
        }
    }
    assert_eq!(lost, 0, "of 5 answers");
}

/// A small compressed body must not stop the streams of its worker.
#[test]
fn a_compressed_request_does_not_hold_up_the_worker() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 1 << 16, 5, 22)
        .write_all(&vec![b' '; 60 << 20])
        .unwrap();
    let mut probe = proxy.client();
    probe.send(GET).answer();
    let mut other = proxy.client();
    other.post("/v1/messages", "content-encoding: br\r\n", &brotli);
    std::thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    probe.send(GET).answer();
    eprintln!(
        "{} bytes of brotli: a stranger waited {:?}",
        brotli.len(),
        begun.elapsed()
    );
    assert!(
        begun.elapsed() < Duration::from_millis(100),
        "{:?}",
        begun.elapsed()
    );
}

/// Scripts wait for the line; from then on a signal must drain.
#[test]
fn a_signal_right_after_the_announcement_exits_0() {
    use std::io::BufRead;
    for round in 0..30 {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args([
                "--listen",
                "127.0.0.1:0",
                "--upstream",
                "http://127.0.0.1:1",
            ])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        std::process::Command::new("sh")
            .args(["-c", &format!("kill -TERM {}", child.id())])
            .status()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "round {round}");
    }
}

/// Java's client offers h2c with every first request.
#[test]
fn an_offer_to_upgrade_is_ignored_and_the_connection_goes_on() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    for path in ["/v1/messages", "/v1/files"] {
        for _ in 0..3 {
            let answer = client.post(path, "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n", b"{}").answer();
            assert_eq!(answer.body, b"ok");
            let seen = tap.seen();
            assert!(seen.header("http2-settings").is_none() && seen.body == b"{}");
        }
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_an_upload_ends_it_upstream_and_leaves_nothing_behind() {
    let (closed, noticed) = channel();
    let url = raw(move |_, stream| {
        let mut reader = Reader::new(stream);
        while reader.some().is_ok_and(|read| !read.is_empty()) {}
        let _ = closed.send(());
    });
    let proxy = Proxy::before(&url);
    for _ in 0..20 {
        let mut client = proxy.client();
        client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nbegun");
        std::thread::sleep(Duration::from_millis(20));
        drop(client);
        noticed
            .recv_timeout(Duration::from_secs(5))
            .expect("upstream was not told");
        let mut client = proxy.client();
        client.send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nbegun");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(proxy.metric("longhaul_buffered_bytes"), Some(0.0));
    assert_eq!(proxy.metric("longhaul_requests_in_flight"), Some(0.0));
    // The one that asks.
    assert_eq!(proxy.metric("longhaul_client_connections"), Some(1.0));
}

/// Whoever takes nothing for longer than any limit must not keep its place.
#[test]
fn a_client_that_never_reads_is_let_go() {
    let (closed, noticed) = channel();
    let url = raw(move |_, mut stream| {
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
        .recv_timeout(Duration::from_secs(10))
        .expect("still held after ten seconds");
}

/// A byte now and then must not hold room for ever.
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
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(500));
        holder.try_send(" ");
    }
    assert_eq!(
        proxy
            .client()
            .post("/v1/messages", "", &vec![b' '; 100_000])
            .answer()
            .status(),
        200
    );
}

mod h2 {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use bytes::Bytes;
    use http_body_util::{BodyExt, Either, Full};
    use hyper::body::{Frame, Incoming};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    type Body = Either<Full<Bytes>, http_body_util::combinators::BoxBody<Bytes, std::io::Error>>;
    type Reply = Result<http::Response<Body>, std::io::Error>;

    pub struct Upstream {
        pub url: String,
        pub folder: tempfile::TempDir,
        pub requests: Arc<AtomicUsize>,
    }

    fn certificate(folder: &tempfile::TempDir) {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("cert.pem"), pair.cert.pem()).unwrap();
        std::fs::write(
            folder.path().join("key.pem"),
            pair.signing_key.serialize_pem(),
        )
        .unwrap();
    }

    fn upstream(
        streams: u32,
        reply: impl Fn(usize, http::Request<Incoming>) -> Reply + Send + Sync + 'static,
    ) -> Upstream {
        let folder = tempfile::tempdir().unwrap();
        certificate(&folder);
        let acceptor = longhaul::server::tls::acceptor(
            &folder.path().join("cert.pem"),
            &folder.path().join("key.pem"),
        )
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "https://localhost:{}",
            listener.local_addr().unwrap().port()
        );
        let requests = Arc::new(AtomicUsize::new(0));
        let (counted, reply) = (requests.clone(), Arc::new(reply));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                listener.set_nonblocking(true).unwrap();
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (acceptor, counted, reply) =
                        (acceptor.clone(), counted.clone(), reply.clone());
                    tokio::spawn(async move {
                        let Ok(stream) = acceptor.accept(stream).await else {
                            return;
                        };
                        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                        let service = hyper::service::service_fn(move |request| {
                            let number = counted.fetch_add(1, Ordering::SeqCst);
                            let reply = reply.clone();
                            async move { reply(number, request) }
                        });
                        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                            .max_concurrent_streams(streams)
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    });
                }
            });
        });
        Upstream {
            url,
            folder,
            requests,
        }
    }

    struct Process(Child, std::net::SocketAddr);

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn proxy(upstream: &Upstream, variables: &[(&str, &str)]) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["--listen", "127.0.0.1:0", "--upstream", &upstream.url])
            .env("SSL_CERT_FILE", upstream.folder.path().join("cert.pem"))
            .env("LONGHAUL_WORKERS", "1")
            .env("LONGHAUL_LOG__FORMAT", "text")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split("://")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        Process(child, address)
    }

    fn full(status: u16, body: &'static str) -> Reply {
        Ok(http::Response::builder()
            .status(status)
            .body(Either::Left(Full::from(body)))
            .unwrap())
    }

    fn flood(pieces: usize, forever: bool) -> Reply {
        struct Pieces(usize, bool);
        impl hyper::body::Body for Pieces {
            type Data = Bytes;
            type Error = std::io::Error;
            fn poll_frame(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
                if self.0 == 0 {
                    return if self.1 {
                        std::task::Poll::Pending
                    } else {
                        std::task::Poll::Ready(None)
                    };
                }
                self.0 -= 1;
                std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; 64 << 10])))))
            }
        }
        Ok(http::Response::new(Either::Right(
            Pieces(pieces, forever).boxed(),
        )))
    }

    fn within(address: std::net::SocketAddr, request: &str, time: Duration) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let begun = Instant::now();
        let mut seen = Vec::new();
        while begun.elapsed() < time && seen.is_empty() {
            seen = drain_for(&mut stream, Duration::from_millis(300));
        }
        text(&seen)
    }

    const POST: &str = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";

    #[test]
    fn an_upstream_that_allows_few_streams_is_served_over_more_connections() {
        let upstream = upstream(1, |number, _| {
            if number == 0 {
                flood(1, true)
            } else {
                full(200, "ok")
            }
        });
        let proxy = proxy(&upstream, &[]);
        let mut first = Client::connect(proxy.1);
        first.post("/v1/messages", "", b"{}").head();
        let seen = within(proxy.1, POST, Duration::from_secs(6));
        assert!(seen.starts_with("HTTP/1.1 200"), "{seen:?}");
    }

    #[test]
    fn slow_clients_do_not_hold_up_strangers() {
        let upstream = upstream(200, |number, _| {
            if number < 24 {
                flood(400, true)
            } else {
                full(200, "ok")
            }
        });
        let proxy = proxy(&upstream, &[]);
        let mut held = Vec::new();
        for _ in 0..24 {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(16 << 10).unwrap();
            socket.connect(&proxy.1.into()).unwrap();
            let mut stream: TcpStream = socket.into();
            stream.write_all(POST.as_bytes()).unwrap();
            held.push(stream);
            std::thread::sleep(Duration::from_millis(30));
        }
        std::thread::sleep(Duration::from_secs(3));
        let mut stranger = TcpStream::connect(proxy.1).unwrap();
        stranger
            .write_all(
                POST.replace("x\r\n", "x\r\nconnection: close\r\n")
                    .as_bytes(),
            )
            .unwrap();
        let seen = text(&drain_for(&mut stranger, Duration::from_secs(6)));
        assert!(seen.ends_with("ok"), "{seen:?}");
    }

    #[test]
    fn a_reset_stream_is_not_sent_again() {
        let upstream = upstream(100, |number, _| {
            if number == 1 {
                Err(std::io::Error::other("crashed"))
            } else {
                full(200, "ok")
            }
        });
        let proxy = proxy(&upstream, &[]);
        Client::connect(proxy.1)
            .post("/v1/messages", "", b"{}")
            .answer();
        let answer = Client::connect(proxy.1)
            .post("/v1/messages", "", b"{}")
            .answer();
        eprintln!("{}", answer.line);
        assert_eq!(upstream.requests.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn an_early_answer_passes() {
        let upstream = upstream(100, |_, _| full(413, "big"));
        let proxy = proxy(&upstream, &[]);
        let body = vec![b'x'; 5 << 20];
        for path in ["/v1/messages", "/v1/files"] {
            for round in 0..10 {
                let mut client = Client::connect(proxy.1);
                client.try_send(format!(
                    "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                ));
                client.try_send(&body);
                let answer = client.answer();
                assert_eq!(
                    answer.status(),
                    413,
                    "{path} {round} {}",
                    text(&answer.body)
                );
                assert_eq!(answer.body, b"big", "{path} {round}");
            }
        }
    }

    #[test]
    fn a_large_body_passes() {
        let upstream = upstream(100, |_, _| flood(400, false));
        let proxy = proxy(&upstream, &[]);
        let answer = Client::connect(proxy.1)
            .post("/v1/messages", "", &vec![b'x'; 20 << 20])
            .answer();
        assert!(answer.complete && answer.body.len() == 400 * (64 << 10));
    }

    #[test]
    fn an_idle_http2_client_is_let_go() {
        let upstream = upstream(100, |_, _| full(200, "ok"));
        let folder = upstream.folder.path().display().to_string();
        let (cert, key) = (format!("{folder}/cert.pem"), format!("{folder}/key.pem"));
        let proxy = proxy(
            &upstream,
            &[
                ("LONGHAUL_TLS__CERT", &cert),
                ("LONGHAUL_TLS__KEY", &key),
                ("LONGHAUL_LIMITS__HEADER_TIMEOUT", "1s"),
            ],
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            use rustls::pki_types::pem::PemObject;
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut roots = rustls::RootCertStore::empty();
            roots
                .add(rustls::pki_types::CertificateDer::from_pem_file(&cert).unwrap())
                .unwrap();
            let mut config = rustls::ClientConfig::builder()
                .with_root_certificates(roots)
                .with_no_client_auth();
            for (protocol, preface) in [("http/1.1", false), ("h2", false), ("h2", true)] {
                config.alpn_protocols = vec![protocol.into()];
                let stream = tokio::net::TcpStream::connect(proxy.1).await.unwrap();
                let connector = tokio_rustls::TlsConnector::from(Arc::new(config.clone()));
                let mut stream = connector
                    .connect("localhost".try_into().unwrap(), stream)
                    .await
                    .unwrap();
                if preface {
                    stream
                        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                        .await
                        .unwrap();
                }
                let mut all = Vec::new();
                let ended =
                    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut all))
                        .await;
                eprintln!("{protocol} preface {preface}: let go {}", ended.is_ok());
                assert!(ended.is_ok(), "{protocol} preface {preface}");
            }
        });
    }

    /// A proxy with TLS on its listener in front of a plain upstream, and a
    /// client that speaks HTTP/2 to it.
    fn encrypted(
        url: &str,
        variables: &[(&str, &str)],
    ) -> (Process, reqwest::Client, String, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        certificate(&folder);
        let (cert, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        let pem = std::fs::read(&cert).unwrap();
        let upstream = Upstream {
            url: url.to_owned(),
            folder,
            requests: Arc::default(),
        };
        let mut all = vec![
            ("LONGHAUL_TLS__CERT", cert.to_str().unwrap()),
            ("LONGHAUL_TLS__KEY", key.to_str().unwrap()),
        ];
        all.extend_from_slice(variables);
        let proxy = proxy(&upstream, &all);
        let address = proxy.1;
        let client = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&pem).unwrap()])
            .resolve("localhost", address)
            .build()
            .unwrap();
        (
            proxy,
            client,
            format!("https://localhost:{}", address.port()),
            upstream.folder,
        )
    }

    fn block<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(20), future)
                .await
                .unwrap()
        })
    }

    #[test]
    fn a_cut_after_much_data_loses_none_of_it() {
        let size = 3 << 20;
        let tap = Tap::start(move |_| {
            vec![
                Step::Send([STREAM_HEAD.as_bytes(), &chunk(vec![b'Z'; size])].concat()),
                Step::Close,
            ]
        });
        let (_proxy, client, url, _folder) = encrypted(&tap.url(), &[]);
        block(async {
            let mut answer = client.get(format!("{url}/v1/x")).send().await.unwrap();
            assert_eq!(answer.version(), http::Version::HTTP_2);
            let mut seen = 0;
            let ended = loop {
                match answer.chunk().await {
                    Ok(Some(piece)) => seen += piece.len(),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            assert!(!ended, "looks whole");
            assert_eq!(seen, size);
        });
    }

    #[test]
    fn a_stream_finishes_while_draining_and_a_left_one_cancels() {
        let gate = crate::support::Gate::new();
        let (closed, noticed) = channel();
        let opened = gate.clone();
        let tap = Tap::start(move |request| {
            let head = Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat());
            if request.line.contains("left") {
                vec![head, Step::UntilClosed(closed.clone())]
            } else {
                vec![
                    head,
                    Step::Wait(opened.clone()),
                    Step::Send([&chunk("last"), LAST_CHUNK].concat()),
                ]
            }
        });
        let (mut proxy, client, url, _folder) = encrypted(&tap.url(), &[]);
        block(async {
            let mut left = client.get(format!("{url}/v1/left")).send().await.unwrap();
            left.chunk().await.unwrap();
            drop(left);
            // The client's connection is driven by this runtime.
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            noticed
                .recv_timeout(Duration::from_secs(1))
                .expect("not cancelled");
            let mut answer = client.get(format!("{url}/v1/x")).send().await.unwrap();
            answer.chunk().await.unwrap();
            Command::new("kill")
                .args(["-TERM", &proxy.0.id().to_string()])
                .status()
                .unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
            gate.open();
            let mut rest = Vec::new();
            while let Some(piece) = answer.chunk().await.unwrap() {
                rest.extend_from_slice(&piece);
            }
            assert_eq!(text(&rest), "last");
            drop(client);
        });
        assert_eq!(proxy.0.wait().unwrap().code(), Some(0));
    }

    #[test]
    fn a_large_upload_over_http2_passes() {
        let tap = Tap::start(|request| plain(request.body.len().to_string().as_bytes()));
        let (_proxy, client, url, _folder) = encrypted(&tap.url(), &[]);
        block(async {
            for path in ["messages", "files"] {
                let answer = client
                    .post(format!("{url}/v1/{path}"))
                    .body(vec![b'x'; 20 << 20])
                    .send()
                    .await
                    .unwrap();
                assert_eq!(answer.text().await.unwrap(), (20 << 20).to_string());
            }
        });
    }

    #[test]
    fn large_headers_over_http2_are_as_welcome_as_over_http1() {
        let tap = Tap::start(|_| plain(b"ok"));
        let (_proxy, client, url, _folder) = encrypted(&tap.url(), &[]);
        block(async {
            let answer = client
                .get(format!("{url}/v1/x"))
                .header("x-large", "y".repeat(40_000))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 200);
        });
    }
}
