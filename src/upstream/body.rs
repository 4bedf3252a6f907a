//! The bodies that go up and come back.
//!
//! A request body is either whole, in which case it can be sent again, or a
//! stream that is passed on as it arrives. A response body is whatever the
//! connection gives; it also owns the connection, so that dropping it, as
//! happens when the client goes away, ends the exchange upstream too.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{http1, http2};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is sent upstream.
pub enum RequestBody {
    /// All of it is there. `None` once it has been taken.
    Whole(Option<Bytes>),
    /// It is still arriving.
    Stream(axum::body::Body),
}

impl RequestBody {
    /// The bytes of a whole body that has not been sent.
    pub fn whole(&self) -> Option<&Bytes> {
        match self {
            Self::Whole(bytes) => bytes.as_ref(),
            Self::Stream(_) => None,
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
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
            Self::Whole(bytes) => Poll::Ready(
                bytes
                    .take()
                    .filter(|b| !b.is_empty())
                    .map(|b| Ok(Frame::data(b))),
            ),
            Self::Stream(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(body) => body.size_hint(),
        }
    }
}

/// What comes back.
pub enum ResponseBody {
    /// Over a connection of its own.
    Http1(Box<http1::Answer>),
    /// Over a shared connection.
    Http2(http2::Answer),
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
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(answer) => answer.is_end_stream(),
            Self::Http2(answer) => answer.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(answer) => answer.size_hint(),
            Self::Http2(answer) => answer.size_hint(),
        }
    }
}
