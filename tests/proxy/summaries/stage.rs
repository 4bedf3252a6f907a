//! A session whose history is mostly words, so that clearing is not enough.

use std::time::{Duration, Instant};

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Entry, Kind, Options, Persona, Reply};
use serde_json::{Value, json};

use crate::support::simulated::Simulated;
use crate::support::{Answer, Proxy};
use crate::views::agent::Agent;
use crate::views::cast::{compaction, figure};

/// An API and a proxy by one clock, and an agent that talks through them.
pub struct Stage {
    pub clock: Clock,
    pub upstream: Simulated,
    pub proxy: Proxy,
    pub agent: Agent,
    /// What each request's pass did.
    pub passes: Vec<String>,
    /// Tokens that each request sent.
    pub sizes: Vec<u64>,
    /// How long the longest took.
    pub longest: Duration,
    folder: tempfile::TempDir,
    file: String,
}

/// Everything that a summary needs, with a budget in tokens.
pub fn settings(budget: u64, more: &str) -> String {
    format!("[window]\nbudget = {budget}\n[summarizer]\n{more}\n")
}

impl Stage {
    pub fn set(model: &str, options: Options, file: &str) -> Self {
        let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
        let options = Options {
            clock: clock.clone(),
            ..options
        };
        let upstream = Simulated::start(options);
        let folder = tempfile::tempdir().unwrap();
        let url = upstream.sim.url();
        let proxy = Proxy::keeping_time(&url, file, folder.path(), clock.clone());
        Self {
            clock,
            upstream,
            proxy,
            agent: Agent::new(model),
            passes: Vec::new(),
            sizes: Vec::new(),
            longest: Duration::ZERO,
            folder,
            file: file.to_owned(),
        }
    }

    /// The proxy ends and starts again.
    pub fn restart(&mut self) {
        self.proxy.join();
        let url = self.upstream.sim.url();
        self.proxy = Proxy::keeping_time(&url, &self.file, self.folder.path(), self.clock.clone());
    }

    pub fn persona(&self, persona: Persona) {
        self.upstream.sim.set_persona(persona);
    }

    /// Sends the history; some seconds pass.
    pub fn ask(&mut self, headers: &str) -> Answer {
        self.clock.advance(Duration::from_secs(10));
        let begun = Instant::now();
        let answer = self.agent.ask(&self.proxy, headers);
        self.longest = self.longest.max(begun.elapsed());
        self.passes.push(compaction(&answer).to_owned());
        self.sizes.push(figure(&answer, "sent"));
        answer
    }

    /// The user says something, and the model answers at length.
    pub fn talk(&mut self, said: &str, words: usize) -> Answer {
        let number = self.agent.history.len();
        self.agent.user(said);
        let reply = format!("Answer {number}: I decided on plan {number}. ");
        let reply = reply + &"It is the better one because of what was found. ".repeat(words / 9);
        self.upstream.sim.push_reply(Reply::text(reply));
        self.ask("")
    }

    /// A history that was there before anybody looked: turns of talk, without a
    /// request for each.
    pub fn recall(&mut self, turns: usize, words: usize) {
        for _ in 0..turns {
            let number = self.agent.history.len();
            self.agent.user(&format!("Please do step {number} now."));
            let reply = format!("Answer {number}: I decided on plan {number}. ");
            let reply =
                reply + &"It is the better one because of what was found. ".repeat(words / 9);
            let reply = json!([{"type": "text", "text": reply}]);
            self.agent
                .history
                .push(json!({"role": "assistant", "content": reply}));
        }
    }

    /// Turns of talk, with a tool call now and then.
    pub fn talks(&mut self, turns: usize, words: usize) {
        for _ in 0..turns {
            let number = self.agent.history.len();
            if number % 5 == 0 {
                self.call(&format!("src/part_{number}.rs"), 400);
            }
            self.talk(&format!("Please do step {number} now."), words);
        }
    }

    /// A tool call and its result.
    pub fn call(&mut self, path: &str, size: usize) {
        self.agent.user(&format!("Look at {path}."));
        let call = Reply::call("Read", &json!({"file_path": path}));
        self.upstream.sim.push_reply(call);
        self.ask("");
        self.agent.results(size);
        self.upstream.sim.push_reply(Reply::text("I have read it."));
        self.ask("");
    }

    /// Waits until no summary is under way.
    pub fn settle(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        let mut before = usize::MAX;
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(40));
            let now = self.upstream.entries().len();
            if now == before {
                return;
            }
            before = now;
        }
    }

    pub fn count(&self, kind: &str) -> usize {
        self.passes
            .iter()
            .filter(|pass| pass.contains(kind))
            .count()
    }

    /// What the summarizer was asked.
    pub fn summaries(&self) -> Vec<Entry> {
        let entries = self.upstream.entries().into_iter();
        entries
            .filter(|entry| matches!(entry.kind, Kind::Summary | Kind::Compaction))
            .collect()
    }

    /// The messages of the newest request of the conversation's.
    pub fn shown(&self) -> Vec<Value> {
        let entries = self.upstream.entries();
        let last = entries
            .iter()
            .rfind(|entry| entry.kind == Kind::Message)
            .unwrap();
        crate::views::cast::messages(last)
    }

    pub fn text(&self) -> String {
        Value::from(self.shown()).to_string()
    }

    /// Asserts that the conversation was never refused.
    pub fn assert_accepted(&self) {
        for entry in self.upstream.entries() {
            if entry.kind == Kind::Message {
                assert!(entry.is_answered(), "{:?}", entry.outcome);
            }
        }
    }

    pub fn metric(&self, series: &str) -> f64 {
        self.proxy
            .metric(&format!("longhaul_{series}"))
            .unwrap_or(0.0)
    }
}
