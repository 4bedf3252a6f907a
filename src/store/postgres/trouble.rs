//! What goes wrong with a database server, and what that means for a request.
//!
//! Four kinds matter. The database is out of reach, or is not the primary:
//! asking again will not help for a while. It was too slow. Two transactions
//! stood in each other's way: the one that lost may simply begin again. Anything
//! else is our mistake or damage, and only passed on.

use std::io::ErrorKind;
use std::time::Duration;

use sqlx::Error;

use crate::store::StoreError;

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It only repeats what another one does.
    #[error(
        "the database is a standby, which may lag behind: let store.url lead to the primary (with several hosts, a name or a pooler that follows it)"
    )]
    Standby,
    /// It takes no changes.
    #[error(
        "the database is read-only: let store.url lead to a primary, as a role whose transactions may write"
    )]
    ReadOnly,
    /// A newer version of this program made its tables.
    #[error(
        "the database has format {found}, this version knows {known}: run the newer version or use another database"
    )]
    Newer {
        /// The version of its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// Nobody has made tables in it.
    #[error("there is nothing of Longhaul's in that database: name the one that the proxies use")]
    Empty,
    /// The role lacks a right.
    #[error(
        "the role of the database lacks a right: {0}; grant it, or let the role own the tables"
    )]
    Denied(String),
    /// What the database or the way to it says.
    #[error("{}", said(.0))]
    Sql(#[from] Error),
    /// Nothing came back on a connection.
    #[error("a connection fell silent")]
    Silent,
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// What an error of the database asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    OutOfReach,
    Slow,
    Collided,
    Other,
}

impl Trouble {
    fn nature(&self) -> Nature {
        match self {
            Self::Standby
            | Self::ReadOnly
            | Self::Silent
            | Self::Sql(Error::Io(_) | Error::Tls(_) | Error::Protocol(_)) => Nature::OutOfReach,
            Self::Sql(Error::Database(error)) => by_code(&error.code().unwrap_or_default()),
            Self::Newer { .. } | Self::Empty | Self::Denied(_) | Self::Closed | Self::Sql(_) => {
                Nature::Other
            }
        }
    }

    /// The connection is not to be used again.
    pub(super) fn spoils_the_connection(&self) -> bool {
        let answered = matches!(self, Self::Sql(Error::Database(_) | Error::Decode(_)));
        !answered || self.nature() == Nature::OutOfReach
    }

    /// To begin again may help, and at once.
    pub(super) fn collided(&self) -> bool {
        self.nature() == Nature::Collided
    }

    /// The database is away, and may come back.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            // Who cannot prove to be the server today cannot in a minute.
            Self::Standby | Self::ReadOnly | Self::Sql(Error::Tls(_)) => false,
            Self::Sql(Error::Io(error)) if error.kind() == ErrorKind::InvalidData => false,
            // Whom or what it does not know today it will not know in a minute.
            Self::Sql(Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                let refused = ["28", "3D", "42"]
                    .iter()
                    .any(|class| code.starts_with(class));
                !refused && matches!(self.nature(), Nature::OutOfReach | Nature::Slow)
            }
            _ => self.nature() == Nature::OutOfReach,
        }
    }

    /// As the store's own error.
    pub(super) fn failure(&self, patience: Duration) -> StoreError {
        match self.nature() {
            Nature::Slow => StoreError::Slow(patience),
            Nature::OutOfReach => StoreError::Away(self.to_string()),
            Nature::Collided | Nature::Other => StoreError::Failed(self.to_string()),
        }
    }
}

/// What it says, without the line of the server's own source at which it does.
fn said(error: &Error) -> String {
    match error {
        Error::Database(error) => format!("the database says: {}", error.message()),
        error => error.to_string(),
    }
}

fn by_code(code: &str) -> Nature {
    match code {
        // It was told to stop waiting: for the answer, or for a lock.
        "57014" | "55P03" => Nature::Slow,
        "40001" | "40P01" => Nature::Collided,
        // Shutting down, starting up, no longer the primary; the database, its
        // tables, or the right to them have been taken away.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25006" | "3D000" | "42P01" | "42501" => {
            Nature::OutOfReach
        }
        // Connections, who may have them, no room, a disk that fails: it may
        // still read, but who cannot write decides nothing.
        _ if ["08", "28", "53", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Nature::OutOfReach
        }
        _ => Nature::Other,
    }
}
