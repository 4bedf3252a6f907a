//! Every metric: its name, its labels, its help text, once.
//!
//! A label never carries what a user or a model wrote: routes and phases are
//! closed sets, a status is one of the known codes or its class, a model is an
//! entry of the model table or `other`. So the number of series is bounded
//! whatever passes.

mod journal;
mod labels;
mod passes;
mod summaries;
mod views;

use std::time::Duration;

use http::StatusCode;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::wire::reply::Usage;
use journal::JournalMetrics;
use passes::PassMetrics;
use summaries::SummaryMetrics;
use views::ViewMetrics;

/// From a few microseconds, which a small body costs, to a stalled store.
const OVERHEAD_BUCKETS: &[f64] = &[
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 1.0, 5.0, 30.0,
];
/// From a local answer to ten minutes of thought.
const UPSTREAM_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0,
];
/// The status codes that the API and this proxy are known to give.
const STATUSES: &[u16] = &[
    200, 201, 202, 204, 206, 301, 302, 304, 307, 308, 400, 401, 402, 403, 404, 405, 408, 409, 411,
    413, 414, 415, 417, 421, 422, 429, 431, 499, 500, 501, 502, 503, 504, 529,
];

/// All metrics of one process.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    overhead: Histogram,
    upstream: HistogramVec,
    tokens: IntCounterVec,
    passes: PassMetrics,
    summaries: SummaryMetrics,
    views: ViewMetrics,
    journal: JournalMetrics,
    sessions: IntGauge,
    admin_refused: IntCounterVec,
    /// Requests whose response has not ended.
    pub in_flight: IntGauge,
    /// Bytes of request bodies in memory.
    pub buffered_bytes: IntGauge,
    /// Open client connections.
    pub connections: IntGauge,
}

/// A part of the time that upstream takes.
#[derive(Debug, Clone, Copy)]
pub enum Phase {
    /// Until the head of the answer.
    FirstByte,
    /// Until its end.
    Total,
}

impl Metrics {
    /// Registers every metric.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new_custom(Some("longhaul".to_owned()), None)?;
        let metrics = Self {
            requests: IntCounterVec::new(
                Opts::new("requests_total", "Requests answered, by route and status."),
                &["route", "status"],
            )?,
            overhead: Histogram::with_opts(
                HistogramOpts::new(
                    "request_overhead_seconds",
                    "Time Longhaul itself added before a request went upstream.",
                )
                .buckets(OVERHEAD_BUCKETS.to_vec()),
            )?,
            upstream: HistogramVec::new(
                HistogramOpts::new(
                    "upstream_seconds",
                    "Time upstream took: until the first byte of its answer, and in total.",
                )
                .buckets(UPSTREAM_BUCKETS.to_vec()),
                &["phase"],
            )?,
            tokens: IntCounterVec::new(
                Opts::new(
                    "upstream_tokens_total",
                    "Tokens that upstream reported, by model and class.",
                ),
                &["model", "class"],
            )?,
            passes: PassMetrics::new(&registry)?,
            summaries: SummaryMetrics::new(&registry)?,
            views: ViewMetrics::new(&registry)?,
            journal: JournalMetrics::new(&registry)?,
            sessions: IntGauge::new(
                "sessions_active",
                "Sessions that sent a request within the last ten minutes.",
            )?,
            admin_refused: IntCounterVec::new(
                Opts::new(
                    "admin_refused_total",
                    "Requests that the admin surface refused, by reason.",
                ),
                &["reason"],
            )?,
            in_flight: IntGauge::new(
                "requests_in_flight",
                "Requests whose response has not ended.",
            )?,
            buffered_bytes: IntGauge::new(
                "buffered_bytes",
                "Bytes of request bodies held in memory.",
            )?,
            connections: IntGauge::new("client_connections", "Open client connections.")?,
            registry,
        };
        let registry = &metrics.registry;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.overhead.clone()))?;
        registry.register(Box::new(metrics.upstream.clone()))?;
        registry.register(Box::new(metrics.tokens.clone()))?;
        registry.register(Box::new(metrics.sessions.clone()))?;
        registry.register(Box::new(metrics.admin_refused.clone()))?;
        registry.register(Box::new(metrics.in_flight.clone()))?;
        registry.register(Box::new(metrics.buffered_bytes.clone()))?;
        registry.register(Box::new(metrics.connections.clone()))?;
        labels::begin(&metrics.upstream, &[labels::PHASES]);
        labels::begin(&metrics.admin_refused, &[labels::REFUSALS]);
        Ok(metrics)
    }

    /// Counts an answered request.
    pub fn answered(&self, route: &'static str, status: StatusCode) {
        let code = status.as_u16();
        let known = STATUSES.contains(&code);
        let label = match code {
            _ if known => status.as_str(),
            100..=199 => "1xx",
            200..=299 => "2xx",
            300..=399 => "3xx",
            400..=499 => "4xx",
            _ => "5xx",
        };
        self.requests.with_label_values(&[route, label]).inc();
    }

    /// Records the time that was added before a request went upstream.
    pub fn overhead(&self, time: Duration) {
        self.overhead.observe(time.as_secs_f64());
    }

    /// Records the time that upstream took.
    pub fn upstream(&self, phase: Phase, time: Duration) {
        let phase = match phase {
            Phase::FirstByte => "first_byte",
            Phase::Total => "total",
        };
        self.upstream
            .with_label_values(&[phase])
            .observe(time.as_secs_f64());
    }

    /// Counts the tokens of one exchange. `model` must be a label of the model
    /// table, never a name as it came over the wire.
    pub fn tokens(&self, model: &str, usage: &Usage) {
        let classes = [
            ("input", usage.input),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
        ];
        for (class, count) in classes {
            if let Some(count) = count {
                self.tokens.with_label_values(&[model, class]).inc_by(count);
            }
        }
    }

    /// Counts a request that the admin surface refused.
    pub fn admin_refused(&self, reason: &'static str) {
        self.admin_refused.with_label_values(&[reason]).inc();
    }

    /// So many sessions are active.
    pub fn sessions_active(&self, count: usize) {
        self.sessions.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// The exposition text.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_nobody_knows_is_counted_by_its_class() {
        let metrics = Metrics::new().unwrap();
        for code in 100..1000 {
            metrics.answered("other", StatusCode::from_u16(code).unwrap());
        }
        let text = metrics.render().unwrap();
        let series = text
            .lines()
            .filter(|line| line.starts_with("longhaul_requests_total{"))
            .count();
        assert_eq!(series, STATUSES.len() + 5);
        assert!(text.contains("longhaul_requests_total{route=\"other\",status=\"529\"} 1"));
        assert!(text.contains("longhaul_requests_total{route=\"other\",status=\"4xx\"}"));
    }

    #[test]
    fn tokens_that_were_not_reported_are_not_counted() {
        let metrics = Metrics::new().unwrap();
        let usage = Usage {
            input: Some(3),
            output: Some(5),
            ..Usage::default()
        };
        metrics.tokens("claude-opus-5-5", &usage);
        let text = metrics.render().unwrap();
        assert!(text.contains(
            "longhaul_upstream_tokens_total{class=\"output\",model=\"claude-opus-5-5\"} 5"
        ));
        assert!(!text.contains("class=\"cache_read\""));
    }
}
