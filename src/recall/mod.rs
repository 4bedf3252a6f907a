//! Getting back what views have left out, for whoever may have it.
//!
//! One desk for everybody: a model by its tools, an operator over HTTP or on the
//! command line. Whoever asks brings a reference, and sees the conversations that
//! contain what it stands for, or is an operator and names a session. The store
//! finds, pure code ranks and renders; here is what fetches one for the other,
//! within bounds: so many entries are looked at, so many bytes are read, so many
//! questions are answered at once.
//!
//! That a reference is not known, never was or no longer is, is the ordinary case
//! of a model that copied badly or came late. It is told what to do instead.

mod beside;
mod content;
mod expand;
mod export;
mod find;
mod forget;
mod handoff;
mod scope;
mod sessions;
mod show;
mod status;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use beside::{Beside, ROWS};
pub use expand::Page;
pub use export::Exported;
pub use find::{Found, Hit};
pub use forget::Gone;
pub use sessions::{Session, Step, Timeline};
pub use show::Shown;

use crate::engine::ids::{LineageId, Reference};
use crate::metrics::Metrics;
use crate::store::{Store, StoreError};

/// Questions that are answered at once: each may hold some megabytes.
const AT_ONCE: usize = 4;

/// Whose things are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Those of the conversations that contain what this stands for.
    Reference(Reference),
    /// Those of a session; only for an operator.
    Session(LineageId),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Nobody knows the reference.
    #[error(
        "nothing is known under this reference. Copy it exactly as a notice or summary shows it: lh- and 20 digits. If it is right, what it stood for is no longer kept: read the file or run the command again."
    )]
    UnknownReference,
    /// Nobody knows the session.
    #[error("no session {0:?} is known: GET /longhaul/sessions or `longhaul sessions` lists them")]
    UnknownSession(String),
    /// Several sessions are meant.
    #[error("{given:?} may be any of {several} sessions: give more of the id")]
    Ambiguous {
        /// What was given.
        given: String,
        /// How many there are.
        several: usize,
    },
    /// The journal has nothing of it.
    #[error(
        "nothing of it is kept: messages are put away when a view first leaves something out, unless journal.enabled is false, and kept for journal.retention"
    )]
    NotKept,
    /// There is too much of it.
    #[error("it takes more than {0} bytes: ask for a part of it")]
    TooLarge(u64),
    /// What is stored cannot be read.
    #[error("what is stored cannot be read: {0}")]
    Damaged(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own mistake.
    #[error("answering failed: this is a mistake of the program's")]
    Bug,
}

impl Trouble {
    /// Whether it is no failure, but simply not there.
    pub fn is_ordinary(&self) -> bool {
        match self {
            Self::UnknownReference
            | Self::UnknownSession(_)
            | Self::Ambiguous { .. }
            | Self::NotKept => true,
            Self::TooLarge(_) | Self::Damaged(_) | Self::Store(_) | Self::Bug => false,
        }
    }
}

/// The desk.
pub struct Recall {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    turns: Semaphore,
}

impl Recall {
    /// A desk before a store.
    pub fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self {
            store,
            metrics,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Waits for a turn: whatever reads content has one.
    async fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Trouble> {
        self.turns.acquire().await.map_err(|_| Trouble::Bug)
    }
}

/// Computes where nobody else's streams wait for it. A panic is our mistake.
async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Trouble::Bug)
}
