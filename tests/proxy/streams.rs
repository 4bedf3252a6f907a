//! Two thousand slow streams at once, and what each one costs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{LAST_CHUNK, Process, STREAM_HEAD, chunk};

const STREAMS: usize = 2000;
const FRAMES: usize = 8;
const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const EVENT: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(BODY.as_bytes()) {
                    stream.read_buf(&mut head).await.unwrap();
                }
                stream.write_all(STREAM_HEAD.as_bytes()).await.unwrap();
                for _ in 0..FRAMES {
                    stream.write_all(&chunk(EVENT)).await.unwrap();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                stream.write_all(LAST_CHUNK).await.unwrap();
            });
        }
    });
    address
}

async fn client(address: SocketAddr, begun: Arc<AtomicUsize>) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = BODY.len();
    let request =
        format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{BODY}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !seen.ends_with(b"\r\n0\r\n\r\n") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "a stream was cut");
        if seen.is_empty() {
            begun.fetch_add(1, Ordering::SeqCst);
        }
        seen.extend_from_slice(&buffer[..count]);
    }
    memchr::memmem::find_iter(&seen, EVENT).count()
}

fn resident_kilobytes(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn two_thousand_slow_streams_are_held_with_flat_memory() {
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let upstream = runtime.block_on(upstream());
    let process = Process::start(
        &format!("http://{upstream}"),
        &[("LONGHAUL_LOG__LEVEL", "off")],
    );
    let address = process.address;
    // One stream first, so that what is made once is not counted for each.
    runtime.block_on(client(address, Arc::default()));
    let empty = resident_kilobytes(process.id());
    let begun = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..STREAMS)
        .map(|_| runtime.spawn(client(address, begun.clone())))
        .collect();
    while begun.load(Ordering::SeqCst) < STREAMS {
        std::thread::sleep(Duration::from_millis(20));
    }
    let full = resident_kilobytes(process.id());
    std::thread::sleep(Duration::from_secs(4));
    let later = resident_kilobytes(process.id());
    let frames: usize = clients
        .into_iter()
        .map(|client| runtime.block_on(client).unwrap())
        .sum();
    assert_eq!(frames, STREAMS * FRAMES);
    let each = (full - empty) / STREAMS;
    println!(
        "{STREAMS} streams: {empty} kB before, {full} kB with all open, {later} kB four seconds later; {each} kB a stream"
    );
    assert!(each < 64, "{each} kB a stream");
    assert!(
        later < full + full / 20,
        "memory grows while streams go on: {full} kB, then {later} kB"
    );
}
