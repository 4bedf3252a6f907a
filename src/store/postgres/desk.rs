//! What the thread works with: a few connections, the one used last first.
//!
//! A connection is opened when one is needed and none is free, up to the limit,
//! and before it is used it must lead to a primary with tables of a known
//! format. One that failed is dropped, and with it all that lie idle: whatever
//! happened to it has mostly happened to them, and a new one is tried at once.
//! None is asked beforehand whether it still works, because that would cost
//! every request another round trip. A database that has no more of them to give
//! is not away: whoever wants one waits until another is put back.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::{Notify, OnceCell, Semaphore};
use tokio::time::timeout;

use super::schema;
use super::trouble::Trouble;

/// How long it may take to connect, while those who wanted to may have given up.
const CONNECTING: Duration = Duration::from_secs(5);

/// How long the tables may take to be made or renewed, the wait for another
/// replica that is at it included.
const MIGRATING: Duration = Duration::from_mins(11);

/// How long an answer may be late before its connection is given up. The
/// database itself stops working on it when the time is over.
const LATE: Duration = Duration::from_secs(1);

/// How long a connection may lie idle: firewalls forget those that do for long.
const IDLE: Duration = Duration::from_mins(4);

/// How often work begins again that stood in the way of other work.
const COLLISIONS: u32 = 5;

/// How long a database is not asked for another connection after it had none to
/// give.
const FULL: Duration = Duration::from_secs(1);

const ROLE: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// To keep things in, so it gets tables if it has none.
    Keeping,
    /// To look at what is there.
    Looking,
}

/// The connections.
pub(super) struct Desk {
    options: PgConnectOptions,
    purpose: Use,
    most: u32,
    room: Semaphore,
    idle: RefCell<Vec<(PgConnection, Instant)>>,
    /// How many are being used.
    lent: Cell<u32>,
    /// One is not used any more.
    returned: Notify,
    /// When the database last had no more to give.
    full: Cell<Option<Instant>>,
    /// The tables are there and of a known format.
    ready: OnceCell<()>,
    closed: Cell<bool>,
}

impl Desk {
    pub(super) fn new(options: PgConnectOptions, most: u32, purpose: Use) -> Self {
        Self {
            options,
            purpose,
            most: most.max(1),
            room: Semaphore::new(most.max(1) as usize),
            idle: RefCell::default(),
            lent: Cell::new(0),
            returned: Notify::new(),
            full: Cell::new(None),
            ready: OnceCell::new(),
            closed: Cell::new(false),
        }
    }

    /// Does a piece of work, unless it was given up before it could begin.
    pub(super) async fn run<T>(
        &self,
        patience: Duration,
        work: &impl AsyncFn(&mut PgConnection) -> Result<T, Trouble>,
        given_up: impl Fn() -> bool,
    ) -> Option<Result<T, Trouble>> {
        let Ok(_place) = self.room.acquire().await else {
            return Some(Err(Trouble::Closed));
        };
        if given_up() {
            return None;
        }
        let mut collisions = 0;
        loop {
            let (mut connection, reused) = match self.connection(patience).await {
                Ok(connection) => connection,
                Err(trouble) => return Some(Err(trouble)),
            };
            let _lent = Lent::from(self);
            if given_up() {
                self.put_back(connection);
                return None;
            }
            let done = timeout(patience + LATE, work(&mut connection)).await;
            match done.unwrap_or(Err(Trouble::Silent)) {
                Err(trouble) if trouble.spoils_the_connection() => {
                    self.idle.borrow_mut().clear();
                    if !reused || matches!(trouble, Trouble::Silent) {
                        return Some(Err(trouble));
                    }
                }
                Err(trouble) => {
                    // A transaction that failed half way is undone with the next
                    // message, and until then it holds its locks.
                    if let Ok(Ok(())) = timeout(LATE, connection.ping()).await {
                        self.put_back(connection);
                    }
                    let again = trouble.collided() || was_abandoned(&trouble);
                    if !again || collisions == COLLISIONS {
                        return Some(Err(trouble));
                    }
                    collisions += 1;
                }
                Ok(done) => {
                    self.put_back(connection);
                    return Some(Ok(done));
                }
            }
        }
    }

    /// A connection, and whether it was used before.
    async fn connection(&self, patience: Duration) -> Result<(PgConnection, bool), Trouble> {
        loop {
            if self.closed.get() {
                return Err(Trouble::Closed);
            }
            let free = self.idle.borrow_mut().pop();
            if let Some((connection, since)) = free {
                if since.elapsed() < IDLE {
                    return Ok((connection, true));
                }
                // It was used last: the others lie idle for even longer.
                self.idle.borrow_mut().clear();
            }
            let was_full = self.full.get().is_some_and(|at| at.elapsed() < FULL);
            if !(was_full && self.lent.get() > 0) {
                match self.another().await {
                    Err(trouble) if is_full(&trouble) => {
                        self.full.set(Some(Instant::now()));
                        if self.lent.get() == 0 && self.idle.borrow().is_empty() {
                            return Err(trouble);
                        }
                    }
                    another => return Ok((another?, false)),
                }
            }
            // One may have been put back while the database was asked.
            if self.idle.borrow().is_empty()
                && timeout(patience, self.returned.notified()).await.is_err()
            {
                return Err(Trouble::Silent);
            }
        }
    }

    /// A new connection to a database with tables of a known format.
    async fn another(&self) -> Result<PgConnection, Trouble> {
        let mut connection = within(CONNECTING, self.connect()).await?;
        let first = &mut connection;
        let prepare = async move || self.prepare(first).await;
        self.ready.get_or_try_init(prepare).await?;
        Ok(connection)
    }

    /// Sees to it that the tables are there. Whoever comes second waits for this:
    /// it must not take for ever.
    async fn prepare(&self, first: &mut PgConnection) -> Result<(), Trouble> {
        match within(CONNECTING, schema::is_newest(first)).await? {
            Some(true) => {}
            None if self.purpose == Use::Looking => return Err(Trouble::Empty),
            _ => within(MIGRATING, schema::migrate(first)).await?,
        }
        match self.purpose {
            Use::Looking => Ok(()),
            Use::Keeping => within(CONNECTING, schema::check_rights(first)).await,
        }
    }

    /// A new connection to a primary.
    async fn connect(&self) -> Result<PgConnection, Trouble> {
        let mut connection = self.options.connect().await?;
        let role = sqlx::raw_sql(ROLE).fetch_one(&mut connection).await?;
        if role.try_get(0)? {
            return Err(Trouble::Standby);
        }
        if role.try_get(1)? {
            return Err(Trouble::ReadOnly);
        }
        Ok(connection)
    }

    fn put_back(&self, connection: PgConnection) {
        if !self.closed.get() {
            let mut idle = self.idle.borrow_mut();
            idle.push((connection, Instant::now()));
            // Those that a burst has left behind go, one at a time.
            if idle
                .first()
                .is_some_and(|(_, since)| since.elapsed() > IDLE)
            {
                idle.remove(0);
            }
        }
    }

    /// Closes them all; from now on there are no new ones.
    pub(super) async fn close(&self) {
        // What has begun is finished first.
        let _all = self.room.acquire_many(self.most).await;
        self.closed.set(true);
        let idle = std::mem::take(&mut *self.idle.borrow_mut());
        for (connection, _) in idle {
            // A failure to say goodbye leaves nothing undone.
            let _ = timeout(LATE, connection.close()).await;
        }
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    timeout(limit, work).await.unwrap_or(Err(Trouble::Silent))
}

/// A connection is being used, as long as this lives.
struct Lent<'a>(&'a Desk);

impl<'a> From<&'a Desk> for Lent<'a> {
    fn from(desk: &'a Desk) -> Self {
        desk.lent.set(desk.lent.get() + 1);
        Self(desk)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.lent.set(self.0.lent.get().saturating_sub(1));
        self.0.returned.notify_one();
    }
}

/// There are as many connections as there may be: of the server, the database or
/// the role.
fn is_full(trouble: &Trouble) -> bool {
    code(trouble).as_deref() == Some("53300")
}

/// The database took the transaction for one whose client has vanished, which was
/// only held up: the process was stopped for a while, or its machine.
fn was_abandoned(trouble: &Trouble) -> bool {
    code(trouble).as_deref() == Some("25P03")
}

fn code(trouble: &Trouble) -> Option<String> {
    match trouble {
        Trouble::Sql(sqlx::Error::Database(error)) => error.code().map(Cow::into_owned),
        _ => None,
    }
}
