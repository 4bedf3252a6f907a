//! The metrics of passes: what they did, what they saved, what they cost.

use prometheus::{GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

use super::labels::{self, CAUSES, KINDS, OUTCOMES, PREDICTIONS, TRIGGERS};
use super::views::{counter, histogram};
use crate::wire::reply::Usage;

/// Shares of a whole.
const SHARE_BUCKETS: &[f64] = &[
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];

/// What is counted about passes.
pub struct PassMetrics {
    compactions: IntCounterVec,
    removed: IntCounterVec,
    ratio: HistogramVec,
    prefix_breaks: IntCounterVec,
    cold_predictions: IntCounterVec,
    cache_read: Histogram,
    saved: GaugeVec,
    thrash: IntCounter,
    rereads: IntCounter,
}

impl PassMetrics {
    /// Registers every one.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            compactions: counter(
                "compactions_total",
                "Passes, by what they did, what started them and how they ended.",
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
            saved: GaugeVec::new(
                Opts::new(
                    "saved_usd",
                    "Dollars saved by passes, net of what they cost; may be negative.",
                ),
                &["model"],
            )?,
            thrash: IntCounter::new(
                "thrash_total",
                "Conversations in which passes were refilled at once and stopped.",
            )?,
            rereads: IntCounter::new(
                "rereads_total",
                "Things the agent fetched again after a pass had removed them.",
            )?,
        };
        registry.register(Box::new(metrics.compactions.clone()))?;
        registry.register(Box::new(metrics.removed.clone()))?;
        registry.register(Box::new(metrics.ratio.clone()))?;
        registry.register(Box::new(metrics.prefix_breaks.clone()))?;
        registry.register(Box::new(metrics.cold_predictions.clone()))?;
        registry.register(Box::new(metrics.cache_read.clone()))?;
        registry.register(Box::new(metrics.saved.clone()))?;
        registry.register(Box::new(metrics.thrash.clone()))?;
        registry.register(Box::new(metrics.rereads.clone()))?;
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
    /// Counts a pass.
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

    /// Adds to what was saved, in pico-dollars.
    pub fn saved(&self, model: &str, pico: i128) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a gauge of dollars needs no more"
        )]
        let dollars = pico as f64 / 1e12;
        self.passes.saved.with_label_values(&[model]).add(dollars);
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

/// A part of a whole; of nothing it is all.
#[allow(clippy::cast_precision_loss, reason = "a bucket needs no more")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 1.0;
    }
    part as f64 / whole as f64
}
