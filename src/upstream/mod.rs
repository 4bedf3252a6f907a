//! The way to the API: connect, send, and hand back the answer as it comes.
//!
//! Each worker thread has an `Upstream` of its own, so a connection never moves
//! between threads. An HTTP/1 connection is not a task: whoever waits for the
//! answer also drives the connection (see `http1`), which spares a wake-up and a
//! write per chunk. HTTP/2, where the API offers it, shares connections between
//! requests and runs each as a task. A request is sent a second time only if
//! upstream cannot have begun to work on it: it says so, or the request was not
//! written whole on a connection that had been idle. One that was written whole
//! may have been read, however soon the connection breaks: the client is told.

mod body;
mod connect;
mod http1;
mod http2;
mod roots;
mod stream;

use std::time::Duration;

use http::{Request, Response, StatusCode, Uri, uri::PathAndQuery};
use tokio::time::{Instant, timeout, timeout_at};

use body::Pulse;
pub use body::{RequestBody, ResponseBody};
pub use connect::{Connector, ConnectorError, reason};
pub use roots::client_config;

/// How an upstream is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// Scheme, host and port, and the path that goes before every request's own.
    pub base: Uri,
    /// Longest time for a connection to be made, TLS included.
    pub connect: Duration,
    /// Longest silence, before the answer begins and within it.
    pub idle: Duration,
    /// Idle connections that are kept.
    pub idle_connections: usize,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection could be made.
    #[error("cannot connect to upstream: {0}")]
    Connect(String),
    /// No connection was made in time.
    #[error("no connection to upstream within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection was lost before an answer began.
    #[error(
        "upstream closed the connection before it answered, and may have read the request: \
         {reason}; send it again if it may be processed twice"
    )]
    Lost {
        /// What was seen of it.
        reason: String,
        /// Upstream cannot have begun to work on the request.
        untouched: bool,
    },
    /// What came is not an answer.
    #[error("upstream's answer is not valid HTTP: {0}")]
    Garbled(String),
    /// Nothing came for too long.
    #[error("upstream was silent for {0:?}")]
    Silent(Duration),
    /// The client's own body ended early or broke.
    #[error("request body ended before it was complete: {0}")]
    RequestBody(String),
    /// The client's own body stopped arriving.
    #[error("request body {0}")]
    RequestStalled(#[from] Stalled),
    /// The request cannot be put to this upstream.
    #[error("request target is not valid: {0}")]
    Target(String),
}

/// A request body stopped arriving.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("stalled for {0:?}: send it faster, or raise limits.body_idle")]
pub struct Stalled(pub Duration);

/// One worker's way to the API.
pub struct Upstream {
    options: Options,
    authority: http::HeaderValue,
    connector: Connector,
    idle: http1::Pool,
    shared: http2::Pool,
}

impl Upstream {
    /// A way to the API that `options` names.
    pub fn new(options: Options, connector: Connector) -> Result<Self, UpstreamError> {
        let authority = options
            .base
            .authority()
            .and_then(|authority| http::HeaderValue::from_str(authority.as_str()).ok())
            .ok_or_else(|| UpstreamError::Target("upstream has no host".to_owned()))?;
        Ok(Self {
            idle: http1::Pool::new(options.idle_connections),
            shared: http2::Pool::default(),
            authority,
            connector,
            options,
        })
    }

    /// The longest silence that is borne.
    pub fn idle_limit(&self) -> Duration {
        self.options.idle
    }

    /// Closes connections that have been idle for too long.
    pub fn tidy(&self) {
        self.idle.tidy();
        self.shared.tidy();
    }

    /// Where a request with this target goes: the same path and query, under the
    /// upstream's own path.
    pub fn target(&self, uri: &Uri) -> Result<Uri, UpstreamError> {
        let prefix = self.options.base.path().trim_end_matches('/');
        let own = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let own = if own.starts_with('/') { own } else { "/" };
        let mut parts = self.options.base.clone().into_parts();
        let joined = if prefix.is_empty() {
            PathAndQuery::try_from(own)
        } else {
            PathAndQuery::try_from(format!("{prefix}{own}"))
        };
        parts.path_and_query =
            Some(joined.map_err(|error| UpstreamError::Target(error.to_string()))?);
        Uri::from_parts(parts).map_err(|error| UpstreamError::Target(error.to_string()))
    }

    /// Sends a request whose target came from [`Self::target`] and waits for the
    /// head of the answer.
    pub async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        let answer = self.attempt(request).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let unasked = "it switches protocols unasked".to_owned();
            return Err(UpstreamError::Garbled(unasked));
        }
        Ok(answer)
    }

    async fn attempt(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        request
            .headers_mut()
            .insert(http::header::HOST, self.authority.clone());
        let spare = request.body().again().map(|body| copy_of(&request, body));
        let pulse = request.body().pulse();
        let outcome = if let Some(lease) = self.shared.lease() {
            self.within_idle(&pulse, lease.send(request)).await
        } else if let Some(link) = self.idle.take().await {
            self.within_idle(&pulse, link.send(request, &self.idle))
                .await
        } else {
            return self.send_fresh(request).await;
        };
        match (outcome, spare) {
            (
                Err(UpstreamError::Lost {
                    reason,
                    untouched: true,
                }),
                Some(spare),
            ) => {
                tracing::debug!(%reason, "connection was dead, trying a new one");
                self.send_fresh(spare).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn send_fresh(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        let limit = self.options.connect;
        let (stream, http2) = timeout(limit, self.connector.connect(&self.options.base))
            .await
            .map_err(|_| UpstreamError::ConnectTimeout(limit))??;
        let pulse = request.body().pulse();
        if http2 {
            let lease = self.shared.open(stream).await?;
            self.within_idle(&pulse, lease.send(request)).await
        } else {
            let link = http1::Link::open(stream).await?;
            self.within_idle(&pulse, link.send(request, &self.idle))
                .await
        }
    }

    /// Waits for an answer. A request that is still arriving is no silence of
    /// upstream's, so the time counts from its last piece.
    async fn within_idle<T>(
        &self,
        pulse: &Pulse,
        answer: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let limit = self.options.idle;
        let mut answer = std::pin::pin!(answer);
        loop {
            let due = pulse.last() + limit;
            if let Ok(answer) = timeout_at(due, &mut answer).await {
                return answer;
            }
            if pulse.last() + limit <= Instant::now() {
                return Err(UpstreamError::Silent(limit));
            }
        }
    }
}

/// The same request once more, sharing the body's bytes.
fn copy_of(request: &Request<RequestBody>, body: RequestBody) -> Request<RequestBody> {
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
