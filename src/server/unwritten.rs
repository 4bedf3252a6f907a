//! What an HTTP/2 connection has not written yet.
//!
//! A stream that breaks off is reset, and with the reset goes whatever of it was
//! not written yet: it may wait for the client to have room for it, or for the
//! socket. For room hyper waits only until there is some for the first byte of a
//! piece, so [`Pieces`] makes the last byte of each a piece of its own, for which
//! there is room only when there was for all before it; not of small ones, since
//! a client may hang up on whoever sends it many tiny pieces. And whether the socket
//! has taken it all the connection does not say, but it writes as much as it can
//! each time it is looked after, so [`Noting`] sees whether anything is left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The smallest piece that is parted. Receivers reckon what pieces of less than 256
/// bytes cost them, and a larger one makes up for it.
const PARTED: usize = 512;

/// A body whose large pieces are followed by their last byte.
pub struct Pieces {
    body: Body,
    last: Option<Bytes>,
}

impl Pieces {
    /// Of this body.
    pub fn of(body: Body) -> Self {
        Self { body, last: None }
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Some(Ok(Frame::data(last))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // What has come to its end does not break off.
        let whole = self.body.is_end_stream();
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(mut data) if data.len() >= PARTED && !whole => {
                    self.last = Some(data.split_off(data.len() - 1));
                    Frame::data(data)
                }
                Ok(data) => Frame::data(data),
                Err(other) => other,
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = u64::from(self.last.is_some());
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

/// Whether the stream below has not taken everything.
#[derive(Clone, Default)]
pub struct Blocked(Arc<AtomicBool>);

impl Blocked {
    /// Whether something is left to be written.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        self.0.store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

/// A stream that notes whether it is blocked.
pub struct Noting<S> {
    stream: S,
    blocked: Blocked,
}

impl<S> Noting<S> {
    /// Notes it there.
    pub fn new(stream: S, blocked: Blocked) -> Self {
        Self { stream, blocked }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noting<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.blocked.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.blocked.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.blocked.note(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
