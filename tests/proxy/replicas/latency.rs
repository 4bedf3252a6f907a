//! What a database adds to a request, beside what files do.
//!
//! `LONGHAUL_REPLICAS=all` in a release build gives the figure that counts: a
//! conversation of a megabyte that goes on turn by turn, straight to upstream,
//! through a proxy on files and through one on PostgreSQL, in turns. Every
//! request is a new one, so what is made known before its reply begins counts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::wait;
use crate::cluster::Cluster;
use crate::support::{Process, Tap, plain};

const BYTES: usize = 1_000_000;

/// The messages of a conversation of a megabyte, which is the user's turn.
fn history() -> String {
    let mut messages = String::new();
    let mut turn = 0;
    while messages.len() < BYTES || turn % 2 == 0 {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        let text = format!("line {turn}: the quick brown fox reads \\\"main.rs\\\"\\n").repeat(60);
        let comma = if turn > 0 { "," } else { "" };
        messages.push_str(&format!(r#"{comma}{{"role":"{role}","content":"{text}"}}"#));
        turn += 1;
    }
    messages
}

fn request(messages: &str) -> Vec<u8> {
    let body = format!(r#"{{"model":"some-model","max_tokens":1024,"messages":[{messages}]}}"#);
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// How long each request of a conversation that goes on takes to its first byte.
/// A proxy shows that it knows the conversation; straight from upstream nothing
/// does.
fn times(to: SocketAddr, is_proxy: bool, history: &mut String, count: usize) -> Vec<Duration> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut once = || {
        let request = request(history);
        let begun = Instant::now();
        stream.write_all(&request).unwrap();
        let (mut seen, mut first) = (Vec::new(), None);
        while !seen.ends_with(b"}}") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the answer broke off");
            first.get_or_insert_with(|| begun.elapsed());
            seen.extend_from_slice(&buffer[..count]);
        }
        assert!(
            seen.starts_with(b"HTTP/1.1 200"),
            "{}",
            crate::support::text(&seen)
        );
        let knows = crate::support::text(&seen).contains("x-longhaul-view: original=");
        assert_eq!(knows, is_proxy, "{}", crate::support::text(&seen));
        history.push_str(
            r#",{"role":"assistant","content":"Fine."},{"role":"user","content":"Go on."}"#,
        );
        first.unwrap()
    };
    once();
    (0..count).map(|_| once()).collect()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

#[test]
fn what_a_database_adds_to_a_request() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let all = std::env::var("LONGHAUL_REPLICAS").is_ok_and(|wanted| wanted == "all");
    let (rounds, count) = if all { (15, 60) } else { (2, 5) };
    let answer = r#"{"id":"msg_1","type":"message","role":"assistant","model":"some-model","content":[{"type":"text","text":"Fine."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":250000,"output_tokens":5}}"#;
    let tap = Tap::start(move |_| plain(answer.as_bytes()));
    let url = wait(cluster.database());
    let common = [
        ("LONGHAUL_WINDOW__DEFAULT", "10000000"),
        ("LONGHAUL_LOG__LEVEL", "error"),
        ("LONGHAUL_STORE__TIMEOUT", "20s"),
    ];
    let files = Process::start(&tap.url(), &common);
    let with_database = [&common[..], &[("LONGHAUL_STORE__URL", url.as_str())]].concat();
    let database = Process::start(&tap.url(), &with_database);
    let direct: SocketAddr = tap.url().trim_start_matches("http://").parse().unwrap();
    let contestants = [direct, files.address, database.address];
    let mut histories = [const { String::new() }; 3];
    histories.fill(history());
    let mut taken = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for ((to, history), taken) in contestants.iter().zip(&mut histories).zip(&mut taken) {
            taken.extend(times(*to, *to != direct, history, count));
        }
    }
    let [direct, files, database] = taken.map(median);
    let ratio = (database - direct) / (files - direct);
    println!(
        "store latency: 1 MB bodies, {rounds} rounds of {count}: direct {direct:.3} ms, files {files:.3} ms, \
         PostgreSQL {database:.3} ms to the first byte; added {:.3} and {:.3} ms, ratio {ratio:.2}",
        files - direct,
        database - direct,
    );
}
