//! One database file: how it is connected to, and what its errors mean.
//!
//! Three errors matter beyond "it failed". Busy means that another process is
//! writing and the wait was not worth its while. Damage means that the content
//! cannot be trusted: it is noted beside the file, so that the next start
//! looks closer than it otherwise would. Anything else is only passed on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, Error};

use crate::store::StoreError;

/// SQLite keeps this much of its log on disk after writing it back.
const LOG_BYTES: &str = "16777216";

/// What a connection may keep in memory, in negative kibibytes: the upper levels
/// of every index of a large file, and the leaves in use.
const CACHE: &str = "-8192";

/// How long collecting waits for one step: nobody waits for it in turn.
pub(super) const UNHURRIED: Duration = Duration::from_mins(1);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Writing what must survive a power cut.
    Durable,
    /// Writing what may be lost in one.
    Plain,
    /// Reading.
    Reading,
}

/// A file that has been checked and has the newest format.
pub(super) struct Database {
    path: PathBuf,
    timeout: Duration,
    suspected: AtomicBool,
    closed: AtomicBool,
}

/// What an error says about the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Somebody else is writing.
    Busy,
    /// The content is not what it should be.
    Damage,
    /// A check was stopped because it took too long.
    Interrupted,
    /// An SQL statement does not fit the tables.
    Mismatch,
    /// The file cannot be read or written.
    Unusable,
}

/// What an error says about the file.
pub(super) fn nature(error: &Error) -> Nature {
    let Error::Database(error) = error else {
        return Nature::Unusable;
    };
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    // The low byte is the error, the rest says more about where.
    match code.map(|code| code & 0xff) {
        Some(1) => Nature::Mismatch,
        Some(5 | 6) => Nature::Busy,
        Some(9) => Nature::Interrupted,
        Some(11 | 26) => Nature::Damage,
        _ => Nature::Unusable,
    }
}

/// The note that a file was found damaged while it was in use.
pub(super) fn suspicion(path: &Path) -> PathBuf {
    with_suffix(path, ".suspect")
}

/// A file beside another one.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Database {
    pub(super) fn new(path: PathBuf, timeout: Duration) -> Self {
        Self {
            path,
            timeout,
            suspected: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// From now on there are no new connections.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A connection, on a thread of its own.
    pub(super) async fn connect(&self, purpose: Purpose) -> Result<SqliteConnection, Error> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::PoolClosed);
        }
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .busy_timeout(self.timeout)
            .pragma("cache_size", CACHE)
            .pragma("cell_size_check", "ON")
            .pragma("journal_size_limit", LOG_BYTES)
            .disable_statement_logging();
        let options = match purpose {
            Purpose::Durable => options.synchronous(SqliteSynchronous::Full),
            Purpose::Plain => options.synchronous(SqliteSynchronous::Normal),
            Purpose::Reading => options
                .synchronous(SqliteSynchronous::Normal)
                .pragma("query_only", "ON"),
        };
        options.connect().await
    }

    /// The error as the store's own, noting it if it speaks of damage.
    pub(super) fn failure(&self, error: &Error) -> StoreError {
        if matches!(error, Error::PoolClosed) {
            return StoreError::Failed("the store is closed".to_owned());
        }
        match nature(error) {
            Nature::Busy => StoreError::Slow(self.timeout),
            Nature::Damage => self.damaged(&error.to_string()),
            _ => StoreError::Failed(error.to_string()),
        }
    }

    /// Notes that something read from the file cannot be right.
    pub(super) fn damaged(&self, why: &str) -> StoreError {
        if !self.suspected.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "{} is damaged ({why}); it is checked at the next start",
                self.path.display()
            );
            // Without the note the next start still makes its usual check.
            let _ = std::fs::write(suspicion(&self.path), why);
        }
        StoreError::Failed(why.to_owned())
    }
}
