//! What one account is refused says nothing about another, and nothing for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::Options;
use longhaul::store::{Memory, Store};

use super::agent::Agent;
use super::cast::{FREE, compaction, error, figure, fine, response, same};
use crate::support::http::Message;
use crate::support::{Answer, Proxy, Tap, simulated::Simulated};

const A: &str = "authorization: Bearer a\r\n";
const B: &str = "authorization: Bearer b\r\n";
const LONG: &str = "anthropic-beta: context-1m-2025-08-07\r\n";

/// An upstream that says to one credential, for whatever is larger than `bytes`,
/// that the window has 8,192 tokens.
fn grudging(credential: &'static str, bytes: &Arc<AtomicU64>) -> Tap {
    let bytes = bytes.clone();
    Tap::start(move |request| {
        let theirs = request.header("authorization") == Some(credential);
        let size = request.body.len() as u64;
        if !theirs || size <= bytes.load(Ordering::SeqCst) {
            return fine(request);
        }
        let words = format!("prompt is too long: {} tokens > 8192 maximum", size / 4);
        response(400, "", error(&words).as_bytes())
    })
}

fn requests(tap: &Tap) -> Vec<Message> {
    let mut requests = vec![tap.seen()];
    requests.extend(std::iter::from_fn(|| tap.try_seen()));
    requests
}

#[track_caller]
fn uncut(answer: &Answer, tap: &Tap, agent: &Agent) {
    assert_eq!((answer.status(), compaction(answer)), (200, "none"));
    let seen = requests(tap);
    assert_eq!(seen.len(), 1);
    same(&seen[0].body, &agent.body(), "as the client sent it");
}

/// The reproduction of the report: a made-up maximum for one, and everybody was
/// cut, across restarts.
#[test]
fn what_one_credential_is_refused_cuts_nobody_else() {
    let tap = grudging("Bearer a", &Arc::new(AtomicU64::new(30_000)));
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
    let mut other = Agent::seasoned(FREE, 40, 2000).saying(B);
    other.ask(&proxy, "");
    requests(&tap);
    let mut refused = Agent::seasoned(FREE, 41, 2000).saying(A);
    let answer = refused.ask(&proxy, "");
    assert!(figure(&answer, "sent") < 8_192, "healed at once");
    assert!(requests(&tap).len() > 1);
    // With a long context it may be another window.
    let long = Agent::seasoned(FREE, 42, 2000).saying(A);
    assert_eq!(long.send(&proxy, LONG).status(), 200);
    same(&requests(&tap)[0].body, &long.body(), "tried as it is");
    for round in 0..2_usize {
        other.user("On.");
        uncut(&other.send(&proxy, ""), &tap, &other);
        other.history.pop();
        let new = Agent::seasoned(FREE, 50 + round, 2000).saying(B);
        uncut(&new.send(&proxy, ""), &tap, &new);
        // Whose it is goes on without another refusal, old session or new.
        refused.user("On.");
        let answer = refused.ask(&proxy, "");
        assert_eq!(requests(&tap).len(), 1);
        assert!(figure(&answer, "sent") < 8_192);
        let new = Agent::seasoned(FREE, 70 + round, 2000).saying(A);
        assert!(figure(&new.send(&proxy, ""), "sent") < 8_192);
        assert_eq!(requests(&tap).len(), 1);
        proxy.join();
        proxy = Proxy::keeping(&tap.url(), "", folder.path());
    }
}

/// A claim cannot be true that an answer contradicts.
#[test]
fn who_was_answered_at_a_size_is_not_cut_below_it() {
    let limit = Arc::new(AtomicU64::new(u64::MAX));
    let tap = grudging("Bearer a", &limit);
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
    let mut agent = Agent::seasoned(FREE, 40, 2000).saying(A);
    agent.ask(&proxy, "");
    requests(&tap);
    // Another session of the same account is refused, and healed.
    limit.store(30_000, Ordering::SeqCst);
    let other = Agent::seasoned(FREE, 41, 2000).saying(A);
    assert_eq!(other.send(&proxy, "").status(), 200);
    limit.store(u64::MAX, Ordering::SeqCst);
    requests(&tap);
    for _ in 0..2 {
        agent.user("On.");
        uncut(&agent.send(&proxy, ""), &tap, &agent);
        proxy.join();
        proxy = Proxy::keeping(&tap.url(), "", folder.path());
        agent.history.pop();
    }
}

#[test]
fn a_claim_that_is_not_true_is_forgotten_after_a_while() {
    let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
    let limit = Arc::new(AtomicU64::new(30_000));
    let tap = grudging("Bearer a", &limit);
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::keeping_time(&tap.url(), "", folder.path(), clock.clone());
    let agent = |cycles| Agent::seasoned(FREE, cycles, 2000).saying(A);
    assert_eq!(agent(40).send(&proxy, "").status(), 200);
    limit.store(u64::MAX, Ordering::SeqCst);
    requests(&tap);
    assert_ne!(compaction(&agent(41).send(&proxy, "")), "none", "believed");
    requests(&tap);
    clock.advance(Duration::from_hours(1));
    let probe = agent(42);
    uncut(&probe.send(&proxy, ""), &tap, &probe);
    let after = agent(43);
    uncut(&after.send(&proxy, ""), &tap, &after);
}

/// Somebody whose upstream really gives less hardly notices.
#[test]
fn a_window_that_is_really_small_costs_few_refusals() {
    let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
    let options = Options {
        clock: clock.clone(),
        ..Options::default().with_window(FREE, 12_000)
    };
    let upstream = Simulated::start(options);
    let folder = tempfile::tempdir().unwrap();
    let url = upstream.sim.url();
    let mut proxy = Proxy::keeping_time(&url, "", folder.path(), clock.clone());
    let mut old = Agent::seasoned(FREE, 30, 2000);
    // Four days of work, with a new session each time.
    for round in 0..12 {
        let mut new = Agent::seasoned(FREE, 31 + round, 2000);
        for agent in [&mut old, &mut new] {
            let answer = agent.ask(&proxy, "");
            assert!(figure(&answer, "sent") < 12_000);
            agent.user("Further.");
        }
        clock.advance(Duration::from_hours(8));
        proxy.join();
        proxy = Proxy::keeping_time(&url, "", folder.path(), clock.clone());
    }
    let entries = upstream.entries();
    let refused = entries.iter().filter(|entry| !entry.is_answered()).count();
    assert!((2..=8).contains(&refused), "{refused} of {}", entries.len());
}

/// Older versions stored a window for everybody who uses a model.
#[test]
fn what_older_versions_have_stored_by_model_alone_is_ignored() {
    let store = Arc::new(Memory::new());
    let name = format!("window:{FREE}");
    let note = store.learn(&name, "8192");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(note).unwrap();
    let tap = Tap::start(fine);
    let proxy = Proxy::on(store.clone(), &tap.url(), "", None);
    let agent = Agent::seasoned(FREE, 40, 2000);
    uncut(&agent.send(&proxy, ""), &tap, &agent);
}
