//! The configuration: one validated value, made once at the start.
//!
//! [`load`] puts it together from flags, environment, file and defaults and
//! reports every mistake at once. Nothing after it validates again: a
//! [`Config`] that exists is one that can be served.
//!
//! `keys` describes every key once; file, environment, flags and printing all
//! go through it. To add a key: a field with its default in a section, a line
//! in `keys`, a paragraph in `config/longhaul.toml`. The tests find the rest.

mod address;
mod choice;
mod compaction;
mod environment;
mod file;
mod given;
mod keys;
mod kind;
mod load;
mod model_name;
pub mod models;
mod names;
mod nearest;
mod path;
mod price;
mod price_kind;
mod print;
mod problem;
mod ratio;
mod rules;
mod secret;
mod serving;
mod summarizer;
mod unit;

pub use address::{BadAddress, Listen, Upstream};
pub use choice::{
    Breakpoints, Choice, LogFormat, LogLevel, Mode, RecallMcp, SplitBy, Style, SummarizerMode,
    Threads,
};
pub use compaction::{Cache, Clamp, Clear, Pin, Policy, Split, Trim, TrimTool, Window};
pub use load::{Flags, Loaded, Origins, Sources, load};
pub use models::{Model, Models};
pub use names::{BadName, PostgresUrl, StoreUrl, TenantBy, VariableName};
pub use price::{Price, PriceStep, Prices, WrittenPrices};
pub use problem::{Mistake, Problem, Problems, Source};
pub use ratio::Ratio;
pub use serving::{Admin, Journal, Limits, Log, Recall, Store, Tenant, Tls};
pub use summarizer::{Breaker, Summarizer};

use std::path::PathBuf;

/// The whole configuration, valid and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// Where requests go.
    pub upstream: Upstream,
    /// Where files are kept. [`load`] resolves it; in the defaults it is empty.
    pub data_dir: PathBuf,
    /// Worker threads; none: one per core.
    pub workers: Option<usize>,
    /// What happens to requests that open a thread held by the server.
    pub threads: Threads,
    /// Server-side edits the upstream supports; none: found out by asking.
    pub upstream_features: Option<Vec<String>>,
    /// `[store]`.
    pub store: Store,
    /// `[window]`.
    pub window: Window,
    /// `[models.*]` over the built-in table.
    pub models: Models,
    /// `[policy]`.
    pub policy: Policy,
    /// `[split]`.
    pub split: Split,
    /// `[clear]`.
    pub clear: Clear,
    /// `[trim]`.
    pub trim: Trim,
    /// `[summarizer]`.
    pub summarizer: Summarizer,
    /// `[pin]`.
    pub pin: Pin,
    /// `[breaker]`.
    pub breaker: Breaker,
    /// `[cache]`.
    pub cache: Cache,
    /// `[journal]`.
    pub journal: Journal,
    /// `[recall]`.
    pub recall: Recall,
    /// `[tenant]`.
    pub tenant: Tenant,
    /// `[limits]`.
    pub limits: Limits,
    /// `[admin]`.
    pub admin: Admin,
    /// `[tls]`.
    pub tls: Tls,
    /// `[log]`.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::new("127.0.0.1", 4180),
            upstream: Upstream::anthropic(),
            data_dir: PathBuf::new(),
            workers: None,
            threads: Threads::Decline,
            upstream_features: None,
            store: Store::default(),
            window: Window::default(),
            models: Models::default(),
            policy: Policy::default(),
            split: Split::default(),
            clear: Clear::default(),
            trim: Trim::default(),
            summarizer: Summarizer::default(),
            pin: Pin::default(),
            breaker: Breaker::default(),
            cache: Cache::default(),
            journal: Journal::default(),
            recall: Recall::default(),
            tenant: Tenant::default(),
            limits: Limits::default(),
            admin: Admin::default(),
            tls: Tls::default(),
            log: Log::default(),
        }
    }
}
