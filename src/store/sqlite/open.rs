//! Opening the files, whatever state they are in.
//!
//! For each file: make it, check it, bring it to the newest format. A damaged
//! one is set aside and an empty one begun, once; whatever else stands in the
//! way, its part is kept in memory. There is no way to fail: a proxy without a
//! memory is worth more than none.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Connection;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Error};

use super::SqliteStore;
use super::check::{self, Checked, check};
use super::database::{Database, Nature, nature, suspicion, with_suffix};
use super::folder;
use super::journal::Journal;
use super::schema::{self, Format, migrate, version};
use super::state::State;
use crate::store::{Opened, Report};

/// How long another process that is starting too is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a file cannot be used as it is.
enum Trouble {
    Damaged(String),
    Newer(i64),
    Unusable(String),
}

/// Opens the store whose files are in a folder; `timeout` is the longest that a
/// request waits for any one answer.
pub async fn open(folder: &Path, timeout: Duration) -> Opened {
    let mut reports = Vec::new();
    let made = folder::prepare(folder, &mut reports).map_err(|error| error.to_string());
    let state = open_file(folder, "state.db", schema::STATE, timeout, &made);
    let journal = open_file(folder, "journal.db", schema::JOURNAL, timeout, &made);
    let ((state, more), (journal, yet_more)) = tokio::join!(state, journal);
    reports.extend(more);
    reports.extend(yet_more);
    let state = start(folder, "state.db", state, State::start, &mut reports);
    let journal = start(folder, "journal.db", journal, Journal::start, &mut reports);
    reports.iter().for_each(Report::log);
    Opened {
        store: Arc::new(SqliteStore::new(state, journal)),
        reports,
    }
}

fn start<T>(
    folder: &Path,
    name: &str,
    database: Option<Database>,
    start: fn(Database) -> std::io::Result<T>,
    reports: &mut Vec<Report>,
) -> Option<T> {
    match start(database?) {
        Ok(started) => Some(started),
        Err(error) => {
            reports.push(Report::InMemory {
                file: folder.join(name),
                why: error.to_string(),
            });
            None
        }
    }
}

async fn open_file(
    folder: &Path,
    name: &str,
    steps: &'static [&'static str],
    timeout: Duration,
    made: &Result<(), String>,
) -> (Option<Database>, Vec<Report>) {
    let file = folder.join(name);
    let mut reports = Vec::new();
    let unusable = match made {
        Err(why) => why.clone(),
        Ok(()) => match ready(&file, steps, &mut reports).await {
            Ok(()) => return (Some(Database::new(file, timeout)), reports),
            Err(Trouble::Newer(found)) => {
                let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
                reports.push(Report::Newer { file, found, known });
                return (None, reports);
            }
            Err(Trouble::Damaged(why) | Trouble::Unusable(why)) => why,
        },
    };
    let why = unusable;
    reports.push(Report::InMemory { file, why });
    (None, reports)
}

/// Makes a file and its folder ready for use; else says why they cannot be.
pub(super) async fn make_ready(
    file: &Path,
    steps: &'static [&'static str],
    reports: &mut Vec<Report>,
) -> Result<(), String> {
    if let Some(folder) = file.parent() {
        folder::prepare(folder, reports).map_err(|error| error.to_string())?;
    }
    match ready(file, steps, reports).await {
        Ok(()) => Ok(()),
        Err(Trouble::Damaged(why) | Trouble::Unusable(why)) => Err(why),
        Err(Trouble::Newer(found)) => Err(format!("it has format {found}, which is newer")),
    }
}

/// Makes a file ready for use, setting it aside first if it is damaged.
async fn ready(
    file: &Path,
    steps: &'static [&'static str],
    reports: &mut Vec<Report>,
) -> Result<(), Trouble> {
    match prepare(file, steps, reports).await {
        Err(Trouble::Damaged(why)) => {
            let to = folder::set_aside(file).map_err(|error| {
                Trouble::Unusable(format!("{why}; it cannot be renamed: {error}"))
            })?;
            let file = file.to_owned();
            reports.push(Report::SetAside { file, to, why });
        }
        other => return other,
    }
    prepare(file, steps, reports).await
}

async fn prepare(
    file: &Path,
    steps: &'static [&'static str],
    reports: &mut Vec<Report>,
) -> Result<(), Trouble> {
    folder::prepare_file(file, reports).map_err(|error| Trouble::Unusable(error.to_string()))?;
    let empty = std::fs::metadata(file).map_or(true, |found| found.len() == 0);
    if !empty {
        // Only reading: a file that turns out not to be ours to use is left as
        // it is. Except that an interrupted change must be undone first, which
        // SQLite does by itself and only if it may write.
        let interrupted = with_suffix(file, "-journal").exists();
        let mut connection = connect(file, Manner::Looking { interrupted }).await?;
        let outcome = inspect(&mut connection, file, steps, reports).await;
        close(connection, outcome).await?;
    }
    let mut connection = connect(file, Manner::Making { empty }).await?;
    let outcome = match migrate(&mut connection, steps).await {
        Ok(Format::Known) => Ok(()),
        Ok(Format::Newer(found)) => Err(Trouble::Newer(found)),
        // The tables are not those of the format it claims to have.
        Err(error) if nature(&error) == Nature::Mismatch => {
            Err(Trouble::Damaged(error.to_string()))
        }
        Err(error) => Err(trouble(&error)),
    };
    close(connection, outcome).await
}

async fn close(connection: SqliteConnection, outcome: Result<(), Trouble>) -> Result<(), Trouble> {
    let closed = connection.close().await;
    outcome?;
    closed.map_err(|error| trouble(&error))
}

/// Whether the file is sound and of a format that is known here.
async fn inspect(
    connection: &mut SqliteConnection,
    file: &Path,
    steps: &'static [&'static str],
    reports: &mut Vec<Report>,
) -> Result<(), Trouble> {
    let found = version(connection).await.map_err(|error| trouble(&error))?;
    if usize::try_from(found).is_ok_and(|found| found > steps.len()) {
        return Err(Trouble::Newer(found));
    }
    let suspected = suspicion(file).exists();
    let budget = if suspected {
        check::SUSPECTED
    } else {
        check::USUAL
    };
    let checked = check(connection, budget, suspected).await;
    match checked.map_err(|error| trouble(&error))? {
        Checked::Sound => folder::forget_suspicion(file),
        Checked::Partly if suspected => {
            let why = "it showed damage in use and is too large to be checked";
            return Err(Trouble::Damaged(why.to_owned()));
        }
        Checked::Partly => reports.push(Report::PartlyChecked {
            file: file.to_owned(),
        }),
        Checked::Damaged(why) => return Err(Trouble::Damaged(why)),
    }
    Ok(())
}

/// What a connection may do to the file while the store is being opened.
#[derive(Clone, Copy)]
enum Manner {
    Looking { interrupted: bool },
    Making { empty: bool },
}

/// A connection before the file is known to be good. The change to a write-ahead
/// log does not wait for others by itself, so it is tried again.
async fn connect(file: &Path, manner: Manner) -> Result<SqliteConnection, Trouble> {
    let until = Instant::now() + PATIENCE;
    let mut options = SqliteConnectOptions::new()
        .filename(file)
        .busy_timeout(PATIENCE)
        .pragma("cell_size_check", "ON")
        .disable_statement_logging();
    match manner {
        Manner::Looking { interrupted } => options = options.read_only(!interrupted),
        Manner::Making { empty } => {
            options = options.journal_mode(SqliteJournalMode::Wal);
            // Only the first can choose it, and choosing is writing.
            if empty {
                options = options.auto_vacuum(SqliteAutoVacuum::Incremental);
            }
        }
    }
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if nature(&error) == Nature::Busy && Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(trouble(&error)),
        }
    }
}

fn trouble(error: &Error) -> Trouble {
    match nature(error) {
        Nature::Damage => Trouble::Damaged(error.to_string()),
        _ => Trouble::Unusable(error.to_string()),
    }
}
