//! The client's side of a connection to this machine, and to no other.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A connection that is kept alive.
pub struct Line {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
    host: String,
}

/// An answer, whole.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Answer {
    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

impl Line {
    /// Connects. What is not on this machine is refused: a replay sends nothing
    /// anywhere.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let refused = format!("{address} is not on this machine: a replay sends nothing there");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender,
            // Its end is the end of the other side, and nobody's concern.
            task: tokio::spawn(async move { drop(connection.await) }),
            host: address.to_string(),
        })
    }

    /// Sends a request for a message.
    pub async fn post(&mut self, body: Vec<u8>, headers: &[(&str, &str)]) -> io::Result<Answer> {
        let mut request = Request::post("/v1/messages")
            .header("host", &self.host)
            .header("x-api-key", "none-is-needed")
            .header("anthropic-version", "2023-06-01")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        self.sender.ready().await.map_err(io::Error::other)?;
        let answer = self.sender.send_request(request).await;
        let (head, body) = answer.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_sent_to_another_machine() {
        for address in ["192.0.2.1:443", "[2001:db8::1]:443", "0.0.0.0:80"] {
            let refused = Line::connect(address.parse().unwrap()).await.err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
