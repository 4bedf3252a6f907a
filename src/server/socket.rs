//! A client's connection, with two corrections.
//!
//! When a request's first lines are not HTTP, hyper answers with a bare status
//! and no body, and offers no way to say more. Clients show their users what is
//! in the body, so that bare answer is caught here, on its way out, and the
//! connection's owner sends a full one instead. It can only come while no
//! response is on its way and all earlier ones have been written, and it lacks
//! the header that all of ours carry.
//!
//! And a client that does not read must not hold a stream for ever, so a write
//! that makes no progress for too long fails.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Sleep;

use super::headers::REQUEST_ID;
use super::line::Line;

/// A connection to a client.
pub struct Socket<S> {
    inner: S,
    line: Arc<Line>,
    /// Nothing of a response is waiting to be written.
    clear: bool,
    refused: Option<u16>,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Socket<S> {
    /// Wraps a connection whose writes may stall for as long as `patience`.
    pub fn new(inner: S, line: Arc<Line>, patience: Duration) -> Self {
        Self {
            inner,
            line,
            clear: true,
            refused: None,
            patience,
            stalled: None,
        }
    }

    /// The connection, and the status of the bare answer that was caught.
    pub fn into_parts(self) -> (S, Option<u16>) {
        (self.inner, self.refused)
    }

    fn catches(&mut self, written: &[u8]) -> bool {
        if self.line.is_busy() {
            self.clear = false;
        } else if self.clear && self.refused.is_none() {
            self.refused = bare_refusal(written);
        }
        self.refused.is_some()
    }

    fn watch<T>(
        &mut self,
        progress: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let patience = self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        stalled.as_mut().poll(context).map(|()| {
            let text = format!("the client has read nothing for {patience:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }
}

/// The status, if these bytes are one whole response that hyper made by itself.
fn bare_refusal(bytes: &[u8]) -> Option<u16> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let bare = status.starts_with(b"4")
        && bytes.ends_with(b"\r\n\r\n")
        && memchr::memmem::find(bytes, b"content-length: 0\r\n").is_some()
        && memchr::memmem::find(bytes, REQUEST_ID.as_str().as_bytes()).is_none();
    bare.then(|| std::str::from_utf8(status).ok()?.parse().ok())?
}

impl<S: Read + Unpin> Read for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.catches(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = slices.iter().find(|slice| !slice.is_empty())
            && self.catches(first)
        {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// Hyper asks for this only when it has handed over everything it had.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if let Poll::Ready(Ok(())) = flushed {
            self.clear = !self.line.is_busy();
            self.line.flushed();
        }
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_refusal_is_caught() {
        let rows: &[(&str, Option<u16>)] = &[
            (
                "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: x\r\n\r\n",
                Some(400),
            ),
            (
                "HTTP/1.1 431 x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                Some(431),
            ),
            (
                "HTTP/1.1 400 x\r\nx-longhaul-request: 1\r\ncontent-length: 0\r\n\r\n",
                None,
            ),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", None),
            ("HTTP/1.1 400 x\r\ncontent-length: 2\r\n\r\nab", None),
            ("HTTP/1.1 4", None),
            ("", None),
        ];
        for (bytes, expected) in rows {
            assert_eq!(bare_refusal(bytes.as_bytes()), *expected, "{bytes}");
        }
    }
}
