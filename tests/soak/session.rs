//! A session: it grows to its size in large steps, and works on in small ones.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Bytes of a grown body.
pub const FULL: usize = 1_000_000;
/// Bytes of a result while a session grows.
const LARGE: usize = 38_000;
/// And afterwards.
const SMALL: usize = 200;
/// From one request to the next, while it grows and afterwards.
const HASTY: Duration = Duration::from_millis(1_300);
const PACE: Duration = Duration::from_secs(2);

/// What all sessions share.
pub struct Shared {
    proxy: SocketAddr,
    /// Sessions that have reached their size.
    pub full: AtomicUsize,
    /// The first answer that was none.
    pub refused: Mutex<Option<String>>,
}

impl Shared {
    pub fn new(proxy: SocketAddr) -> Self {
        Self {
            proxy,
            full: AtomicUsize::new(0),
            refused: Mutex::default(),
        }
    }
}

pub struct Session {
    number: usize,
    /// The messages, as the inside of an array.
    messages: String,
    steps: usize,
}

impl Session {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            messages: format!(r#"{{"role":"user","content":"Build number {number}."}}"#),
            steps: 0,
        }
    }

    /// Works until it is told to stop.
    pub async fn work(mut self, shared: Arc<Shared>) {
        // Not all at the same moment.
        let share = u32::try_from(self.number).unwrap_or(0);
        tokio::time::sleep(HASTY * share / 200).await;
        let mut stream = None;
        let mut is_full = false;
        loop {
            let begun = Instant::now();
            match self.step(&mut stream, shared.proxy).await {
                Ok(()) => {}
                Err(what) => {
                    shared.refused.lock().unwrap().get_or_insert(what);
                    stream = None;
                }
            }
            if !is_full && self.messages.len() >= FULL {
                is_full = true;
                shared.full.fetch_add(1, Ordering::SeqCst);
            }
            let pace = if is_full { PACE } else { HASTY };
            tokio::time::sleep_until(begun + pace).await;
        }
    }

    async fn step(
        &mut self,
        stream: &mut Option<TcpStream>,
        proxy: SocketAddr,
    ) -> Result<(), String> {
        let body = format!(
            r#"{{"model":"claude-opus-4-8","max_tokens":1000,"tools":[{{"name":"Bash","input_schema":{{"type":"object"}}}}],"messages":[{}]}}"#,
            self.messages
        );
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let connection = if let Some(stream) = stream {
            stream
        } else {
            let fresh = TcpStream::connect(proxy).await;
            stream.insert(fresh.map_err(|error| error.to_string())?)
        };
        let answer = exchange(connection, &head, &body).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        if !head.starts_with("HTTP/1.1 200") {
            return Err(text);
        }
        let reply: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        self.append(&reply);
        Ok(())
    }

    fn append(&mut self, reply: &Value) {
        let size = if self.messages.len() < FULL {
            LARGE
        } else {
            SMALL
        };
        let (number, step) = (self.number, self.steps);
        self.steps += 1;
        let line = format!(
            "{number}: line {step} of \\\"main.rs\\\" says 0x{:x}\\n",
            step * 7919
        );
        let result = line.repeat(size / line.len() + 1);
        let id = &reply["content"][0]["id"];
        self.messages += &format!(
            r#",{{"role":"assistant","content":{}}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":{id},"content":"{result}"}}]}}"#,
            reply["content"]
        );
    }
}

async fn exchange(stream: &mut TcpStream, head: &str, body: &str) -> std::io::Result<Vec<u8>> {
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 8192]);
    loop {
        let count = stream.read(&mut buffer).await?;
        answer.extend_from_slice(&buffer[..count]);
        let end = memchr::memmem::find(&answer, b"\r\n\r\n");
        let whole = end.is_some_and(|end| {
            let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
            answer.len() >= end + 4 + length.unwrap_or(0)
        });
        if whole || count == 0 {
            return Ok(answer);
        }
    }
}
