//! Large bodies, many at once: what they cost in memory, and whether a stream
//! beside them goes on.
//!
//! A few by default; `LONGHAUL_BODIES` says how many, and `make prove` takes two
//! hundred. Each is a conversation of eight megabytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Client, LAST_CHUNK, Process, STREAM_HEAD, chunk};

const SIZE: usize = 8_000_000;
/// Room for eight of them.
const ROOM: usize = 64 << 20;
const EVENT: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
/// What the process may need besides the bodies: itself, its vocabulary, the
/// spans of the few bodies that are looked at at once, and what the journal is
/// told of them, one after the other.
const BESIDES: usize = 256 << 20;

fn body(number: usize) -> String {
    let mut body = String::from(r#"{"model":"claude-opus-5-5","max_tokens":9,"messages":["#);
    let mut turn = 0;
    while body.len() < SIZE {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        let text = format!("{number} line {turn} of \\\"main.rs\\\"\\n").repeat(100);
        let comma = if turn == 0 { "" } else { "," };
        body += &format!(r#"{comma}{{"role":"{role}","content":"{text}"}}"#);
        turn += 1;
    }
    body + "]}"
}

/// Answers at once, or with a stream of pings for as long as it is wanted.
async fn upstream(wanted: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, wanted.clone()));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, wanted: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut head = Vec::new();
        let end = loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => head.extend_from_slice(&buffer[..count]),
            }
            if let Some(end) = memchr::memmem::find(&head, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
        let length = text.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut rest = (end + length).saturating_sub(head.len());
        while rest > 0 {
            rest -= stream.read(&mut buffer).await.unwrap().min(rest);
        }
        stream.write_all(STREAM_HEAD.as_bytes()).await.unwrap();
        while length < 1000 && wanted.load(Ordering::SeqCst) {
            stream.write_all(&chunk(EVENT)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        stream.write_all(&chunk(EVENT)).await.unwrap();
        stream.write_all(LAST_CHUNK).await.unwrap();
    }
}

/// The longest time between two pieces of a stream beside the bodies.
async fn beside(address: SocketAddr) -> Duration {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let length = body.len();
    let request =
        format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut buffer, mut seen) = (vec![0; 4096], Vec::new());
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    let mut pieces = 0;
    while !seen.ends_with(b"\r\n0\r\n\r\n") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the stream was cut");
        if pieces > 1 {
            longest = longest.max(last.elapsed());
        }
        last = Instant::now();
        pieces += 1;
        seen.extend_from_slice(&buffer[..count]);
    }
    longest
}

async fn send(address: SocketAddr, number: usize) -> bool {
    let body = body(number);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer.starts_with(b"HTTP/1.1 200")
}

fn buffered(address: SocketAddr) -> usize {
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = Client::connect(address).send(request).answer();
    let text = String::from_utf8(answer.body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("longhaul_buffered_bytes "));
    line.unwrap().parse().unwrap()
}

fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}

#[test]
fn large_bodies_stay_within_their_room_and_all_are_answered() {
    let wanted = std::env::var("LONGHAUL_BODIES").ok();
    let bodies: usize = wanted.map_or(12, |count| count.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let streaming = Arc::new(AtomicBool::new(true));
    let upstream = runtime.block_on(upstream(streaming.clone()));
    let process = Process::start(
        &format!("http://{upstream}"),
        &[
            ("LONGHAUL_LOG__LEVEL", "off"),
            ("LONGHAUL_LIMITS__BUFFERED_BYTES", &ROOM.to_string()),
            ("LONGHAUL_LIMITS__BUFFER_WAIT", "300s"),
            ("LONGHAUL_LIMITS__BODY_IDLE", "300s"),
            ("LONGHAUL_STORE__TIMEOUT", "20s"),
        ],
    );
    let address = process.address;
    let stream = runtime.spawn(beside(address));
    let senders: Vec<_> = (0..bodies)
        .map(|number| runtime.spawn(send(address, number)))
        .collect();
    let mut most = 0;
    for sender in senders {
        while !sender.is_finished() {
            most = most.max(buffered(address));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(runtime.block_on(sender).unwrap(), "every body is answered");
    }
    streaming.store(false, Ordering::SeqCst);
    let longest = runtime.block_on(stream).unwrap();
    let peak = peak(process.id());
    println!(
        "{bodies} bodies of 8 MB: at most {} MB held of {} MB, {} MB resident at the most; the longest gap of a stream beside them {longest:?}",
        most >> 20,
        ROOM >> 20,
        peak >> 20
    );
    assert!(most <= ROOM, "{most} bytes held");
    assert!(peak <= ROOM + BESIDES, "{peak} bytes resident");
}
