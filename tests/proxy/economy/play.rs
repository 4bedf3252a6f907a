//! Plays a session under one policy and notes what each request was.

use std::cell::Cell;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::prices::{Cost, Tokens};
use longhaul::sim::{Entry, Kind, Options, Outcome, Persona, models};
use serde_json::{Value, json};

use super::history::History;
use super::policy::{Around, Policy};
use super::session::Session;
use super::setting::Setting;
use crate::support::simulated::Simulated;
use crate::support::{Client, Proxy, text};
use crate::views::transcripts::said;

/// A window that nothing fills.
const UNLIMITED: u64 = 100_000_000;

/// A simulator for all the runs of a session, so that its texts are counted once.
pub struct Stage {
    upstream: Simulated,
    clock: Clock,
    persona: Cell<Persona>,
}

/// One request of a run.
#[derive(Debug, Clone, Copy)]
pub struct Played {
    pub tokens: Tokens,
    /// The prompt departs from the one before it.
    pub broken: bool,
    /// The proxy made a pass.
    pub passed: bool,
}

/// A session under one policy.
#[derive(Debug)]
pub struct Run {
    pub name: String,
    pub played: Vec<Played>,
    /// Everything that was billed, other calls than the client's included, and
    /// the model that was asked if it was another one.
    billed: Vec<(Option<String>, Tokens)>,
    /// How many calls were for summaries, and what they cost.
    pub summaries: usize,
    pub summing_up: Cost,
    /// Summaries that were held to name what was never said.
    pub rejected: bool,
    /// Breaks of the prefix that the proxy has no explanation for.
    pub unexplained: bool,
    /// Why upstream refused what the client never saw refused.
    pub refusals: Vec<String>,
}

impl Run {
    /// What it costs at the prices of a model.
    pub fn cost(&self, model: &str) -> Cost {
        let costs = self.billed.iter().map(|(other, tokens)| {
            let model = models::find(other.as_deref().unwrap_or(model)).unwrap();
            model.prices_for(tokens).cost(tokens)
        });
        costs.fold(Cost::default(), Cost::plus)
    }

    /// Tokens of the conversation itself.
    pub fn tokens(&self) -> Tokens {
        let each = self.played.iter().map(|played| played.tokens);
        each.fold(Tokens::default(), Tokens::plus)
    }

    /// The largest prompt.
    pub fn peak(&self) -> u64 {
        self.played
            .iter()
            .map(|played| played.tokens.prompt())
            .max()
            .unwrap_or(0)
    }
}

impl Stage {
    pub fn new() -> Self {
        let clock = Clock::frozen(Moment::at_millis(1_700_000_000_000));
        let options = Options {
            window: Some(UNLIMITED),
            keep_bodies: false,
            clock: clock.clone(),
            ..Options::default()
        };
        Self {
            upstream: Simulated::start(options),
            clock,
            persona: Cell::default(),
        }
    }

    /// How whatever is asked for a summary behaves from now on.
    pub fn set_persona(&self, persona: Persona) {
        self.persona.set(persona);
    }

    /// Plays a session; a proxy gets these settings.
    pub fn play(&self, session: &Session, policy: Policy, setting: &Setting) -> Run {
        let (model, lifetime) = (setting.model, setting.lifetime);
        let sim = &self.upstream.sim;
        sim.reset();
        sim.set_persona(self.persona.get());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = policy.proxied().map(|budget| {
            let file = format!("[window]\nbudget = {budget}\n{}", setting.file);
            Proxy::keeping_time(&sim.url(), &file, folder.path(), self.clock.clone())
        });
        let address = proxy.as_ref().map_or(sim.address(), |proxy| proxy.address);
        let mut client = Client::connect(address);
        let around = Around::new(session, policy, model, lifetime);
        let mut history = History::default();
        let (mut cleared, mut prompt) = (0, 0);
        let mut passes = Vec::new();
        for (at, step) in session.steps.iter().enumerate() {
            self.clock.advance(step.pause);
            history.push(step.asked.clone());
            cleared = policy.cleared(&history, cleared, prompt);
            sim.push_reply(said(&step.answer, false));
            let body = around.body(&history.write(cleared, &around.mark));
            let headers = format!("{}{}", around.headers, policy.wish(at));
            let answer = client.post("/v1/messages", &headers, &body).answer();
            assert_eq!(
                answer.status(),
                200,
                "{}: {}",
                session.name,
                text(&answer.body)
            );
            let reply: Value = serde_json::from_slice(&answer.body).unwrap();
            prompt = prompt_of(&reply["usage"]);
            let compaction = answer.header("x-longhaul-compaction").unwrap_or("none");
            passes.push(compaction != "none");
            history.push(json!({"role": "assistant", "content": reply["content"]}));
        }
        drop(client);
        let counts = |series: &str| {
            let count = proxy.as_ref().and_then(|proxy| proxy.metric(series));
            count.is_some_and(|count| count > 0.0)
        };
        let rejected = counts("longhaul_summarizer_failures_total{reason=\"not_verbatim\"}");
        let unexplained = counts("longhaul_prefix_breaks_total{cause=\"unexplained\"}");
        if let Some(proxy) = &mut proxy {
            proxy.join();
        }
        let entries = self.upstream.entries();
        let mut run = run(policy, model, &entries, &passes);
        (run.rejected, run.unexplained) = (rejected, unexplained);
        let ledger = entries
            .iter()
            .fold(Cost::default(), |sum, entry| sum.plus(entry.cost));
        assert_eq!(run.cost(model), ledger);
        run
    }
}

fn prompt_of(usage: &Value) -> u64 {
    let fields = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    fields
        .iter()
        .filter_map(|field| usage[field].as_u64())
        .sum()
}

fn run(policy: Policy, model: &str, entries: &[Entry], passes: &[bool]) -> Run {
    let answered = entries
        .iter()
        .filter(|entry| entry.kind == Kind::Message && entry.is_answered());
    let played: Vec<Played> = answered
        .zip(passes)
        .map(|(entry, passed)| Played {
            tokens: entry.tokens,
            broken: entry.broken_at.is_some(),
            passed: *passed,
        })
        .collect();
    assert_eq!(played.len(), passes.len());
    let refusals = entries.iter().filter_map(|entry| match &entry.outcome {
        Outcome::Refused { message, .. } => Some(message.clone()),
        _ => None,
    });
    let summaries = || entries.iter().filter(|entry| entry.kind == Kind::Summary);
    Run {
        name: policy.name(),
        played,
        billed: entries
            .iter()
            .map(|entry| {
                let other = entry.model.clone().filter(|asked| asked != model);
                (other, entry.tokens)
            })
            .collect(),
        rejected: false,
        unexplained: false,
        summaries: summaries().count(),
        summing_up: summaries().fold(Cost::default(), |sum, entry| sum.plus(entry.cost)),
        refusals: refusals.collect(),
    }
}
