//! A hundred thousand generated requests: no panic, no hang, no byte lost.
//!
//! Most are valid, of every shape that framing, methods, headers and codings
//! allow, and must come back from an echoing upstream unchanged. The rest are
//! garbage, mutated or half sent, and must end in an error or a closed
//! connection, soon. Another seed makes another run (`LONGHAUL_TEST_SEED`);
//! `LONGHAUL_TEST_REQUESTS` makes it longer.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;

use crate::support::http::Reader;
use crate::support::{Client, LAST_CHUNK, Proxy, chunk};

const REQUESTS: usize = 100_000;
const THREADS: usize = 4;

/// Sends each body back, framed as the request's `x-frame` header says.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || echo_connection(stream.unwrap()));
        }
    });
    address
}

fn echo_connection(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut reader = Reader::new(stream.try_clone().unwrap());
    while let Ok(Some(mut request)) = reader.head() {
        if reader.body(&mut request, false).is_err() || !request.complete {
            return;
        }
        let kind = request.header("x-kind").unwrap_or("text/plain");
        let coding = request
            .header("content-encoding")
            .map_or(String::new(), |c| format!("content-encoding: {c}\r\n"));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{coding}");
        let size = request
            .header("x-frame")
            .and_then(|size| size.parse().ok())
            .unwrap_or(0);
        let mut answer = head.into_bytes();
        if size == 0 {
            answer.extend(format!("content-length: {}\r\n\r\n", request.body.len()).bytes());
            answer.extend(&request.body);
        } else {
            answer.extend(b"transfer-encoding: chunked\r\n\r\n");
            // Pieces as small as asked for, but no more than a hundred of them.
            let size = size.max(request.body.len() / 100);
            request
                .body
                .chunks(size)
                .for_each(|piece| answer.extend(chunk(piece)));
            answer.extend(LAST_CHUNK);
        }
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

fn body(rng: &mut Rng) -> Vec<u8> {
    let size = match rng.u8(0..10) {
        0 => 0,
        1..=6 => rng.usize(1..300),
        7..=8 => rng.usize(300..5000),
        _ => rng.usize(5000..60_000),
    };
    let alphabet: &[u8] = match rng.u8(0..3) {
        0 => b"{}[]\",:\\u0d8 \n\r\t1e.-truefalsnmdo",
        1 => b"event: dat\r\n\r\n{\"type\":\"message_start\"}",
        _ => &[],
    };
    let byte = |rng: &mut Rng| {
        if alphabet.is_empty() {
            rng.u8(..)
        } else {
            alphabet[rng.usize(0..alphabet.len())]
        }
    };
    (0..size).map(|_| byte(rng)).collect()
}

fn head(rng: &mut Rng) -> String {
    let method = ["POST", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"][rng.usize(0..7)];
    let path = [
        "/v1/messages",
        "/v1/messages?beta=true",
        "/v1/messages/count_tokens",
        "/v1/messages/",
        "/v1/files/x?q=%00%ff&a=b",
        "/",
        "/%2e%2e//x;y=z",
    ][rng.usize(0..7)];
    let kind = [
        "application/json",
        "text/event-stream",
        "text/plain",
        "x/y; odd=\"1",
    ][rng.usize(0..4)];
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nx-kind: {kind}\r\nx-frame: {}\r\n",
        [0, 1, 17, 4096][rng.usize(0..4)]
    );
    for _ in 0..rng.u8(0..6) {
        let value: String = (0..rng.usize(0..30)).map(|_| rng.char(' '..'~')).collect();
        head.push_str(&format!("x-{}: {}\r\n", rng.u32(..), value.trim()));
    }
    if rng.u8(0..8) == 0 {
        let coding = ["gzip", "br", "zstd", "deflate", "squeeze", "gzip, br"][rng.usize(0..6)];
        head.push_str(&format!("content-encoding: {coding}\r\n"));
    }
    head
}

/// A valid request; its body must come back.
fn valid(client: &mut Client, rng: &mut Rng) {
    let (head, body) = (head(rng), body(rng));
    let sent = if rng.bool() {
        let mut sent = format!("{head}transfer-encoding: chunked\r\n\r\n").into_bytes();
        let size = rng.usize(1..2000).max(body.len() / 100);
        body.chunks(size)
            .for_each(|piece| sent.extend(chunk(piece)));
        sent.extend(LAST_CHUNK);
        sent
    } else {
        [
            format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes(),
            &body,
        ]
        .concat()
    };
    if rng.u8(0..4) == 0 {
        sent.chunks(rng.usize(1..4000).max(sent.len() / 8))
            .for_each(|piece| {
                client.send(piece);
            });
    } else {
        client.send(&sent);
    }
    let answer = client.answer();
    assert_eq!(
        answer.status(),
        200,
        "{head}{}",
        String::from_utf8_lossy(&answer.body)
    );
    assert!(answer.complete && answer.body == body, "changed: {head}");
}

/// Something else; it must end soon.
fn invalid(address: SocketAddr, rng: &mut Rng) {
    let mut sent = if rng.u8(0..3) == 0 {
        (0..rng.usize(1..400)).map(|_| rng.u8(..)).collect()
    } else {
        let (head, body) = (head(rng), body(rng));
        let head = format!("{head}content-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), &body].concat()
    };
    if rng.u8(0..3) == 0 {
        sent.truncate(rng.usize(0..=sent.len()));
    } else {
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(0..sent.len().min(300));
            sent[at] = rng.u8(..);
        }
    }
    let mut client = Client::connect(address);
    client.try_send(&sent);
    client.try_finish();
    // Whatever comes, the end must come too; the client gives up after 20 s.
    client.drain();
}

#[test]
fn generated_requests_make_no_panic_no_hang_and_lose_no_byte() {
    let panics = Arc::new(AtomicUsize::new(0));
    let (count, usual) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with("worker-"))
        {
            count.fetch_add(1, Ordering::SeqCst);
        }
        usual(info);
    }));
    let seed = std::env::var("LONGHAUL_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(1);
    let requests = std::env::var("LONGHAUL_TEST_REQUESTS").ok();
    let requests = requests
        .and_then(|count| count.parse().ok())
        .unwrap_or(REQUESTS);
    println!("{requests} requests, seed {seed}");
    let proxy = Proxy::before(&format!("http://{}", echo()));
    let address = proxy.address;
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut rng = Rng::with_seed(seed.wrapping_add(thread as u64));
                let mut client = Client::connect(address);
                for _ in 0..requests / THREADS {
                    match rng.u8(0..10) {
                        0 => invalid(address, &mut rng),
                        1 if rng.u8(0..8) == 0 => client = Client::connect(address),
                        _ => valid(&mut client, &mut rng),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread
            .join()
            .unwrap_or_else(|_| panic!("failed with seed {seed}"));
    }
    assert_eq!(
        panics.load(Ordering::SeqCst),
        0,
        "a worker panicked, seed {seed}"
    );
    // Connections that were closed on us may take a moment to be noticed.
    for _ in 0..500 {
        if proxy.metric("longhaul_requests_in_flight") == Some(0.0)
            && proxy.metric("longhaul_buffered_bytes") == Some(0.0)
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("something is still held, seed {seed}");
}
