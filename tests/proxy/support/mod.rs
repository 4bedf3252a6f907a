//! The cast: a proxy, an upstream that notes everything, a raw client.

pub mod client;
pub mod http;
pub mod process;
pub mod proxy;
pub mod secure;
pub mod tap;

pub use client::{Answer, Client};
pub use process::Process;
pub use proxy::Proxy;
pub use tap::{Gate, Step, Tap};

/// A plain answer with this body.
pub fn plain(body: &[u8]) -> Vec<Step> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// The head of an event stream.
pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
