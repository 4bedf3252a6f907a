//! The metrics of views and of the store.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

use super::labels::{self, DROPS, OPERATIONS, RETRIES, SIZES, STAGES};

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
/// From a look-up in a file to a database far away.
const STORE_BUCKETS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 1.0,
];

/// What is counted about views.
pub struct ViewMetrics {
    reactive: IntCounterVec,
    thinking: IntCounterVec,
    fail_open: IntCounterVec,
    measure_error: Histogram,
    view_tokens: HistogramVec,
    store_seconds: HistogramVec,
    store_errors: IntCounterVec,
    store_up: IntGauge,
}

pub(super) fn counter(
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

pub(super) fn histogram(name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).buckets(buckets.to_vec())
}

impl ViewMetrics {
    /// Registers every one.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
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
            store_up: IntGauge::new(
                "store_up",
                "Whether things are remembered where the configuration says: 0 while the database is away or a file cannot be used.",
            )?,
        };
        registry.register(Box::new(metrics.reactive.clone()))?;
        registry.register(Box::new(metrics.thinking.clone()))?;
        registry.register(Box::new(metrics.fail_open.clone()))?;
        registry.register(Box::new(metrics.measure_error.clone()))?;
        registry.register(Box::new(metrics.view_tokens.clone()))?;
        registry.register(Box::new(metrics.store_seconds.clone()))?;
        registry.register(Box::new(metrics.store_errors.clone()))?;
        registry.register(Box::new(metrics.store_up.clone()))?;
        labels::begin(&metrics.reactive, &[RETRIES]);
        labels::begin(&metrics.thinking, &[DROPS]);
        labels::begin(&metrics.fail_open, &[STAGES]);
        labels::begin(&metrics.view_tokens, &[SIZES]);
        labels::begin(&metrics.store_seconds, &[OPERATIONS]);
        labels::begin(&metrics.store_errors, &[OPERATIONS]);
        Ok(metrics)
    }
}

/// Labels are words of this program, never of a user.
impl super::Metrics {
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

    /// Whether the store is what it is meant to be.
    pub fn store_up(&self, up: bool) {
        self.views.store_up.set(i64::from(up));
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
