//! `longhaul store copy`: a whole store, from files to a database or back.
//!
//! How it goes is told on standard error, what came of it on standard output.
//! Whatever is wrong with the two places that were named is bad usage; a store
//! that fails while it is read or written is not.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::desk::{table, write_out};
use super::{BAD_CONFIGURATION, OverrideArgs};
use crate::config::{StoreUrl, load, names_database};
use crate::store::copy::{CopyError, Progress, copy};
use crate::store::{Opened, Store, postgres, sqlite};

/// How long a store may take for an answer: nobody's request waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// Connections to a database: one thing happens at a time.
const CONNECTIONS: u32 = 2;

/// How often it is told how far it has come.
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `longhaul store`.
#[derive(Clone, clap::Args)]
pub struct StoreCommandArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Folder of the proxy's own files
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// What to do with stores. Not printable: a URL may hold a password.
#[derive(Clone, clap::Subcommand)]
pub enum StoreCommand {
    /// Copy all that a store holds into an empty one; run again, it goes on where it was interrupted
    Copy {
        /// The store to copy: `sqlite` (the files in the data folder), a folder, or a postgres:// URL
        from: String,
        /// The store to fill, named the same way
        to: String,
    },
}

/// Where a store is.
#[derive(PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    Database(StoreUrl),
}

impl Place {
    /// As it is shown, without a password.
    fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Database(url) => url.to_string(),
        }
    }

    /// Opens it, to be filled or to be read.
    async fn open(&self, to_be_filled: bool) -> anyhow::Result<Arc<dyn Store>> {
        let Opened { store, reports } = match self {
            Self::Folder(folder) => sqlite::open(folder, PATIENCE).await,
            Self::Database(StoreUrl::Postgres(url)) if to_be_filled => {
                postgres::open(url.reveal(), CONNECTIONS, PATIENCE).await?
            }
            Self::Database(StoreUrl::Postgres(url)) => {
                postgres::look(url.reveal(), CONNECTIONS, PATIENCE).await?
            }
            Self::Database(url) => bail!("{url} is no store that can be copied"),
        };
        if let Some(report) = reports.iter().find(|report| report.is_serious()) {
            bail!("{}: {report}", self.name());
        }
        Ok(store)
    }
}

/// Does it.
pub fn run(args: StoreCommandArgs) -> anyhow::Result<ExitCode> {
    let StoreCommand::Copy { from, to } = args.command;
    let overrides = OverrideArgs {
        config: args.config,
        data_dir: args.data_dir,
        ..OverrideArgs::default()
    };
    let loaded = match load(&overrides.into_sources()) {
        Ok(loaded) => loaded,
        Err(problems) => return wrong(&problems.to_string()),
    };
    let place = |given: &str| match given.parse() {
        Ok(StoreUrl::Sqlite) => Some(Place::Folder(whole(loaded.config.data_dir.clone()))),
        Ok(StoreUrl::Memory) => None,
        Ok(url) => Some(Place::Database(url)),
        Err(_) if given.contains("://") || names_database(given) => None,
        Err(_) => Some(Place::Folder(whole(PathBuf::from(given)))),
    };
    for (name, given) in [("FROM", &from), ("TO", &to)] {
        let url = given.parse::<StoreUrl>().ok();
        if let Some(problem) = url.and_then(|url| url.wrong()) {
            return wrong(&format!("longhaul: {name}: {problem}"));
        }
    }
    let (Some(from), Some(to)) = (place(&from), place(&to)) else {
        return wrong(
            "longhaul: a store to copy is `sqlite`, a folder, or a URL: postgres://user:password@host/database",
        );
    };
    if from == to {
        return wrong("longhaul: a store cannot be copied onto itself");
    }
    if let Place::Folder(folder) = &from
        && !folder.join("state.db").is_file()
    {
        return wrong(&format!(
            "longhaul: there is no store in {}",
            folder.display()
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(move_all(&from, &to))
}

/// A folder by its one name, if it is there.
fn whole(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

async fn move_all(from: &Place, to: &Place) -> anyhow::Result<ExitCode> {
    let source = from.open(false).await?;
    let target = to.open(true).await?;
    let mut told = Instant::now();
    let tell = |now: Progress| {
        if now.complete || told.elapsed() > PAUSE {
            told = Instant::now();
            let more = if now.complete { "" } else { " so far" };
            // Whoever does not read it misses nothing but this.
            let _ = writeln!(io::stderr(), "{}: {} rows{more}", now.table, now.rows);
        }
    };
    let copied = copy(&*source, &from.name(), &*target, tell).await;
    let closed = target.close().await.and(source.close().await);
    match copied {
        Err(
            error @ (CopyError::Memory
            | CopyError::InUse(_)
            | CopyError::Another(_)
            | CopyError::Moved),
        ) => wrong(&format!("longhaul: {error}")),
        Err(error) => Err(error.into()),
        Ok(copied) => {
            closed.context("cannot close the store")?;
            let mut rows = vec![vec!["TABLE".to_owned(), "ROWS".to_owned()]];
            let copied = copied.iter();
            rows.extend(copied.map(|of| vec![of.table.to_owned(), of.rows.to_string()]));
            write_out(table(&rows).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn wrong(message: &str) -> anyhow::Result<ExitCode> {
    writeln!(io::stderr(), "{message}").context("cannot write to standard error")?;
    Ok(ExitCode::from(BAD_CONFIGURATION))
}
