//! The accept loop.
//!
//! Its own, because a reset must be a real one: each connection carries a
//! handle by which a request can end it, and a connection that is to be reset
//! is closed without lingering.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt;

use super::options::Options;
use super::state::Sim;
use super::wire::Kill;

/// A simulator that runs in the background, until it is dropped.
#[derive(Debug)]
pub struct Running {
    sim: Sim,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Running {
    /// Where it listens, as the base of a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Deref for Running {
    type Target = Sim;

    fn deref(&self) -> &Sim {
        &self.sim
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sim {
    /// Starts a simulator on a free port of the loopback interface.
    pub async fn start(options: Options) -> io::Result<Running> {
        Self::new(options).run().await
    }

    /// Runs this one on a free port of the loopback interface.
    pub async fn run(self) -> io::Result<Running> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(self.clone().serve(listener));
        Ok(Running {
            sim: self,
            address,
            task,
        })
    }

    /// Serves connections until the future is dropped; then they all end.
    pub async fn serve(self, listener: TcpListener) {
        let router = self.router();
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            // Out of descriptors, most likely: let some connections end first.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            };
            connections.spawn(connection(router.clone(), stream));
        }
    }
}

async fn connection(router: axum::Router, stream: TcpStream) {
    // Events must leave one by one, as they are made.
    let _ = stream.set_nodelay(true);
    let kill = Kill::default();
    let guarded = Guarded {
        stream,
        kill: kill.clone(),
    };
    let handle = kill.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(handle.clone());
        let router = router.clone();
        async move {
            Ok::<_, Infallible>(
                router
                    .oneshot(request)
                    .await
                    .unwrap_or_else(|never| match never {}),
            )
        }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(guarded), service);
    tokio::select! {
        // A client that goes away is not an error here.
        _ = served => {}
        () = kill.wait() => {}
    }
}

/// A stream that is reset when it is dropped, if it was to be.
struct Guarded {
    stream: TcpStream,
    kill: Kill,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.kill.is_reset() {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
