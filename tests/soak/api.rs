//! An API that answers every request with one more tool call, at once.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        }
    });
    address
}

/// Reads requests and answers them until the other side has enough.
async fn serve(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    let mut serial = 0_u64;
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
        let length = text.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let length: usize = length.unwrap_or(0);
        let mut rest = (end + length).saturating_sub(head.len());
        while rest > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => rest -= count.min(rest),
            }
        }
        serial += 1;
        let body = format!(
            r#"{{"id":"msg_{length}_{serial}","type":"message","role":"assistant","model":"claude-opus-4-8","content":[{{"type":"tool_use","id":"toolu_{length}_{serial}","name":"Bash","input":{{"command":"make {serial}"}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":{},"output_tokens":40}}}}"#,
            length / 4
        );
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
