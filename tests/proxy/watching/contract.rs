//! Every metric that others rely on: its name, its kind, its labels, and all the
//! values that a label can have, whatever passes.

use std::collections::BTreeSet;

use super::exposition::{families, page};
use super::played::PAGE;
use crate::support::{Proxy, Tap};
use crate::views::cast::response;

/// What a label can say.
#[derive(Clone, Copy)]
pub enum Values {
    /// One of these.
    Of(&'static [&'static str]),
    /// A model of the table, or `other`.
    Model,
    /// A status of the API's, or its class.
    Status,
}
use Values::{Model, Of, Status};

const KIND: Values = Of(&["clear", "trim", "summary", "truncate", "journal"]);
const TRIGGER: Values = Of(&[
    "budget",
    "structural",
    "temporal",
    "reactive",
    "manual",
    "heal",
]);
const OUTCOME: Values = Of(&["committed", "failed", "abandoned"]);
const SCOPE: Values = Of(&["session", "summarizer"]);
const PHASE: Values = Of(&["closed", "open", "half_open"]);
const REASON: Values = Of(&[
    "upstream",
    "timeout",
    "malformed",
    "empty_fields",
    "context_exceeded",
    "not_verbatim",
    "still_too_large",
]);
const FLOWN: Values = Of(&[
    "finished",
    "upstream",
    "timeout",
    "malformed",
    "empty_fields",
    "context_exceeded",
    "not_verbatim",
    "still_too_large",
]);
const OPERATION: Values = Of(&[
    "append",
    "archive",
    "branch",
    "collect",
    "commit",
    "learn",
    "learned",
    "marks",
    "marks_by_view",
    "overlay",
    "overlays_of",
    "put_segment",
    "record",
    "segments",
]);

/// Name, kind, labels.
type Metric = (
    &'static str,
    &'static str,
    &'static [(&'static str, Values)],
);

/// A change here breaks somebody's dashboard; adding is fine.
pub const METRICS: &[Metric] = &[
    (
        "requests_total",
        "counter",
        &[
            ("route", Of(&["messages", "count_tokens", "other", "admin"])),
            ("status", Status),
        ],
    ),
    ("request_overhead_seconds", "histogram", &[]),
    (
        "upstream_seconds",
        "histogram",
        &[("phase", Of(&["first_byte", "total"]))],
    ),
    (
        "upstream_tokens_total",
        "counter",
        &[
            ("model", Model),
            (
                "class",
                Of(&["input", "cache_read", "cache_write", "output"]),
            ),
        ],
    ),
    (
        "passes_total",
        "counter",
        &[("trigger", TRIGGER), ("outcome", OUTCOME)],
    ),
    (
        "compactions_total",
        "counter",
        &[("kind", KIND), ("trigger", TRIGGER), ("outcome", OUTCOME)],
    ),
    ("tokens_removed_total", "counter", &[("kind", KIND)]),
    ("compression_ratio", "histogram", &[("kind", KIND)]),
    (
        "summarizer_seconds",
        "histogram",
        &[
            ("mode", Of(&["fork", "model", "native"])),
            ("outcome", FLOWN),
        ],
    ),
    (
        "summarizer_failures_total",
        "counter",
        &[("reason", REASON)],
    ),
    ("summarizer_cost_usd_total", "counter", &[("model", Model)]),
    ("saved_usd", "gauge", &[("model", Model)]),
    ("spent_usd_total", "counter", &[("model", Model)]),
    ("without_usd_total", "counter", &[("model", Model)]),
    (
        "breaker_state",
        "gauge",
        &[("scope", SCOPE), ("state", PHASE)],
    ),
    (
        "breaker_transitions_total",
        "counter",
        &[("scope", SCOPE), ("from", PHASE), ("to", PHASE)],
    ),
    (
        "reactive_retries_total",
        "counter",
        &[("outcome", Of(&["retried", "failed"]))],
    ),
    (
        "prefix_breaks_total",
        "counter",
        &[(
            "cause",
            Of(&["compaction", "client_edit", "ttl", "unexplained"]),
        )],
    ),
    (
        "cold_predictions_total",
        "counter",
        &[("outcome", Of(&["right", "wrong"]))],
    ),
    (
        "thinking_dropped_total",
        "counter",
        &[("how", Of(&["view", "upstream"]))],
    ),
    ("thrash_total", "counter", &[]),
    ("turns_delayed_total", "counter", &[]),
    ("rereads_total", "counter", &[]),
    ("cache_read_ratio", "histogram", &[]),
    ("pass_reckoning_ratio", "histogram", &[]),
    ("measure_error_ratio", "histogram", &[]),
    (
        "view_tokens",
        "histogram",
        &[("stage", Of(&["original", "sent"]))],
    ),
    ("sessions_active", "gauge", &[]),
    ("journal_bytes", "gauge", &[]),
    ("journal_appends_total", "counter", &[]),
    ("recalls_total", "counter", &[]),
    ("handoffs_due_total", "counter", &[]),
    ("unrecorded_total", "counter", &[]),
    ("store_seconds", "histogram", &[("op", OPERATION)]),
    ("store_errors_total", "counter", &[("op", OPERATION)]),
    ("store_up", "gauge", &[]),
    (
        "fail_open_total",
        "counter",
        &[(
            "stage",
            Of(&["store", "overlay", "render", "journal", "bug"]),
        )],
    ),
    (
        "admin_refused_total",
        "counter",
        &[(
            "reason",
            Of(&["off", "no_token", "wrong_token", "host", "origin"]),
        )],
    ),
    ("requests_in_flight", "gauge", &[]),
    ("buffered_bytes", "gauge", &[]),
    ("client_connections", "gauge", &[]),
];

impl Values {
    /// Whether a label can have this value.
    pub fn allow(self, value: &str) -> bool {
        match self {
            Of(words) => words.contains(&value),
            Model => value == "other" || known_models().contains(value),
            Status => {
                let (class, rest) = value.split_at(1);
                "12345".contains(class)
                    && (rest == "xx" || rest.parse::<u8>().is_ok_and(|rest| rest < 100))
            }
        }
    }
}

fn known_models() -> BTreeSet<&'static str> {
    let table = include_str!("../../../config/models.toml");
    let names = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[models.\""));
    names.filter_map(|name| name.strip_suffix("\"]")).collect()
}

/// Asserts that a page holds nothing but what the table says.
#[track_caller]
fn assert_bounded(page: &str) {
    for (name, family) in families(page) {
        let bare = name.strip_prefix("longhaul_").expect("the prefix");
        let known = METRICS.iter().find(|(name, ..)| *name == bare);
        let (_, kind, labels) = known.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(family.kind, *kind, "{name}");
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        for label in family.labels() {
            let values = labels.iter().find(|(name, _)| *name == label);
            let (_, values) = values.unwrap_or_else(|| panic!("{name} has a label {label}"));
            for value in family.values(label) {
                assert!(values.allow(value), "{name} has {label}={value:?}");
            }
        }
        // Buckets aside, no metric may grow beyond what the table multiplies to.
        assert!(family.series.len() < 3_000, "{name}");
    }
}

#[test]
fn every_metric_of_the_contract_is_exported_with_its_labels_and_no_other() {
    let exported = families(&PAGE);
    for (name, _, labels) in METRICS {
        let family = exported.get(&format!("longhaul_{name}"));
        let family = family.unwrap_or_else(|| panic!("{name} is not exported"));
        let expected: BTreeSet<&str> = labels.iter().map(|(label, _)| *label).collect();
        assert_eq!(family.labels(), expected, "{name}");
    }
    assert_bounded(&PAGE);
}

/// Before anything has happened too: a counter that first appears with a one has
/// never risen, as Prometheus sees it.
#[test]
fn what_an_alert_looks_for_is_there_from_the_start() {
    let proxy = Proxy::before("http://127.0.0.1:9");
    let exported = families(&page(&proxy));
    let later = [
        "requests_total",
        "upstream_tokens_total",
        "saved_usd",
        "spent_usd_total",
        "without_usd_total",
        "summarizer_cost_usd_total",
    ];
    for (name, ..) in METRICS {
        let there = exported.contains_key(&format!("longhaul_{name}"));
        assert!(there || later.contains(name), "{name}");
    }
}

#[test]
fn no_label_takes_a_word_from_a_client_or_from_upstream() {
    let tap = Tap::start(|request| {
        let status = 200 + u16::try_from(request.body.len() % 400).unwrap();
        let body = format!(
            r#"{{"id":"m","type":"message","role":"assistant","model":"evil-{}","content":[{{"type":"tool_use","id":"t","name":"evil","input":{{}}}}],"stop_reason":"evil","usage":{{"input_tokens":5,"output_tokens":1}},"error":{{"type":"evil"}}}}"#,
            request.body.len()
        );
        response(status, "", body.as_bytes())
    });
    let proxy = Proxy::before(&tap.url());
    for number in 0..300 {
        let body = format!(
            r#"{{"model":"evil-{number}","max_tokens":5,"messages":[{{"role":"user","content":"{}"}}]}}"#,
            "x".repeat(number)
        );
        let path = ["/v1/messages", "/v1/messages/count_tokens", "/evil"][number % 3];
        let headers = format!(
            "x-api-key: evil-{number}\r\nx-longhaul-session: evil-{number}\r\nx-claude-code-session-id: evil-{number}\r\n"
        );
        proxy
            .client()
            .post(path, &headers, body.as_bytes())
            .answer();
    }
    let page = page(&proxy);
    assert!(!page.contains("evil"), "{page}");
    assert_bounded(&page);
}
