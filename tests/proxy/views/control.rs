//! What a client and an operator can say: not now, now, only look, never.

use longhaul::sim::Options;
use serde_json::Value;

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, OFF, all_answered, compacted, compaction, continues, figure, last_body, same,
    session, shown, stubs, worked,
};
use crate::support::{Proxy, simulated::Simulated};

#[test]
fn without_an_overlay_off_changes_nothing() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = worked(&upstream, &proxy, FREE);
    for headers in ["", OFF, "x-longhaul-compact: OFF\r\n"] {
        agent.user("More.");
        let body = agent.body();
        let answer = agent.ask(&proxy, headers);
        same(&last_body(&upstream), &body, "bytes");
        assert_eq!(compaction(&answer), "none");
    }
}

/// Off is an explicit reset: what was hidden is shown again, from here on.
#[test]
fn off_goes_back_to_the_client_s_own_bytes_for_good() {
    for model in [FREE, BOUND] {
        let upstream = Simulated::start(Options::default());
        let proxy = Proxy::before(&upstream.sim.url());
        let mut agent = compacted(&upstream, &proxy, model);
        for headers in [OFF, "", ""] {
            agent.user("More.");
            let body = agent.body();
            let answer = agent.ask(&proxy, headers);
            assert_eq!(figure(&answer, "stubs"), 0, "{model}");
            let sent: Value = serde_json::from_slice(&last_body(&upstream)).unwrap();
            let own: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(sent["messages"], own["messages"], "{model}");
            if model == FREE {
                same(&last_body(&upstream), &body, "bytes");
            }
        }
    }
}

#[test]
fn words_that_are_not_known_are_no_wish() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = worked(&upstream, &proxy, FREE);
    for word in ["maybe", "", "now please", "\u{fc}"] {
        agent.user("More.");
        let body = agent.body();
        agent.ask(&proxy, &format!("x-longhaul-compact: {word}\r\n"));
        same(&last_body(&upstream), &body, word);
    }
}

#[test]
fn headers_of_ours_end_here_and_answers_carry_theirs() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, FREE);
    let told = "x-longhaul-session: mine\r\nX-Longhaul-Instructions: be brief\r\n";
    let answer = agent.chat(&upstream, &proxy, told);
    for entry in upstream.entries() {
        let ours = entry
            .headers
            .iter()
            .find(|(name, _)| name.starts_with("x-longhaul"));
        assert_eq!(ours, None);
    }
    let shape = answer.header("x-longhaul-view").unwrap();
    let parts: Vec<&str> = shape
        .split(';')
        .map(|part| part.split_once('=').unwrap().0)
        .collect();
    assert_eq!(parts, ["original", "sent", "stubs", "segments"], "{shape}");
    let numbers = ["original", "sent", "stubs", "segments"].map(|name| figure(&answer, name));
    assert!(
        numbers[0] > numbers[1] && numbers[2] > 0 && numbers[3] == 0,
        "{shape}"
    );
    assert_eq!(compaction(&answer), "none");
    assert!(answer.header("x-longhaul-request").is_some());
}

#[test]
fn a_session_keeps_its_name_and_a_fork_gets_another() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = Agent::new(FREE);
    let first = session(&agent.chat(&upstream, &proxy, ""));
    for headers in ["", NOW, "", OFF, ""] {
        agent.user("Again.");
        for _ in 0..2 {
            let answer = agent.cycle(&upstream, &proxy, headers);
            assert_eq!(session(&answer), first, "{headers}");
        }
        assert_eq!(session(&agent.chat(&upstream, &proxy, "")), first);
    }
    let mut fork = agent.clone();
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), first);
    fork.user("Or rather this.");
    let other = session(&fork.ask(&proxy, ""));
    assert_ne!(other, first);
    assert_eq!(session(&fork.chat(&upstream, &proxy, "")), other);
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), first);
}

/// A question on the side, to another model or a summary of the client's own,
/// does not make the conversation that goes on a fork.
#[test]
fn a_question_on_the_side_leaves_the_session_its_name() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = Agent::new(FREE);
    let first = session(&agent.chat(&upstream, &proxy, ""));
    let mut aside = agent.clone();
    aside.model = "claude-haiku-4-5".to_owned();
    aside.user("A title, please.").ask(&proxy, "");
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), first);
    let mut summary = agent.clone();
    summary.user("Write a detailed summary of the conversation so far.");
    summary.ask(&proxy, "");
    assert_eq!(session(&agent.chat(&upstream, &proxy, "")), first);
}

#[test]
fn observing_reports_what_a_pass_would_do_and_changes_no_byte() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "policy.mode = \"observe\"");
    let mut agent = Agent::new(BOUND);
    for _ in 0..3 {
        agent.user("Work.");
        for _ in 0..3 {
            let before = agent.clone();
            let answer = agent.cycle(&upstream, &proxy, NOW);
            same(&last_body(&upstream), &before.body(), "bytes");
            assert_eq!(compaction(&answer), "none");
        }
        agent.chat(&upstream, &proxy, NOW);
    }
    let would =
        "longhaul_compactions_total{kind=\"clear\",outcome=\"abandoned\",trigger=\"manual\"}";
    assert!(proxy.metric(would).unwrap() > 2.0);
    let did = "longhaul_compactions_total{kind=\"clear\",outcome=\"committed\",trigger=\"manual\"}";
    assert_eq!(proxy.metric(did), Some(0.0));
    assert!(all_answered(&upstream));
}

#[test]
fn off_is_off_even_when_asked() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "policy.mode = \"off\"");
    let mut agent = worked(&upstream, &proxy, FREE);
    agent.user("More.");
    let body = agent.body();
    agent.ask(&proxy, NOW);
    same(&last_body(&upstream), &body, "bytes");
    let any = "longhaul_compactions_total{kind=\"clear\",outcome=\"abandoned\",trigger=\"manual\"}";
    assert_eq!(proxy.metric(any), Some(0.0));
}

/// Going back would break its cache and its thinking.
#[test]
fn a_lineage_keeps_its_overlay_when_the_mode_changes() {
    for mode in ["observe", "off"] {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
        let mut agent = compacted(&upstream, &proxy, BOUND);
        let view = shown(&upstream);
        proxy.join();
        let file = format!("policy.mode = \"{mode}\"");
        let proxy = Proxy::keeping(&upstream.sim.url(), &file, folder.path());
        for _ in 0..2 {
            agent.turn(&upstream, &proxy, 2);
            agent.chat(&upstream, &proxy, NOW);
            let later = shown(&upstream);
            assert!(continues(&later, &view), "{mode}");
            assert_eq!(stubs(&later), stubs(&view), "{mode}");
        }
        assert!(all_answered(&upstream));
    }
}
