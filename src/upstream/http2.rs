//! HTTP/2 connections, shared by many requests.
//!
//! Each connection runs as a task of its own worker. Servers commonly allow a
//! hundred streams at once and silently queue the rest; a long reply would then
//! hold up strangers, so a further connection is opened before that.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::UpstreamError;
use super::body::{RequestBody, ResponseBody};
use super::connect::{Stream, reason};

/// Streams on one connection before another is opened.
const STREAMS: usize = 90;
/// What each stream may receive before it must be acknowledged.
const STREAM_WINDOW: u32 = 1 << 20;
/// How often a connection with open streams is checked for life.
const PROBE: Duration = Duration::from_secs(30);

#[derive(Clone)]
struct Shared {
    sender: SendRequest<RequestBody>,
    streams: Arc<AtomicUsize>,
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
        if open.is_empty() {
            return None;
        }
        open.retain(|shared| !shared.sender.is_closed());
        open.iter()
            .find(|shared| shared.streams.load(Ordering::Relaxed) < STREAMS)
            .map(Lease::new)
    }

    /// Begins to speak HTTP/2 on a new connection.
    pub async fn open(&self, stream: Stream) -> Result<Lease, UpstreamError> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW * 16)
            .keep_alive_interval(PROBE)
            .handshake(stream)
            .await
            .map_err(|error| UpstreamError::Connect(reason(&error)))?;
        // Ends by itself once the pool and every answer have let go of the sender.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %reason(&error), "upstream connection ended");
            }
        });
        let shared = Shared {
            sender,
            streams: Arc::default(),
        };
        let lease = Lease::new(&shared);
        self.locked().push(shared);
        Ok(lease)
    }

    /// Closes all but one of the connections nobody uses.
    pub fn tidy(&self) {
        let mut spare = 1;
        self.locked().retain(|shared| {
            let used = shared.streams.load(Ordering::Relaxed) > 0;
            let keep = used || std::mem::take(&mut spare) > 0;
            keep && !shared.sender.is_closed()
        });
    }
}

/// One request's place on a connection.
pub struct Lease {
    sender: SendRequest<RequestBody>,
    place: Place,
}

impl Lease {
    fn new(shared: &Shared) -> Self {
        shared.streams.fetch_add(1, Ordering::Relaxed);
        Self {
            sender: shared.sender.clone(),
            place: Place(shared.streams.clone()),
        }
    }

    /// Sends a request in this place.
    pub async fn send(
        mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        // HTTP/2 has the authority in the target and no such header.
        request.headers_mut().remove(http::header::HOST);
        *request.version_mut() = http::Version::HTTP_2;
        let lost = |error: hyper::Error| UpstreamError::Lost(reason(&error));
        self.sender.ready().await.map_err(lost)?;
        let response = self.sender.send_request(request).await.map_err(lost)?;
        Ok(response.map(|incoming| {
            ResponseBody::Http2(Answer {
                incoming,
                _place: self.place,
            })
        }))
    }
}

struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer on its way. Dropping it resets its stream.
pub struct Answer {
    incoming: Incoming,
    _place: Place,
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
