//! How a session went, as a picture: the size of the history, of what was sent
//! and of what the cache gave, over its requests; passes and the breaker marked.
//!
//! Colours and fonts are the style sheet's, because the policy of the page allows
//! none in the picture itself.

use std::fmt::Write;

use maud::{Markup, html};

use super::words::{class, clock, float, reason, short};
use crate::engine::numerals::grouped;
use crate::engine::passed::Passed;
use crate::recall::{Step, Timeline};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;
/// What is left free around the lines.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 40.0;
/// The most points of a line; more cannot be seen.
const POINTS: usize = 600;

/// A picture of a session whose prompts may have so many tokens.
pub(super) fn chart(Timeline { session, timeline }: &Timeline, usable: u64) -> Markup {
    let model = most_asked(timeline).unwrap_or(&session.model);
    let own = |(_, step): &(usize, &Step)| step.model == model && step.sent_tokens.is_some();
    let steps: Vec<(usize, &Step)> = timeline.iter().enumerate().filter(own).collect();
    if steps.len() < 2 {
        return html! { p.dim { "There is something to draw from the second answer on." } };
    }
    let plot = Plot::new(&steps, usable);
    let others = timeline.iter().filter(|step| step.model != model).count();
    html! {
        figure {
            svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="Tokens of each request" {
                (plot.scale())
                path.area.cache d=(plot.area(|step| step.cache_read_tokens)) {}
                path.area.sent d=(plot.area(|step| step.sent_tokens)) {}
                path.line.history d=(plot.line(|step| step.original_tokens)) {}
                path.line.cache d=(plot.line(|step| step.cache_read_tokens)) {}
                path.line.sent d=(plot.line(|step| step.sent_tokens)) {}
                (plot.breaker())
                (plot.passes())
            }
            figcaption.legend {
                span.key.history { "history" }
                span.key.sent { "sent" }
                span.key.cache { "of it from the cache" }
                @if plot.shows_limit() { span.key.limit { "usable window " (short(usable)) } }
                @if plot.steps.iter().any(|(_, step)| step.breaker != "closed") { span.key.breaker { "breaker not closed" } }
                @for kind in plot.kinds() { span.chip.(class(kind)) { (kind) } }
                @if others > 0 { span { (others) " requests to other models are not drawn" } }
            }
        }
    }
}

/// The model with the most requests.
fn most_asked(timeline: &[Step]) -> Option<&str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for step in timeline {
        match counts.iter_mut().find(|(model, _)| *model == step.model) {
            Some((_, count)) => *count += 1,
            None => counts.push((&step.model, 1)),
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(model, _)| model)
}

/// Requests of one model on a plane; each with its place in the whole timeline.
struct Plot<'a> {
    steps: &'a [(usize, &'a Step)],
    usable: u64,
    /// Tokens at the upper edge.
    top: u64,
    largest: u64,
}

impl<'a> Plot<'a> {
    fn new(steps: &'a [(usize, &'a Step)], usable: u64) -> Self {
        let sizes = steps
            .iter()
            .flat_map(|(_, step)| [step.original_tokens, step.sent_tokens]);
        let largest = sizes.flatten().max().unwrap_or(1).max(1);
        let mut plot = Self {
            steps,
            usable,
            top: largest,
            largest,
        };
        if plot.shows_limit() {
            plot.top = largest.max(usable);
        }
        plot.top += plot.top / 20;
        plot
    }

    /// A limit that is far away would only press the lines down.
    fn shows_limit(&self) -> bool {
        self.usable < self.largest.saturating_mul(2)
    }

    fn across(&self, at: usize) -> f64 {
        let last = float(self.steps.len().max(2) as u64 - 1);
        LEFT + (WIDTH - LEFT - RIGHT) * float(at as u64) / last
    }

    fn up(&self, tokens: u64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        HEIGHT - BOTTOM - height * float(tokens) / float(self.top)
    }

    /// The requests that are drawn: all, or enough of them, and those around a
    /// pass always.
    fn drawn(&self) -> impl Iterator<Item = (usize, &Step)> {
        let every = self.steps.len().div_ceil(POINTS);
        let has_pass = |at: usize| {
            let step = self.steps.get(at);
            step.is_some_and(|(_, step)| step.pass.is_some())
        };
        let last = self.steps.len() - 1;
        let numbered = self.steps.iter().enumerate();
        numbered
            .filter(move |(at, _)| {
                at % every == 0 || *at == last || has_pass(*at) || has_pass(at + 1)
            })
            .map(|(at, (_, step))| (at, *step))
    }

    fn line(&self, of: impl Fn(&Step) -> Option<u64>) -> String {
        let mut path = String::new();
        for (at, step) in self.drawn() {
            if let Some(tokens) = of(step) {
                let letter = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(
                    path,
                    "{letter}{:.1} {:.1}",
                    self.across(at),
                    self.up(tokens)
                );
            }
        }
        path
    }

    fn area(&self, of: impl Fn(&Step) -> Option<u64>) -> String {
        let drawn = || self.drawn().filter(|(_, step)| of(step).is_some());
        let (Some((first, _)), Some((last, _))) = (drawn().next(), drawn().last()) else {
            return String::new();
        };
        let (first, last, ground) = (self.across(first), self.across(last), self.up(0));
        format!(
            "{}L{last:.1} {ground:.1}L{first:.1} {ground:.1}Z",
            self.line(&of)
        )
    }

    /// Lines and numbers at the left, times below.
    fn scale(&self) -> Markup {
        let edge = WIDTH - RIGHT;
        let time = |at: Option<&(usize, &Step)>| {
            at.map_or_else(String::new, |(_, step)| clock(&step.seen_at))
        };
        html! {
            @for tokens in ticks(self.largest) {
                path.grid d={ "M" (LEFT) " " (tenths(self.up(tokens))) "H" (edge) } {}
                text.tick x=(LEFT - 8.0) y=(tenths(self.up(tokens) + 4.0)) text-anchor="end" { (short(tokens)) }
            }
            @if self.shows_limit() {
                path.limit d={ "M" (LEFT) " " (tenths(self.up(self.usable))) "H" (edge) } {}
            }
            text.tick x=(LEFT) y=(HEIGHT - 10.0) { (time(self.steps.first())) }
            text.tick x=(edge) y=(HEIGHT - 10.0) text-anchor="end" { (time(self.steps.last())) }
            text.tick x=(LEFT.midpoint(edge)) y=(HEIGHT - 10.0) text-anchor="middle" { (self.steps.len()) " requests" }
        }
    }

    /// A line for each pass, with its reason and its numbers to be read.
    fn passes(&self) -> Markup {
        let ground = self.up(0);
        let numbered = self.steps.iter().enumerate();
        let passes = numbered.filter_map(|(at, (row, step))| {
            let pass = step.pass.as_ref()?;
            Some((self.across(at), row, *step, pass))
        });
        html! {
            @for (x, row, step, pass) in passes {
                a.pass.(class(gravest(pass))) href={ "#pass-" (row) } {
                    title { (told(step, pass)) }
                    path d={ "M" (tenths(x)) " " (TOP - 6.0) "V" (tenths(ground)) } {}
                    circle cx=(tenths(x)) cy=(TOP - 10.0) r="5" {}
                }
            }
        }
    }

    /// The kinds of pass that are drawn.
    fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        let passes = self.steps.iter().filter_map(|(_, step)| step.pass.as_ref());
        for did in passes.flat_map(|pass| &pass.kinds) {
            if !kinds.contains(&did.kind.as_str()) {
                kinds.push(&did.kind);
            }
        }
        kinds
    }

    /// A band below, where the breaker was not closed.
    fn breaker(&self) -> Markup {
        let ground = self.up(0);
        let stretches = self.steps.chunk_by(|(_, a), (_, b)| a.breaker == b.breaker);
        let mut from = 0;
        let mut bands = Vec::new();
        for stretch in stretches {
            let to = from + stretch.len();
            let state = stretch.first().map_or("closed", |(_, step)| step.breaker);
            if state != "closed" {
                let (left, right) = (self.across(from), self.across(to.min(self.steps.len() - 1)));
                bands.push((left, (right - left).max(3.0), state));
            }
            from = to;
        }
        html! {
            @for (x, width, state) in bands {
                rect.breaker.(state) x=(tenths(x)) y=(tenths(ground + 3.0)) width=(tenths(width)) height="6" {
                    title { "breaker " (state.replace('_', " ")) }
                }
            }
        }
    }
}

/// Of several kinds the one that somebody should know of.
fn gravest(pass: &Passed) -> &str {
    let last = pass.kinds.last();
    last.map_or("unknown", |did| did.kind.as_str())
}

fn told(step: &Step, pass: &Passed) -> String {
    let kinds: Vec<String> = pass
        .kinds
        .iter()
        .map(|did| format!("{} {}", did.kind, grouped(did.tokens)))
        .collect();
    format!(
        "{} at {} messages: {} to {} tokens ({})",
        reason(&pass.trigger),
        step.messages,
        grouped(pass.before_tokens),
        grouped(pass.after_tokens),
        kinds.join(", ")
    )
}

/// Round numbers up to the largest.
fn ticks(largest: u64) -> Vec<u64> {
    let mut step = 1;
    // Three to seven lines: the step is 1, 2 or 5 with noughts behind it.
    for factor in [2, 5, 10].iter().cycle() {
        if largest / step <= 6 {
            break;
        }
        let power = 10_u64.pow(step.ilog10());
        step = power.saturating_mul(*factor);
    }
    (0..=largest / step).map(|at| at * step).collect()
}

/// A coordinate, as short as it may be.
fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_has_few_round_lines() {
        for (largest, expected) in [
            (1, vec![0, 1]),
            (7, vec![0, 2, 4, 6]),
            (48_000, vec![0, 10_000, 20_000, 30_000, 40_000]),
            (182_000, vec![0, 50_000, 100_000, 150_000]),
        ] {
            assert_eq!(ticks(largest), expected);
        }
        assert!(ticks(u64::MAX).len() <= 8);
    }
}
