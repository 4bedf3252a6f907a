//! One or more proxies before a simulated API, by one clock that stands still.
//!
//! A request is sent only when nothing goes on any more: what the one before has
//! set off (a summary, a write to the store) has happened. So every run is the
//! same, however busy the machine is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::record::Record;
use super::rows::Reader;
use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Proxy, eventually};
use crate::views::agent::Agent;

/// What every request says of who sends it.
const HEADERS: &str =
    "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n";

/// The model of questions of no importance, and of nothing else.
pub const PROBE: &str = "claude-haiku-4-5";

/// When a stage begins, in milliseconds since 1970.
pub const BEGINNING: u64 = 1_800_000_000_000;

/// The simulated API and the proxies before it.
pub struct Stage {
    pub clock: Clock,
    pub upstream: Simulated,
    pub proxies: Vec<Proxy>,
    folder: PathBuf,
    file: String,
    /// Entries of the ledger that were recorded.
    seen: usize,
    /// The store, if each request waits until all of the one before is written.
    store: Option<Reader>,
    temporary: Option<tempfile::TempDir>,
}

impl Stage {
    /// One proxy, with a folder of its own.
    pub fn start(options: Options, file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Self::at(1, options, file, folder.path(), BEGINNING);
        stage.temporary = Some(folder);
        stage
    }

    /// Several proxies that share a folder, or the database that the file names.
    pub fn at(count: usize, options: Options, file: &str, folder: &Path, now: u64) -> Self {
        let clock = Clock::frozen(Moment::at_millis(now));
        let upstream = Simulated::start(Options {
            clock: clock.clone(),
            ..options
        });
        let mut stage = Self {
            clock,
            upstream,
            proxies: Vec::new(),
            folder: folder.to_owned(),
            file: file.to_owned(),
            seen: 0,
            store: None,
            temporary: None,
        };
        stage.proxies = (0..count).map(|_| stage.proxy()).collect();
        stage
    }

    /// From now on each request waits until all of the one before is written.
    pub fn wait_for(&mut self, store: Reader) {
        self.store = Some(store);
    }

    fn proxy(&self) -> Proxy {
        let url = self.upstream.sim.url();
        Proxy::keeping_time(&url, &self.file, &self.folder, self.clock.clone())
    }

    /// All proxies end and start again.
    pub fn restart(&mut self) {
        let count = self.proxies.len();
        self.stop();
        self.proxies = (0..count).map(|_| self.proxy()).collect();
    }

    /// All proxies end.
    pub fn stop(&mut self) {
        self.proxies.iter_mut().for_each(Proxy::join);
        self.proxies.clear();
    }

    /// Waits until nothing goes on.
    pub fn settle(&self) {
        self.proxies.iter().for_each(Proxy::settle);
    }

    /// Time passes.
    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Sends a body to a proxy, and records what comes of it.
    pub fn post(
        &mut self,
        record: &mut Record,
        at: usize,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Answer {
        let what = format!("POST {path} {}", headers.trim_end().replace("\r\n", ", "));
        record.request(what.trim_end(), body);
        self.pass(10);
        let mut client = Client::connect(self.proxies[at].address);
        let headers = format!("{HEADERS}{headers}");
        let answer = client.post(path, &headers, body).answer();
        self.note(record, &answer);
        answer
    }

    /// Sends bytes to a proxy as they are.
    pub fn raw(&mut self, record: &mut Record, what: &str, bytes: &[u8]) -> Answer {
        record.request(what, bytes);
        let answer = Client::connect(self.proxies[0].address)
            .try_send(bytes)
            .answer();
        self.note(record, &answer);
        answer
    }

    /// Waits until all that a proxy knows is written. It writes a part of it without
    /// haste, but in order: so a question of no importance is sent, which is not
    /// recorded, and waited for.
    fn probe(&mut self, at: usize) {
        let Some(store) = &self.store else {
            return;
        };
        let known = store.probes();
        let mut probe = Agent::new(PROBE);
        probe.fields = json!({"max_tokens": 5});
        probe.user(&format!("Probe {}.", known.0));
        self.upstream.sim.push_reply(Reply::text("Yes."));
        let mut client = Client::connect(self.proxies[at].address);
        client.post("/v1/messages", HEADERS, &probe.body()).answer();
        self.settle();
        eventually("the probe is written", || {
            store.probes() == (known.0 + 1, known.1 + 1)
        });
        self.seen = self.upstream.sim.ledger().entries.len();
    }

    /// Waits until nothing goes on, and records what upstream and client got.
    fn note(&mut self, record: &mut Record, answer: &Answer) {
        self.settle();
        let entries = self.upstream.sim.entries_from(self.seen);
        self.seen += entries.len();
        for entry in &entries {
            record.seen(entry);
        }
        record.answer(answer);
    }

    /// Sends an agent's history and takes the reply into it, if there is one.
    pub fn ask(
        &mut self,
        record: &mut Record,
        at: usize,
        agent: &mut Agent,
        reply: Reply,
        headers: &str,
    ) -> Answer {
        self.upstream.sim.push_reply(reply);
        let headers = format!("{}{headers}", agent.headers);
        let answer = self.post(record, at, "/v1/messages", &headers, &agent.body());
        if let Some(content) = content(&answer) {
            agent
                .history
                .push(json!({"role": "assistant", "content": content}));
            self.probe(at);
        } else {
            self.upstream.sim.drop_replies();
        }
        answer
    }
}

/// The blocks of a reply that came whole, streamed or not.
pub fn content(answer: &Answer) -> Option<Value> {
    if answer.status() != 200 || !answer.complete {
        return None;
    }
    if let Ok(reply) = serde_json::from_slice::<Value>(&answer.body) {
        return reply.get("content").cloned();
    }
    let text = String::from_utf8_lossy(&answer.body);
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    for event in events {
        let event: Value = serde_json::from_str(event).ok()?;
        match event["type"].as_str()? {
            "content_block_start" => {
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let (block, input) = (blocks.last_mut()?, inputs.last_mut()?);
                grow(block, input, &event["delta"]);
            }
            "message_stop" => return Some(finished(blocks, &inputs)),
            "error" => return None,
            _ => {}
        }
    }
    None
}

/// Adds a delta to a block.
fn grow(block: &mut Value, input: &mut String, delta: &Value) {
    for key in ["text", "thinking", "signature"] {
        if let Some(more) = delta[key].as_str() {
            let so_far = block[key].as_str().unwrap_or_default();
            block[key] = format!("{so_far}{more}").into();
        }
    }
    input.push_str(delta["partial_json"].as_str().unwrap_or_default());
}

fn finished(mut blocks: Vec<Value>, inputs: &[String]) -> Value {
    for (block, input) in blocks.iter_mut().zip(inputs) {
        if let Ok(input) = serde_json::from_str(input) {
            block["input"] = input;
        }
    }
    blocks.into()
}
