//! An encrypted upstream that speaks HTTP/2 and nothing else.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::Process;
use super::secure::{Authority, encrypted};

/// What it does with a request.
pub enum Reply {
    /// A status and a body.
    Whole(u16, &'static str),
    /// A large body.
    Flood(Flood),
    /// Resets the stream.
    Reset,
}

impl Reply {
    fn answer(self) -> io::Result<http::Response<Either<Full<Bytes>, Flood>>> {
        let (status, body) = match self {
            Self::Whole(status, body) => (status, Either::Left(Full::from(body))),
            Self::Flood(flood) => (200, Either::Right(flood)),
            Self::Reset => return Err(io::Error::other("reset")),
        };
        let answer = http::Response::builder().status(status);
        Ok(answer.body(body).unwrap())
    }
}

/// A running upstream.
pub struct Upstream {
    url: String,
    authority: Authority,
    /// How many requests it has seen.
    pub requests: Arc<AtomicUsize>,
}

impl Upstream {
    /// Allows so many streams a connection, and answers each request by its
    /// number.
    pub fn start(streams: u32, reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let requests = Arc::new(AtomicUsize::new(0));
        let (counted, reply) = (requests.clone(), Arc::new(reply));
        let address = encrypted(&authority, &["h2"], "127.0.0.1:0", move |stream| {
            let (counted, reply) = (counted.clone(), reply.clone());
            let service = hyper::service::service_fn(move |_request| {
                let reply = reply(counted.fetch_add(1, Ordering::SeqCst));
                async move { reply.answer() }
            });
            async move {
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .max_concurrent_streams(streams)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        });
        Self {
            url: format!("https://localhost:{}", address.port()),
            authority,
            requests,
        }
    }

    /// A proxy before it, with one worker.
    pub fn proxy(&self) -> Process {
        let variables = [
            ("SSL_CERT_FILE", self.authority.trusted()),
            ("LONGHAUL_WORKERS", "1".to_owned()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, &**value));
        Process::start(&self.url, &variables)
    }
}

/// Many pieces of 64 KiB.
pub struct Flood {
    pub pieces: usize,
    /// Says nothing more after the last piece, instead of ending.
    pub unfinished: bool,
    /// Counts the pieces that were asked for.
    pub asked: Arc<AtomicUsize>,
}

impl Body for Flood {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.pieces == 0 {
            return if self.unfinished {
                Poll::Pending
            } else {
                Poll::Ready(None)
            };
        }
        self.pieces -= 1;
        self.asked.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; 64 << 10])))))
    }
}
