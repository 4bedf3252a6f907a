//! An upstream that costs next to nothing, the same for every proxy.
//!
//! It reads a request and answers with an event stream of twenty-five frames, a
//! write each, as an API under load does. The usage it states follows from the
//! length of the body, nearly all of it read from the cache. A request that does
//! not ask for a stream is Longhaul asking for a summary: it gets the same text as
//! one JSON message, and the text is a summary that Longhaul accepts.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Deltas of an answer.
const DELTAS: usize = 20;
/// Bytes of a token, about, in this kind of text.
const BYTES_PER_TOKEN: f64 = 3.4;
/// Tokens that a request writes to the cache.
const WRITTEN: usize = 1_200;
/// How many bytes from the start of a body are searched for `"stream":true`.
const OPTIONS: usize = 300;

const ANSWER: &str = r#"{"session_intent":"Go on with the work that was begun.","constraints":["Keep it simple."],"decisions":["The order of the steps stays as it is."],"files_touched":[],"errors":[],"pending_questions":[],"next_steps":["Read on."]}"#;

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
    let middle = middle();
    loop {
        let mut filled = 0;
        // The head and the first bytes of the body.
        let (head, length) = loop {
            match head_of(&buffer[..filled]) {
                Some((head, length)) if filled >= head + length.min(OPTIONS) => {
                    break (head, length);
                }
                _ => {}
            }
            match stream.read(&mut buffer[filled..]).await {
                Ok(0) | Err(_) => return,
                Ok(count) => filled += count,
            }
        };
        let options = &buffer[head..head + length.min(OPTIONS)];
        let streams = memmem::find(options, br#""stream":true"#).is_some();
        let mut rest = (head + length).saturating_sub(filled);
        while rest > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => rest = rest.saturating_sub(count),
            }
        }
        let usage = usage(length);
        let written = if streams {
            answer_with_events(&mut stream, &usage, &middle).await
        } else {
            stream.write_all(message(&usage).as_bytes()).await
        };
        if written.is_err() {
            return;
        }
    }
}

async fn answer_with_events(
    stream: &mut TcpStream,
    usage: &str,
    middle: &[String],
) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let start = format!(
        r#"{{"type":"message_start","message":{{"id":"msg_01","type":"message","role":"assistant","model":"claude-bench","content":[],"stop_reason":null,"usage":{usage}}}}}"#
    );
    let start = event("message_start", &start);
    stream.write_all(start.as_bytes()).await?;
    for frame in middle {
        stream.write_all(frame.as_bytes()).await?;
    }
    stream.write_all(b"0\r\n\r\n").await
}

/// The frames that are the same in every answer.
fn middle() -> Vec<String> {
    let begin =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let mut frames = vec![event("content_block_start", begin)];
    for piece in ANSWER.as_bytes().chunks(ANSWER.len().div_ceil(DELTAS)) {
        let piece = serde_json::to_string(&String::from_utf8_lossy(piece)).unwrap();
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{piece}}}}}"#
        );
        frames.push(event("content_block_delta", &delta));
    }
    let end = r#"{"type":"content_block_stop","index":0}"#;
    frames.push(event("content_block_stop", end));
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":60}}"#;
    frames.push(event("message_delta", stop));
    frames.push(event("message_stop", r#"{"type":"message_stop"}"#));
    frames
}

/// One event, framed as a chunk.
fn event(name: &str, data: &str) -> String {
    let event = format!("event: {name}\ndata: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// The answer in one piece.
fn message(usage: &str) -> String {
    let text = serde_json::to_string(ANSWER).unwrap();
    let body = format!(
        r#"{{"id":"msg_01","type":"message","role":"assistant","model":"claude-bench","content":[{{"type":"text","text":{text}}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{usage}}}"#
    );
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn usage(length: usize) -> String {
    let tokens = (length as f64 / BYTES_PER_TOKEN) as usize;
    let read = tokens.saturating_sub(WRITTEN);
    let written = tokens - read;
    format!(
        r#"{{"input_tokens":3,"cache_creation_input_tokens":{written},"cache_read_input_tokens":{read},"output_tokens":60}}"#
    )
}

/// The length of the head and of the body it declares.
fn head_of(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head
        .split("content-length:")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next())
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0);
    Some((end, length))
}
