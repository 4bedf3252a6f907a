//! Plays a session through a proxy whose journal can be looked into.
//!
//! The upstream is the simulator, time is a virtual clock, the store is in files
//! and outlives the proxy. Each request is kept with what upstream was sent, so
//! that afterwards everything can be asked back and compared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use longhaul::clock::{Clock, Moment};
use longhaul::engine::ids::LineageId;
use longhaul::metrics::Metrics;
use longhaul::recall::Recall;
use longhaul::sim::{Entry, Kind, Options, Persona};
use longhaul::store::Store;
use longhaul::store::sqlite;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::economy::session::Session;
use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Proxy, text};
use crate::views::transcripts::said;

/// A window that nothing fills.
const UNLIMITED: u64 = 100_000_000;
/// How long the store may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A client's history: each message, and as it is written.
#[derive(Clone, Default)]
pub struct History(pub Vec<(Value, String)>);

impl History {
    pub fn push(&mut self, message: Value) {
        let written = message.to_string();
        self.0.push((message, written));
    }

    pub fn messages(&self) -> Vec<Value> {
        self.0.iter().map(|(message, _)| message.clone()).collect()
    }

    /// As it is sent: with cache marks on the last two messages of the user's,
    /// which move on with every request.
    fn written(&self) -> Vec<String> {
        let last = self.0.len() - 1;
        let marked = |(at, (message, written)): (usize, &(Value, String))| {
            if at != last && at + 2 != last {
                return written.clone();
            }
            let mut message = message.clone();
            let blocks = message["content"].as_array_mut().unwrap();
            blocks.last_mut().unwrap()["cache_control"] = json!({"type": "ephemeral"});
            message.to_string()
        };
        self.0.iter().enumerate().map(marked).collect()
    }
}

/// A request that made a pass.
pub struct Pass {
    pub session: LineageId,
    /// The messages, as they were sent.
    pub messages: Vec<String>,
    pub kinds: String,
}

/// The cast, and what has happened.
pub struct Player {
    pub clock: Clock,
    pub upstream: Simulated,
    pub runtime: Runtime,
    pub store: Arc<dyn Store>,
    pub proxy: Proxy,
    pub passes: Vec<Pass>,
    folder: tempfile::TempDir,
    file: String,
    around: Around,
}

/// Everything of a request but its messages.
struct Around {
    before: String,
    after: String,
}

impl Around {
    fn new(model: &str, session: &Session) -> Self {
        let answers = session.steps.iter().map(|step| &step.answer["content"]);
        let blocks = answers.filter_map(Value::as_array).flatten();
        let names: BTreeSet<&str> = blocks.filter_map(|block| block["name"].as_str()).collect();
        let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
        let tools: Vec<Value> = names.into_iter().map(tool).collect();
        let fields = json!({
            "system": [{"type": "text", "text": "You are an agent. ".repeat(150),
                        "cache_control": {"type": "ephemeral"}}],
            "tools": tools,
            "max_tokens": 32_000,
            "thinking": {"type": "adaptive", "display": "summarized"},
        });
        Self {
            before: format!(r#"{{"model":"{model}","messages":["#),
            after: format!("],{}", &fields.to_string()[1..]),
        }
    }
}

/// A simulator by this clock.
pub fn upstream(clock: &Clock) -> Simulated {
    Simulated::start(Options {
        window: Some(UNLIMITED),
        clock: clock.clone(),
        ..Options::default()
    })
}

pub fn clock() -> Clock {
    Clock::frozen(Moment::at_millis(1_750_000_000_000))
}

fn open(runtime: &Runtime, folder: &std::path::Path) -> Arc<dyn Store> {
    let opened = runtime.block_on(sqlite::open(&folder.join("data"), PATIENCE));
    assert!(opened.reports.is_empty(), "{:?}", opened.reports);
    opened.store
}

impl Player {
    pub fn start(model: &str, session: &Session, file: &str) -> Self {
        let clock = clock();
        let upstream = upstream(&clock);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = open(&runtime, folder.path());
        let (url, time) = (upstream.sim.url(), clock.clone());
        let proxy = Proxy::on_time(store.clone(), &url, file, folder.path(), time);
        Self {
            clock,
            upstream,
            runtime,
            store,
            proxy,
            passes: Vec::new(),
            folder,
            file: file.to_owned(),
            around: Around::new(model, session),
        }
    }

    /// The proxy ends; another begins on the same files.
    pub fn restart(&mut self) {
        self.proxy.join();
        self.store = open(&self.runtime, self.folder.path());
        let (url, clock) = (self.upstream.sim.url(), self.clock.clone());
        let folder = self.folder.path();
        self.proxy = Proxy::on_time(self.store.clone(), &url, &self.file, folder, clock);
    }

    pub fn persona(&self, persona: Persona) {
        self.upstream.sim.set_persona(persona);
    }

    /// A desk before the same store.
    pub fn recall(&self) -> Recall {
        Recall::new(self.store.clone(), Arc::new(Metrics::new().unwrap()))
    }

    /// Sends a history that ends with `asked`, and takes the answer into it. The
    /// messages that upstream got.
    pub fn ask(&mut self, history: &mut History, asked: &Value, answer: &Value) -> Vec<Value> {
        history.push(asked.clone());
        self.upstream.sim.push_reply(said(answer, false));
        let messages = history.written();
        let address = self.proxy.address;
        let got = post(address, &self.around, &messages);
        let header = |name: &str| got.header(name).unwrap_or("none").to_owned();
        let (session, kinds) = (
            header("x-longhaul-session"),
            header("x-longhaul-compaction"),
        );
        let reply: Value = serde_json::from_slice(&got.body).unwrap();
        history.push(json!({"role": "assistant", "content": reply["content"]}));
        if kinds != "none" {
            self.passes.push(Pass {
                session: LineageId::from_text(&session).unwrap(),
                messages,
                kinds,
            });
        }
        let sent = self.talks().pop().unwrap();
        assert!(sent.is_answered(), "{:?}", sent.outcome);
        sent.json().unwrap()["messages"].as_array().unwrap().clone()
    }

    /// The requests of the conversation itself.
    pub fn talks(&self) -> Vec<Entry> {
        let mut entries = self.upstream.entries();
        entries.retain(|entry| entry.kind == Kind::Message);
        entries
    }

    /// What everything has cost, summaries included, in micro-dollars.
    pub fn cost(&self) -> u64 {
        let entries = self.upstream.entries();
        let costs = entries.iter().map(|entry| entry.cost);
        costs
            .fold(longhaul::sim::prices::Cost::default(), |sum, one| {
                sum.plus(one)
            })
            .micro_dollars()
    }
}

/// What a session costs, and the tokens of its last request, with nothing in
/// between.
pub fn alone(model: &str, session: &Session) -> (u64, u64) {
    let clock = clock();
    let upstream = upstream(&clock);
    let around = Around::new(model, session);
    let mut history = History::default();
    for step in &session.steps {
        clock.advance(step.pause);
        history.push(step.asked.clone());
        upstream.sim.push_reply(said(&step.answer, false));
        let got = post(upstream.sim.address(), &around, &history.written());
        let reply: Value = serde_json::from_slice(&got.body).unwrap();
        history.push(json!({"role": "assistant", "content": reply["content"]}));
    }
    let entries = upstream.entries();
    let cost = entries
        .iter()
        .fold(longhaul::sim::prices::Cost::default(), |sum, entry| {
            sum.plus(entry.cost)
        });
    let last = entries.last().unwrap().tokens.prompt();
    (cost.micro_dollars(), last)
}

fn post(address: std::net::SocketAddr, around: &Around, messages: &[String]) -> Answer {
    let body = [&around.before, &messages.join(","), &around.after].map(String::clone);
    let headers =
        "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n";
    let mut client = Client::connect(address);
    let answer = client
        .post("/v1/messages", headers, body.concat().as_bytes())
        .answer();
    assert_eq!(answer.status(), 200, "{}", text(&answer.body));
    answer
}
