//! The cast: a proxy, an upstream that notes everything, a raw client.

pub mod client;
pub mod http;
pub mod http2;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod sdk;
pub mod secure;
pub mod simulated;
pub mod tap;

pub use client::{Answer, Client};
pub use process::Process;
pub use proxy::Proxy;
pub use raw::{raw, swallow};
pub use tap::{Gate, Step, Tap};

use std::time::{Duration, Instant};

/// A request that is answered.
pub const GET: &str = "GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\n";

/// Bytes for a message to the reader of a test.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until something holds that must hold soon.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

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
