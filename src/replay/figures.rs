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

/// Where a session would have ended at the worst moment.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCut {
    /// The session.
    pub session: String,
    /// Its last request, counted from one.
    pub request: usize,
    /// What had been paid with the proxy by then, as a share of what had been
    /// paid without.
    pub share: f64,
}

impl WorstCut {
    fn of(session: &Session, alone: &Run, with: &Run) -> Option<Self> {
        let pairs = alone.played.iter().zip(&with.played);
        let sums = pairs.scan((0.0, 0.0), |sum, (alone, with)| {
            *sum = (sum.0 + alone.dollars, sum.1 + with.spent);
            Some(*sum)
        });
        let cuts = sums.zip(1..).filter(|((without, _), _)| *without > 0.0);
        let cuts = cuts.map(|((without, with), request)| (with / without, request));
        // Of equal ones the first.
        let worse =
            |one: (f64, usize), other: (f64, usize)| if other.0 > one.0 { other } else { one };
        let (share, request) = cuts.reduce(worse)?;
        Some(Self {
            session: session.name.clone(),
            request,
            share,
        })
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
    /// Dollars that those requests would have cost with the same means and
    /// knowledge of all of them.
    pub hindsight: f64,
    /// The worst request to end with; of many sessions, the worst of all.
    pub worst_cut: Option<WorstCut>,
    /// Tokens that each pass was expected to write into the cache, and that it
    /// wrote.
    pub writes: Vec<(u64, u64)>,
    /// What signals are told from.
    pub sums: Sums,
}

/// Whether what was written is within a tenth of what was expected.
pub fn is_near((expected, wrote): (u64, u64)) -> bool {
    wrote.abs_diff(expected) * 10 <= expected
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
            hindsight: 0.0,
            worst_cut: None,
            writes: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// What became of a session that was played both ways; what it would have
    /// cost at best is for the caller to say.
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
            hindsight: 0.0,
            worst_cut: WorstCut::of(session, alone, with),
            writes: with.writes.clone(),
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
        let cuts = [&self.worst_cut, &other.worst_cut].into_iter().flatten();
        let worst = cuts.max_by(|one, other| one.share.total_cmp(&other.share));
        Self {
            worst_cut: worst.cloned(),
            hindsight: self.hindsight + other.hindsight,
            writes: [self.writes, other.writes.clone()].concat(),
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

    /// By how much was paid more than with knowledge of everything, as a share.
    pub fn regret(&self) -> Option<f64> {
        (self.hindsight > 0.0).then(|| self.compared.dollars.1 / self.hindsight - 1.0)
    }
}

/// Adds requests and tokens to those of a model.
fn add(to: &mut BTreeMap<String, (usize, Tokens)>, model: &str, more: (usize, Tokens)) {
    let sum = to.entry(model.to_owned()).or_default();
    *sum = (sum.0 + more.0, sum.1.plus(more.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(costs: &[f64]) -> Run {
        let played = costs.iter().map(|spent| Played {
            spent: *spent,
            dollars: *spent,
            ..Played::default()
        });
        Run {
            played: played.collect(),
            ..Run::default()
        }
    }

    #[test]
    fn the_worst_cut_is_where_most_too_much_had_been_paid() {
        let session = Session {
            name: "s".to_owned(),
            ..Session::default()
        };
        let alone = run(&[1.0, 1.0, 2.0, 4.0]);
        for (with, expected) in [
            (&[1.0, 1.5, 0.5, 0.5][..], Some((2, 1.25))),
            (&[1.0, 1.0, 2.0, 4.0], Some((1, 1.0))),
            // A run that was refused is held against as many requests.
            (&[0.5, 0.5, 2.0], Some((3, 0.75))),
            (&[], None),
        ] {
            let cut = WorstCut::of(&session, &alone, &run(with));
            assert_eq!(cut.map(|cut| (cut.request, cut.share)), expected);
        }
        assert_eq!(WorstCut::of(&session, &run(&[0.0]), &run(&[0.0])), None);
    }

    #[test]
    fn of_many_sessions_the_worst_cut_is_told_and_regret_is_of_all_dollars() {
        let outcome = |name: &str, with: f64, hindsight: f64, share: f64| Outcome {
            compared: Compared {
                dollars: (10.0, with),
                ..Compared::default()
            },
            hindsight,
            worst_cut: Some(WorstCut {
                session: name.to_owned(),
                request: 3,
                share,
            }),
            ..Outcome::none()
        };
        let (one, other) = (outcome("a", 6.0, 5.0, 1.1), outcome("b", 9.0, 7.0, 1.04));
        let both = Outcome::none().plus(&one).plus(&other);
        assert_eq!(both.regret(), Some(0.25));
        assert_eq!(both.worst_cut, one.worst_cut);
        assert_eq!(Outcome::none().regret(), None);
    }
}
