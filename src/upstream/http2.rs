//! HTTP/2 connections, shared by many requests.
//!
//! Each connection runs as a task of its own worker. A server allows so many
//! streams at once and silently queues the rest, so a further connection is
//! opened before that. The window of a connection is as large as those of all
//! its streams together: a client that does not read holds up nobody else.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HOST, TRANSFER_ENCODING};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::body::{RequestBody, ResponseBody};
use super::connect::{Stream, cause, reason};
use super::http1::IDLE_LIFE;
use super::{Stalled, UpstreamError};

/// Streams on one connection before another is opened, if the server allows as
/// many.
const STREAMS: usize = 64;
/// What a stream, and all of them together, may receive unacknowledged.
const STREAM_WINDOW: u32 = 512 << 10;
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;
/// How often a connection is checked for life, and how soon it must answer.
const PROBE: Duration = Duration::from_secs(10);
/// The largest headers of an answer.
const HEADERS_LIMIT: u32 = 256 << 10;

#[derive(Clone)]
struct Shared {
    sender: SendRequest<RequestBody>,
    streams: Arc<AtomicUsize>,
    allowed: Arc<AtomicUsize>,
    used: Arc<Mutex<Instant>>,
}

impl Shared {
    fn has_room(&self) -> bool {
        let allowed = self.allowed.load(Ordering::Relaxed).min(STREAMS);
        self.streams.load(Ordering::Relaxed) < allowed
    }

    fn is_fresh(&self) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = self.streams.load(Ordering::Relaxed) == 0;
        let worn = idle && used.elapsed() > IDLE_LIFE;
        !worn && !self.sender.is_closed()
    }
}

/// The shared connections of one worker.
#[derive(Default)]
pub struct Pool {
    open: Mutex<Vec<Shared>>,
}

impl Pool {
    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Shared>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room on a connection that is already open.
    pub fn lease(&self) -> Option<Lease> {
        let mut open = self.locked();
        open.retain(Shared::is_fresh);
        open.iter()
            .find(|shared| shared.has_room())
            .map(|shared| Lease::new(shared.clone()))
    }

    /// Begins to speak HTTP/2 on a new connection.
    pub async fn open(&self, stream: Stream) -> Result<Lease, UpstreamError> {
        let (sender, mut connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // Until the server has said how many it allows.
            .initial_max_send_streams(1)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADERS_LIMIT)
            .keep_alive_interval(PROBE)
            .keep_alive_timeout(PROBE)
            .keep_alive_while_idle(true)
            .handshake(stream)
            .await
            .map_err(|error| UpstreamError::Connect(reason(&error)))?;
        let allowed = Arc::new(AtomicUsize::new(1));
        let publish = allowed.clone();
        // Ends by itself once the pool and every answer have let go of the sender.
        tokio::spawn(async move {
            let ended = std::future::poll_fn(|context| {
                let ended = Pin::new(&mut connection).poll(context);
                publish.store(connection.current_max_send_streams(), Ordering::Relaxed);
                ended
            });
            if let Err(error) = ended.await {
                tracing::debug!(error = %reason(&error), "upstream connection ended");
            }
        });
        let shared = Shared {
            sender,
            allowed,
            streams: Arc::default(),
            used: Arc::new(Mutex::new(Instant::now())),
        };
        let lease = Lease::new(shared.clone());
        self.locked().push(shared);
        Ok(lease)
    }

    /// Closes the connections nobody has used for a while.
    pub fn tidy(&self) {
        self.locked().retain(Shared::is_fresh);
    }
}

/// One request's place on a connection.
pub struct Lease(Shared);

impl Lease {
    fn new(shared: Shared) -> Self {
        shared.streams.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }

    /// Sends a request in this place.
    pub async fn send(
        mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        // HTTP/2 has the authority in the target, and frames of its own.
        request.headers_mut().remove(HOST);
        request.headers_mut().remove(TRANSFER_ENCODING);
        *request.version_mut() = http::Version::HTTP_2;
        let sender = &mut self.0.sender;
        sender.ready().await.map_err(|error| failure(&error))?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| failure(&error))?;
        Ok(response.map(|incoming| {
            ResponseBody::Http2(Answer {
                incoming,
                _lease: self,
            })
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = Instant::now();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn failure(error: &hyper::Error) -> UpstreamError {
    if let Some(stalled) = cause::<Stalled>(error) {
        return UpstreamError::RequestStalled(*stalled);
    }
    let protocol = cause::<h2::Error>(error);
    // The two ways in which a server says that it has not looked at a request.
    let refused = protocol.is_some_and(|error| {
        error.reason() == Some(h2::Reason::REFUSED_STREAM)
            || (error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR))
    });
    UpstreamError::Lost {
        reason: reason(error),
        untouched: refused || error.is_canceled() || error.is_closed(),
    }
}

/// An answer on its way. Dropping it resets its stream.
pub struct Answer {
    incoming: Incoming,
    _lease: Lease,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
