//! A connection to upstream whose read side has the last word.
//!
//! An API that refuses a large request answers, and closes, before it has read
//! all of it. The writer then meets a broken pipe while the answer is already
//! there to be read. HTTP libraries give up at the failed write; here a failed
//! write only stops the writing, so that the answer, if there is one, is found.
//!
//! It also counts what was really written: a request of which a part never left
//! this machine cannot have been processed, and may be sent again elsewhere.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// What was written to a connection, for whoever no longer holds it.
#[derive(Debug, Clone, Default)]
pub struct Written(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    failed: AtomicBool,
}

impl Written {
    /// Bytes that the connection has taken so far.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether a request was certainly not written whole. `before` is what the
    /// connection had taken when the request began, `body` the length of its body.
    ///
    /// The head's length is not known here, but it has one: as long as no more
    /// bytes were taken than the body has, some of the body was not. A write that
    /// failed lost at least its own bytes.
    pub fn is_partial(&self, before: u64, body: u64) -> bool {
        self.0.failed.load(Ordering::Relaxed) || self.bytes().saturating_sub(before) <= body
    }

    fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn fail(&self) {
        self.0.failed.store(true, Ordering::Relaxed);
    }
}

/// A connection that forgives failed writes.
pub struct Stream<S> {
    inner: S,
    deaf: bool,
    written: Written,
}

impl<S> Stream<S> {
    /// Wraps a connection.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            deaf: false,
            written: Written::default(),
        }
    }

    /// What is written to it, from now on too.
    pub fn written(&self) -> Written {
        self.written.clone()
    }

    /// Takes a failed write as one that went nowhere.
    fn forgive(
        &mut self,
        written: Poll<io::Result<usize>>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.deaf = true;
                self.written.fail();
                Poll::Ready(Ok(length))
            }
            Poll::Ready(Ok(bytes)) => {
                self.written.add(bytes);
                Poll::Ready(Ok(bytes))
            }
            written => written,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionReset | ConnectionAborted | NotConnected
    )
}

impl<S: Read + Unpin> Read for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.forgive(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(length));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.forgive(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf {
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.inner).poll_flush(context) {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.deaf = true;
                self.written.fail();
                Poll::Ready(Ok(()))
            }
            flushed => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_partial_until_more_than_its_body_was_taken() {
        let written = Written::default();
        written.add(500);
        let before = written.bytes();
        for (taken, partial) in [(0, true), (100, true), (1, false)] {
            written.add(taken);
            assert_eq!(written.is_partial(before, 100), partial, "{taken} more");
        }
        // A request without a body is its head.
        assert!(written.is_partial(written.bytes(), 0));
        written.fail();
        assert!(written.is_partial(before, 100), "the last write was lost");
    }
}
