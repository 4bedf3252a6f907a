//! Reads what the proxy says of itself, and what the system says of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

const OVERHEAD: &str = "longhaul_request_overhead_seconds_bucket";

pub struct Gauge {
    address: SocketAddr,
    process: u32,
}

/// All there was up to a moment.
pub struct Reading {
    /// Upper bounds in seconds, and how many requests were at or below each.
    buckets: Vec<(f64, u64)>,
    /// Bytes of memory in use.
    pub resident: usize,
}

/// What happened between two readings.
pub struct Look {
    pub requests: u64,
    pub p50: f64,
    pub p99: f64,
}

impl Gauge {
    pub fn new(address: SocketAddr, process: u32) -> Self {
        Self { address, process }
    }

    pub fn look(&self) -> Reading {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let buckets = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(OVERHEAD)?;
            let (_, rest) = rest.split_once("le=\"")?;
            let (bound, rest) = rest.split_once('"')?;
            let count = rest.rsplit(' ').next()?.parse().ok()?;
            Some((bound.parse().unwrap_or(f64::INFINITY), count))
        });
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.process)).unwrap();
        let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
        Reading {
            buckets: buckets.collect(),
            resident: pages * 4096,
        }
    }
}

impl Reading {
    pub fn since(&self, earlier: &Self) -> Look {
        let new: Vec<(f64, u64)> = self
            .buckets
            .iter()
            .enumerate()
            .map(|(at, (bound, count))| {
                let before = earlier.buckets.get(at).map_or(0, |(_, count)| *count);
                (*bound, count - before)
            })
            .collect();
        let requests = new.last().map_or(0, |(_, count)| *count);
        Look {
            requests,
            p50: percentile(&new, 0.5),
            p99: percentile(&new, 0.99),
        }
    }
}

/// Within a bucket, as if its requests were spread evenly.
fn percentile(buckets: &[(f64, u64)], share: f64) -> f64 {
    let all = buckets.last().map_or(0, |(_, count)| *count) as f64;
    let (mut lower, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        let count = *count as f64;
        if count >= all * share && count > below {
            let upper = if bound.is_finite() { *bound } else { lower };
            return lower + (upper - lower) * (all * share - below) / (count - below);
        }
        (lower, below) = (*bound, count);
    }
    lower
}
