//! The metrics of summaries and breakers.

use std::time::Duration;

use prometheus::{
    CounterVec, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
};

use super::labels::{self, FINISHED, MODES, REASONS, SCOPES, STATES, TRANSITIONS};
use super::views::{counter, histogram};

/// From a quick model to the longest that is waited for.
const SECONDS: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0,
];

/// What is counted about summaries.
pub struct SummaryMetrics {
    seconds: HistogramVec,
    failures: IntCounterVec,
    cost: CounterVec,
    states: IntGaugeVec,
    transitions: IntCounterVec,
    delayed: IntCounter,
}

impl SummaryMetrics {
    /// Registers every one.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            seconds: HistogramVec::new(
                histogram(
                    "summarizer_seconds",
                    "Time a summary took, by how it was asked for and how that ended.",
                    SECONDS,
                ),
                &["mode", "outcome"],
            )?,
            failures: counter(
                "summarizer_failures_total",
                "Attempts at a summary that failed, by reason.",
                &["reason"],
            )?,
            cost: CounterVec::new(
                Opts::new(
                    "summarizer_cost_usd_total",
                    "Dollars that summaries have cost, by model.",
                ),
                &["model"],
            )?,
            states: IntGaugeVec::new(
                Opts::new("breaker_state", "Breakers in each state, by scope."),
                &["scope", "state"],
            )?,
            transitions: counter(
                "breaker_transitions_total",
                "Changes of state of breakers, by scope.",
                &["scope", "from", "to"],
            )?,
            delayed: IntCounter::new("turns_delayed_total", "Requests that waited for a summary.")?,
        };
        registry.register(Box::new(metrics.seconds.clone()))?;
        registry.register(Box::new(metrics.failures.clone()))?;
        registry.register(Box::new(metrics.cost.clone()))?;
        registry.register(Box::new(metrics.states.clone()))?;
        registry.register(Box::new(metrics.transitions.clone()))?;
        registry.register(Box::new(metrics.delayed.clone()))?;
        labels::begin(&metrics.seconds, &[MODES, &[FINISHED]]);
        labels::begin(&metrics.failures, &[REASONS]);
        labels::begin(&metrics.states, &[SCOPES, STATES]);
        for (from, to) in TRANSITIONS {
            labels::begin(&metrics.transitions, &[SCOPES, &[*from], &[*to]]);
        }
        Ok(metrics)
    }
}

/// Labels are words of this program, and models of the table.
impl super::Metrics {
    /// A summary was made, or not.
    pub fn summary(&self, mode: &'static str, outcome: &'static str, took: Duration) {
        let seconds = self.summaries.seconds.with_label_values(&[mode, outcome]);
        seconds.observe(took.as_secs_f64());
    }

    /// An attempt at one failed.
    pub fn summary_failed(&self, reason: &'static str) {
        self.summaries.failures.with_label_values(&[reason]).inc();
    }

    /// A call for one was paid for, in pico-dollars.
    pub fn summary_cost(&self, model: &str, pico: i128) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a counter of dollars needs no more"
        )]
        let dollars = pico.max(0) as f64 / 1e12;
        self.summaries
            .cost
            .with_label_values(&[model])
            .inc_by(dollars);
    }

    /// A breaker changed its state.
    pub fn breaker(&self, scope: &'static str, from: &'static str, to: &'static str) {
        let transitions = &self.summaries.transitions;
        transitions.with_label_values(&[scope, from, to]).inc();
    }

    /// So many breakers are open and half-open. Closed is where all begin, so
    /// nobody counts those.
    pub fn breakers(&self, scope: &'static str, open: usize, half_open: usize) {
        for (state, count) in [("open", open), ("half_open", half_open)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let states = &self.summaries.states;
            states.with_label_values(&[scope, state]).set(count);
        }
    }

    /// A request waited for a summary.
    pub fn turn_delayed(&self) {
        self.summaries.delayed.inc();
    }
}
