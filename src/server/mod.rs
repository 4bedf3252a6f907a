//! Listens, accepts, and hands connections to the workers; stops politely.
//!
//! Each worker is a thread with a runtime of its own, and a connection stays on
//! the thread it was given to, with everything it needs there: no work moves
//! between cores while a request is on its way. The accepting thread deals
//! connections out in turn. To stop, it first stops listening, then asks every
//! connection to finish, and waits for them within a limit.

pub mod connection;
pub mod exchange;
pub mod guard;
pub mod headers;
pub mod intake;
pub mod limits;
pub mod line;
pub mod outbound;
pub mod relay;
pub mod request_id;
pub mod request_log;
pub mod respond;
pub mod retry;
pub mod room;
pub mod route;
pub mod socket;

pub mod tenant;
pub mod tls;
mod unfold;
pub mod unwritten;
pub mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus::IntGauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use connection::Host;

/// How often a worker puts its things in order.
const TIDY: Duration = Duration::from_secs(20);
/// How long accepting rests when the system has no more sockets to give.
const BREATH: Duration = Duration::from_millis(50);

/// A connection on its way to a worker.
struct Arrival {
    stream: std::net::TcpStream,
    peer: SocketAddr,
    place: Place,
}

/// One of the connections that are allowed at once.
struct Place {
    _permit: OwnedSemaphorePermit,
    open: IntGauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.dec();
    }
}

/// The places that all listeners share.
#[derive(Clone)]
pub struct Places {
    free: Arc<Semaphore>,
    open: IntGauge,
}

impl Places {
    /// At most `limit` connections at once; `open` shows how many there are.
    pub fn new(limit: usize, open: IntGauge) -> Self {
        Self {
            free: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            open,
        }
    }

    fn seat(&self, permit: OwnedSemaphorePermit) -> Place {
        self.open.inc();
        Place {
            _permit: permit,
            open: self.open.clone(),
        }
    }
}

/// A thread that serves connections.
pub struct Crew {
    arrivals: UnboundedSender<Arrival>,
    thread: JoinHandle<()>,
}

impl Crew {
    /// Starts a thread. `tidy` is called on it from time to time; `drain` is how
    /// long its connections may take to finish in the end.
    pub fn start(
        name: String,
        host: Arc<Host>,
        drain: Duration,
        tidy: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (arrivals, inbox) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || runtime.block_on(work(host, inbox, drain, tidy)))?;
        Ok(Self { arrivals, thread })
    }

    /// Waits for the thread to end, after the listener has been dropped.
    pub fn join(self) {
        drop(self.arrivals);
        if self.thread.join().is_err() {
            tracing::error!("a worker thread panicked");
        }
    }
}

async fn work(
    host: Arc<Host>,
    mut inbox: UnboundedReceiver<Arrival>,
    drain: Duration,
    tidy: impl Fn(),
) {
    let connections = TaskTracker::new();
    let mut clock = tokio::time::interval(TIDY);
    loop {
        tokio::select! {
            arrival = inbox.recv() => match arrival {
                Some(arrival) => { connections.spawn(attend(host.clone(), arrival)); }
                None => break,
            },
            _ = clock.tick() => tidy(),
        }
    }
    connections.close();
    if tokio::time::timeout(drain, connections.wait())
        .await
        .is_err()
    {
        let open = connections.len();
        tracing::warn!(
            open,
            "connections were still open at the end of limits.drain"
        );
    }
}

async fn attend(host: Arc<Host>, arrival: Arrival) {
    let Arrival {
        stream,
        peer,
        place,
    } = arrival;
    match TcpStream::from_std(stream) {
        Ok(stream) => connection::serve(host, stream, peer).await,
        Err(error) => tracing::warn!(%error, "cannot take a connection over"),
    }
    drop(place);
}

/// Accepts connections for ever and deals them out to the crews in turn.
pub async fn accept(listener: &TcpListener, crews: &[Crew], places: &Places) {
    for crew in crews.iter().cycle() {
        let Some((stream, peer, place)) = next(listener, places).await else {
            return;
        };
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot hand a connection over");
                continue;
            }
        };
        let arrival = Arrival {
            stream,
            peer,
            place,
        };
        if crew.arrivals.send(arrival).is_err() {
            tracing::error!("a worker is gone, its connection is lost");
        }
    }
}

/// Accepts connections for ever and serves them on this runtime.
pub async fn accept_here(listener: TcpListener, host: Arc<Host>, places: Places) {
    while let Some((stream, peer, place)) = next(&listener, &places).await {
        let host = host.clone();
        tokio::spawn(async move {
            connection::serve(host, stream, peer).await;
            drop(place);
        });
    }
}

async fn next(listener: &TcpListener, places: &Places) -> Option<(TcpStream, SocketAddr, Place)> {
    let permit = places.free.clone().acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Some((stream, peer, places.seat(permit))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}
