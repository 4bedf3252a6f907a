//! Sends sessions over kept-alive connections and takes the times.
//!
//! One thread, plain sockets, bodies that lie ready: what it does beside waiting
//! is to hand buffers to the kernel and look for the end of the answer.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::session::Session;

/// A phase that takes longer than this is given up.
const LIMIT: Duration = Duration::from_mins(2);

/// The sessions of one connection, which sends them one after the other.
pub type Sessions = Arc<Vec<Session>>;

/// Which requests of the sessions are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first of each: a history that nobody has seen.
    First,
    /// All others: each the one before it and two messages.
    Grown,
}

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// From the first byte sent to the first byte of the answer.
    pub first_byte: Vec<Duration>,
    /// How long all of it took.
    pub took: Duration,
    /// Answers that tell of a pass.
    pub passes: usize,
}

/// Open connections to one proxy.
pub struct Load {
    runtime: tokio::runtime::Runtime,
    connections: Vec<TcpStream>,
}

impl Load {
    /// Connects.
    pub fn connect(address: SocketAddr, connections: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let connections = runtime.block_on(async {
            let mut streams = Vec::new();
            for _ in 0..connections {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                streams.push(stream);
            }
            streams
        });
        Self {
            runtime,
            connections,
        }
    }

    /// Sends a part of the sessions, those of all connections at once.
    pub fn send(&mut self, sessions: &[Sessions], part: Part, passes: bool) -> Seen {
        let streams = std::mem::take(&mut self.connections);
        let sending = async {
            let begun = Instant::now();
            let tasks: Vec<_> = streams
                .into_iter()
                .zip(sessions)
                .map(|(stream, sessions)| {
                    tokio::spawn(send_all(stream, sessions.clone(), part, passes))
                })
                .collect();
            let mut seen = Seen::default();
            let mut streams = Vec::new();
            for task in tasks {
                let (stream, part) = task.await.unwrap();
                streams.push(stream);
                seen.first_byte.extend(part.first_byte);
                seen.passes += part.passes;
            }
            seen.took = begun.elapsed();
            (streams, seen)
        };
        let (streams, seen) = self.runtime.block_on(async {
            let sent = tokio::time::timeout(LIMIT, sending).await;
            sent.expect("no answer for two minutes")
        });
        self.connections = streams;
        seen
    }
}

async fn send_all(
    mut stream: TcpStream,
    sessions: Sessions,
    part: Part,
    passes: bool,
) -> (TcpStream, Seen) {
    let mut seen = Seen::default();
    let mut answer = Vec::with_capacity(16 * 1024);
    for session in sessions.iter() {
        let requests = match part {
            Part::First => 0..1,
            Part::Grown => 1..session.len(),
        };
        for index in requests {
            let request = session.request(index, passes);
            let time = send(&mut stream, request, &mut answer).await;
            seen.first_byte.push(time);
            seen.passes += usize::from(tells_of_pass(&answer));
        }
    }
    (stream, seen)
}

async fn send(stream: &mut TcpStream, request: [&[u8]; 3], answer: &mut Vec<u8>) -> Duration {
    let begun = Instant::now();
    let mut slices = request.map(IoSlice::new);
    let mut left = &mut slices[..];
    while !left.is_empty() {
        let count = stream.write_vectored(left).await.unwrap();
        IoSlice::advance_slices(&mut left, count);
    }
    answer.clear();
    let mut first = None;
    loop {
        let count = stream.read_buf(answer).await.unwrap();
        assert!(count > 0, "the answer broke off");
        first.get_or_insert_with(|| begun.elapsed());
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "refused: {}",
            String::from_utf8_lossy(answer)
        );
        if answer.ends_with(b"\r\n0\r\n\r\n") {
            return first.unwrap();
        }
    }
}

fn tells_of_pass(answer: &[u8]) -> bool {
    const NAME: &[u8] = b"x-longhaul-compaction: ";
    memchr::memmem::find(answer, NAME)
        .is_some_and(|at| !answer[at + NAME.len()..].starts_with(b"none"))
}
