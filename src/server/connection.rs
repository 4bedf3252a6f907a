//! One client connection, from accept to close.
//!
//! Plain connections speak HTTP/1; encrypted ones also HTTP/2 where the client
//! offers it. A connection ends politely: what is wrong with a request is said
//! in the API's shape even if it never became a request, and what the client is
//! still sending is read and dropped for a while, because closing on it would
//! make the client's system throw away the answer it has not read yet.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::headers::REQUEST_ID;
use super::line::Line;
use super::request_id::{id_header, new_id};
use super::respond::Failure;
use super::socket::Socket;
use super::unwritten::{Blocked, Noting, Pieces};

/// The longest head of a request.
const HEAD_LIMIT: usize = 128 * 1024;
/// How long a client that still sends is listened to, in all and between two
/// pieces.
const LINGER: Duration = Duration::from_secs(30);
const LINGER_IDLE: Duration = Duration::from_secs(3);
/// After how long a silence the system asks whether the client is still there.
const KEEPALIVE: Duration = Duration::from_mins(1);

/// What every connection needs.
#[derive(Clone)]
pub struct Host {
    /// Answers requests.
    pub router: Router,
    /// Encrypts, if the listener does.
    pub tls: Option<TlsAcceptor>,
    /// Time for a request's head, and for idling between requests.
    pub header_timeout: Duration,
    /// How long a client may leave an answer unread.
    pub unread_timeout: Duration,
    /// Asks running connections to finish.
    pub draining: CancellationToken,
}

/// The address of the client.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// A connection that can be torn down, so that its end cannot be taken for a
/// proper one.
trait Tear {
    fn tear(&self) -> std::io::Result<()>;
}

impl Tear for TcpStream {
    fn tear(&self) -> std::io::Result<()> {
        self.set_zero_linger()
    }
}

impl Tear for TlsStream<TcpStream> {
    fn tear(&self) -> std::io::Result<()> {
        self.get_ref().0.set_zero_linger()
    }
}

/// Serves one connection to its end.
pub async fn serve(host: Arc<Host>, stream: TcpStream, peer: SocketAddr) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(&stream).set_tcp_keepalive(&keepalive));
    if let Err(error) = tuned {
        tracing::debug!(%error, "cannot tune a connection");
    }
    let Some(acceptor) = &host.tls else {
        return serve_http1(&host, stream, peer).await;
    };
    match timeout(host.header_timeout, acceptor.accept(stream)).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(&host, stream, peer).await;
        }
        Ok(Ok(stream)) => serve_http1(&host, stream, peer).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

type Answer = Result<http::Response<Body>, Infallible>;

/// Boxed, because a connection that is to give its socket back must be movable.
fn answer(
    router: Router,
    peer: SocketAddr,
    line: &Arc<Line>,
    mut request: Request<Incoming>,
) -> Pin<Box<impl Future<Output = Answer> + Send + use<>>> {
    let flight = line.begin(request.version());
    request.extensions_mut().insert(flight);
    request.extensions_mut().insert(Peer(peer));
    Box::pin(async move {
        let mut response = router.oneshot(request.map(Body::new)).await?;
        // Every response has it, or `Socket` would take it for hyper's own.
        let headers = response.headers_mut();
        headers
            .entry(REQUEST_ID)
            .or_insert_with(|| id_header(&new_id()));
        Ok(response)
    })
}

async fn serve_http1<S>(host: &Host, stream: S, peer: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Tear + Unpin + Send + 'static,
{
    let line = Arc::new(Line::telling());
    let socket = Socket::new(TokioIo::new(stream), line.clone(), host.unread_timeout);
    let service = {
        let (router, line) = (host.router.clone(), line.clone());
        hyper::service::service_fn(move |request| answer(router.clone(), peer, &line, request))
    };
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(host.header_timeout)
        .max_header_size(HEAD_LIMIT)
        .preserve_header_case(true)
        .serve_connection(socket, service);
    let outcome = {
        let mut finished = std::pin::pin!(std::future::poll_fn(
            |context| connection.poll_without_shutdown(context)
        ));
        tokio::select! {
            outcome = &mut finished => Some(outcome),
            () = host.draining.cancelled() => None,
        }
    };
    let outcome = if let Some(outcome) = outcome {
        outcome
    } else {
        Pin::new(&mut connection).graceful_shutdown();
        std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await
    };
    let parts = connection.into_parts();
    let (stream, refused) = parts.io.into_parts();
    let stream = stream.into_inner();
    let failure = match outcome {
        Ok(()) => None,
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            Some(Failure::HeadTimeout(host.header_timeout))
        }
        Err(error) => {
            tracing::debug!(%error, "client connection ended");
            if error.is_user() && line.ends_by_closing() {
                return tear(&stream);
            }
            refused.map(|status| match status {
                431 => Failure::HeadTooLarge,
                414 => Failure::TargetTooLong,
                _ => Failure::BadHead,
            })
        }
    };
    close(stream, failure, host.draining.is_cancelled()).await;
}

fn tear(stream: &impl Tear) {
    if let Err(error) = stream.tear() {
        tracing::debug!(%error, "cannot reset a connection");
    }
}

async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    failure: Option<Failure>,
    hurried: bool,
) {
    if let Some(failure) = failure {
        let request = new_id();
        tracing::info!(%request, reason = failure.reason(), "refused a connection");
        let answer = failure.raw_response(&request);
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
    if stream.shutdown().await.is_err() || hurried {
        return;
    }
    let until = Instant::now() + LINGER;
    let mut nowhere = vec![0; 16 * 1024];
    while Instant::now() < until {
        match timeout(LINGER_IDLE, stream.read(&mut nowhere)).await {
            Ok(Ok(1..)) => {}
            _ => return,
        }
    }
}

async fn serve_http2<S>(host: &Host, stream: S, peer: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let line = Arc::new(Line::looked_after());
    let blocked = Blocked::default();
    let stream = Noting::new(stream, blocked.clone());
    let service = {
        let (router, line) = (host.router.clone(), line.clone());
        hyper::service::service_fn(move |request| {
            let mut request: Request<Incoming> = request;
            *request.version_mut() = http::Version::HTTP_11;
            let answer = answer(router.clone(), peer, &line, request);
            async move { Ok::<_, Infallible>(answer.await?.map(Pieces::of)) }
        })
    };
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(host.header_timeout)
        .max_header_list_size(u32::try_from(HEAD_LIMIT).unwrap_or(u32::MAX))
        .adaptive_window(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut seen = 0;
    let mut closing = false;
    let outcome = loop {
        let looked_after = std::future::poll_fn(|context| {
            let outcome = connection.as_mut().poll(context);
            // It writes as much as it can each time.
            if outcome.is_pending() && !blocked.is_set() {
                line.flushed();
            }
            outcome
        });
        tokio::select! {
            outcome = looked_after => break outcome,
            () = line.is_asked() => {}
            () = host.draining.cancelled(), if !closing => {
                connection.as_mut().graceful_shutdown();
                closing = true;
            }
            () = tokio::time::sleep(host.header_timeout) => {
                // Nothing on its way and nothing new: an idle connection, which
                // is first told to end and then ended.
                let idle = !line.is_busy() && line.requests() == seen;
                seen = line.requests();
                if idle && closing {
                    return;
                }
                if idle {
                    connection.as_mut().graceful_shutdown();
                    closing = true;
                }
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "client connection ended");
    }
}
