//! HTTP/1 connections, driven by whoever waits for the answer.
//!
//! A pooled client usually runs each connection as a task and passes every chunk
//! through a channel, which costs two wake-ups and a write per chunk. Here the
//! connection is polled inside the response body instead: bytes that arrive
//! together leave together. While idle a connection is not polled at all; that
//! the other side closed it is noticed when it is taken out of the pool.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};

use super::body::{RequestBody, ResponseBody};
use super::connect::{Stream, cause, reason};
use super::stream::Written;
use super::{Stalled, UpstreamError};

/// How long an idle connection is worth keeping: a little less than what common
/// servers and load balancers allow, so that they rarely close first.
pub const IDLE_LIFE: Duration = Duration::from_secs(50);
/// The most headers of an answer.
const HEADERS: usize = 200;

/// A connection and its handle.
pub struct Link {
    sender: SendRequest<RequestBody>,
    connection: Connection<Stream, RequestBody>,
    ended: bool,
    /// It has served before.
    used: bool,
    written: Written,
}

impl Link {
    /// Begins to speak HTTP/1 on a new connection.
    pub async fn open(stream: Stream) -> Result<Self, UpstreamError> {
        let written = stream.written();
        let (sender, connection) = Builder::new()
            .preserve_header_case(true)
            .max_headers(HEADERS)
            .handshake(stream)
            .await
            .map_err(|error| UpstreamError::Connect(reason(&error)))?;
        Ok(Self {
            sender,
            connection,
            ended: false,
            used: false,
            written,
        })
    }

    /// Sends a request; the connection goes back into `pool` after the answer.
    pub async fn send(
        mut self,
        mut request: Request<RequestBody>,
        pool: &Pool,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        *request.uri_mut() = origin_form(request.uri());
        if request.body().size_hint().exact().is_none() {
            // Hyper would assume that a GET has no body.
            let chunked = HeaderValue::from_static("chunked");
            request.headers_mut().insert(TRANSFER_ENCODING, chunked);
        }
        let length = request.body().size_hint().exact().unwrap_or(u64::MAX);
        let Self {
            sender,
            connection,
            ended,
            used,
            written,
        } = &mut self;
        let before = written.bytes();
        let mut answer = std::pin::pin!(sender.send_request(request));
        let response = std::future::poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            drive(connection, ended, context);
            answer.as_mut().poll(context)
        })
        .await
        .map_err(|error| failure(&error, *used && written.is_partial(before, length)))?;
        *used = true;
        let pool = pool.clone();
        Ok(response.map(|incoming| {
            ResponseBody::Http1(Box::new(Answer {
                incoming,
                link: Some(self),
                pool,
            }))
        }))
    }

    /// Lets the connection catch up and tells whether it can take a request.
    fn poll_usable(&mut self, context: &mut Context<'_>) -> bool {
        drive(&mut self.connection, &mut self.ended, context);
        !self.ended && matches!(self.sender.poll_ready(context), Poll::Ready(Ok(())))
    }
}

/// Lets the connection read and write what it can. Its own errors need no care
/// here: they reach whoever waits for the answer or reads the body.
fn drive(
    connection: &mut Connection<Stream, RequestBody>,
    ended: &mut bool,
    context: &mut Context<'_>,
) {
    if !*ended {
        *ended = Pin::new(connection).poll(context).is_ready();
    }
}

/// `partial`: the connection had served before, and did not take all of this
/// request. Without its last byte no API can have begun to work on it.
fn failure(error: &hyper::Error, partial: bool) -> UpstreamError {
    let text = reason(error);
    if error.is_user() {
        return match cause::<Stalled>(error) {
            Some(stalled) => UpstreamError::RequestStalled(*stalled),
            None => UpstreamError::RequestBody(text),
        };
    }
    if error.is_parse() {
        return UpstreamError::Garbled(text);
    }
    UpstreamError::Lost {
        reason: text,
        // Cancelled: the connection was closed before the request was taken.
        untouched: partial || error.is_canceled(),
    }
}

fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query()
        .map_or_else(Uri::default, |path| Uri::from(path.clone()))
}

/// An answer on its way, together with the connection it comes by.
pub struct Answer {
    incoming: Incoming,
    link: Option<Link>,
    pool: Pool,
}

impl Answer {
    /// Keeps the connection for the next request, unless it is still busy with
    /// this one: an answer can be over before its request has been sent.
    fn give_back(&mut self, context: &mut Context<'_>) {
        if let Some(mut link) = self.link.take()
            && link.poll_usable(context)
        {
            self.pool.put(link);
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = Pin::new(&mut self.incoming).poll_frame(context);
        if frame.is_pending()
            && let Some(link) = &mut self.link
        {
            drive(&mut link.connection, &mut link.ended, context);
            frame = Pin::new(&mut self.incoming).poll_frame(context);
        }
        match &frame {
            Poll::Ready(None) => self.give_back(context),
            Poll::Ready(Some(Err(_))) => self.link = None,
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // A body of known length is not asked again after its last byte.
        if self.incoming.is_end_stream() {
            self.give_back(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// Idle connections of one worker, the most recently used on top.
#[derive(Clone)]
pub struct Pool {
    idle: Arc<Mutex<Vec<(Link, Instant)>>>,
    limit: usize,
}

impl Pool {
    /// A pool that keeps at most `limit` connections.
    pub fn new(limit: usize) -> Self {
        Self {
            idle: Arc::default(),
            limit,
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<(Link, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, link: Link) {
        let mut idle = self.locked();
        if idle.len() < self.limit {
            idle.push((link, Instant::now()));
        }
    }

    /// An idle connection that is still alive.
    pub async fn take(&self) -> Option<Link> {
        loop {
            let (mut link, since) = self.locked().pop()?;
            let usable =
                std::future::poll_fn(|context| Poll::Ready(link.poll_usable(context))).await;
            if usable && since.elapsed() < IDLE_LIFE {
                return Some(link);
            }
        }
    }

    /// Closes connections that have been idle for too long.
    pub fn tidy(&self) {
        self.locked()
            .retain(|(link, since)| !link.ended && since.elapsed() < IDLE_LIFE);
    }
}
