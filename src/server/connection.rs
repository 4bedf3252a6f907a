//! One client connection, from accept to close.
//!
//! Plain connections speak HTTP/1; encrypted ones also HTTP/2 where the client
//! offers it. A connection ends politely: what is wrong with a request is said
//! in the API's shape even if it never became a request, and what the client is
//! still sending is read and dropped for a moment, because closing on it would
//! make the client's system throw away the answer it has not read yet.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::exchange::{id_header, new_id};
use super::headers::REQUEST_ID;
use super::respond::Failure;
use super::socket::Socket;

/// The longest head of a request.
const HEAD_LIMIT: usize = 128 * 1024;
/// How long, and for how many bytes, a client that still sends is listened to.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 256 << 20;

/// What every connection needs.
#[derive(Clone)]
pub struct Host {
    /// Answers requests.
    pub router: Router,
    /// Encrypts, if the listener does.
    pub tls: Option<TlsAcceptor>,
    /// Time for a request's head.
    pub header_timeout: Duration,
    /// Asks running connections to finish.
    pub draining: CancellationToken,
}

/// The address of the client.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Serves one connection to its end.
pub async fn serve(host: Arc<Host>, stream: TcpStream, peer: SocketAddr) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
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

type Answer = Result<http::Response<Body>, std::convert::Infallible>;

/// Boxed, because a connection that is to give its socket back must be movable.
fn answer(
    router: Router,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Pin<Box<impl Future<Output = Answer> + Send>> {
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
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = host.router.clone();
    let service = hyper::service::service_fn(move |request| answer(router.clone(), peer, request));
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(host.header_timeout)
        .max_header_size(HEAD_LIMIT)
        .preserve_header_case(true)
        .serve_connection(Socket::new(TokioIo::new(stream)), service);
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
    let failure = match outcome {
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            Some(Failure::HeadTimeout(host.header_timeout))
        }
        Err(error) => {
            tracing::debug!(%error, "client connection ended");
            match refused {
                Some(431) => Some(Failure::HeadTooLarge),
                Some(414) => Some(Failure::TargetTooLong),
                Some(_) => Some(Failure::BadHead),
                None => None,
            }
        }
        Ok(()) => None,
    };
    close(stream.into_inner(), failure, host.draining.is_cancelled()).await;
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
    let mut rest = stream.take(LINGER_BYTES);
    let mut nowhere = tokio::io::sink();
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut nowhere)).await;
}

async fn serve_http2<S>(host: &Host, stream: S, peer: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = host.router.clone();
    let service = hyper::service::service_fn(move |request| answer(router.clone(), peer, request));
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(host.header_timeout)
        .adaptive_window(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = host.draining.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "client connection ended");
    }
}
