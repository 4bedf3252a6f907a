//! What opening the files came to, apart from a store that works.
//!
//! No trouble with a file keeps the proxy from starting: it sets the file
//! aside, or does without and remembers in memory. Whoever runs it must be told
//! so, in the log and in the admin surface, so it is a value.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::Store;

/// A store, and what had to be done to have one.
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What somebody should know; empty on a good day.
    pub reports: Vec<Report>,
}

/// Something out of the ordinary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A damaged file was renamed and an empty one begun.
    SetAside {
        /// The file.
        file: PathBuf,
        /// Its new name.
        to: PathBuf,
        /// What was wrong with it.
        why: String,
    },
    /// A file was written by a newer version and is left alone; what it would
    /// hold is kept in memory.
    Newer {
        /// The file.
        file: PathBuf,
        /// The version of its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// A file cannot be used; what it would hold is kept in memory.
    InMemory {
        /// The file.
        file: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The database does not answer; until it does, what it would hold is kept in
    /// memory.
    OutOfReach {
        /// What it or the way to it says.
        why: String,
    },
    /// Others could read what only this user should.
    Tightened {
        /// The file.
        path: PathBuf,
        /// The permissions it had.
        from: u32,
    },
    /// Others may be able to read what only this user should.
    Loose {
        /// The file or folder.
        path: PathBuf,
        /// Why it was left so.
        why: String,
    },
    /// Others can enter the folder, but not read the files in it.
    Listed {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file is too large to be looked at whole at every start.
    PartlyChecked {
        /// The file.
        file: PathBuf,
    },
}

impl Report {
    /// Whether something is lost or will not last.
    pub fn is_serious(&self) -> bool {
        matches!(
            self,
            Self::SetAside { .. }
                | Self::Newer { .. }
                | Self::InMemory { .. }
                | Self::OutOfReach { .. }
        )
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        match self {
            report if report.is_serious() => tracing::error!("{report}"),
            Self::PartlyChecked { .. } | Self::Listed { .. } => tracing::info!("{self}"),
            _ => tracing::warn!("{self}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside { file, to, why } => write!(
                f,
                "{} is damaged ({why}); it was renamed to {} and an empty one begun: running sessions are recognised anew",
                file.display(),
                to.display()
            ),
            Self::Newer { file, found, known } => write!(
                f,
                "{} has format {found}, this version knows {known}: it is left untouched and nothing will be remembered across a restart; run the newer version or use another data folder",
                file.display()
            ),
            Self::InMemory { file, why } => write!(
                f,
                "{} cannot be used ({why}): nothing will be remembered across a restart; is the data folder writable and the disk not full?",
                file.display()
            ),
            Self::OutOfReach { why } => write!(
                f,
                "the database does not answer ({why}): requests are served from memory until it does; is store.url right and the server running?"
            ),
            Self::Tightened { path, from } => write!(
                f,
                "{} was open to other users (mode {from:o}); it no longer is",
                path.display()
            ),
            Self::Loose { path, why } => {
                write!(f, "{} may be open to other users: {why}", path.display())
            }
            Self::Listed { path, mode } => write!(
                f,
                "{} was there before and is open to other users (mode {mode:o}): they may see the names and sizes of files in it, but the store's own are for this user alone",
                path.display()
            ),
            Self::PartlyChecked { file } => write!(
                f,
                "{} is too large to be checked whole at start; what was checked is sound",
                file.display()
            ),
        }
    }
}
