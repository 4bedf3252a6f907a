//! A session that goes on whoever answers it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::Fleet;
use crate::support::{Client, text};

/// The model, one whose thinking stands alone.
const MODEL: &str = "claude-opus-4-8";
/// How long a live replica may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a client had of one attempt at a request.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Messages of the history that was sent.
    pub messages: usize,
    /// Which replica it was sent to.
    #[allow(dead_code, reason = "it is shown where something went wrong")]
    pub replica: (usize, usize),
    /// When it began and ended.
    pub began: u64,
    pub ended: u64,
    /// What the answer said of a pass; none: it never came.
    pub pass: Option<String>,
}

/// A session: its history, and all attempts to get on.
pub struct Session {
    pub number: usize,
    /// Messages, each in canonical form.
    pub history: Vec<Value>,
    pub attempts: Vec<Attempt>,
    /// The longest that an answer took.
    pub longest: Duration,
    written: String,
    random: fastrand::Rng,
}

/// The present in milliseconds, as the simulator has it.
pub fn now() -> u64 {
    longhaul::clock::Clock::default().now().as_millis()
}

fn words(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

impl Session {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            history: Vec::new(),
            attempts: Vec::new(),
            longest: Duration::ZERO,
            written: String::new(),
            random: fastrand::Rng::with_seed(number as u64),
        }
    }

    fn push(&mut self, role: &str, content: &Value) {
        let message = json!({"role": role, "content": content});
        if !self.written.is_empty() {
            self.written.push(',');
        }
        self.written.push_str(&message.to_string());
        self.history.push(message);
    }

    /// The user says something, and is answered.
    pub fn turn(&mut self, fleet: &Fleet) {
        let at = self.history.len();
        let said = format!(
            "Session {}, message {at}: please do step {at} of the plan now, and never touch legacy/.",
            self.number
        );
        self.push("user", &words(&said));
        let since = Instant::now();
        let reply = loop {
            let replica = fleet.any(&mut self.random);
            let began = now();
            let answer = self.ask(replica.address);
            let ended = now();
            self.attempts.push(Attempt {
                messages: self.history.len(),
                replica: replica.name(),
                began,
                ended,
                pass: answer.as_ref().map(|(_, pass)| pass.clone()),
            });
            if let Some((reply, _)) = answer {
                break reply;
            }
            assert!(fleet.is_dead(replica), "a live replica did not answer");
        };
        self.longest = self.longest.max(since.elapsed());
        self.push("assistant", &reply);
    }

    /// Sends the history; the reply and what was said of a pass, if an answer
    /// came whole.
    fn ask(&self, to: std::net::SocketAddr) -> Option<(Value, String)> {
        let body = format!(
            r#"{{"model":"{MODEL}","max_tokens":1000,"system":"Be brief.","messages":[{}]}}"#,
            self.written
        );
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
             content-type: application/json\r\nx-attempt: {}.{}\r\ncontent-length: {}\r\n\r\n",
            self.number,
            self.attempts.len(),
            body.len()
        );
        let mut client = Client::try_connect(to)?;
        client.wait_at_most(PATIENCE);
        client.try_send(head + &body);
        let answer = client.try_answer().filter(|answer| answer.complete)?;
        assert_eq!(answer.status(), 200, "{}", text(&answer.body));
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        let pass = answer.header("x-longhaul-compaction").unwrap();
        Some((reply["content"].clone(), pass.to_owned()))
    }
}
