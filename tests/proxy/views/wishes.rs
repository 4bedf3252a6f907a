//! Passes that an operator wishes for, from outside the conversation.

use longhaul::sim::Options;
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    FREE, NOW, OFF, all_answered, compaction, figure, last_body, same, session, worked,
};
use crate::support::{Answer, Proxy, simulated::Simulated};

/// Wishes for a pass.
pub fn order(proxy: &Proxy, session: &str, headers: &str, body: &str) -> Answer {
    let address = proxy.admin.unwrap_or(proxy.address);
    let request = format!(
        "POST /longhaul/sessions/{session}/compact HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    crate::support::Client::connect(address)
        .send(request)
        .answer()
}

pub const HERE: &str = "host: localhost\r\n";

pub fn wish(proxy: &Proxy, session: &str) {
    let answer = order(proxy, session, HERE, "");
    assert_eq!(answer.status(), 202);
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    let expected = json!({"session": session, "compaction": "at the next request"});
    assert_eq!(said, expected);
}

/// An agent that has worked, and its session.
pub fn known(upstream: &Simulated, proxy: &Proxy) -> (Agent, String) {
    let mut agent = worked(upstream, proxy, FREE);
    let session = session(&agent.chat(upstream, proxy, ""));
    (agent, session)
}

#[test]
fn a_session_is_made_smaller_at_its_next_request_and_once() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let (mut agent, session) = known(&upstream, &proxy);
    wish(&proxy, &session);
    let answer = agent.chat(&upstream, &proxy, "");
    assert_eq!(compaction(&answer), "clear");
    assert_eq!(super::cast::session(&answer), session);
    let stubs = figure(&answer, "stubs");
    agent.user("And more.");
    for _ in 0..3 {
        let answer = agent.cycle(&upstream, &proxy, "");
        assert_eq!(compaction(&answer), "none");
        assert_eq!(figure(&answer, "stubs"), stubs);
    }
    let manual =
        "longhaul_compactions_total{kind=\"clear\",outcome=\"committed\",trigger=\"manual\"}";
    assert_eq!(proxy.metric(manual), Some(1.0));
    assert!(all_answered(&upstream));
}

/// Those requests may start no pass, or are not the session's own.
#[test]
fn a_wish_waits_for_a_request_that_can_carry_it_out() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let (mut agent, session) = known(&upstream, &proxy);
    wish(&proxy, &session);
    let mut aside = agent.clone();
    aside.model = "claude-haiku-4-5".to_owned();
    aside.user("A title, please.");
    assert_eq!(compaction(&aside.ask(&proxy, "")), "none");
    let mut summary = agent.clone();
    summary.user("Write a detailed summary of the conversation so far.");
    assert_eq!(compaction(&summary.ask(&proxy, "")), "none");
    let mut asks = agent.clone();
    asks.user("How long is it?").count(&proxy, "");
    agent.user("Not this one.");
    let body = agent.body();
    agent.ask(&proxy, OFF);
    same(&last_body(&upstream), &body, "off");
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, "")), "clear");
}

#[test]
fn a_wish_is_for_one_session() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let (mut agent, session) = known(&upstream, &proxy);
    let mut other = Agent::seasoned(FREE, 9, 2000);
    other.ask(&proxy, "");
    wish(&proxy, &session);
    assert_eq!(compaction(&other.chat(&upstream, &proxy, "")), "none");
    // What is asked for twice at once is done once.
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, NOW)), "clear");
    agent.turn(&upstream, &proxy, 4);
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, "")), "none");
}

#[test]
fn a_session_that_is_not_known_is_not_found() {
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
    let (mut agent, session) = known(&upstream, &proxy);
    for other in [
        "x",
        "%ff",
        &session[1..],
        &session.to_uppercase(),
        &"0".repeat(32),
    ] {
        let answer = order(&proxy, other, HERE, "");
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status(), 404, "{other}");
        assert_eq!(said["error"]["type"], "not_found_error", "{other}");
    }
    proxy.join();
    let proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
    assert_eq!(order(&proxy, &session, HERE, "").status(), 404);
    agent.chat(&upstream, &proxy, "");
    wish(&proxy, &session);
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, "")), "clear");
}

#[test]
fn where_no_pass_is_ever_started_a_wish_is_refused() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "policy.mode = \"off\"");
    let (_, session) = known(&upstream, &proxy);
    let answer = order(&proxy, &session, HERE, "");
    assert_eq!(answer.status(), 409);
}
