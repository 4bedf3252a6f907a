//! Every key of the configuration, once: its path, what it accepts and the
//! field it sets.
//!
//! The file, the environment, the flags, `check` and the tests of the
//! documented file all go through this table; a key that is not here does not
//! exist. Defaults are those of the sections' `Default`. In a path `*` stands
//! for a name of the user's: a model or a tool.

use super::Config;
use super::address::{Listen, Upstream};
use super::choice::{
    Aim, Breakpoints, LogFormat, LogLevel, Mode, RecallMcp, SplitBy, Style, SummarizerMode, Threads,
};
use super::kind::{Absent, Between, Bytes, Count, Dollars, FilePath, Form, Kind, Maybe};
use super::kind::{OneOf, Share, Steps, Switch, Text, Time, Words};
use super::names::{StoreUrl, TenantBy, VariableName};
use super::ratio::Ratio;
use super::unit::{DAY, GIB, HOUR, KIB, MIB, MILLISECOND, SECOND};
use std::marker::PhantomData;
use std::time::Duration;
use toml::Value;

/// One key.
pub(super) struct Key {
    /// Where it stands, such as `limits.drain` or `models.*.window`.
    pub path: &'static str,
    /// What is accepted, after "expected".
    pub accepts: fn() -> String,
    /// Sets the field; the text is the name that `*` stands for.
    pub read: fn(&mut Config, &str, &Value) -> Option<()>,
    /// The field's value; nothing where a named entry does not set it.
    pub write: fn(&Config, &str) -> Option<Value>,
}

macro_rules! key {
    ($first:ident $(. $rest:ident)*, $kind:expr) => {
        Key {
            path: concat!(stringify!($first) $(, ".", stringify!($rest))*),
            accepts: || $kind.accepts(),
            read: |config, _, given| {
                config.$first $(.$rest)* = $kind.read(given)?;
                Some(())
            },
            write: |config, _| Some($kind.write(&config.$first $(.$rest)*)),
        }
    };
}

macro_rules! model_key {
    ($first:ident $(. $rest:ident)*, $kind:expr) => {
        Key {
            path: concat!("models.*.", stringify!($first) $(, ".", stringify!($rest))*),
            accepts: || $kind.accepts(),
            read: |config, name, given| {
                let value = $kind.read(given)?;
                config.models.entry(name).$first $(.$rest)* = Some(value);
                Some(())
            },
            write: |config, name| {
                let entry = config.models.written(name)?;
                entry.$first $(.$rest)*.as_ref().map(|value| $kind.write(value))
            },
        }
    };
}

macro_rules! tool_key {
    ($field:ident, $kind:expr) => {
        Key {
            path: concat!("trim.tools.*.", stringify!($field)),
            accepts: || $kind.accepts(),
            read: |config, name, given| {
                let value = $kind.read(given)?;
                config.trim.tools.entry(name.to_owned()).or_default().$field = value;
                Some(())
            },
            write: |config, name| {
                let tool = config.trim.tools.get(name)?;
                Some($kind.write(&tool.$field))
            },
        }
    };
}

const fn choice<E>() -> OneOf<E> {
    OneOf(PhantomData)
}

const fn form<T>(accepts: &'static str) -> Form<T> {
    Form(accepts, PhantomData)
}

const fn tokens() -> Count<u64> {
    Count(1_000, 1_000_000_000)
}

const fn share() -> Share {
    Share(Ratio::ZERO, Ratio::ONE)
}

const ADDRESS: &str = "HOST:PORT such as \"127.0.0.1:4180\" or \"[::1]:4180\"";
const URL: &str = "an http:// or https:// URL without user, query or fragment";
const VARIABLE: &str = "the name of an environment variable, not its value";
const FILE: &str = "the path of a file";
const MODEL: &str = "the name of a model";
const TENANT: &str = "\"auto\", \"credential\", \"header:NAME\" or \"none\"";
const NO_TIME: Duration = Duration::ZERO;
const MINUTE: Duration = Duration::from_mins(1);
const TEN_YEARS: Duration = Duration::from_hours(3_650 * 24);
const TIB: u64 = 1_024 * GIB;

/// Every key, in the order in which they are printed: the keys of a section
/// before its subsections, because TOML does not let one be opened twice.
pub(super) static KEYS: &[Key] = &[
    key!(listen, form::<Listen>(ADDRESS)),
    key!(upstream, form::<Upstream>(URL)),
    key!(data_dir, FilePath("the path of a folder")),
    key!(workers, Maybe(Absent::Zero, Count(1, 1_024))),
    key!(threads, choice::<Threads>()),
    key!(
        upstream_features,
        Maybe(Absent::Auto, Words("server-side edits"))
    ),
    key!(
        store.url,
        form::<StoreUrl>("\"sqlite\", \"memory\" or a postgres:// URL")
    ),
    key!(store.timeout, Time(MILLISECOND, MINUTE)),
    key!(store.pool, Count(1, 1_000)),
    key!(store.retention, Time(HOUR, TEN_YEARS)),
    key!(window.default, tokens()),
    key!(window.margin, Share(Ratio::ZERO, Ratio::percent(50))),
    key!(window.budget, Maybe(Absent::Zero, tokens())),
    key!(window.bytes, Bytes(KIB, GIB)),
    model_key!(window, tokens()),
    model_key!(budget, Count(0, 1_000_000_000)),
    model_key!(binds_thinking, Switch),
    model_key!(min_cacheable, Count(0, 1_000_000)),
    model_key!(price_steps, Steps(tokens())),
    model_key!(prices.input, Dollars),
    model_key!(prices.write_5m, Dollars),
    model_key!(prices.write_1h, Dollars),
    model_key!(prices.read, Dollars),
    model_key!(prices.output, Dollars),
    key!(policy.mode, choice::<Mode>()),
    key!(policy.aim, choice::<Aim>()),
    key!(policy.keep_tokens, Maybe(Absent::Zero, tokens())),
    key!(policy.clear_at, Maybe(Absent::Zero, share())),
    key!(policy.summarize_at, Maybe(Absent::Zero, share())),
    key!(policy.hard_at, share()),
    key!(policy.floor, share()),
    key!(policy.style, choice::<Style>()),
    key!(policy.tail_messages, Count(1, 100_000)),
    key!(policy.split, choice::<SplitBy>()),
    key!(policy.max_segments, Count(1, 1_000)),
    key!(policy.horizon, Maybe(Absent::Auto, Count(1, 100_000))),
    key!(policy.thrash_limit, Count(1, 1_000)),
    key!(split.recent_turns, Count(1, 100_000)),
    key!(split.turn_budget, share()),
    key!(split.turn_clamp, Between(0, 1_000_000_000)),
    key!(split.token_fraction, share()),
    key!(split.user_tokens, Count(0, 1_000_000_000)),
    key!(clear.enabled, Switch),
    key!(clear.keep_tool_uses, Count(0, 100_000)),
    key!(clear.exclude_tools, Words("tool names")),
    key!(clear.clear_inputs, Switch),
    key!(clear.supersede, Switch),
    key!(clear.at_least, Count(0, 1_000_000_000)),
    key!(clear.digest, Maybe(Absent::Auto, Count(0, 8_000))),
    key!(trim.enabled, Switch),
    key!(trim.max_chars, Count(100, 1_000_000_000)),
    tool_key!(head, Count(0, 1_000_000_000)),
    tool_key!(tail, Count(0, 1_000_000_000)),
    key!(summarizer.mode, choice::<SummarizerMode>()),
    key!(summarizer.model, Text(MODEL)),
    key!(summarizer.fallback, Maybe(Absent::Empty, Text(MODEL))),
    key!(
        summarizer.upstream,
        Maybe(Absent::Empty, form::<Upstream>(URL))
    ),
    key!(
        summarizer.api_key_env,
        Maybe(Absent::Empty, form::<VariableName>(VARIABLE))
    ),
    key!(summarizer.window, Maybe(Absent::Zero, tokens())),
    key!(summarizer.max_tokens, Count(256, 1_000_000)),
    key!(summarizer.deadline, Time(NO_TIME, HOUR)),
    key!(summarizer.timeout, Time(SECOND, HOUR)),
    key!(summarizer.parallel, Count(1, 64)),
    key!(summarizer.instructions, form::<String>("a text")),
    key!(summarizer.replace_prompt, Switch),
    key!(pin.user_tokens, Count(0, 1_000_000_000)),
    key!(pin.files, Count(0, 100_000)),
    key!(pin.errors, Count(0, 1_000)),
    key!(breaker.max_failures, Count(1, 1_000)),
    key!(breaker.cooldown_turns, Count(1, 100_000)),
    key!(breaker.summarizer_cooldown, Time(NO_TIME, DAY)),
    key!(cache.ttl, Maybe(Absent::Auto, Time(SECOND, DAY))),
    key!(cache.margin, Time(NO_TIME, DAY)),
    key!(cache.breakpoints, choice::<Breakpoints>()),
    key!(journal.enabled, Switch),
    key!(journal.live_turns, Count(1, 100_000)),
    key!(journal.retention, Time(HOUR, TEN_YEARS)),
    key!(journal.max_bytes, Bytes(MIB, 1_024 * TIB)),
    key!(recall.mcp, choice::<RecallMcp>()),
    key!(tenant.by, form::<TenantBy>(TENANT)),
    key!(limits.body_bytes, Bytes(KIB, 4 * GIB)),
    key!(limits.buffered_bytes, Bytes(KIB, 1_024 * TIB)),
    key!(limits.buffer_wait, Time(NO_TIME, HOUR)),
    key!(limits.connections, Count(1, 10_000_000)),
    key!(limits.idle_connections, Count(0, 100_000)),
    key!(limits.header_timeout, Time(MILLISECOND, DAY)),
    key!(limits.body_idle, Time(MILLISECOND, DAY)),
    key!(limits.drain, Time(NO_TIME, DAY)),
    key!(limits.upstream_connect, Time(MILLISECOND, HOUR)),
    key!(limits.upstream_idle, Time(MILLISECOND, DAY)),
    key!(admin.listen, Maybe(Absent::Empty, form::<Listen>(ADDRESS))),
    key!(
        admin.token_env,
        Maybe(Absent::Empty, form::<VariableName>(VARIABLE))
    ),
    key!(admin.metrics_open, Switch),
    key!(tls.cert, Maybe(Absent::Empty, FilePath(FILE))),
    key!(tls.key, Maybe(Absent::Empty, FilePath(FILE))),
    key!(log.format, choice::<LogFormat>()),
    key!(log.level, choice::<LogLevel>()),
];
