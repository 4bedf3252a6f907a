//! The bodies that go up and come back.
//!
//! A request body is either whole, in which case it can be sent again, or a
//! stream that is passed on as it arrives and notes when it last moved. A response body is whatever the
//! connection gives; it also owns the connection, so that dropping it, as
//! happens when the client goes away, ends the exchange upstream too.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::{http1, http2};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is sent upstream.
pub enum RequestBody {
    /// All of it is there, in pieces of which some may have been taken.
    Whole(std::vec::IntoIter<Bytes>),
    /// It is still arriving.
    Stream(axum::body::Body, Pulse),
}

/// When a body last moved.
#[derive(Clone)]
pub struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// When it last moved.
    pub fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl RequestBody {
    /// A body that is passed on as it arrives.
    pub fn stream(body: axum::body::Body) -> Self {
        if body.is_end_stream() {
            return Self::from(Bytes::new());
        }
        Self::Stream(body, Pulse::new())
    }

    /// A body in pieces.
    pub fn pieces(mut pieces: Vec<Bytes>) -> Self {
        pieces.retain(|piece| !piece.is_empty());
        Self::Whole(pieces.into_iter())
    }

    /// The same body once more, if all of it is there; the bytes are shared.
    pub fn again(&self) -> Option<Self> {
        match self {
            Self::Whole(pieces) => Some(Self::Whole(pieces.as_slice().to_vec().into_iter())),
            Self::Stream(..) => None,
        }
    }

    /// Where it notes that it moved.
    pub fn pulse(&self) -> Pulse {
        match self {
            Self::Whole(_) => Pulse::new(),
            Self::Stream(_, pulse) => pulse.clone(),
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::pieces(vec![bytes])
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Whole(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Stream(body, pulse) => {
                let frame = Pin::new(body).poll_frame(context).map_err(Into::into);
                if frame.is_ready() {
                    pulse.beat();
                }
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(pieces) => pieces.as_slice().is_empty(),
            Self::Stream(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(pieces) => {
                let bytes: usize = pieces.as_slice().iter().map(Bytes::len).sum();
                SizeHint::with_exact(bytes as u64)
            }
            Self::Stream(body, _) => body.size_hint(),
        }
    }
}

/// What comes back.
pub enum ResponseBody {
    /// Over a connection of its own.
    Http1(Box<http1::Answer>),
    /// Over a shared connection.
    Http2(http2::Answer),
    /// It has come already.
    Kept(Option<Bytes>),
    /// Some of it has come already.
    Begun(Option<Bytes>, Box<ResponseBody>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Http1(answer) => Pin::new(answer.as_mut()).poll_frame(context),
            Self::Http2(answer) => Pin::new(answer).poll_frame(context),
            Self::Kept(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Begun(bytes, rest) => match bytes.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => Pin::new(rest.as_mut()).poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(answer) => answer.is_end_stream(),
            Self::Http2(answer) => answer.is_end_stream(),
            Self::Kept(bytes) => bytes.is_none(),
            Self::Begun(bytes, rest) => bytes.is_none() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(answer) => answer.size_hint(),
            Self::Http2(answer) => answer.size_hint(),
            Self::Kept(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Begun(..) => SizeHint::default(),
        }
    }
}
