//! Sends requests over kept-alive connections and takes the times.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// From the first byte sent to the first byte of the answer.
    pub first_byte: Vec<Duration>,
    /// Requests a second.
    pub rate: f64,
}

/// A request of about `size` bytes, shaped like a conversation.
pub fn request(size: usize) -> Vec<u8> {
    framed("", &conversation(size, "claude-opus-5-5"))
}

/// The same, but not JSON: it can only be passed on.
pub fn not_understood(size: usize) -> Vec<u8> {
    framed("", &format!("?{}", conversation(size, "claude-opus-5-5")))
}

/// The same with another model, asking for a smaller view or not.
pub fn viewed(size: usize, now: bool) -> Vec<u8> {
    let wish = if now {
        "x-longhaul-compact: now\r\n"
    } else {
        ""
    };
    framed(wish, &conversation(size, "claude-opus-4-8"))
}

fn conversation(size: usize, model: &str) -> String {
    let mut body = format!(r#"{{"model":"{model}","max_tokens":1024,"stream":true,"messages":["#);
    let mut turn = 0;
    while body.len() < size {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        let text = format!("line {turn}: the quick brown fox reads \\\"main.rs\\\"\\n").repeat(60);
        if turn > 0 {
            body.push(',');
        }
        body.push_str(&format!(
            r#"{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}"#
        ));
        turn += 1;
    }
    if turn % 2 == 0 {
        body.push_str(r#",{"role":"user","content":"go on"}"#);
    }
    body.push_str("]}");
    body
}

fn framed(header: &str, body: &str) -> Vec<u8> {
    let mut bytes = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: bench\r\nx-api-key: key\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\naccept: application/json\r\nuser-agent: bench\r\n{header}content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// Sends `count` requests over `connections` connections at once.
pub fn run(address: SocketAddr, request: &[u8], connections: usize, count: usize) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request: Arc<[u8]> = request.into();
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            one(&mut stream, &request).await;
            streams.push(stream);
        }
        let begun = Instant::now();
        let tasks: Vec<_> = streams
            .into_iter()
            .map(|mut stream| {
                let request = request.clone();
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    for _ in 0..count / connections {
                        times.push(one(&mut stream, &request).await);
                    }
                    times
                })
            })
            .collect();
        let mut seen = Seen::default();
        for task in tasks {
            seen.first_byte.extend(task.await.unwrap());
        }
        seen.rate = seen.first_byte.len() as f64 / begun.elapsed().as_secs_f64();
        seen
    })
}

async fn one(stream: &mut TcpStream, request: &[u8]) -> Duration {
    let begun = Instant::now();
    stream.write_all(request).await.unwrap();
    let mut buffer = vec![0; 16 * 1024];
    let mut tail = Vec::new();
    let mut first = None;
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the answer broke off");
        first.get_or_insert_with(|| begun.elapsed());
        tail.extend_from_slice(&buffer[..count]);
        if tail.ends_with(b"\r\n0\r\n\r\n") {
            assert!(tail.starts_with(b"HTTP/1.1 200"));
            return first.unwrap();
        }
    }
}
