//! What the quality of compaction is judged by.
//!
//! | signal | question |
//! |---|---|
//! | compression ratio | how much of the history was sent |
//! | trigger precision | was a pass needed, or did it pay? |
//! | probe and recall recovery | was there what the recording needed after it? |
//! | the same of planted facts | was there what nobody could guess? |
//! | degradation | does it get worse from pass to pass? |
//! | amortization | what does a pass cost for each request until the next? |
//! | re-read rate | was fetched again what a pass had removed? |
//! | next-action and edit support | did the view have what the next call names? |
//! | line recovery | were probes there as lines, and not only as names? |
//! | constraint survival | has the view the user's orders, word for word? |
//! | stale facts | does the view show values that no longer hold? |
//!
//! What a session would have cost without one pass is reckoned from the run
//! without any: the prompt would have grown by what that run's grew by, and
//! read and written of the cache what that run did.

use super::play::{Played, Probe, Run};
use super::probes::Kind;
use super::quality::{ByPass, Quality};
use crate::sim::models::Model;
use crate::sim::prices::Tokens;

/// Within how many requests a pass must have been needed.
pub const WITHIN: usize = 20;

/// Sums from which signals are told, for one session or many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// Tokens sent, and of the whole history, with each session's last request.
    pub last: (u64, u64),
    /// The same over all requests.
    pub all: (u64, u64),
    /// Requests whose view was larger than the history itself.
    pub larger: usize,
    /// Passes, and those of them that were needed or paid.
    pub passes: (usize, usize),
    /// Probes by kind: asked for, in view, reachable.
    pub probes: Vec<Probe>,
    /// Each session's degradation times its probes, and those probes.
    pub degraded: (f64, usize),
    /// What passes cost, and the requests that they served.
    pub amortized: (f64, usize),
    /// Things removed, and those of them fetched again.
    pub rereads: (usize, usize),
    /// What views were judged by beside probes.
    pub quality: Quality,
}

/// What came of the probes that can be told by their lines: names, paths and
/// numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// Those that the view had in their line, with where that comes from.
    pub in_line: ByPass,
    /// Those that it had at all.
    pub named: usize,
    /// Those that a bag of the rarest names, as long as what passes put in, would
    /// have had.
    pub rarest: usize,
    /// The same of a bag of any names.
    pub random: usize,
}

/// The signals; nothing where there was nothing to judge by.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Signals {
    /// Sent over original, at the end; one where it was more, see [`Sums::larger`].
    pub compression_ratio: Option<f64>,
    /// The same over all requests.
    pub mean_compression_ratio: Option<f64>,
    /// Share of passes that were needed or paid.
    pub trigger_precision: Option<f64>,
    /// Share of natural probes that the view had.
    pub probe_recovery: Option<f64>,
    /// Share of natural probes that the view had or that a reference in it led to.
    pub recall_recovery: Option<f64>,
    /// Share of planted facts that the view had.
    pub planted_recovery: Option<f64>,
    /// Share of planted facts that the view had or that a reference in it led to.
    pub planted_recall: Option<f64>,
    /// By how much probe recovery falls with each further pass, rules aside: the
    /// mean over sessions, each with the weight of its probes.
    pub degradation: Option<f64>,
    /// Dollars that passes cost for each request that they served.
    pub amortization_usd_per_turn: Option<f64>,
    /// Share of what passes removed that was fetched again.
    pub reread_rate: Option<f64>,
    /// Share of what the next call names, of what the history has, that the view
    /// had.
    pub next_action_support: Option<f64>,
    /// Share of edits whose old lines, as far as the history has them, the view had.
    pub edit_support: Option<f64>,
    /// Share of probes that the view had in their line.
    pub line_recovery: Option<f64>,
    /// Share of the user's orders that views had after a pass.
    pub constraint_survival: Option<f64>,
    /// Share of replaced values that views showed without the new one after a pass.
    pub stale_facts: Option<f64>,
}

impl Sums {
    /// The sums of one session, played alone and with the proxy.
    pub fn of(alone: &Run, with: &Run, model: &Model) -> Self {
        let pairs: Vec<(&Played, &Played)> = alone.played.iter().zip(&with.played).collect();
        let sizes =
            |(alone, with): &(&Played, &Played)| (with.tokens.prompt(), alone.tokens.prompt());
        let mut sums = Self {
            probes: with.probes.clone(),
            degraded: degraded(&with.probes),
            rereads: with.rereads,
            quality: with.quality,
            ..Self::default()
        };
        for (at, pair) in pairs.iter().enumerate() {
            let (sent, original) = sizes(pair);
            sums.larger += usize::from(sent > original);
            sums.all = (sums.all.0 + sent, sums.all.1 + original);
            if pairs.get(at + 1).is_none_or(|(next, _)| next.fresh) {
                sums.last = (sums.last.0 + sent, sums.last.1 + original);
            }
        }
        let made = |(_, with): &&(&Played, &Played)| !with.pass.is_empty();
        let mut spent = 0.0;
        for (at, pair) in pairs.iter().enumerate() {
            spent += pair.1.summaries;
            if !made(&pair) {
                continue;
            }
            let judged = Pass::judge(&pairs, at, with.hard_at, spent, model);
            spent = 0.0;
            sums.passes.0 += 1;
            sums.passes.1 += usize::from(judged.needed || judged.saved > 0.0);
            sums.amortized.0 += judged.cost;
            sums.amortized.1 += judged.served;
        }
        sums
    }

    /// The sums of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        fn add<T: std::ops::AddAssign + Copy>(to: &mut (T, T), from: (T, T)) {
            to.0 += from.0;
            to.1 += from.1;
        }
        add(&mut self.last, other.last);
        add(&mut self.all, other.all);
        add(&mut self.passes, other.passes);
        add(&mut self.rereads, other.rereads);
        self.larger += other.larger;
        self.degraded.0 += other.degraded.0;
        self.degraded.1 += other.degraded.1;
        self.amortized.0 += other.amortized.0;
        self.amortized.1 += other.amortized.1;
        self.probes.extend_from_slice(&other.probes);
        self.quality = self.quality.plus(&other.quality);
        self
    }

    /// What came of probes by their lines.
    pub fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        let told = |it: &&Probe| !matches!(it.kind, Kind::Constraint | Kind::Planted);
        for probe in self.probes.iter().filter(told) {
            lines.in_line.add(probe.passes, probe.in_line);
            lines.named += usize::from(probe.in_view);
            lines.rarest += usize::from(probe.bags.rarest);
            lines.random += usize::from(probe.bags.random);
        }
        lines
    }

    /// What they tell.
    pub fn signals(&self) -> Signals {
        let of = |which: fn(Kind) -> bool| -> Vec<&Probe> {
            let probes = self.probes.iter();
            probes.filter(|it| which(it.kind)).collect()
        };
        let natural = of(Kind::is_natural);
        let planted = of(|kind| kind == Kind::Planted);
        let quality = &self.quality;
        let share_of = |probes: &[&Probe], which: fn(&&&Probe) -> bool| {
            let count = probes.iter().filter(which).count();
            share(count as u64, probes.len() as u64)
        };
        let ratio = |(sent, original): (u64, u64)| share(sent.min(original), original);
        Signals {
            compression_ratio: ratio(self.last),
            mean_compression_ratio: ratio(self.all),
            trigger_precision: share(self.passes.1 as u64, self.passes.0 as u64),
            probe_recovery: share_of(&natural, |probe| probe.in_view),
            recall_recovery: share_of(&natural, |probe| probe.reachable),
            planted_recovery: share_of(&planted, |probe| probe.in_view),
            planted_recall: share_of(&planted, |probe| probe.reachable),
            degradation: (self.degraded.1 > 0)
                .then(|| self.degraded.0 / number(self.degraded.1 as u64)),
            amortization_usd_per_turn: (self.amortized.1 > 0)
                .then(|| self.amortized.0 / number(self.amortized.1 as u64)),
            reread_rate: share(self.rereads.1 as u64, self.rereads.0 as u64),
            next_action_support: quality.next_action.total().share(),
            edit_support: quality.edits.total().share(),
            line_recovery: self.lines().in_line.total().share(),
            constraint_survival: quality.rules.total().share(),
            stale_facts: quality.fresh_values.total().share().map(|it| 1.0 - it),
        }
    }
}

/// What came of one pass.
struct Pass {
    /// Without it the hard limit would have been passed soon.
    needed: bool,
    /// Dollars that it saved to the end: what it removed stays removed.
    saved: f64,
    /// Dollars that it cost at once.
    cost: f64,
    /// Requests until the next one, or to the end.
    served: usize,
}

impl Pass {
    fn judge(
        pairs: &[(&Played, &Played)],
        at: usize,
        hard_at: u64,
        summaries: f64,
        model: &Model,
    ) -> Self {
        let before = at.checked_sub(1).and_then(|before| pairs.get(before));
        let before = before.filter(|_| pairs.get(at).is_some_and(|(alone, _)| !alone.fresh));
        let (alone, with) = before.map_or((0, 0), |(alone, with)| {
            (alone.tokens.prompt(), with.tokens.prompt())
        });
        // What the prompt would be if this pass had not been made.
        let grown = |one: &Played| with + one.tokens.prompt().saturating_sub(alone);
        let rest = pairs.get(at..).unwrap_or(&[]).iter().enumerate();
        let rest = rest.take_while(|(ahead, (alone, _))| *ahead == 0 || !alone.fresh);
        let needed = rest
            .clone()
            .take(WITHIN)
            .any(|(_, (alone, _))| grown(alone) > hard_at);
        let until = rest
            .clone()
            .take_while(|(ahead, (_, with))| *ahead == 0 || with.pass.is_empty());
        let served = until.count();
        let (mut removed, mut saved, mut cost) = (0, -summaries, summaries);
        for (ahead, (alone, with)) in rest {
            let sent = with.tokens.prompt();
            if ahead == 0 {
                removed = grown(alone).saturating_sub(sent);
                let spared = unpassed(alone, grown(alone), model) - with.dollars;
                saved += spared;
                cost += (-spared).max(0.0);
            } else {
                let longer = unpassed(alone, sent + removed, model);
                saved += longer - unpassed(alone, sent, model);
            }
        }
        Self {
            needed,
            saved,
            cost,
            served,
        }
    }
}

/// What a request would have cost with a prompt of this size: what was new to
/// the cache without any pass would have been new, and no more.
#[allow(clippy::cast_precision_loss, reason = "money is far below 2^52")]
fn unpassed(alone: &Played, prompt: u64, model: &Model) -> f64 {
    let mut left = prompt;
    let mut take = |tokens: u64| {
        let taken = tokens.min(left);
        left -= taken;
        taken
    };
    let tokens = Tokens {
        input: take(alone.tokens.input),
        write_5m: take(alone.tokens.write_5m),
        write_1h: take(alone.tokens.write_1h),
        read: 0,
        output: alone.tokens.output,
    };
    let tokens = Tokens {
        read: left,
        ..tokens
    };
    let cost = model.prices_for(&tokens).cost(&tokens);
    cost.micro_dollars() as f64 / 1e6
}

/// How fast the share of recovered probes of one session falls with the number of
/// passes, times the probes, and those. It is the slope of the straight line
/// through all of them, turned round. Rules are copied by code and planted facts
/// are nobody's need, so neither tells of it.
fn degraded(probes: &[Probe]) -> (f64, usize) {
    let told = |it: &&Probe| it.kind.is_natural() && it.kind != Kind::Constraint;
    let probes: Vec<&Probe> = probes.iter().filter(told).collect();
    let count = number(probes.len() as u64);
    let x = |probe: &Probe| number(probe.passes as u64);
    let y = |probe: &Probe| f64::from(u8::from(probe.in_view));
    let mean = |of: &dyn Fn(&Probe) -> f64| probes.iter().map(|it| of(it)).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let spread: f64 = probes.iter().map(|it| (x(it) - mean_x).powi(2)).sum();
    let together = |probe: &&Probe| (x(probe) - mean_x) * (y(probe) - mean_y);
    let slope = probes.iter().map(together).sum::<f64>() / spread;
    // One number of passes, or no probe at all: nothing falls.
    if slope.is_finite() {
        (-slope * count, probes.len())
    } else {
        (0.0, 0)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| number(part) / number(whole))
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
