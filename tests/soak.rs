//! Two hundred sessions with bodies of a megabyte, for a quarter of an hour.
//!
//! `LONGHAUL_SOAK=15m cargo test --release --test soak -- --ignored --nocapture`.
//! Sessions grow to their size at first and work on in small steps afterwards,
//! each at the pace of an agent. Whatever time the proxy needs for itself must
//! stay what it was, and so must its memory: what leaks a little with each request
//! is found here and nowhere else.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::format_push_string,
    missing_docs,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "soak/api.rs"]
mod api;
#[path = "soak/gauge.rs"]
mod gauge;
#[path = "proxy/support/process.rs"]
#[allow(dead_code, reason = "other suites need the rest of it")]
mod process;
#[path = "soak/session.rs"]
mod session;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gauge::Gauge;
use process::Process;
use session::{Session, Shared};

const SESSIONS: usize = 200;
/// How often it is looked.
const LOOK: Duration = Duration::from_secs(15);
/// The first minute belongs to growing.
const WARM: Duration = Duration::from_mins(1);
/// Memory may ever become so much larger, of a hundred.
const FLAT: f64 = 5.0;
/// So much more may a request in a hundred wait in the second half than in the
/// first, as a ratio. Buckets are coarse: the next one up is no change yet.
const STABLE: f64 = 2.5;

/// How long it lasts; `15m`, `90s`.
fn length() -> Duration {
    let said = std::env::var("LONGHAUL_SOAK").unwrap_or_else(|_| "15m".to_owned());
    let (number, unit) = said.split_at(said.len() - 1);
    let number: u64 = number.parse().unwrap();
    Duration::from_secs(if unit == "m" { number * 60 } else { number })
}

#[test]
#[ignore = "takes a quarter of an hour; `make prove` runs it"]
fn memory_and_overhead_stay_what_they_are() {
    let length = length();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let upstream = runtime.block_on(api::start());
    let process = Process::start(
        &format!("http://{upstream}"),
        &[
            ("LONGHAUL_LOG__LEVEL", "off"),
            ("LONGHAUL_SUMMARIZER__MODE", "off"),
            ("LONGHAUL_WINDOW__BUDGET", "100000"),
        ],
    );
    let shared = Arc::new(Shared::new(process.address));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| runtime.spawn(Session::new(number).work(shared.clone())))
        .collect();
    let gauge = Gauge::new(process.address, process.id());
    let begun = Instant::now();
    let mut before = gauge.look();
    let (mut settled, mut peak, mut looks) = (None, 0, Vec::new());
    while begun.elapsed() < length {
        std::thread::sleep(LOOK);
        let now = gauge.look();
        let full = shared.full.load(Ordering::SeqCst);
        let look = now.since(&before);
        println!(
            "{:4} s: {full} sessions full, {} requests, overhead p50 {:.2} ms, p99 {:.2} ms, {} MB resident",
            begun.elapsed().as_secs(),
            look.requests,
            look.p50 * 1000.0,
            look.p99 * 1000.0,
            now.resident >> 20
        );
        before = now;
        if begun.elapsed() >= WARM && full == SESSIONS {
            settled.get_or_insert(before.resident);
            peak = peak.max(before.resident);
            looks.push(look);
        }
    }
    for session in sessions {
        session.abort();
    }
    let refused = shared.refused.lock().unwrap().clone();
    assert_eq!(refused, None, "a request was refused");
    let settled = settled.expect("the sessions never reached their size");
    let grown = (peak as f64 / settled as f64 - 1.0) * 100.0;
    let requests: u64 = looks.iter().map(|look| look.requests).sum();
    let (early, late) = looks.split_at(looks.len() / 2);
    let [early, late] = [early, late].map(p99);
    println!(
        "soak: {SESSIONS} sessions of {} kB for {} s, {requests} requests after they had grown, {} MB resident then, {} MB at most ({grown:+.1}%) and {} MB at last; overhead p99 of {} s, median and worst: {:.1} and {:.1} ms in the first half, {:.1} and {:.1} ms in the second",
        session::FULL / 1000,
        begun.elapsed().as_secs(),
        settled >> 20,
        peak >> 20,
        before.resident >> 20,
        LOOK.as_secs(),
        early.0,
        early.1,
        late.0,
        late.1,
    );
    assert!(grown <= FLAT, "memory grew by {grown:.1}%");
    assert!(late.0 <= early.0 * STABLE, "the overhead grew");
}

/// The median and the worst p99 of these looks, in milliseconds.
fn p99(looks: &[gauge::Look]) -> (f64, f64) {
    let mut taken: Vec<f64> = looks.iter().map(|look| look.p99 * 1000.0).collect();
    taken.sort_by(f64::total_cmp);
    let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
    (median, taken.last().copied().unwrap_or_default())
}
