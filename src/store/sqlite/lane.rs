//! The one thread that writes to a file, a piece of work at a time.
//!
//! Writing takes a transaction of several statements, and a request can go away
//! between any two of them. So requests do not write: they hand a piece of work
//! to this thread and wait for word of it, and work once begun is finished
//! whether anybody still waits or not. Work that nobody waits for any more when
//! its turn comes is left out, so a slow disk builds up no backlog. In one
//! process writers queue here and never poll for SQLite's lock.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Error;
use sqlx::sqlite::SqliteConnection;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use super::database::{Database, Purpose, UNHURRIED};
use crate::store::StoreError;
use crate::store::patience::within;

/// Pieces of work that may wait; more wait outside, for as long as they like.
const QUEUE: usize = 256;

type Job = Box<dyn for<'d> FnOnce(&'d mut Desk) -> Pin<Box<dyn Future<Output = ()> + 'd>> + Send>;

/// The way to the thread.
pub(super) struct Lane {
    database: Arc<Database>,
    jobs: mpsc::Sender<Job>,
}

/// What the thread works with.
struct Desk {
    database: Arc<Database>,
    durable: Option<SqliteConnection>,
    plain: Option<SqliteConnection>,
    /// The generation of the file that the connections are to.
    generation: u64,
}

impl Lane {
    /// Starts the thread.
    pub(super) fn start(name: &str, database: Arc<Database>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let runtime = runtime::Builder::new_current_thread().build()?;
        let desk = Desk {
            database: Arc::clone(&database),
            durable: None,
            plain: None,
            generation: database.generation(),
        };
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(desk.work(queue)))?;
        Ok(Self { database, jobs })
    }

    /// Has a piece of work done. It is done whole or, if it fails, undone.
    pub(super) async fn run<T, W>(&self, purpose: Purpose, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: AsyncFnOnce(&mut SqliteConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run_within(self.database.timeout(), purpose, work)
            .await
    }

    /// The same with another limit.
    pub(super) async fn run_within<T, W>(
        &self,
        patience: Duration,
        purpose: Purpose,
        work: W,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: AsyncFnOnce(&mut SqliteConnection) -> Result<T, Error> + Send + 'static,
    {
        let (tell, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            Box::pin(async move {
                if !tell.is_closed() {
                    // Nobody may be waiting by now; the work is done all the same.
                    let _ = tell.send(desk.run(purpose, work).await);
                }
            })
        });
        self.hand_over(patience, job, answer).await
    }

    /// Closes the file, after everything handed over before.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (tell, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            Box::pin(async move {
                desk.close().await;
                let _ = tell.send(Ok(()));
            })
        });
        // It may have much to write back, and it happens once.
        self.hand_over(UNHURRIED, job, answer).await
    }

    async fn hand_over<T>(
        &self,
        patience: Duration,
        job: Job,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answered = within(patience, async {
            self.jobs.send(job).await.ok()?;
            answer.await.ok()
        });
        answered.await?.unwrap_or_else(|| {
            Err(StoreError::Failed(
                "the writing thread has ended".to_owned(),
            ))
        })
    }
}

impl Desk {
    async fn work(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(job) = queue.recv().await {
            job(&mut self).await;
        }
        self.close().await;
    }

    async fn run<T, W>(&mut self, purpose: Purpose, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut SqliteConnection) -> Result<T, Error>,
    {
        let generation = self.database.generation();
        if std::mem::replace(&mut self.generation, generation) != generation {
            (self.durable, self.plain) = (None, None);
        }
        // What is written to a deleted file is lost, and SQLite does not say so.
        if let Err(error) = self.database.check_in_place() {
            return Err(self.database.away(&error));
        }
        let slot = match purpose {
            Purpose::Durable => &mut self.durable,
            Purpose::Plain | Purpose::Reading => &mut self.plain,
        };
        let connection = match &mut *slot {
            Some(connection) => connection,
            empty => match self.database.connect(purpose).await {
                Ok(connection) => empty.insert(connection),
                Err(error) => return Err(self.database.failure(&error)),
            },
        };
        let done = work(connection).await;
        done.map_err(|error| {
            // Whether the transaction is really over is known of a new one only.
            *slot = None;
            self.database.failure(&error)
        })
    }

    async fn close(&mut self) {
        for connection in [self.plain.take(), self.durable.take()] {
            if let Some(connection) = connection
                && let Err(error) = sqlx::Connection::close(connection).await
            {
                tracing::warn!("a database did not close: {error}");
            }
        }
    }
}
