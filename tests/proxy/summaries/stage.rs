//! A session whose history is mostly words, so that clearing is not enough.

use std::time::{Duration, Instant};

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Entry, Kind, Options, Persona, Reply};
use serde_json::{Value, json};

use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Proxy};
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
    /// What each answer said of the breaker.
    pub breakers: Vec<String>,
    /// How long the longest took.
    pub longest: Duration,
    /// How long the longest took that had nothing to wait for.
    pub calm: Duration,
    folder: tempfile::TempDir,
    file: String,
    /// Calls for summaries, and ends of such, that were waited for.
    over: (usize, i64),
}

/// Everything that a summary needs, with a budget in tokens.
pub fn settings(budget: u64, more: &str) -> String {
    format!("[window]\nbudget = {budget}\n[summarizer]\n{more}\n")
}

/// What a notice says of what it stands for.
pub const LEFT_OUT: &str = "are left out here";
/// Passes that healed something.
pub const HEALED: &str =
    "compactions_total{kind=\"summary\",outcome=\"committed\",trigger=\"heal\"}";

/// A model with a small window, and a summarizer.
fn small(summarizer: &str) -> String {
    let model = crate::views::cast::FREE;
    format!("[models.\"{model}\"]\nwindow = 32000\n[summarizer]\n{summarizer}\n")
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
            breakers: Vec::new(),
            longest: Duration::ZERO,
            calm: Duration::ZERO,
            folder,
            file: file.to_owned(),
            over: (0, 0),
        }
    }

    /// A model with a window of 32,000 tokens that may answer at length.
    pub fn small(options: Options, summarizer: &str) -> Self {
        let model = crate::views::cast::FREE;
        let options = options.with_window(model, 32_000);
        let mut stage = Self::set(model, options, &small(summarizer));
        stage.agent.fields["max_tokens"] = 4_000.into();
        stage
            .agent
            .user("Build it. Never touch files under legacy/.");
        stage
    }

    /// The proxy ends and starts again.
    pub fn restart(&mut self) {
        self.proxy.join();
        self.over = (self.summaries().len(), 0);
        let url = self.upstream.sim.url();
        self.proxy = Proxy::keeping_time(&url, &self.file, self.folder.path(), self.clock.clone());
    }

    /// The same with other settings.
    pub fn restart_with(&mut self, file: &str) {
        file.clone_into(&mut self.file);
        self.restart();
    }

    pub fn persona(&self, persona: Persona) {
        self.upstream.sim.set_persona(persona);
    }

    /// Sends the history; some seconds pass.
    pub fn ask(&mut self, headers: &str) -> Answer {
        self.clock.advance(Duration::from_secs(10));
        let begun = Instant::now();
        let answer = self.agent.ask(&self.proxy, headers);
        if !self.passes.is_empty() {
            // The first also waits for the tokenizer to be loaded.
            self.longest = self.longest.max(begun.elapsed());
        }
        if compaction(&answer) == "none" && !self.passes.is_empty() {
            self.calm = self.calm.max(begun.elapsed());
        }
        self.passes.push(compaction(&answer).to_owned());
        self.sizes.push(figure(&answer, "sent"));
        let breaker = answer.header("x-longhaul-breaker").unwrap_or("closed");
        self.breakers.push(breaker.to_owned());
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

    /// Upstream accepts the agent's credential: before that no model is asked for
    /// a summary on its account.
    pub fn greet(&self) {
        let mut agent = Agent::new("claude-haiku-4-5");
        agent.fields = json!({"max_tokens": 10});
        agent.user("Hello.");
        let answer = agent.send(&self.proxy, "");
        assert_eq!(answer.status(), 200);
    }

    /// A history that was there before anybody looked: turns of talk, without a
    /// request for each.
    pub fn recall(&mut self, turns: usize, words: usize) {
        self.greet();
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
            if number.is_multiple_of(5) {
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

    /// Whether a summary is asked for, after a moment.
    pub fn begins(&self) -> bool {
        let until = Instant::now() + Duration::from_millis(250);
        while Instant::now() < until {
            if self.summaries().len() > self.over.0 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// If a summary is being asked for, waits until that has ended one way or
    /// the other.
    pub fn lands(&mut self) {
        let asked = self.summaries().len();
        if asked <= self.over.0 {
            return;
        }
        let until = Instant::now() + Duration::from_secs(20);
        let ended = |stage: &Self| stage.sum("summarizer_seconds_count");
        while ended(self) <= self.over.1 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.over = (self.summaries().len(), ended(self));
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
    /// The same for what is counted in whole numbers.
    pub fn number(&self, series: &str) -> i64 {
        self.metric(series).to_string().parse().unwrap()
    }

    /// All series of a metric together.
    pub fn sum(&self, name: &str) -> i64 {
        let answer = Client::connect(self.proxy.address)
            .send("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .answer();
        let text = String::from_utf8(answer.body).unwrap();
        let name = format!("longhaul_{name}{{");
        let series = text.lines().filter(|line| line.starts_with(&name));
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<i64>().ok());
        values.sum()
    }
}
