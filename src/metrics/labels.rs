//! The words that labels can be, and every series of them begun at zero.
//!
//! Prometheus sees a counter rise only from a value that it has seen before: a
//! series that first appears with a one has never risen, so that the first
//! truncation of a process would ring no bell. And a panel without a series is
//! empty, where nothing is the good news. So what has closed labels is there
//! from the start. Models and statuses appear as they come; they are bounded by
//! a table each.

use prometheus::core::{MetricVec, MetricVecBuilder};

/// What a pass did.
pub const KINDS: &[&str] = &["clear", "trim", "summary", "truncate", "journal"];
/// What started it.
pub const TRIGGERS: &[&str] = &[
    "budget",
    "structural",
    "temporal",
    "reactive",
    "manual",
    "heal",
];
/// How it ended.
pub const OUTCOMES: &[&str] = &["committed", "failed", "abandoned"];
/// Why a prefix was not read again.
pub const CAUSES: &[&str] = &["compaction", "client_edit", "ttl", "unexplained"];
/// Whether a prediction came true.
pub const PREDICTIONS: &[&str] = &["right", "wrong"];
/// How a summary is asked for.
pub const MODES: &[&str] = &["fork", "model", "native"];
/// How that ends well; otherwise it ends with a reason.
pub const FINISHED: &str = "finished";
/// Why an attempt at a summary failed.
pub const REASONS: &[&str] = &[
    "upstream",
    "timeout",
    "malformed",
    "empty_fields",
    "context_exceeded",
    "not_verbatim",
    "still_too_large",
];
/// Why the admin surface refuses a request.
pub const REFUSALS: &[&str] = &["off", "no_token", "wrong_token", "host", "origin"];
/// Whose breaker it is.
pub const SCOPES: &[&str] = &["session", "summarizer"];
/// The states that are counted; closed is where all begin.
pub const STATES: &[&str] = &["open", "half_open"];
/// The changes of state that there are.
pub const TRANSITIONS: &[(&str, &str)] = &[
    ("closed", "open"),
    ("open", "half_open"),
    ("open", "closed"),
    ("half_open", "open"),
    ("half_open", "closed"),
];
/// How a request went that was sent again.
pub const RETRIES: &[&str] = &["retried", "failed"];
/// Who left thinking out.
pub const DROPS: &[&str] = &["view", "upstream"];
/// Where we failed and the request went on.
pub const STAGES: &[&str] = &["store", "overlay", "render", "journal", "bug"];
/// Sizes of a conversation.
pub const SIZES: &[&str] = &["original", "sent"];
/// Parts of the time that upstream takes.
pub const PHASES: &[&str] = &["first_byte", "total"];
/// What the store is asked for.
pub const OPERATIONS: &[&str] = &[
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
];

/// Begins a series for each combination of these words.
pub fn begin<T: MetricVecBuilder>(series: &MetricVec<T>, sets: &[&[&str]]) {
    begin_after(series, &[], sets);
}

fn begin_after<T: MetricVecBuilder>(series: &MetricVec<T>, given: &[&str], sets: &[&[&str]]) {
    let Some((words, rest)) = sets.split_first() else {
        series.with_label_values(given);
        return;
    };
    for word in *words {
        begin_after(series, &[given, &[*word]].concat(), rest);
    }
}
