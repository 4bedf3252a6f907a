//! Everything goes wrong, at random from a seed, and every request is checked.
//!
//! Faults of the API, of the store, of the network and of the process, many at
//! once, over ten thousand requests of concurrent sessions; `LONGHAUL_FAULTS` says
//! how many others. Each episode has a seed; the first is `LONGHAUL_FAULT_FROM`.
//! A failure names its seed, and that episode alone is lived again by
//!
//!     LONGHAUL_FAULT_SEED=n cargo test --test faults
//!
//! Left to other suites: native summaries, encrypted connections, PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::print_stdout,
    missing_docs,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "sim/support.rs"]
#[allow(dead_code, reason = "only how a stream is read is needed of it")]
mod api;
#[path = "proxy/views/look.rs"]
#[allow(dead_code, reason = "only what explains a view is needed of it")]
mod look;
#[path = "proxy/journal/promised.rs"]
#[allow(dead_code, reason = "only references are needed of it")]
mod promised;
#[path = "proxy/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other suites need the rest of it")]
mod support;

#[path = "faults/agent.rs"]
mod agent;
#[path = "faults/attempt.rs"]
mod attempt;
#[path = "faults/episode.rs"]
mod episode;
#[path = "faults/grown.rs"]
mod grown;
#[path = "faults/heard.rs"]
mod heard;
#[path = "faults/invariants.rs"]
mod invariants;
#[path = "faults/moments.rs"]
mod moments;
#[path = "faults/mortal.rs"]
mod mortal;
#[path = "faults/outcome.rs"]
mod outcome;
#[path = "faults/owners.rs"]
mod owners;
#[path = "faults/plan.rs"]
mod plan;
#[path = "faults/recalled.rs"]
mod recalled;
#[path = "faults/relay.rs"]
mod relay;
#[path = "faults/story.rs"]
mod story;
#[path = "faults/world.rs"]
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use invariants::Tally;

const REQUESTS: usize = 10_000;
/// From so many requests on a run is long enough to have seen everything.
const ENOUGH: usize = 2_000;
/// Episodes at once.
const THREADS: usize = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_goes_wrong_every_request_keeps_the_invariants() {
    let only = number("LONGHAUL_FAULT_SEED");
    let first = only.or(number("LONGHAUL_FAULT_FROM")).unwrap_or(1);
    let wanted =
        number("LONGHAUL_FAULTS").map_or(REQUESTS, |count| usize::try_from(count).unwrap());
    let next = AtomicU64::new(first);
    let all = Mutex::new((Tally::default(), Vec::new()));
    let last = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..if only.is_some() { 1 } else { THREADS } {
            scope.spawn(|| {
                loop {
                    let enough = {
                        let all = all.lock().unwrap();
                        all.0.requests >= wanted || all.1.len() > 20
                    };
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if enough || only.is_some_and(|only| seed > only) {
                        return;
                    }
                    let (tally, wrong) = episode::live(seed);
                    last.fetch_max(seed, Ordering::SeqCst);
                    let mut all = all.lock().unwrap();
                    all.0.add(tally);
                    let told = wrong.iter().map(|what| format!("seed {seed}: {what}"));
                    all.1.extend(told);
                }
            });
        }
    });
    let (tally, wrong) = all.into_inner().unwrap();
    println!(
        "faults: {} requests, seeds {first} to {}, {} answered, {} passes, {} views corrected, \
         {} references followed, {} violations",
        tally.requests,
        last.into_inner(),
        tally.answered,
        tally.passes,
        tally.corrected,
        tally.references,
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{}\nagain with: LONGHAUL_FAULT_SEED=n cargo test --test faults",
        wrong.join("\n")
    );
    if only.is_none() && tally.requests >= ENOUGH {
        assert_all_of_it_happened(&tally);
    }
}

/// A proxy that does nothing breaks no invariant. About half of what is usual has
/// to happen.
fn assert_all_of_it_happened(tally: &Tally) {
    let least = [
        ("answers", tally.answered, tally.requests * 7 / 10),
        ("passes", tally.passes, tally.requests / 15),
        ("corrected views", tally.corrected, tally.requests / 1_000),
        ("references", tally.references, tally.requests / 12),
    ];
    for (what, count, least) in least {
        let requests = tally.requests;
        assert!(
            count >= least,
            "{count} {what} in {requests} requests, {least} were expected"
        );
    }
}
