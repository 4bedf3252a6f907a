//! Coming back after the files could not be written.
//!
//! A disk was full and has room again, or the data folder was deleted or made
//! read-only under the running process. A file that is no longer in its place is
//! begun anew, or taken as it is if somebody has put another one there. Whether
//! there is room is tried by writing: a few bytes often still fit where the next
//! pass would not, so more than that is asked for before the store is used again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Error};

use super::SqliteStore;
use super::database::{Database, Purpose};
use super::lane::Lane;
use super::open::make_ready;
use super::schema::{self, version};
use super::write::BEGIN;
use crate::store::{Report, StoreError};

/// Bytes that must fit on the disk before it counts as having room again.
const ROOM: usize = 1 << 20;

/// The file that is written to find that out, and removed at once.
const SCRATCH: &str = ".room";

/// One of the files, with what it takes to begin it anew.
struct Part<'a> {
    database: &'a Arc<Database>,
    lane: &'a Lane,
    steps: &'static [&'static str],
}

impl SqliteStore {
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let state = self.state.as_ref().map(|state| Part {
            database: &state.database,
            lane: &state.lane,
            steps: schema::STATE,
        });
        let journal = self.journal.as_ref().map(|journal| Part {
            database: &journal.database,
            lane: &journal.lane,
            steps: schema::JOURNAL,
        });
        state.into_iter().chain(journal)
    }

    /// Fails if a file was deleted or replaced. Writes nothing.
    pub(super) async fn check_files(&self) -> Result<(), StoreError> {
        for part in self.parts() {
            check_in_place(part.database).await?;
        }
        Ok(())
    }

    /// Makes the files usable again; whether one of them was begun anew, or
    /// replaced by another one, since this was last answered.
    pub(super) async fn reopen_files(&self) -> Result<bool, StoreError> {
        for part in self.parts() {
            if check_in_place(part.database).await.is_err() {
                take_file_at_path(&part).await?;
                self.begun_anew.store(true, Ordering::SeqCst);
            }
        }
        for part in self.parts() {
            check_room(part.database).await?;
            part.lane.run(Purpose::Durable, write_something).await?;
        }
        Ok(self.begun_anew.swap(false, Ordering::SeqCst))
    }
}

/// Runs work that may wait for the disk.
async fn blocking(
    database: &Arc<Database>,
    work: impl FnOnce(&Database) -> io::Result<()> + Send + 'static,
) -> Result<(), StoreError> {
    let shared = Arc::clone(database);
    let done = tokio::task::spawn_blocking(move || work(&shared)).await;
    let done = done.map_err(|error| StoreError::Failed(error.to_string()))?;
    done.map_err(|error| database.away(&error))
}

async fn check_in_place(database: &Arc<Database>) -> Result<(), StoreError> {
    blocking(database, Database::check_in_place).await
}

/// Begins a file anew, or checks the one that has taken its place.
async fn take_file_at_path(part: &Part<'_>) -> Result<(), StoreError> {
    let database = part.database;
    let mut reports = Vec::new();
    let made = make_ready(database.path(), part.steps, &mut reports).await;
    // How the folder is shared was said at the start.
    reports
        .iter()
        .filter(|report| report.is_serious())
        .for_each(Report::log);
    made.map_err(|why| database.away(&why))?;
    let taken = database.use_file_at_path();
    taken.map_err(|error| database.away(&error))?;
    tracing::warn!(
        "{} was deleted or replaced while it was in use: the one that is there now is used",
        database.path().display()
    );
    Ok(())
}

async fn check_room(database: &Arc<Database>) -> Result<(), StoreError> {
    let has_room = |database: &Database| match database.path().parent() {
        Some(folder) => fill_scratch_file(folder),
        None => Ok(()),
    };
    blocking(database, has_room).await
}

fn fill_scratch_file(folder: &Path) -> io::Result<()> {
    let path = folder.join(SCRATCH);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&path).and_then(|mut file| {
        // No file system can make this smaller.
        let mut bytes = vec![0; ROOM];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        file.write_all(&bytes)?;
        file.sync_all()
    });
    // It may be another process's that shares the folder.
    let _ = fs::remove_file(&path);
    written
}

/// Writes a page, with what it says already.
async fn write_something(connection: &mut SqliteConnection) -> Result<(), Error> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let found = version(&mut transaction).await?;
    let stamp = AssertSqlSafe(format!("PRAGMA user_version = {found}"));
    sqlx::raw_sql(stamp).execute(&mut *transaction).await?;
    transaction.commit().await
}
