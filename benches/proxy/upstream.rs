//! An upstream that costs next to nothing: reads a request, sends an event
//! stream of twenty frames, a write each, as an API under load does.

use std::io::Write as _;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const FRAMES: usize = 20;

/// Starts it on a thread of its own.
pub fn start() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}

async fn serve(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 20];
    let mut frame = Vec::new();
    let event = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello there\"}}\n\n";
    write!(frame, "{:x}\r\n{event}\r\n", event.len()).unwrap();
    let mut filled = 0;
    loop {
        // The head, then exactly as many bytes as it declares.
        let (head, length) = loop {
            if let Some(found) = head_of(&buffer[..filled]) {
                break found;
            }
            match stream.read(&mut buffer[filled..]).await {
                Ok(0) | Err(_) => return,
                Ok(count) => filled += count,
            }
        };
        let mut rest = (head + length).saturating_sub(filled);
        while rest > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => rest = rest.saturating_sub(count),
            }
        }
        filled = 0;
        let start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        if stream.write_all(start).await.is_err() {
            return;
        }
        for _ in 0..FRAMES {
            if stream.write_all(&frame).await.is_err() {
                return;
            }
        }
        if stream.write_all(b"0\r\n\r\n").await.is_err() {
            return;
        }
    }
}

/// The length of the head and of the body it declares.
fn head_of(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head
        .split("content-length:")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next())
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0);
    Some((end, length))
}
