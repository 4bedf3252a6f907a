//! A session whose proxy may go away at any moment, and what upstream saw of it.

use std::net::SocketAddr;

use longhaul::sim::{Entry, Kind, Options, Reply};
use serde_json::{Value, json};

use crate::support::Client;
use crate::support::simulated::Simulated;
use crate::views::agent::Agent;
use crate::views::cast::{FREE, continues, messages, unmarked};

/// How a segment begins that stands for messages.
const SUMMARY: &str = "[longhaul: summary of messages";

/// An agent that talks to whoever listens, and looks at what arrives upstream.
pub struct Witness {
    pub upstream: Simulated,
    pub agent: Agent,
    /// The request that is not answered yet is in the history, and its reply
    /// waits upstream.
    waits: bool,
    /// Messages of the view that upstream saw last.
    pub view: Option<Vec<Value>>,
    seen: usize,
}

impl Witness {
    pub fn new() -> Self {
        let mut agent = Agent::new(FREE);
        agent.user("Build a compiler. Never modify files under legacy/.");
        let reply = json!([{"type": "text", "text": "Gladly."}]);
        let reply = json!({"role": "assistant", "content": reply});
        agent.history.push(reply);
        Self {
            upstream: Simulated::start(Options::default()),
            agent,
            waits: false,
            view: None,
            seen: 0,
        }
    }

    /// One more turn of the user's, or the one that was never answered; what the
    /// answer says of a pass, if it came.
    pub fn talk(&mut self, to: SocketAddr, words: usize) -> Option<String> {
        let number = self.agent.history.len();
        let asks = self.agent.history.last().unwrap()["role"] == "user";
        if !asks {
            self.agent.user(&format!("Please do step {number} now."));
        }
        if !self.waits {
            let reply = format!("Answer {number}: I decided on plan {number}. ");
            let reply = reply + &"It is the better one, as we have seen. ".repeat(words / 8);
            self.upstream.sim.push_reply(Reply::text(reply));
        }
        let before = self.talks().len();
        let answer = self.send(to);
        self.waits = self.talks().len() == before;
        let (content, pass) = answer?;
        self.agent
            .history
            .push(json!({"role": "assistant", "content": content}));
        Some(pass)
    }

    /// Sends the history; the reply, and what the answer says of a pass.
    fn send(&self, to: SocketAddr) -> Option<(Value, String)> {
        let body = self.agent.body();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut client = Client::try_connect(to)?;
        client.try_send([head.as_bytes(), &body].concat());
        let answer = client.try_answer().filter(|answer| answer.complete)?;
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status(), 200, "{reply}");
        let pass = answer.header("x-longhaul-compaction").unwrap_or("-");
        Some((reply["content"].clone(), pass.to_owned()))
    }

    /// Sends the history as it was sent last, and is answered the same way.
    pub fn again(&mut self, to: SocketAddr) -> Vec<u8> {
        let reply = self.agent.history.pop().unwrap();
        let text = reply["content"][0]["text"].as_str().unwrap();
        self.upstream.sim.push_reply(Reply::text(text));
        self.send(to).unwrap();
        self.agent.history.push(reply);
        self.last().body.unwrap().to_vec()
    }

    /// The requests of the conversation.
    fn talks(&self) -> Vec<Entry> {
        let mut entries = self.upstream.entries();
        entries.retain(|entry| entry.kind == Kind::Message);
        entries
    }

    /// The newest of them.
    pub fn last(&self) -> Entry {
        self.talks().pop().unwrap()
    }

    /// What the summarizer was asked and has answered, so that it is billed.
    pub fn summaries(&self) -> Vec<Entry> {
        let mut entries = self.upstream.entries();
        entries.retain(|entry| entry.kind == Kind::Summary && entry.is_answered());
        entries
    }

    /// Looks at what has arrived since the last look. Each view is the one
    /// before it with what is new, or a new one that is whole; how many of the
    /// latter there were.
    pub fn look(&mut self) -> usize {
        let talks = self.talks();
        let mut swaps = 0;
        for entry in &talks[self.seen..] {
            assert!(entry.is_answered(), "{:?}", entry.outcome);
            let sent = messages(entry);
            let kept = self.view.as_ref().is_none_or(|view| continues(&sent, view));
            if !kept {
                assert_whole(&sent, &self.agent);
                swaps += 1;
            }
            self.view = Some(sent);
        }
        self.seen = talks.len();
        swaps
    }
}

/// Asserts that a view is made of one overlay: the head, segments that stand for
/// all the messages up to the tail, and the tail as the client has it.
fn assert_whole(view: &[Value], agent: &Agent) {
    let history = unmarked(&Value::from(agent.history.clone()));
    assert_eq!(view[0], history[0], "the head");
    let segments = view[2]["content"].as_array().unwrap();
    let mut next = 1;
    for segment in segments {
        let text = segment["text"].as_str().unwrap();
        assert!(text.starts_with(SUMMARY), "{text}");
        let numbers = text[SUMMARY.len()..].split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<usize> = numbers.filter_map(|n| n.parse().ok()).take(2).collect();
        assert_eq!(numbers[0], next + 1, "{text}");
        next = numbers[1];
    }
    // A bridge stands before a tail that begins with the user.
    let tail = &view[if history[next]["role"] == "user" {
        4
    } else {
        3
    }..];
    assert!(
        continues(&history[next..], tail),
        "the tail: {tail:#?} instead of {:#?}",
        &history[next..]
    );
}
