//! A client that sends exactly what it is told and keeps exactly what it gets.

use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::http::{Message, Reader};

/// A response.
pub type Answer = Message;

/// One connection to the proxy.
pub struct Client {
    stream: TcpStream,
    reader: Reader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    /// If there is anybody to connect to.
    pub fn try_connect(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let reader = Reader::new(stream.try_clone().unwrap());
        Some(Self { stream, reader })
    }

    /// Waits no longer than this for anything.
    pub fn wait_at_most(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    /// Writes these bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Writes as much of these bytes as the other side takes.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) -> &mut Self {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// Says that nothing more will be sent, if anybody still listens.
    pub fn try_finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads to the end, which may be an abrupt one but must come: what came,
    /// and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        let mut seen = Vec::new();
        loop {
            match self.try_some() {
                Ok(some) if some.is_empty() => return (seen, Ok(())),
                Ok(some) => seen.extend(some),
                Err(error) => return (seen, Err(error)),
            }
        }
    }

    /// Reads to the end, however it comes.
    pub fn drain(&mut self) {
        let _ = self.rest();
    }

    /// A POST with this body.
    pub fn post(&mut self, path: &str, headers: &str, body: &[u8]) -> &mut Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        self.send([head.as_bytes(), body].concat())
    }

    /// The head of the next answer.
    pub fn head(&mut self) -> Answer {
        self.reader
            .head()
            .unwrap()
            .expect("closed without an answer")
    }

    /// The whole next answer.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        // A connection that is torn down leaves the answer incomplete.
        let _ = self.reader.body(&mut answer, true);
        answer
    }

    /// The whole next answer, if the connection lives long enough for one.
    pub fn try_answer(&mut self) -> Option<Answer> {
        let mut answer = self.reader.head().ok().flatten()?;
        let _ = self.reader.body(&mut answer, true);
        Some(answer)
    }

    /// Whatever bytes come next, or how the connection was torn down.
    pub fn try_some(&mut self) -> io::Result<Vec<u8>> {
        self.reader
            .some()
            .inspect_err(|error| assert_ne!(error.kind(), ErrorKind::WouldBlock, "it hangs"))
    }

    /// Whatever bytes come next; empty at the end of the connection.
    pub fn some(&mut self) -> Vec<u8> {
        self.reader.some().unwrap()
    }

    /// Reads until `text` has come.
    pub fn until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while memchr::memmem::find(&seen, text.as_bytes()).is_none() {
            let some = self.some();
            assert!(
                !some.is_empty(),
                "closed before {text:?}: {}",
                String::from_utf8_lossy(&seen)
            );
            seen.extend(some);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }
}
