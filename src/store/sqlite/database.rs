//! One database file: how it is connected to, and what its errors mean.
//!
//! Four errors matter beyond "it failed". Busy means that another process is
//! writing and the wait was not worth its while. Damage means that the content
//! cannot be trusted: it is noted beside the file, so that the next start
//! looks closer than it otherwise would. Away means that the disk is full or
//! that the file cannot be written, for now. Anything else is only passed on.
//!
//! SQLite goes on writing to a file that was deleted, and nothing of that is
//! there after a restart. So the file's device and inode are compared with
//! those of its path before each write. A file that was deleted or replaced
//! counts as away until [`Database::use_file_at_path`]; connections of before
//! are then dropped, which is what the generation is for.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
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
    /// The file that connections are made to.
    in_use: Mutex<Option<FileId>>,
    /// Counts the files that were in use, one after the other.
    generation: AtomicU64,
}

/// The device and the inode of a file.
type FileId = (u64, u64);

fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
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
    /// The disk is full, or the file cannot be opened or written: that may pass.
    Away,
    /// Anything else.
    Unusable,
}

/// Kinds of SQLite's I/O error (10) that say nothing about writing: a page that
/// cannot be read, a file that is too short, no memory, a damaged file system.
const READ_ERRORS: [u32; 4] = [266, 522, 3_082, 8_458];

/// What an error says about the file.
pub(super) fn nature(error: &Error) -> Nature {
    let error = match error {
        Error::Database(error) => error,
        Error::Io(_) => return Nature::Away,
        _ => return Nature::Unusable,
    };
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    // The low byte is the error, the rest says more about where.
    match code.map(|code| code & 0xff) {
        Some(1) => Nature::Mismatch,
        Some(5 | 6) => Nature::Busy,
        // Read-only, full, cannot be opened.
        Some(8 | 13 | 14) => Nature::Away,
        Some(9) => Nature::Interrupted,
        Some(10) if !code.is_some_and(|code| READ_ERRORS.contains(&code)) => Nature::Away,
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
            in_use: Mutex::new(file_id(&path).ok()),
            path,
            timeout,
            suspected: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Counts the files that were in use: a connection of an earlier generation
    /// is a connection to another file.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Fails if the file in use was deleted or replaced.
    pub(super) fn check_in_place(&self) -> io::Result<()> {
        let in_use = *self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let found = file_id(&self.path)?;
        if in_use == Some(found) {
            return Ok(());
        }
        let why = "another file has taken its place";
        Err(io::Error::new(io::ErrorKind::NotFound, why))
    }

    /// From now on the file that is at the path is the one in use.
    pub(super) fn use_file_at_path(&self) -> io::Result<()> {
        let found = file_id(&self.path)?;
        *self.in_use.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        self.suspected.store(false, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// The file cannot be used, and may be again.
    pub(super) fn away(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Away(format!(
            "{}: {why}; is the disk full, or the data folder gone or read-only?",
            self.path.display()
        ))
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
        self.check_in_place()?;
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
            Nature::Away => self.away(error),
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

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::sqlite::SqliteConnection;

    const WIDE: Duration = Duration::from_secs(5);

    async fn made(folder: &Path) -> (PathBuf, SqliteConnection) {
        let path = folder.join("some.db");
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let make = sqlx::raw_sql("CREATE TABLE rows (row BLOB)");
        make.execute(&mut connection).await.unwrap();
        (path, connection)
    }

    async fn write(connection: &mut SqliteConnection) -> Error {
        let write = "INSERT INTO rows VALUES (randomblob(1000000))";
        let done = sqlx::raw_sql(write).execute(connection).await;
        done.unwrap_err()
    }

    #[tokio::test]
    async fn no_room_and_no_way_to_write_mean_that_the_file_is_away() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut connection) = made(folder.path()).await;
        let full = sqlx::raw_sql("PRAGMA max_page_count = 10");
        full.execute(&mut connection).await.unwrap();
        let full = write(&mut connection).await;
        let options = SqliteConnectOptions::new().filename(&path).read_only(true);
        let mut connection = options.connect().await.unwrap();
        let read_only = write(&mut connection).await;
        let nowhere = folder.path().join("nowhere").join("some.db");
        let missing = SqliteConnectOptions::new().filename(nowhere);
        let missing = missing.connect().await.unwrap_err();
        let database = Database::new(path, WIDE);
        for error in [full, read_only, missing] {
            assert_eq!(nature(&error), Nature::Away, "{error}");
            let failure = database.failure(&error);
            assert!(matches!(failure, StoreError::Away(_)), "{failure:?}");
            assert!(failure.to_string().contains("some.db"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_statement_that_does_not_fit_says_nothing_about_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut connection) = made(folder.path()).await;
        let wrong = sqlx::raw_sql("INSERT INTO nothing VALUES (1)");
        let error = wrong.execute(&mut connection).await.unwrap_err();
        let failure = Database::new(path, WIDE).failure(&error);
        assert!(matches!(failure, StoreError::Failed(_)), "{failure:?}");
    }

    #[tokio::test]
    async fn a_file_that_was_deleted_or_replaced_is_noticed_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _connection) = made(folder.path()).await;
        let database = Database::new(path.clone(), WIDE);
        database.check_in_place().unwrap();
        std::fs::remove_file(&path).unwrap();
        database.check_in_place().unwrap_err();
        assert!(database.connect(Purpose::Durable).await.is_err());
        std::fs::write(&path, "").unwrap();
        database.check_in_place().unwrap_err();
        assert_eq!(database.generation(), 0);
        database.use_file_at_path().unwrap();
        database.check_in_place().unwrap();
        assert_eq!(database.generation(), 1);
    }
}
