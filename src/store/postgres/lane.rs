//! The thread on which everything about the database happens.
//!
//! A connection belongs to the runtime it was opened on, and a proxy has one for
//! each core, some of which end before others. So requests do not talk to the
//! database: they hand a piece of work to this thread and wait for word of it.
//! Work once begun is finished whether anybody still waits or not, which leaves
//! no connection half way in a transaction; work that nobody waits for any more
//! when its turn comes is left out, so a slow database builds up no backlog.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::desk::Desk;
use super::trouble::Trouble;
use crate::store::StoreError;
use crate::store::patience::within;

/// Pieces of work that may wait to be taken; more wait outside.
const QUEUE: usize = 1_024;

type Job = Box<dyn FnOnce(Rc<Desk>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The way to the thread.
pub(super) struct Lane {
    jobs: mpsc::Sender<Job>,
    patience: Duration,
}

impl Lane {
    /// Starts the thread.
    pub(super) fn start(desk: Desk, patience: Duration) -> io::Result<Self> {
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let work = async move || {
            let desk = Rc::new(desk);
            while let Some(job) = queue.recv().await {
                tokio::task::spawn_local(job(Rc::clone(&desk)));
            }
            desk.close().await;
        };
        std::thread::Builder::new()
            .name("store-postgres".to_owned())
            .spawn(move || LocalSet::new().block_on(&runtime, work()))?;
        Ok(Self { jobs, patience })
    }

    /// The longest that a request waits for any one answer.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Has a piece of work done, within so long. It may be begun again if it
    /// fails half way, so it must be one transaction.
    pub(super) async fn run<T, W>(&self, patience: Duration, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: AsyncFn(&mut PgConnection) -> Result<T, Trouble> + Send + 'static,
    {
        let done = self.try_run(patience, work).await?;
        done.map_err(|trouble| trouble.failure(patience))
    }

    /// The same, saying what is wrong.
    pub(super) async fn try_run<T, W>(
        &self,
        patience: Duration,
        work: W,
    ) -> Result<Result<T, Trouble>, StoreError>
    where
        T: Send + 'static,
        W: AsyncFn(&mut PgConnection) -> Result<T, Trouble> + Send + 'static,
    {
        let (tell, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            Box::pin(async move {
                let given_up = || tell.is_closed();
                if let Some(done) = desk.run(patience, &work, given_up).await {
                    // Nobody may be waiting by now; the work is done all the same.
                    let _ = tell.send(done);
                }
            })
        });
        self.hand_over(patience, job, answer).await
    }

    /// Closes all connections, after what is under way.
    pub(super) async fn close(&self, patience: Duration) -> Result<(), StoreError> {
        let (tell, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            Box::pin(async move {
                desk.close().await;
                let _ = tell.send(());
            })
        });
        self.hand_over(patience, job, answer).await
    }

    async fn hand_over<T>(
        &self,
        patience: Duration,
        job: Job,
        answer: oneshot::Receiver<T>,
    ) -> Result<T, StoreError> {
        let answered = within(patience, async {
            self.jobs.send(job).await.ok()?;
            answer.await.ok()
        });
        answered
            .await?
            .ok_or_else(|| StoreError::Failed("the thread of the store has ended".to_owned()))
    }
}
