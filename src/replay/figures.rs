//! The figures of a run: what a report says of it in a line.

use std::collections::BTreeMap;

use super::play::{Played, Run};
use super::session::Session;
use super::signals::{Signals, Sums};
use crate::sim::models::Model;
use crate::sim::prices::Tokens;

/// What became of a session, or of many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// It came to its end.
    pub completed: bool,
    /// The first request that did not fit, counted from one, where one did not.
    pub ends_at: Option<usize>,
    /// The words with which it was refused, where it was; of many, the first.
    pub refused: Option<String>,
    /// Requests.
    pub requests: usize,
    /// Tokens by class.
    pub tokens: Tokens,
    /// Dollars, for summaries too.
    pub dollars: f64,
    /// The largest prompt.
    pub peak: u64,
    /// Requests whose prompt departs from the one before.
    pub breaks: usize,
}

impl Figures {
    /// The figures of a run on a window of this size. Without a proxy the run
    /// goes on beyond it, so that costs can be compared; where it would have
    /// ended is told.
    pub fn of(run: &Run, session: &Session, window: u64) -> Self {
        let sum = |of: &dyn Fn(&Played) -> f64| run.played.iter().map(of).sum::<f64>();
        let prompts = run.played.iter().map(|played| played.tokens.prompt());
        let mut beyond = prompts.clone();
        let ended = beyond.position(|prompt| prompt > window);
        let refused = run.refused.is_some().then_some(run.played.len());
        let ends_at = ended.or(refused).map(|at| at + 1);
        let tokens = run.played.iter().map(|played| played.tokens);
        Self {
            completed: ends_at.is_none() && run.played.len() == session.steps.len(),
            ends_at,
            refused: run.refused.clone(),
            requests: run.played.len(),
            tokens: tokens.fold(Tokens::default(), Tokens::plus),
            dollars: sum(&|played| played.dollars + played.summaries),
            peak: prompts.max().unwrap_or(0),
            breaks: run.played.iter().filter(|played| played.broken).count(),
        }
    }

    /// The figures of both together.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            completed: self.completed && other.completed,
            ends_at: None,
            refused: self.refused.or_else(|| other.refused.clone()),
            requests: self.requests + other.requests,
            tokens: self.tokens.plus(other.tokens),
            dollars: self.dollars + other.dollars,
            peak: self.peak.max(other.peak),
            breaks: self.breaks + other.breaks,
        }
    }

    /// The share of all prompts that was read from the cache.
    pub fn cache_read_share(&self) -> f64 {
        cache_read_share(&self.tokens)
    }
}

/// What was paid for the requests that both runs of a session came to. Only
/// those can be compared: a run that breaks off early is not a cheap one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Compared {
    /// How many there are.
    pub requests: usize,
    /// Tokens by class, without the proxy and with it.
    pub tokens: (Tokens, Tokens),
    /// Dollars, for summaries too, without the proxy and with it.
    pub dollars: (f64, f64),
}

impl Compared {
    fn of(alone: &Run, with: &Run) -> Self {
        let pairs = alone.played.iter().zip(&with.played);
        let each = pairs.map(|(alone, with)| Self {
            requests: 1,
            tokens: (alone.tokens, with.tokens),
            dollars: (alone.dollars, with.dollars + with.summaries),
        });
        each.fold(Self::default(), Self::plus)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            tokens: (
                self.tokens.0.plus(other.tokens.0),
                self.tokens.1.plus(other.tokens.1),
            ),
            dollars: (
                self.dollars.0 + other.dollars.0,
                self.dollars.1 + other.dollars.1,
            ),
        }
    }

    /// What was paid with the proxy, as a share of what was paid without.
    pub fn cost_share(&self) -> Option<f64> {
        let (without, with) = self.dollars;
        (without > 0.0).then(|| with / without)
    }

    /// Dollars saved, net.
    pub fn saved(&self) -> f64 {
        self.dollars.0 - self.dollars.1
    }
}

/// The share of prompts that was read from the cache.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn cache_read_share(tokens: &Tokens) -> f64 {
    tokens.read as f64 / tokens.prompt().max(1) as f64
}

/// A session with the proxy, beside the same without.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The figures with the proxy.
    pub with: Figures,
    /// Passes by kind.
    pub compactions: BTreeMap<String, usize>,
    /// Dollars that summaries cost.
    pub summarizer: f64,
    /// By the model that was asked for them: requests, and tokens by class.
    pub summarized: BTreeMap<String, (usize, Tokens)>,
    /// The requests that both runs came to.
    pub compared: Compared,
    /// What signals are told from.
    pub sums: Sums,
}

impl Outcome {
    /// Nothing yet, to be added to.
    pub fn none() -> Self {
        Self {
            with: Figures {
                completed: true,
                ..Figures::default()
            },
            compactions: BTreeMap::new(),
            summarizer: 0.0,
            summarized: BTreeMap::new(),
            compared: Compared::default(),
            sums: Sums::default(),
        }
    }

    /// What became of a session that was played both ways.
    pub fn of(session: &Session, alone: &Run, with: &Run, window: u64, model: &Model) -> Self {
        let mut compactions = BTreeMap::new();
        for kind in with.played.iter().flat_map(|played| &played.pass) {
            *compactions.entry(kind.clone()).or_default() += 1;
        }
        let mut by_model = BTreeMap::new();
        let asked = with.played.iter().flat_map(|played| &played.summarized);
        for (model, tokens) in asked {
            add(&mut by_model, model, (1, *tokens));
        }
        let summarizer = with.played.iter().map(|played| played.summaries).sum();
        Self {
            with: Figures::of(with, session, window),
            compactions,
            summarizer,
            summarized: by_model,
            compared: Compared::of(alone, with),
            sums: Sums::of(alone, with, model),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (kind, count) in &other.compactions {
            *self.compactions.entry(kind.clone()).or_default() += count;
        }
        for (model, more) in &other.summarized {
            add(&mut self.summarized, model, *more);
        }
        Self {
            with: self.with.plus(&other.with),
            compactions: self.compactions,
            summarizer: self.summarizer + other.summarizer,
            summarized: self.summarized,
            compared: self.compared.plus(other.compared),
            sums: self.sums.plus(&other.sums),
        }
    }

    /// The signals.
    pub fn signals(&self) -> Signals {
        self.sums.signals()
    }
}

/// Adds requests and tokens to those of a model.
fn add(to: &mut BTreeMap<String, (usize, Tokens)>, model: &str, more: (usize, Tokens)) {
    let sum = to.entry(model.to_owned()).or_default();
    *sum = (sum.0 + more.0, sum.1.plus(more.1));
}
