//! What a session would have cost with the same means and knowledge of all of it.
//!
//! The yardstick of a policy: it decides without knowing what comes, so it is
//! held against the cheapest plan of somebody who knows. The means are the
//! policy's own: a pass clears every large result before the working set, or
//! closes every message before it into one segment. The plan chooses with which
//! requests passes are made, and which. It knows no window, because the run
//! without the proxy knows none either.
//!
//! Costs come from the bill of the run without the proxy: what was new to the
//! cache there is new here too, and a pass also writes what stands behind its
//! first edit. To make no pass at all is one of the plans, so the result is
//! never above the cost without.
//!
//! The search is a dynamic program. A state is the pass that closed the newest
//! segment and the newest pass of either kind; passes are made only at a limited
//! number of places, so that the work is bounded.

use crate::config::{Config, SummarizerMode};
use crate::sim::models::{Model, find};
use crate::sim::prices::Tokens;

/// Tokens of a segment.
const SEGMENT: u64 = 1_500;
/// Results of fewer tokens are not worth clearing.
pub const WORTH_CLEARING: u64 = 400;
/// Tokens of the text that stands for a cleared result.
pub const STUB: u64 = 40;
/// The most places in a stretch at which passes are made.
const PLACES: usize = 60;
/// About how many requests are priced for one stretch, at most.
const WORK: usize = 900_000;

/// A request of the run without the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// A history begins with it.
    pub fresh: bool,
    /// Tokens as they were billed.
    pub tokens: Tokens,
    /// Tokens of the message that is new in it.
    pub asked: u64,
    /// Tokens that go when the large results of that message are cleared.
    pub clearable: u64,
}

/// Who may write a summary.
#[derive(Debug, Clone, Copy)]
pub enum Summarizer {
    /// The same model, which reads the view from the cache.
    Fork,
    /// Another model, which reads what is closed.
    Other(&'static Model),
}

/// What a plan may use.
#[derive(Debug, Clone)]
pub struct Means {
    /// The model that is asked.
    pub model: &'static Model,
    /// Newest tokens that a pass leaves alone.
    pub keep: u64,
    /// Who may write summaries; a segment takes the cheapest.
    pub summarizers: Vec<Summarizer>,
}

impl Means {
    /// The means that a configuration gives.
    pub fn configured(model: &'static Model, config: &Config) -> Self {
        let other = find(&config.summarizer.model).map(Summarizer::Other);
        let fork = Some(Summarizer::Fork);
        let summarizers = match config.summarizer.mode {
            SummarizerMode::Off => [None, None],
            SummarizerMode::Fork | SummarizerMode::Native => [fork, None],
            SummarizerMode::Model => [other, None],
            SummarizerMode::Auto => [fork, other],
        };
        Self {
            model,
            keep: config.policy.keep_tokens(),
            summarizers: summarizers.into_iter().flatten().collect(),
        }
    }
}

/// Dollars of the cheapest plan for these requests.
#[allow(clippy::cast_precision_loss, reason = "money is far below 2^52")]
pub fn hindsight(sent: &[Sent], means: &Means) -> f64 {
    let stretches = sent.chunk_by(|_, next| !next.fresh);
    let each = stretches.map(|sent| Stretch::new(sent, means).cheapest());
    each.sum::<u64>() as f64 / 1e6
}

/// What passes have made of a history: how many requests' messages, counted from
/// the start, stand in the segment, and how many have their results cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct View {
    closed: usize,
    cleared: usize,
}

/// Requests with one growing history.
struct Stretch<'a> {
    sent: &'a [Sent],
    means: &'a Means,
    /// Tokens before the first message: system prompt and tools.
    head: u64,
    /// Tokens that clearing frees in the first messages, by their number.
    freed: Vec<u64>,
}

impl<'a> Stretch<'a> {
    fn new(sent: &'a [Sent], means: &'a Means) -> Self {
        let first = sent.first().copied().unwrap_or_default();
        let sums = sent.iter().scan(0, |sum, sent| {
            *sum += sent.clearable;
            Some(*sum)
        });
        Self {
            sent,
            means,
            head: first.tokens.prompt().saturating_sub(first.asked),
            freed: std::iter::once(0).chain(sums).collect(),
        }
    }

    /// Micro-dollars of the cheapest plan.
    fn cheapest(&self) -> u64 {
        let places = self.places();
        let mut place_of = vec![None; self.sent.len()];
        for (at, request) in places.iter().enumerate() {
            if let Some(place) = place_of.get_mut(*request) {
                *place = Some(at + 1);
            }
        }
        // Nought stands for no pass at all.
        let cuts: Vec<usize> = std::iter::once(0)
            .chain(places.iter().map(|request| self.working_set(*request)))
            .collect();
        let cut = |place: usize| cuts.get(place).copied().unwrap_or(0);
        let width = cuts.len();
        let mut best = vec![u64::MAX; width * width];
        relax(&mut best, 0, 0);
        let mut cheapest = u64::MAX;
        for newest in 0..width {
            for segment in 0..=newest {
                let reached = best.get(segment * width + newest).copied();
                let Some(mut spent) = reached.filter(|spent| *spent < cheapest) else {
                    continue;
                };
                let view = View {
                    closed: cut(segment),
                    cleared: cut(newest),
                };
                let from = newest.checked_sub(1).and_then(|at| places.get(at));
                let from = from.map_or(0, |request| request + 1);
                let gone = self.gone(view);
                for (at, place) in place_of.iter().enumerate().skip(from) {
                    if let Some(place) = *place {
                        if let Some(cost) = self.cost_of_clearing(at, view, cut(place)) {
                            relax(&mut best, segment * width + place, spent + cost);
                        }
                        if let Some(cost) = self.cost_of_closing(at, view, cut(place)) {
                            relax(&mut best, place * width + place, spent + cost);
                        }
                    }
                    spent += self.cost(at, gone);
                    if spent >= cheapest {
                        break;
                    }
                }
                cheapest = cheapest.min(spent);
            }
        }
        cheapest
    }

    /// The requests with which a pass may be made: all, if they are few, else
    /// those that found the cache cold and others at even distances.
    fn places(&self) -> Vec<usize> {
        let count = self.sent.len();
        let limit = PLACES.min((2 * WORK / count.max(1)).isqrt()).max(2);
        let all = 1..count;
        if all.len() <= limit {
            return all.collect();
        }
        let is_cold = |at: &usize| {
            let tokens = self.sent.get(*at).map(|sent| sent.tokens);
            tokens.is_some_and(|tokens| tokens.read * 2 < tokens.prompt())
        };
        let mut places: Vec<usize> = all.filter(is_cold).take(limit / 2).collect();
        let even = limit - places.len();
        places.extend((0..even).map(|at| 1 + at * (count - 1) / even));
        places.sort_unstable();
        places.dedup();
        places
    }

    fn at(&self, request: usize) -> Sent {
        self.sent.get(request).copied().unwrap_or_default()
    }

    /// How many requests' messages stand before the working set of this one.
    fn working_set(&self, request: usize) -> usize {
        let size = self.at(request).tokens.prompt();
        let is_old = |closed: &usize| self.end(*closed) + self.means.keep <= size;
        (1..=request).rev().find(is_old).unwrap_or(0)
    }

    /// Where the messages of the first requests end.
    fn end(&self, closed: usize) -> u64 {
        let last = closed.checked_sub(1).and_then(|at| self.sent.get(at));
        last.map_or(self.head, |sent| sent.tokens.prompt())
    }

    /// Tokens that clearing frees between two places.
    fn freed(&self, from: usize, to: usize) -> u64 {
        let sum = |at: usize| self.freed.get(at).copied().unwrap_or(0);
        sum(to).saturating_sub(sum(from))
    }

    /// Tokens by which a view is smaller than the history.
    fn gone(&self, view: View) -> u64 {
        let closed = self.end(view.closed).saturating_sub(self.head);
        closed.saturating_sub(SEGMENT) + self.freed(view.closed, view.cleared)
    }

    /// A request without a pass, over a view that lacks this many tokens.
    fn cost(&self, request: usize, gone: u64) -> u64 {
        let mut tokens = self.at(request).tokens;
        let mut left = tokens.prompt().saturating_sub(gone);
        // What was new to the cache stays new; only what is read gets less.
        for new in [
            &mut tokens.input,
            &mut tokens.write_5m,
            &mut tokens.write_1h,
        ] {
            *new = left.min(*new);
            left -= *new;
        }
        self.billed(Tokens {
            read: left,
            ..tokens
        })
    }

    /// A request with a pass; what stands before the first edit is read from the
    /// cache, if it was there.
    fn cost_of_pass(&self, request: usize, before: u64, after: View, first_edit: u64) -> u64 {
        let tokens = self.at(request).tokens;
        let size = tokens.prompt().saturating_sub(self.gone(after));
        let read = tokens.read.saturating_sub(before).min(first_edit).min(size);
        let input = tokens.input.min(size - read);
        let written = size - read - input;
        let is_hour = tokens.write_1h > tokens.write_5m;
        self.billed(Tokens {
            input,
            write_5m: if is_hour { 0 } else { written },
            write_1h: if is_hour { written } else { 0 },
            read,
            output: tokens.output,
        })
    }

    /// A request whose pass clears the results before this place; nothing, if
    /// there are none.
    fn cost_of_clearing(&self, request: usize, view: View, to: usize) -> Option<u64> {
        let old = self.sent.get(view.cleared..to)?;
        let first = old.iter().find(|sent| sent.clearable > 0)?;
        let after = View {
            cleared: to,
            ..view
        };
        let before = self.gone(view);
        let stands_at = first.tokens.prompt().saturating_sub(first.asked);
        let first_edit = stands_at.saturating_sub(before);
        Some(self.cost_of_pass(request, before, after, first_edit))
    }

    /// A request whose pass closes everything before this place, with the
    /// summary; nothing, if nobody writes one or it would free nothing.
    fn cost_of_closing(&self, request: usize, view: View, to: usize) -> Option<u64> {
        let after = View {
            closed: to,
            cleared: to,
        };
        let before = self.gone(view);
        if to <= view.closed || self.gone(after) <= before {
            return None;
        }
        let shown = self.at(request).tokens.prompt().saturating_sub(before);
        let closed = self.end(to).saturating_sub(self.end(view.closed));
        let earlier = if view.closed > 0 { SEGMENT } else { 0 };
        let told = earlier + closed.saturating_sub(self.freed(view.closed, view.cleared));
        let summaries = self.means.summarizers.iter().map(|who| match who {
            Summarizer::Fork => self.billed(Tokens {
                read: shown,
                output: SEGMENT,
                ..Tokens::default()
            }),
            Summarizer::Other(model) => {
                let tokens = Tokens {
                    input: told,
                    output: SEGMENT,
                    ..Tokens::default()
                };
                model.prices_for(&tokens).cost(&tokens).micro_dollars()
            }
        });
        let pass = self.cost_of_pass(request, before, after, self.head);
        Some(summaries.min()? + pass)
    }

    fn billed(&self, tokens: Tokens) -> u64 {
        let prices = self.means.model.prices_for(&tokens);
        prices.cost(&tokens).micro_dollars()
    }
}

/// Lowers the cost of a state.
fn relax(best: &mut [u64], state: usize, cost: u64) {
    if let Some(known) = best.get_mut(state) {
        *known = cost.min(*known);
    }
}

#[cfg(test)]
#[path = "hindsight_tests.rs"]
mod tests;
