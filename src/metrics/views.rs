//! The metrics of views and of the store.

use std::time::Duration;

use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use crate::wire::reply::Usage;

/// Tokens, from a greeting to the largest window.
const TOKEN_BUCKETS: &[f64] = &[
    1_000.0,
    5_000.0,
    10_000.0,
    25_000.0,
    50_000.0,
    75_000.0,
    100_000.0,
    150_000.0,
    200_000.0,
    300_000.0,
    500_000.0,
    750_000.0,
    1_000_000.0,
    2_000_000.0,
];
/// Estimate over report: one is right, and a few percent matter.
const ERROR_BUCKETS: &[f64] = &[
    0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 1.01, 1.03, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0,
];
/// Shares of a whole.
const SHARE_BUCKETS: &[f64] = &[
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];
/// From a look-up in a file to a database far away.
const STORE_BUCKETS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 1.0,
];

/// What is counted about views.
pub struct ViewMetrics {
    compactions: IntCounterVec,
    removed: IntCounterVec,
    ratio: HistogramVec,
    prefix_breaks: IntCounterVec,
    cold_predictions: IntCounterVec,
    cache_read: Histogram,
    saved: GaugeVec,
    thrash: IntCounter,
    rereads: IntCounter,
    reactive: IntCounterVec,
    thinking: IntCounterVec,
    fail_open: IntCounterVec,
    measure_error: Histogram,
    view_tokens: HistogramVec,
    store_seconds: HistogramVec,
    store_errors: IntCounterVec,
}

fn counter(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

fn histogram(name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).buckets(buckets.to_vec())
}

impl ViewMetrics {
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
            reactive: counter(
                "reactive_retries_total",
                "Requests that upstream refused and that were sent again, changed.",
                &["outcome"],
            )?,
            thinking: counter(
                "thinking_dropped_total",
                "Thinking blocks left out because they no longer fit, by who left them out.",
                &["how"],
            )?,
            fail_open: counter(
                "fail_open_total",
                "Failures of ours after which a request went on without us, by stage.",
                &["stage"],
            )?,
            measure_error: Histogram::with_opts(histogram(
                "measure_error_ratio",
                "Estimated size of a prompt over the size upstream reported.",
                ERROR_BUCKETS,
            ))?,
            view_tokens: HistogramVec::new(
                histogram(
                    "view_tokens",
                    "Tokens of conversations: as clients sent them, and as they went upstream.",
                    TOKEN_BUCKETS,
                ),
                &["stage"],
            )?,
            store_seconds: HistogramVec::new(
                histogram(
                    "store_seconds",
                    "Time the store took, by operation.",
                    STORE_BUCKETS,
                ),
                &["op"],
            )?,
            store_errors: counter(
                "store_errors_total",
                "Operations of the store that failed or took too long.",
                &["op"],
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
        registry.register(Box::new(metrics.reactive.clone()))?;
        registry.register(Box::new(metrics.thinking.clone()))?;
        registry.register(Box::new(metrics.fail_open.clone()))?;
        registry.register(Box::new(metrics.measure_error.clone()))?;
        registry.register(Box::new(metrics.view_tokens.clone()))?;
        registry.register(Box::new(metrics.store_seconds.clone()))?;
        registry.register(Box::new(metrics.store_errors.clone()))?;
        Ok(metrics)
    }
}

/// Labels are words of this program, never of a user.
impl super::Metrics {
    /// Counts a pass.
    pub fn compaction(&self, kind: &'static str, trigger: &'static str, outcome: &'static str) {
        let labels = [kind, trigger, outcome];
        self.views.compactions.with_label_values(&labels).inc();
    }

    /// Records what a pass removed from a view of so many tokens.
    pub fn removed(&self, kind: &'static str, tokens: u64, of: u64) {
        self.views.removed.with_label_values(&[kind]).inc_by(tokens);
        let left = of.saturating_sub(tokens);
        let ratio = self.views.ratio.with_label_values(&[kind]);
        ratio.observe(share(left, of));
    }

    /// Counts a prefix that was not read from the cache again.
    pub fn prefix_break(&self, cause: &'static str) {
        self.views.prefix_breaks.with_label_values(&[cause]).inc();
    }

    /// Counts a cache that was taken for cold.
    pub fn cold_prediction(&self, right: bool) {
        let outcome = if right { "right" } else { "wrong" };
        let counter = self.views.cold_predictions.with_label_values(&[outcome]);
        counter.inc();
    }

    /// Records how much of a prompt was read from the cache.
    pub fn cache_read_ratio(&self, usage: &Usage) {
        if let Some(prompt) = usage.prompt() {
            let read = usage.cache_read.unwrap_or(0);
            self.views.cache_read.observe(share(read, prompt));
        }
    }

    /// Adds to what was saved, in pico-dollars.
    pub fn saved(&self, model: &str, pico: i128) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a gauge of dollars needs no more"
        )]
        let dollars = pico as f64 / 1e12;
        self.views.saved.with_label_values(&[model]).add(dollars);
    }

    /// Counts a conversation in which passes do not last.
    pub fn thrash(&self) {
        self.views.thrash.inc();
    }

    /// Counts what was fetched again.
    pub fn rereads(&self, count: usize) {
        self.views.rereads.inc_by(count as u64);
    }

    /// Counts a refused request that was sent again.
    pub fn reactive(&self, outcome: &'static str) {
        self.views.reactive.with_label_values(&[outcome]).inc();
    }

    /// Counts thinking that was left out.
    pub fn thinking_dropped(&self, how: &'static str, blocks: usize) {
        let counter = self.views.thinking.with_label_values(&[how]);
        counter.inc_by(blocks as u64);
    }

    /// Counts a failure after which a request went on without us.
    pub fn fail_open(&self, stage: &'static str) {
        self.views.fail_open.with_label_values(&[stage]).inc();
    }

    /// Records how good an estimate was.
    pub fn measured(&self, estimate: u64, reported: u64) {
        if reported > 0 {
            #[allow(
                clippy::cast_precision_loss,
                reason = "a ratio for a histogram needs no more"
            )]
            let ratio = estimate as f64 / reported as f64;
            self.views.measure_error.observe(ratio);
        }
    }

    /// Records the sizes of a conversation and of its view.
    pub fn view_tokens(&self, original: u64, sent: u64) {
        for (stage, tokens) in [("original", original), ("sent", sent)] {
            let histogram = self.views.view_tokens.with_label_values(&[stage]);
            #[allow(clippy::cast_precision_loss, reason = "a bucket needs no more")]
            histogram.observe(tokens as f64);
        }
    }

    /// Records an operation of the store.
    pub fn store(&self, operation: &'static str, time: Duration, failed: bool) {
        let histogram = self.views.store_seconds.with_label_values(&[operation]);
        histogram.observe(time.as_secs_f64());
        if failed {
            self.views
                .store_errors
                .with_label_values(&[operation])
                .inc();
        }
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
