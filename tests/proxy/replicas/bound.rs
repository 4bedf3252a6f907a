//! A view that was sent is bound to its reply, wherever the reply comes back.

use std::time::Duration;

use longhaul::sim::{Fault, Options, Reply};
use serde_json::{Value, json};

use super::{replicas, shared};
use crate::support::{Answer, Proxy, eventually, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{
    BOUND, NOW, all_answered, continues, messages, same, session, shown, stubs, worked,
};

fn call() -> Reply {
    let call = Reply::call("Bash", &json!({"command": "make"}));
    call.after_thinking("I think of it. ")
}

/// The same history, once more: the first replica has sent it as it was when the
/// second makes it smaller. Both are answered, and a client goes on with either.
#[test]
fn a_session_goes_on_by_the_view_that_its_reply_was_made_under() {
    for (folder, file) in shared() {
        let upstream = Simulated::start(Options::default());
        let proxies = replicas(3, &upstream, &folder, &file);
        let mut agent = worked(&upstream, &proxies[0], BOUND);
        agent.user("Go on.");
        let before = upstream.entries().len();
        upstream.sim.push_reply(Reply {
            first_byte_delay_ms: Some(1_500),
            ..call()
        });
        let (large, small) = std::thread::scope(|scope| {
            let large = scope.spawn(|| agent.send(&proxies[1], ""));
            eventually("it is sent", || upstream.entries().len() > before);
            upstream.sim.push_reply(call());
            let small = agent.send(&proxies[2], NOW);
            (large.join().unwrap(), small)
        });
        let views: Vec<Vec<Value>> = upstream.entries()[before..].iter().map(messages).collect();
        assert!(stubs(&views[0]) == 0 && stubs(&views[1]) > 0, "{file}");
        // Time for the marks to be written, and for the one that lost its place
        // to find another.
        std::thread::sleep(Duration::from_millis(500));
        for proxy in &proxies {
            for (answer, view) in [(&large, &views[0]), (&small, &views[1])] {
                let mut agent = taken(&agent, answer);
                agent.results(200);
                upstream.sim.push_reply(Reply::text("Done."));
                agent.ask(proxy, "");
                let now = shown(&upstream);
                assert!(continues(&now, view), "{file}");
                assert_eq!(stubs(&now), stubs(view), "{file}");
            }
        }
        assert!(all_answered(&upstream), "{file}");
        let spoilt = |entry: &longhaul::sim::Entry| {
            entry.prefix_mismatch.is_some() || !entry.transformations.is_empty()
        };
        assert!(!upstream.entries().iter().any(spoilt), "{file}");
    }
}

/// The client takes this reply.
fn taken(agent: &Agent, answer: &Answer) -> Agent {
    let mut agent = agent.clone();
    let reply: Value = serde_json::from_slice(&answer.body).unwrap();
    agent
        .history
        .push(json!({"role": "assistant", "content": reply["content"]}));
    agent
}

/// Replicas that share a database, where there is a server.
fn over_a_database(count: usize) -> Option<(Simulated, Vec<Proxy>, tempfile::TempDir)> {
    let (folder, file) = shared().pop().filter(|(_, file)| !file.is_empty())?;
    let upstream = Simulated::start(Options::default());
    let file = format!("{file}store.timeout = \"20s\"\n");
    let proxies = replicas(count, &upstream, &folder, &file);
    Some((upstream, proxies, folder))
}

/// Where replicas share a database: the others know of a reply before its client
/// does. Whoever is asked the same at once, even to make it smaller, sends the
/// same.
#[test]
fn what_was_answered_is_sent_again_by_the_same_view_from_any_replica() {
    let Some((upstream, proxies, _folder)) = over_a_database(3) else {
        return;
    };
    let mut agent = worked(&upstream, &proxies[0], BOUND);
    for round in 0..6 {
        agent.user("Go on.");
        upstream.sim.push_reply(call());
        let answer = agent.send(&proxies[round % 3], "");
        let sent = upstream.last().body.unwrap();
        for other in 1..3 {
            upstream.sim.push_reply(call());
            agent.send(&proxies[(round + other) % 3], NOW);
            let what = format!("round {round}, replica {other} after it");
            same(&upstream.last().body.unwrap(), &sent, &what);
        }
        agent = taken(&agent, &answer);
        agent.results(200);
    }
    assert!(all_answered(&upstream));
}

/// A reply that breaks off at once is noted without haste. When the same is asked
/// again, the others hear of it before the client does nevertheless.
#[test]
fn what_was_asked_again_after_a_broken_reply_is_known_to_all() {
    let Some((upstream, proxies, _folder)) = over_a_database(2) else {
        return;
    };
    for round in 0..6 {
        let mut agent = Agent::new(BOUND);
        agent.user(&format!("Story {round}."));
        let streams = agent.clone().with("stream", json!(true));
        upstream.sim.push_fault(Fault::ResetAfter { events: 0 });
        let broken = streams.send(&proxies[0], "");
        assert!(!broken.complete);
        upstream.sim.push_reply(call());
        let first = session(&agent.ask(&proxies[0], ""));
        agent.results(200);
        upstream.sim.push_reply(Reply::text("Done."));
        assert_eq!(session(&agent.ask(&proxies[1], "")), first, "round {round}");
    }
}
