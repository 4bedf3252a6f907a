//! The proxy goes away in the middle of a session, with its memory or without.

use std::time::Duration;

use longhaul::sim::{Enforcement, Fault, Options, Outcome, Reply};
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, compacted, continues, last_body, messages, same, session, shown, stubs,
};
use crate::support::{Client, Process, Proxy, simulated::Simulated};

const DROPS: &str = "thinking-binding-controls-2026-08-01";

fn refusals(upstream: &Simulated) -> usize {
    let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused { .. });
    let whole = upstream.entries().into_iter().filter(|e| e.body.is_some());
    whole.filter(|e| refused(&e.outcome)).count()
}

#[test]
fn after_a_restart_the_same_history_is_the_same_bytes() {
    for model in [FREE, BOUND] {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
        let mut agent = compacted(&upstream, &proxy, model);
        let swap = last_body(&upstream);
        let mut asked = agent.clone();
        asked.history.pop();
        for _ in 0..2 {
            proxy.join();
            proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
            upstream.sim.push_reply(Reply::text("Yes."));
            assert_eq!(asked.send(&proxy, "").status(), 200);
            same(&last_body(&upstream), &swap, model);
        }
        let name = session(&agent.chat(&upstream, &proxy, ""));
        for _ in 0..3 {
            let view = shown(&upstream);
            proxy.join();
            proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
            agent.user("Work.");
            let answer = agent.cycle(&upstream, &proxy, "");
            assert_eq!(session(&answer), name);
            assert!(continues(&shown(&upstream), &view), "{model}");
            agent.chat(&upstream, &proxy, "");
        }
        assert_eq!(refusals(&upstream), 0);
    }
}

/// Invariant 5: a forgotten overlay costs thinking, never the session.
#[test]
fn a_session_outlives_the_loss_of_the_whole_store() {
    let upstream = Simulated::start(Options::default());
    let url = upstream.sim.url();
    let first = Proxy::before(&url);
    let mut agent = compacted(&upstream, &first, BOUND);
    agent.turn(&upstream, &first, 2);
    // In the middle of a turn, where the newest message may not be touched.
    agent.user("Work.");
    agent.cycle(&upstream, &first, "");
    let before = upstream.entries().len();
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&url, "", folder.path());
    agent.cycle(&upstream, &proxy, "");
    agent.turn(&upstream, &proxy, 2);
    proxy.join();
    let proxy = Proxy::keeping(&url, "", folder.path());
    agent.turn(&upstream, &proxy, 2);
    assert_eq!(refusals(&upstream), 1, "only the first is refused");
    for entry in &upstream.entries()[before + 1..] {
        let body = entry.json().unwrap();
        let asked = &body["thinking"]["block_binding"]["prefix_mismatch_behavior"];
        assert_eq!(asked, "drop_block");
        assert!(entry.header("anthropic-beta").unwrap().contains(DROPS));
    }
    let retried = "longhaul_reactive_retries_total{outcome=\"retried\"}";
    assert_eq!(proxy.metric(retried), Some(0.0));
    let dropped = "longhaul_thinking_dropped_total{how=\"upstream\"}";
    assert!(proxy.metric(dropped) > Some(0.0));
    // A count is of what would be sent.
    agent.user("How much?");
    let counted = agent.count(&proxy, "");
    agent.ask(&proxy, "");
    assert_eq!(upstream.last().tokens.prompt(), counted);
}

/// Asking for it would switch the check on.
#[test]
fn an_account_that_only_records_mismatches_is_never_asked_to_drop() {
    let upstream = Simulated::start(Options {
        enforcement: Enforcement::Recorded,
        ..Options::default()
    });
    let first = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &first, BOUND);
    agent.user("Work.");
    for wish in ["", "", NOW, "", "", "", NOW, ""] {
        agent.cycle(&upstream, &first, wish);
    }
    let proxy = Proxy::before(&upstream.sim.url());
    agent.turn(&upstream, &proxy, 2);
    assert_eq!(refusals(&upstream), 0);
    for entry in upstream.entries() {
        assert!(entry.json().unwrap()["thinking"].is_null());
        assert_eq!(entry.header("anthropic-beta"), None);
    }
}

/// The client's own betas and thinking stay beside what we ask for.
#[test]
fn what_the_client_announces_stays_when_thinking_is_dropped() {
    let upstream = Simulated::start(Options::default());
    let first = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &first, BOUND);
    agent.turn(&upstream, &first, 1);
    let mut agent = agent
        .with(
            "thinking",
            json!({"type": "adaptive", "display": "omitted"}),
        )
        .saying("anthropic-beta: claude-code-20250219\r\nanthropic-beta: effort-2025-11-24\r\n");
    let proxy = Proxy::before(&upstream.sim.url());
    agent.chat(&upstream, &proxy, "");
    let entry = upstream.last();
    let thinking = entry.json().unwrap()["thinking"].clone();
    assert_eq!(thinking["display"], "omitted");
    assert_eq!(
        thinking["block_binding"]["prefix_mismatch_behavior"],
        "drop_block"
    );
    let announced: Vec<&str> = entry
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-beta")
        .flat_map(|(_, value)| value.split(','))
        .collect();
    assert_eq!(announced.len(), 3, "{announced:?}");
}

/// Asks a process that may be killed at any moment; whether the reply came.
fn try_ask(agent: &mut Agent, upstream: &Simulated, process: &Process, headers: &str) -> bool {
    let number = agent.history.len();
    let reply = Reply::call("Bash", &json!({"command": format!("make {number}")}));
    upstream.sim.push_reply(reply.after_thinking("So."));
    let Some(mut client) = Client::try_connect(process.address) else {
        return false;
    };
    let body = agent.body();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
         {headers}content-length: {}\r\n\r\n",
        body.len()
    );
    client.try_send([head.as_bytes(), &body].concat());
    let Some(answer) = client.try_answer().filter(|answer| answer.complete) else {
        return false;
    };
    let reply: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status(), 200, "{reply}");
    let content = &reply["content"];
    agent
        .history
        .push(json!({"role": "assistant", "content": content}));
    agent.results(1500);
    true
}

/// What upstream has seen of a session, and whether the next view may differ.
/// What a killed process has sent may be seen late: each request has a number.
#[derive(Default)]
struct Witness {
    /// Which requests asked for a pass.
    passes: Vec<bool>,
    /// Up to which request views were compared.
    compared: usize,
    seen: usize,
    view: Option<Vec<Value>>,
}

impl Witness {
    /// The headers of the next request.
    fn headers(&mut self, wish: &str) -> String {
        self.passes.push(wish == NOW);
        format!("x-request-number: {}\r\n{wish}", self.passes.len())
    }

    fn look(&mut self, upstream: &Simulated) {
        let entries = upstream.entries();
        for entry in &entries[self.seen..] {
            let number: usize = entry.header("x-request-number").unwrap().parse().unwrap();
            if entry.body.is_none() {
                // The rest of it was lost with the process.
                continue;
            }
            let sent = messages(entry);
            let kept = self.view.as_ref().is_none_or(|view| continues(&sent, view));
            // A pass that was asked for may hold although upstream has seen nothing.
            let in_doubt = self.passes[self.compared..number].contains(&true);
            assert!(kept || in_doubt, "a view is forgotten");
            self.view = Some(sent);
            self.compared = number;
        }
        self.seen = entries.len();
    }
}

/// Invariant 4. Rounds: 8, because each waits for a new process to load its
/// vocabulary, or as many as `LONGHAUL_CASES` says.
#[test]
fn no_view_that_upstream_has_seen_is_forgotten_when_the_process_is_killed() {
    let rounds = std::env::var("LONGHAUL_CASES").ok();
    let rounds: usize = rounds.and_then(|count| count.parse().ok()).unwrap_or(8);
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let variables = [
        ("HOME", path.as_str()),
        ("LONGHAUL_DATA_DIR", path.as_str()),
        ("LONGHAUL_LOG__LEVEL", "error"),
        ("LONGHAUL_POLICY__CLEAR_AT", "0.6"),
        ("LONGHAUL_STORE__TIMEOUT", "20s"),
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut agent = Agent::seasoned(FREE, 5, 1500);
    let (mut witness, mut passes) = (Witness::default(), 0);
    for round in 0..rounds {
        let process = Process::start(&upstream.sim.url(), &variables);
        // The first request waits for a vocabulary, and is seldom the one.
        let moment = Duration::from_millis(random.u64(..120));
        if round == 0 || random.u8(..4) > 0 {
            let wish = if round % 3 == 0 { NOW } else { "" };
            let headers = witness.headers(wish);
            assert!(try_ask(&mut agent, &upstream, &process, &headers));
            witness.look(&upstream);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(moment);
                process.signal("-9");
            });
            loop {
                let wish = if random.u8(..3) == 0 { NOW } else { "" };
                let headers = witness.headers(wish);
                let went_on = try_ask(&mut agent, &upstream, &process, &headers);
                witness.look(&upstream);
                if !went_on {
                    break;
                }
            }
        });
        passes = passes.max(witness.view.as_deref().map_or(0, stubs));
        if agent.history.len() > 40 {
            agent = Agent::seasoned(FREE, 6, 1500 + 20 * round);
            upstream.sim.reset();
            witness = Witness::default();
        }
    }
    assert!(passes > 0, "there was something to forget");
    assert_eq!(refusals(&upstream), 0);
}

/// A pass whose request upstream could not look at has taught nothing; what
/// another session is taught meanwhile holds for it too.
#[test]
fn what_was_learned_since_a_pass_holds_for_a_view_that_was_not_answered() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let busy = |opening: &str| {
        let mut agent = Agent::new(BOUND);
        agent.user(opening);
        for _ in 0..6 {
            agent.cycle(&upstream, &proxy, "");
        }
        agent
    };
    let (first, mut second) = (busy("Work."), busy("Work too."));
    upstream.sim.push_fault(Fault::Status {
        status: 529,
        message: None,
        retry_after: None,
        should_retry: Some(false),
    });
    assert_eq!(first.send(&proxy, NOW).status(), 529);
    let tried = shown(&upstream);
    assert!(stubs(&tried) > 0);
    second.cycle(&upstream, &proxy, NOW);
    assert_eq!(refusals(&upstream), 1);
    assert_eq!(first.send(&proxy, "").status(), 200);
    assert_eq!(refusals(&upstream), 1);
    let asked = &upstream.last().json().unwrap()["thinking"]["block_binding"];
    assert_eq!(asked["prefix_mismatch_behavior"], "drop_block");
    assert_eq!(shown(&upstream), tried);
}
