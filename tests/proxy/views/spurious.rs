//! Refusals that are not about the size of a request, whatever they say: no view
//! stays small for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    FREE, NOW, compaction, continues, error, fine, json_of, response, same, unmarked,
};
use crate::support::http::Message;
use crate::support::{Proxy, Step, Tap, text};

const PAGE: &str = "<html><body>413 Request Entity Too Large</body></html>";

/// Ways to say that a request is too large.
fn refusals() -> Vec<(&'static str, u16, String)> {
    let large = json!({"type": "error", "error": {"type": "request_too_large",
        "message": "Request exceeds the maximum size"}});
    vec![
        ("413", 413, large.to_string()),
        ("413 as a page", 413, PAGE.to_owned()),
        ("413 without a word", 413, String::new()),
        ("too long", 400, error("prompt is too long")),
        (
            "too long for a window that is made up",
            400,
            error("prompt is too long: 43801 tokens > 4096 maximum"),
        ),
    ]
}

/// An upstream that refuses the next requests, whatever they are.
fn refusing(next: &Arc<AtomicI64>, status: u16, body: String) -> Tap {
    let next = next.clone();
    Tap::start(move |request| {
        if next.fetch_sub(1, Ordering::SeqCst) > 0 {
            return response(status, "", body.as_bytes());
        }
        fine(request)
    })
}

fn all_seen(tap: &Tap) -> Vec<Message> {
    let mut requests = vec![tap.seen()];
    requests.extend(std::iter::from_fn(|| tap.try_seen()));
    requests
}

/// A session that upstream has answered as it is.
fn answered(proxy: &Proxy, tap: &Tap) -> Agent {
    let mut agent = Agent::seasoned(FREE, 60, 2000);
    agent.ask(proxy, "");
    same(&all_seen(tap)[0].body, &before(&agent).body(), "whole");
    agent.user("On.");
    agent
}

/// The messages of a request, in canonical form.
fn shown(request: &Message) -> Vec<Value> {
    unmarked(&json_of(request)["messages"])
}

/// The agent before its last reply.
fn before(agent: &Agent) -> Agent {
    let mut before = agent.clone();
    before.history.pop();
    before
}

#[test]
fn if_no_smaller_view_helped_the_plan_is_again_what_it_was() {
    for (name, status, body) in refusals() {
        let next = Arc::new(AtomicI64::new(0));
        let tap = refusing(&next, status, body.clone());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
        let mut agent = answered(&proxy, &tap);
        next.store(i64::MAX, Ordering::SeqCst);
        for _ in 0..3 {
            let answer = agent.send(&proxy, "");
            assert_eq!(answer.status(), status, "{name}");
            assert_eq!(text(&answer.body), body, "{name}: word for word");
            assert_eq!(compaction(&answer), "none", "{name}: nothing came of it");
            assert!(all_seen(&tap).len() <= 4, "{name}");
        }
        next.store(0, Ordering::SeqCst);
        for _ in 0..2 {
            let answer = agent.ask(&proxy, "");
            assert_eq!(compaction(&answer), "none", "{name}");
            same(&all_seen(&tap)[0].body, &before(&agent).body(), name);
            agent.user("Further.");
            proxy.join();
            proxy = Proxy::keeping(&tap.url(), "", folder.path());
        }
    }
}

/// The same for a session that has an overlay: it keeps that one.
#[test]
fn an_overlay_survives_refusals_that_shrinking_did_not_cure() {
    for (name, status, body) in refusals() {
        let next = Arc::new(AtomicI64::new(0));
        let tap = refusing(&next, status, body.clone());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
        let mut agent = Agent::seasoned(FREE, 60, 2000);
        let answer = agent.ask(&proxy, NOW);
        assert_ne!(compaction(&answer), "none");
        let view = shown(&all_seen(&tap)[0]);
        agent.user("On.");
        next.store(i64::MAX, Ordering::SeqCst);
        assert_eq!(agent.send(&proxy, "").status(), status, "{name}");
        assert!(all_seen(&tap).len() > 1, "{name}: it was tried");
        next.store(0, Ordering::SeqCst);
        proxy.join();
        proxy = Proxy::keeping(&tap.url(), "", folder.path());
        let answer = agent.ask(&proxy, "");
        assert_eq!(compaction(&answer), "none", "{name}");
        assert!(continues(&shown(&all_seen(&tap)[0]), &view), "{name}");
    }
}

/// A page may come from any machine on the way: it is asked again before
/// anything is made smaller.
#[test]
fn one_413_with_a_page_makes_nothing_smaller() {
    let next = Arc::new(AtomicI64::new(0));
    let tap = refusing(&next, 413, PAGE.to_owned());
    let proxy = Proxy::before(&tap.url());
    let mut agent = answered(&proxy, &tap);
    next.store(1, Ordering::SeqCst);
    let answer = agent.ask(&proxy, "");
    assert_eq!(compaction(&answer), "none");
    let tries = all_seen(&tap);
    assert_eq!(tries.len(), 2);
    for sent in &tries {
        same(&sent.body, &before(&agent).body(), "the same again");
    }
}

/// Where a machine on the way really takes no more than that, sessions go on.
#[test]
fn a_limit_in_bytes_on_the_way_is_lived_with() {
    let tap = Tap::start(|request| {
        if request.body.len() > 100_000 {
            return response(413, "", PAGE.as_bytes());
        }
        fine(request)
    });
    let proxy = Proxy::before(&tap.url());
    let mut agent = Agent::seasoned(FREE, 60, 2000);
    assert_ne!(compaction(&agent.ask(&proxy, "")), "none");
    assert_eq!(all_seen(&tap).len(), 3);
    agent.user("On.");
    agent.ask(&proxy, "");
    assert_eq!(all_seen(&tap).len(), 1, "and stays so");
}

/// Nothing is known of a view whose answer never came.
#[test]
fn a_view_made_for_a_refusal_is_forgotten_if_its_answer_is_lost() {
    let lost = Arc::new(AtomicBool::new(false));
    let (state, refused) = (lost.clone(), AtomicBool::new(false));
    let tap = Tap::start(move |request| {
        if !state.load(Ordering::SeqCst) {
            return fine(request);
        }
        if refused.swap(true, Ordering::SeqCst) {
            return vec![Step::Close];
        }
        response(400, "", error("prompt is too long").as_bytes())
    });
    let proxy = Proxy::before(&tap.url());
    let mut agent = answered(&proxy, &tap);
    lost.store(true, Ordering::SeqCst);
    assert_eq!(agent.send(&proxy, "").status(), 502);
    assert!(all_seen(&tap).len() > 1);
    lost.store(false, Ordering::SeqCst);
    assert_eq!(compaction(&agent.ask(&proxy, "")), "none");
    same(&all_seen(&tap)[0].body, &before(&agent).body(), "whole");
}
