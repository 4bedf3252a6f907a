//! A connection to upstream whose read side has the last word.
//!
//! An API that refuses a large request answers, and closes, before it has read
//! all of it. The writer then meets a broken pipe while the answer is already
//! there to be read. HTTP libraries give up at the failed write; here a failed
//! write only stops the writing, so that the answer, if there is one, is found.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// A connection that forgives failed writes.
pub struct Stream<S> {
    inner: S,
    deaf: bool,
}

impl<S> Stream<S> {
    /// Wraps a connection.
    pub fn new(inner: S) -> Self {
        Self { inner, deaf: false }
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
                Poll::Ready(Ok(length))
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
                Poll::Ready(Ok(()))
            }
            flushed => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
