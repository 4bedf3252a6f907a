//! The metrics of passes: what they did, what they saved, what they cost.

use std::sync::{Mutex, PoisonError};

use prometheus::{
    CounterVec, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use super::labels::{self, CAUSES, KINDS, OUTCOMES, PREDICTIONS, TRIGGERS};
use super::views::{counter, histogram};
use crate::engine::money::Money;
use crate::engine::policy::Pico;
use crate::wire::reply::Usage;

/// Shares of a whole.
const SHARE_BUCKETS: &[f64] = &[
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];

/// What was over what was expected.
const RATIO_BUCKETS: &[f64] = &[
    0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 8.0,
];

/// What is counted about passes.
pub struct PassMetrics {
    passes: IntCounterVec,
    compactions: IntCounterVec,
    removed: IntCounterVec,
    ratio: HistogramVec,
    prefix_breaks: IntCounterVec,
    cold_predictions: IntCounterVec,
    cache_read: Histogram,
    reckoning: Histogram,
    saved: GaugeVec,
    spent: CounterVec,
    without: CounterVec,
    /// The sum over all models; none while no request had a known price.
    paid: Mutex<Option<Money>>,
    thrash: IntCounter,
    rereads: IntCounter,
}

impl PassMetrics {
    /// Registers every one.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            passes: counter(
                "passes_total",
                "Passes, each counted once, by what started them and how they ended.",
                &["trigger", "outcome"],
            )?,
            compactions: counter(
                "compactions_total",
                "What passes did, by kind, what started them and how they ended; a pass that did two things counts in both kinds.",
                &["kind", "trigger", "outcome"],
            )?,
            removed: counter(
                "tokens_removed_total",
                "Tokens that passes removed from views, by what they did.",
                &["kind"],
            )?,
            ratio: HistogramVec::new(
                histogram(
                    "compression_ratio",
                    "Share of a view that a pass left, by what it did.",
                    SHARE_BUCKETS,
                ),
                &["kind"],
            )?,
            prefix_breaks: counter(
                "prefix_breaks_total",
                "Requests that read less from the cache than was left there, by cause.",
                &["cause"],
            )?,
            cold_predictions: counter(
                "cold_predictions_total",
                "Caches taken for cold, by whether they were.",
                &["outcome"],
            )?,
            cache_read: Histogram::with_opts(histogram(
                "cache_read_ratio",
                "Share of a prompt's tokens that was read from the cache.",
                SHARE_BUCKETS,
            ))?,
            reckoning: Histogram::with_opts(histogram(
                "pass_reckoning_ratio",
                "Tokens that the request of a pass did not read from the cache, over what was expected.",
                RATIO_BUCKETS,
            ))?,
            saved: GaugeVec::new(
                Opts::new(
                    "saved_usd",
                    "Dollars saved by passes, net of what they cost; may be negative.",
                ),
                &["model"],
            )?,
            spent: CounterVec::new(
                Opts::new(
                    "spent_usd_total",
                    "Dollars spent upstream, summaries included, by what upstream reported and the price table.",
                ),
                &["model"],
            )?,
            without: CounterVec::new(
                Opts::new(
                    "without_usd_total",
                    "Dollars that the same requests would have cost without any pass.",
                ),
                &["model"],
            )?,
            paid: Mutex::default(),
            thrash: IntCounter::new(
                "thrash_total",
                "Conversations in which passes were refilled at once and stopped.",
            )?,
            rereads: IntCounter::new(
                "rereads_total",
                "Things the agent fetched again after a pass had removed them.",
            )?,
        };
        registry.register(Box::new(metrics.passes.clone()))?;
        registry.register(Box::new(metrics.compactions.clone()))?;
        registry.register(Box::new(metrics.removed.clone()))?;
        registry.register(Box::new(metrics.ratio.clone()))?;
        registry.register(Box::new(metrics.prefix_breaks.clone()))?;
        registry.register(Box::new(metrics.cold_predictions.clone()))?;
        registry.register(Box::new(metrics.cache_read.clone()))?;
        registry.register(Box::new(metrics.reckoning.clone()))?;
        registry.register(Box::new(metrics.saved.clone()))?;
        registry.register(Box::new(metrics.spent.clone()))?;
        registry.register(Box::new(metrics.without.clone()))?;
        registry.register(Box::new(metrics.thrash.clone()))?;
        registry.register(Box::new(metrics.rereads.clone()))?;
        labels::begin(&metrics.passes, &[TRIGGERS, OUTCOMES]);
        labels::begin(&metrics.compactions, &[KINDS, TRIGGERS, OUTCOMES]);
        labels::begin(&metrics.removed, &[KINDS]);
        labels::begin(&metrics.ratio, &[KINDS]);
        labels::begin(&metrics.prefix_breaks, &[CAUSES]);
        labels::begin(&metrics.cold_predictions, &[PREDICTIONS]);
        Ok(metrics)
    }
}

/// Labels are words of this program, never of a user.
impl super::Metrics {
    /// Counts a pass, once.
    pub fn pass(&self, trigger: &'static str, outcome: &'static str) {
        let labels = [trigger, outcome];
        self.passes.passes.with_label_values(&labels).inc();
    }

    /// Counts one of the things that a pass did.
    pub fn compaction(&self, kind: &'static str, trigger: &'static str, outcome: &'static str) {
        let labels = [kind, trigger, outcome];
        self.passes.compactions.with_label_values(&labels).inc();
    }

    /// Records what a pass removed from a view of so many tokens.
    pub fn removed(&self, kind: &'static str, tokens: u64, of: u64) {
        self.passes
            .removed
            .with_label_values(&[kind])
            .inc_by(tokens);
        let left = of.saturating_sub(tokens);
        let ratio = self.passes.ratio.with_label_values(&[kind]);
        ratio.observe(share(left, of));
    }

    /// Counts a prefix that was not read from the cache again.
    pub fn prefix_break(&self, cause: &'static str) {
        self.passes.prefix_breaks.with_label_values(&[cause]).inc();
    }

    /// Counts a cache that was taken for cold.
    pub fn cold_prediction(&self, right: bool) {
        let outcome = if right { "right" } else { "wrong" };
        let counter = self.passes.cold_predictions.with_label_values(&[outcome]);
        counter.inc();
    }

    /// Records how much of a prompt was read from the cache.
    pub fn cache_read_ratio(&self, usage: &Usage) {
        if let Some(prompt) = usage.prompt() {
            let read = usage.cache_read.unwrap_or(0);
            self.passes.cache_read.observe(share(read, prompt));
        }
    }

    /// Records what the request of a pass wrote, over what was expected.
    pub fn pass_wrote(&self, writes: u64, expected: u64) {
        self.passes.reckoning.observe(share(writes, expected));
    }

    /// Counts what was paid, and what would have been without Longhaul.
    pub fn paid(&self, model: &str, money: Money) {
        let (model, metrics) = ([model], &self.passes);
        let (spent, without) = (dollars(money.spent), dollars(money.without));
        // A counter takes nothing below zero.
        let spent_total = metrics.spent.with_label_values(&model);
        spent_total.inc_by(spent.max(0.0));
        let without_total = metrics.without.with_label_values(&model);
        without_total.inc_by(without.max(0.0));
        let saved = metrics.saved.with_label_values(&model);
        saved.add(dollars(money.saved()));
        let mut paid = metrics.paid.lock().unwrap_or_else(PoisonError::into_inner);
        *paid = Some(paid.unwrap_or_default().plus(money));
    }

    /// What this process has paid so far; `None` if no price was known.
    pub fn paid_so_far(&self) -> Option<Money> {
        let paid = self.passes.paid.lock();
        *paid.unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a conversation in which passes do not last.
    pub fn thrash(&self) {
        self.passes.thrash.inc();
    }

    /// Counts what was fetched again.
    pub fn rereads(&self, count: usize) {
        self.passes.rereads.inc_by(count as u64);
    }
}

#[allow(clippy::cast_precision_loss, reason = "a sum of dollars needs no more")]
fn dollars(pico: Pico) -> f64 {
    pico as f64 / 1e12
}

/// A part of a whole; of nothing it is all.
#[allow(clippy::cast_precision_loss, reason = "a bucket needs no more")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 1.0;
    }
    part as f64 / whole as f64
}
