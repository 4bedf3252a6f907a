//! What several replicas do for one session.

use std::time::{Duration, Instant};

use longhaul::sim::{Kind, Options, Persona, Reply};
use serde_json::json;

use super::{replicas, shared, wait};
use crate::cluster::Cluster;
use crate::support::{Proxy, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{
    BOUND, FREE, NOW, all_answered, compacted, compaction, continues, shown, stubs,
};

fn breaks(proxy: &Proxy) -> f64 {
    let series = "longhaul_prefix_breaks_total{cause=\"unexplained\"}";
    proxy.metric(series).unwrap_or(0.0)
}

#[test]
fn a_session_whose_requests_land_anywhere_has_one_view() {
    for (folder, file) in shared() {
        lands_anywhere(&folder, &file);
    }
}

/// Plays sessions whose requests land anywhere.
pub fn lands_anywhere(folder: &tempfile::TempDir, file: &str) {
    for model in [FREE, BOUND] {
        let upstream = Simulated::start(Options::default());
        let proxies = replicas(3, &upstream, folder, file);
        let mut agent = compacted(&upstream, &proxies[0], model);
        let mut view = shown(&upstream);
        assert!(stubs(&view) > 0);
        for turn in 0..12 {
            let proxy = &proxies[turn % 3];
            agent.user(&format!("Go on with {turn}."));
            agent.cycle(&upstream, proxy, "");
            let now = shown(&upstream);
            assert!(continues(&now, &view), "{model} {turn} {file}");
            assert_eq!(stubs(&now), stubs(&view));
            view = now;
            // The next one answers the tool call.
            upstream.sim.push_reply(Reply::text("Done."));
            agent.ask(&proxies[(turn + 1) % 3], "");
            let now = shown(&upstream);
            assert!(continues(&now, &view), "{model} {turn} {file}");
            view = now;
        }
        // A pass at one of them is everybody's.
        agent.user("Tidy up.");
        upstream.sim.push_reply(Reply::text("Tidy."));
        assert_eq!(compaction(&agent.ask(&proxies[1], NOW)), "clear");
        let view = shown(&upstream);
        for proxy in &proxies {
            agent.user("And now?");
            upstream.sim.push_reply(Reply::text("Now this."));
            agent.ask(proxy, "");
            assert!(continues(&shown(&upstream), &view), "{model} {file}");
        }
        assert!(all_answered(&upstream));
        assert!(proxies.iter().all(|proxy| breaks(proxy) < 1.0));
    }
}

/// Which overlay holds is asked for with each request, and nothing else is.
#[test]
fn an_ordinary_request_costs_one_question() {
    for (folder, file) in shared() {
        let upstream = Simulated::start(Options::default());
        let proxy = &replicas(1, &upstream, &folder, &file)[0];
        let mut agent = compacted(&upstream, proxy, FREE);
        let asked = |operation: &str| {
            let series = format!("longhaul_store_seconds_count{{op=\"{operation}\"}}");
            proxy.metric(&series).unwrap_or(0.0)
        };
        let operations = ["marks", "overlay", "overlays_of", "marks_by_view", "commit"];
        let before = operations.map(asked);
        for _ in 0..5 {
            agent.chat(&upstream, proxy, "");
        }
        let after = operations.map(asked);
        for (at, operation) in operations.iter().enumerate() {
            let expected = if *operation == "marks" { 5.0 } else { 0.0 };
            let asked = after[at] - before[at];
            assert!((asked - expected).abs() < 0.5, "{operation}: {asked}");
        }
    }
}

/// Whose session goes from one replica to the next asks no more for it: whether
/// the session has gone on elsewhere comes with the marks.
#[test]
fn a_request_that_was_elsewhere_before_costs_one_question_too() {
    let Some((folder, file)) = shared().into_iter().nth(1) else {
        return;
    };
    let upstream = Simulated::start(Options::default());
    let proxies = replicas(2, &upstream, &folder, &file);
    let mut agent = compacted(&upstream, &proxies[0], FREE);
    agent.chat(&upstream, &proxies[1], "");
    let asked = || -> f64 {
        let series = "longhaul_store_seconds_count{op=\"marks\"}";
        let each = proxies.iter().map(|proxy| proxy.metric(series));
        each.map(|asked| asked.unwrap_or(0.0)).sum()
    };
    let before = asked();
    for turn in 0..6 {
        agent.chat(&upstream, &proxies[turn % 2], "");
    }
    let asked = asked() - before;
    assert!((asked - 6.0).abs() < 0.5, "{asked}");
}

fn store_is(proxy: &Proxy, word: &str) -> bool {
    let request = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = proxy.client().send(request).answer();
    assert_eq!(
        answer.status(),
        200,
        "a lost database takes nobody out of service"
    );
    crate::support::text(&answer.body).contains(&format!("\"store\":\"{word}\""))
}

/// The database is lost under a session: it goes on with its view, nothing waits,
/// and when there is no more room a pass is made without a model. When the
/// database is back, another replica shows the same view.
#[test]
fn a_session_outlives_its_database() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let url = wait(cluster.database());
    let file = format!("store.url = {url:?}\nstore.timeout = \"1s\"\n[window]\nbudget = 16000\n");
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let proxies = replicas(2, &upstream, &folder, &file);
    let mut agent = compacted(&upstream, &proxies[0], FREE);
    let view = shown(&upstream);
    cluster.stop();
    agent.turn(&upstream, &proxies[0], 1);
    assert!(continues(&shown(&upstream), &view));
    assert!(store_is(&proxies[0], "away"));
    let mut passes = Vec::new();
    while passes.last().is_none_or(|pass| pass == "none") {
        assert!(passes.len() < 120, "no pass was made");
        agent.user("Go on.");
        upstream
            .sim
            .push_reply(Reply::call("Bash", &json!({"command": "make"})));
        let begun = Instant::now();
        passes.push(compaction(&agent.ask(&proxies[0], "")).to_owned());
        assert!(begun.elapsed() < Duration::from_secs(5));
        agent.results(1_000);
        if passes.last().is_some_and(|pass| pass == "none") {
            upstream.sim.push_reply(Reply::text("It is made."));
            passes.push(compaction(&agent.ask(&proxies[0], "")).to_owned());
        }
    }
    assert!(passes.len() > 2, "passes wait: {passes:?}");
    let view = shown(&upstream);
    cluster.resume();
    let begun = Instant::now();
    while !store_is(&proxies[0], "ready") {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
    if passes.len() % 2 == 1 {
        agent.ask(&proxies[1], "");
    }
    for proxy in [&proxies[1], &proxies[0], &proxies[1]] {
        agent.chat(&upstream, proxy, "");
        assert!(continues(&shown(&upstream), &view));
    }
    assert!(all_answered(&upstream));
}

/// A beginning that is too long for what a view may have.
fn beginning() -> Agent {
    let mut agent = Agent::new(FREE);
    agent.fields["system"] = json!("Be brief.");
    for number in 0..12 {
        agent.user(&format!("Please do step {number} now."));
        let reply = format!("Answer {number}: I decided on plan {number}. ");
        let reply = reply + &"It is the better one because of what was found. ".repeat(25);
        let reply = json!([{"type": "text", "text": reply}]);
        agent
            .history
            .push(json!({"role": "assistant", "content": reply}));
    }
    agent
}

#[test]
fn sub_agents_on_different_replicas_share_one_summary() {
    let summaries =
        "[window]\nbudget = 3000\n[summarizer]\nmode = \"model\"\n[policy]\ntail_messages = 2\n";
    for (folder, file) in shared() {
        let upstream = Simulated::start(Options {
            slow_summary: Duration::from_millis(700),
            ..Options::default()
        });
        upstream.sim.set_persona(Persona::Slow);
        let proxies = replicas(3, &upstream, &folder, &format!("{file}{summaries}"));
        // No model is asked on account of a key that upstream has not accepted.
        for proxy in &proxies {
            let mut first = Agent::new(FREE);
            first.user("Hello.");
            first.ask(proxy, "");
        }
        let beginning = beginning();
        let done: Vec<String> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..12)
                .map(|number| {
                    let mut agent = beginning.clone();
                    let proxy = &proxies[number % 3];
                    agent.user(&format!("You are number {number}: do your part."));
                    scope.spawn(move || compaction(&agent.ask(proxy, "")).to_owned())
                })
                .collect();
            asked.into_iter().map(|done| done.join().unwrap()).collect()
        });
        assert!(done.iter().all(|done| done == "summary"), "{done:?}");
        let calls = upstream.entries();
        let calls = calls.iter().filter(|entry| entry.kind == Kind::Summary);
        assert_eq!(calls.count(), 1, "{file}");
        assert!(all_answered(&upstream));
    }
}
