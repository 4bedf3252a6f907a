//! Many sessions over three replicas while replicas are killed and the database
//! is stopped.
//!
//! The replicas are processes of the built program, killed as by a crash; the
//! database is stopped as by a power cut. A client sends a request again only if
//! the replica it was sent to is dead. Every request is answered in the end, and
//! the simulator, which is strict, refuses none. What it was sent is held against
//! the histories: see `judge`.
//!
//! While the database is away no model is asked and passes are made only where
//! nothing else is left, which the replicas tell: see `told`.

mod again;
mod client;
mod fleet;
mod judge;
mod told;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longhaul::sim::{Options, Rule};

use self::client::{Session, now};
use self::fleet::Fleet;
use self::judge::{Judge, Outage};
use crate::cluster::Cluster;
use crate::support::simulated::Simulated;

/// How much of it: sessions, requests of each, kills, stops of the database.
struct Size {
    sessions: usize,
    requests: usize,
    kills: usize,
    stops: usize,
}

impl Size {
    /// A little, or as many requests as `LONGHAUL_REPLICAS` says; `all`: twenty
    /// thousand.
    fn wanted() -> Self {
        let wanted = std::env::var("LONGHAUL_REPLICAS").unwrap_or_default();
        let requests = match wanted.as_str() {
            "all" => 20_000,
            number => number.parse().unwrap_or(300),
        };
        let sessions = (requests / 40).clamp(1, 50);
        Self {
            sessions,
            requests: requests / sessions,
            kills: 2 + requests / 500,
            stops: 1 + requests / 2_000,
        }
    }
}

/// Words of a reply: enough for a summary every dozen turns.
const WORDS: usize = 150;

#[test]
fn killed_replicas_and_a_lost_database_cost_no_answer_no_overlay_and_no_second_summary() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let size = Size::wanted();
    let upstream = Simulated::start(Options {
        reply_words: WORDS,
        ..Options::default()
    });
    upstream.sim.set_rule(Rule::Text { words: Some(WORDS) });
    let url = super::wait(cluster.database());
    let fleet = Fleet::start(3, &upstream.sim.url(), &url);
    let judge = Mutex::new(Judge::default());
    let (answered, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let whole = size.sessions * size.requests;
    let begun = Instant::now();
    let sessions: Vec<Session> = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..size.sessions)
            .map(|number| {
                let (fleet, answered) = (&fleet, &answered);
                scope.spawn(move || {
                    let mut session = Session::new(number);
                    for _ in 0..size.requests {
                        session.turn(fleet);
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                    session
                })
            })
            .collect();
        let trouble =
            scope.spawn(|| trouble(&fleet, &mut cluster, &size, whole, &answered, &judge));
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let (pause, begun) = (Duration::from_millis(100), Instant::now());
                std::thread::sleep(pause);
                let late = begun.elapsed().saturating_sub(pause);
                let mut judge = judge.lock().unwrap();
                judge.late(late);
                judge.see(upstream.sim.take_entries());
            }
        });
        let sessions: Vec<_> = sessions
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        let trouble = trouble.join();
        over.store(true, Ordering::SeqCst);
        trouble.unwrap();
        sessions.into_iter().map(Result::unwrap).collect()
    });
    let took = begun.elapsed();
    let mut judge = judge.into_inner().unwrap();
    judge.see(upstream.sim.take_entries());
    let verdict = std::panic::catch_unwind(|| judge.verdict(&sessions, &fleet.told()));
    let verdict = verdict.unwrap_or_else(|_| panic!("{}", fleet.logs()));
    println!(
        "replicas: {whole} requests of {} sessions in {:.0} s, {} kills, {} stops of the database; {verdict}",
        size.sessions,
        took.as_secs_f64(),
        size.kills,
        size.stops,
    );
}

/// Kills replicas and stops the database, all through the run.
fn trouble(
    fleet: &Fleet,
    cluster: &mut Cluster,
    size: &Size,
    whole: usize,
    answered: &AtomicUsize,
    judge: &Mutex<Judge>,
) {
    let mut random = fastrand::Rng::with_seed(17);
    // Not at the very beginning, where there is nothing to lose.
    let share = |part: usize, parts: usize| whole / 10 + (whole * 8 / 10) * part / parts.max(1);
    let kills = (0..size.kills).map(|part| (share(part, size.kills), true));
    let half = whole / 20;
    let stops = (0..size.stops).map(|part| (share(part, size.stops) + half, false));
    let mut plan: Vec<(usize, bool)> = kills.chain(stops).collect();
    plan.sort_unstable();
    for (when, kills) in plan {
        while answered.load(Ordering::SeqCst) < when {
            std::thread::sleep(Duration::from_millis(10));
        }
        if kills {
            fleet.kill(random.usize(..3), || judge.lock().unwrap().killed());
        } else {
            let since = now();
            cluster.stop();
            let gone = now();
            std::thread::sleep(Duration::from_millis(random.u64(1_500..3_000)));
            let until = now();
            cluster.resume();
            let back = now();
            fleet.await_store();
            judge.lock().unwrap().away(Outage {
                since,
                gone,
                until,
                back,
                found: now(),
            });
        }
    }
}
