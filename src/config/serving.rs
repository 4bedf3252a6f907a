//! The sections about serving: connections, storage, the admin surface, logs.
//!
//! Plain values with their defaults. Ranges stand in `keys`, rules between
//! keys in `rules`; a section found here has passed both.

use super::address::Listen;
use super::choice::{LogFormat, LogLevel, RecallMcp};
use super::names::{StoreUrl, TenantBy, VariableName};
use super::unit::{DAY, GIB, MIB};
use std::path::PathBuf;
use std::time::Duration;

/// `[store]`: where state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Which store.
    pub url: StoreUrl,
    /// Longest wait on the path of a request.
    pub timeout: Duration,
    /// Connections to a database server.
    pub pool: u32,
    /// How long marks and overlays live without use.
    pub retention: Duration,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: StoreUrl::Sqlite,
            timeout: Duration::from_millis(250),
            pool: 16,
            retention: DAY * 30,
        }
    }
}

/// `[limits]`: how much of everything at once, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body, decoded.
    pub body_bytes: u64,
    /// All bodies in memory together.
    pub buffered_bytes: u64,
    /// How long a request waits for room under `buffered_bytes`.
    pub buffer_wait: Duration,
    /// Client connections at once.
    pub connections: usize,
    /// Connections to upstream kept open while idle, per worker.
    pub idle_connections: usize,
    /// Time for a request's head; also how long an idle client stays connected.
    pub header_timeout: Duration,
    /// Longest silence inside a request body.
    pub body_idle: Duration,
    /// How long running requests may take to finish at shutdown.
    pub drain: Duration,
    /// Time to connect to upstream.
    pub upstream_connect: Duration,
    /// Longest silence of upstream.
    pub upstream_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * MIB,
            buffered_bytes: 2 * GIB,
            buffer_wait: Duration::from_secs(5),
            connections: 10_000,
            idle_connections: 64,
            header_timeout: Duration::from_secs(75),
            body_idle: Duration::from_mins(1),
            drain: Duration::from_secs(30),
            upstream_connect: Duration::from_secs(10),
            upstream_idle: Duration::from_mins(10),
        }
    }
}

/// `[journal]`: the record of what views left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// Whether it is kept at all.
    pub enabled: bool,
    /// Turns kept in the view by the journal style.
    pub live_turns: usize,
    /// How long entries are kept.
    pub retention: Duration,
    /// How large it may grow.
    pub max_bytes: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            enabled: true,
            live_turns: 12,
            retention: DAY * 30,
            max_bytes: 2 * GIB,
        }
    }
}

/// `[recall]`: getting back what a view left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recall {
    /// Whether the model is told of the recall tools.
    pub mcp: RecallMcp,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            mcp: RecallMcp::Auto,
        }
    }
}

/// `[tenant]`: whose conversations are whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// What tells tenants apart.
    pub by: TenantBy,
}

impl Default for Tenant {
    fn default() -> Self {
        Self { by: TenantBy::Auto }
    }
}

/// `[admin]`: metrics, page, MCP and admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// An address of its own; none: served beside the proxy.
    pub listen: Option<Listen>,
    /// The variable that holds the admin token.
    pub token_env: Option<VariableName>,
    /// Whether `/metrics` needs no token.
    pub metrics_open: bool,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: None,
            token_env: "LONGHAUL_ADMIN_TOKEN".parse().ok(),
            metrics_open: true,
        }
    }
}

/// `[tls]`: serving HTTPS; both files or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain, PEM.
    pub cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
}

/// `[log]`: what goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The form of a line.
    pub format: LogFormat,
    /// The least important events still written.
    pub level: LogLevel,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Auto,
            level: LogLevel::Info,
        }
    }
}
