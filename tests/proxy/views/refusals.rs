//! Upstream refuses a request that we changed: ours until proven otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul::sim::Options;
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, compaction, continues, error, figure, fine, json_of, marks, response, same,
    strict, stubs, unmarked,
};
use crate::support::{Proxy, Step, Tap, simulated::Simulated, text};

/// The most that one request may become.
const TRIES: usize = 8;
const MANY: &str = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
const ORDER: &str = "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.";
const BLANK: &str = "messages.3.content.0.text: cache_control cannot be set for empty text blocks";
const STRANGE: &str = "messages.2.content.0: we do not like this.";
const BINDS: &str = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";
const BETA: &str = "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header. Please consult our documentation at platform.claude.com/docs or try again without the header.";
const EXTRA: &str = "thinking.adaptive.block_binding: Extra inputs are not permitted";

fn has_stubs(body: &Value) -> bool {
    stubs(&unmarked(&body["messages"])) > 0
}

fn seen(tap: &Tap, count: usize) -> Vec<Vec<u8>> {
    let bodies = (0..count).map(|_| tap.seen().body).collect();
    assert!(tap.saw_nothing(), "more than {count} requests");
    bodies
}

fn all_seen(tap: &Tap) -> Vec<Vec<u8>> {
    let mut bodies = vec![tap.seen().body];
    while let Some(message) = tap.try_seen() {
        bodies.push(message.body);
    }
    bodies
}

/// An agent at the end of a turn whose messages hold thinking.
fn thinker(model: &str) -> Agent {
    let mut agent = Agent::seasoned(model, 8, 2000);
    for message in &mut agent.history {
        if message["role"] == "assistant" {
            let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"});
            let blocks = message["content"].as_array_mut().unwrap();
            blocks.insert(0, thinking);
        }
    }
    agent
}

#[test]
fn a_mark_of_ours_that_is_refused_is_left_out_and_remembered_for_the_model() {
    for words in [MANY, ORDER, BLANK] {
        let tap = strict(move |_, request| (marks(&request.body) > 2).then(|| words.to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
        let agent = Agent::seasoned(FREE, 8, 2000);
        let answer = agent.send(&proxy, NOW);
        assert_eq!(answer.status(), 200, "{words}");
        assert_eq!(figure(&answer, "stubs"), 5);
        let tries = seen(&tap, 2);
        assert_eq!((marks(&tries[0]), marks(&tries[1])), (3, 2));
        assert!(text(&tries[1]).contains("was cleared"));
        for cycles in [9, 10] {
            // Another conversation, before and after a restart.
            assert_eq!(
                Agent::seasoned(FREE, cycles, 2000)
                    .send(&proxy, NOW)
                    .status(),
                200
            );
            assert_eq!(marks(&seen(&tap, 1)[0]), 2, "{words}");
            proxy.join();
            proxy = Proxy::keeping(&tap.url(), "", folder.path());
        }
        Agent::seasoned("claude-opus-5", 12, 2000).send(&proxy, NOW);
        assert_eq!(seen(&tap, 2).len(), 2, "of another model nothing is known");
    }
}

#[test]
fn asking_to_drop_thinking_is_given_up_where_it_is_refused() {
    for words in [BETA, EXTRA] {
        let folder = tempfile::tempdir().unwrap();
        let asked = |body: &Value| !body["thinking"]["block_binding"].is_null();
        let mut agent = thinker(BOUND);
        let newer = strict(move |body, _| (!asked(body)).then(|| BINDS.to_owned()));
        let mut proxy = Proxy::keeping(&newer.url(), "", folder.path());
        agent.ask(&proxy, "");
        same(&seen(&newer, 2)[0], &agent_before(&agent).body(), "bytes");
        proxy.join();
        let older = strict(move |body, _| asked(body).then(|| words.to_owned()));
        let mut proxy = Proxy::keeping(&older.url(), "", folder.path());
        agent.user("And now?");
        agent.ask(&proxy, "");
        same(&seen(&older, 2)[1], &agent_before(&agent).body(), words);
        for _ in 0..2 {
            agent.user("Further.");
            agent.ask(&proxy, "");
            same(&seen(&older, 1)[0], &agent_before(&agent).body(), "bytes");
            proxy.join();
            proxy = Proxy::keeping(&older.url(), "", folder.path());
        }
    }
}

/// The agent before its last reply.
fn agent_before(agent: &Agent) -> Agent {
    let mut before = agent.clone();
    before.history.pop();
    before
}

#[test]
fn thinking_that_a_change_has_spoilt_is_left_out_of_the_view() {
    let spoilt = |body: &Value| {
        let shown = body["messages"].to_string();
        let after = shown.split_once("was cleared");
        after.is_some_and(|(_, after)| after.contains("signature"))
    };
    let tap = strict(move |body, _| spoilt(body).then(|| STRANGE.to_owned()));
    let proxy = Proxy::before(&tap.url());
    let mut agent = thinker(FREE).saying("x-claude-code-session-id: 5f0c\r\n");
    let answer = agent.ask(&proxy, NOW);
    assert_eq!(figure(&answer, "stubs"), 5);
    let view = json_of_last(&tap);
    assert!(has_stubs(&view) && !spoilt(&view));
    agent.user("On.");
    agent.ask(&proxy, "");
    let later: Value = serde_json::from_slice(&seen(&tap, 1)[0]).unwrap();
    let (view, later) = (unmarked(&view["messages"]), unmarked(&later["messages"]));
    assert!(continues(&later, &view));
    // What is known of this view is true of it: it is found again.
    agent.history[2]["content"][0]["content"] = json!("[Old tool result content cleared]");
    agent.user("Further.");
    agent.ask(&proxy, "");
    let edited: Value = serde_json::from_slice(&seen(&tap, 1)[0]).unwrap();
    assert!(continues(&unmarked(&edited["messages"]), &later));
}

/// What does not fit is not tried: upstream would only say so.
#[test]
fn an_overlay_at_fault_stays_if_the_client_s_own_request_does_not_fit() {
    let tap = strict(|body, _| {
        let changed = body.to_string().contains("[longhaul: ");
        changed.then(|| STRANGE.to_owned())
    });
    let file = "[models.\"claude-opus-4-8\"]\nwindow = 12000\n";
    let proxy = Proxy::with(&tap.url(), file);
    let agent = Agent::seasoned(FREE, 30, 2000);
    let answer = agent.send(&proxy, NOW);
    assert_eq!(text(&answer.body), error(STRANGE));
    let tries = all_seen(&tap);
    assert!(tries.len() <= TRIES);
    assert!(tries.iter().all(|body| *body != agent.body()));
}

fn json_of_last(tap: &Tap) -> Value {
    serde_json::from_slice(all_seen(tap).last().unwrap()).unwrap()
}

#[test]
fn an_overlay_at_fault_is_set_aside() {
    let tap = strict(|body, _| has_stubs(body).then(|| STRANGE.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&tap.url(), "", folder.path());
    let mut agent = Agent::seasoned(FREE, 8, 2000);
    let answer = agent.ask(&proxy, NOW);
    assert_eq!(figure(&answer, "stubs"), 0);
    same(
        all_seen(&tap).last().unwrap(),
        &agent_before(&agent).body(),
        "bytes",
    );
    for _ in 0..2 {
        agent.user("On.");
        agent.ask(&proxy, "");
        same(&seen(&tap, 1)[0], &agent_before(&agent).body(), "bytes");
        proxy.join();
        proxy = Proxy::keeping(&tap.url(), "", folder.path());
    }
    // That marks were left out on the way did not help, and is no lesson.
    Agent::seasoned(FREE, 9, 2000).send(&proxy, NOW);
    assert_eq!(marks(&all_seen(&tap)[0]), 3);
}

/// Also where the client says itself what is to become of its thinking.
#[test]
fn an_overlay_that_spoils_thinking_gives_way_if_the_client_forbids_dropping() {
    let tap = strict(|body, _| has_stubs(body).then(|| BINDS.to_owned()));
    let proxy = Proxy::before(&tap.url());
    let binding =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}});
    let agent = thinker(FREE).with("thinking", binding);
    assert_eq!(agent.send(&proxy, NOW).status(), 200);
    same(all_seen(&tap).last().unwrap(), &agent.body(), "bytes");
}

#[test]
fn if_nothing_helps_the_client_hears_what_is_said_to_its_own_request() {
    let angry = Arc::new(AtomicBool::new(false));
    let mood = angry.clone();
    // The words tell which request they answer.
    let tap = strict(move |_, request| {
        let words = format!("model: no, not with {} bytes", request.body.len());
        mood.load(Ordering::SeqCst).then_some(words)
    });
    let proxy = Proxy::before(&tap.url());
    for mut agent in [Agent::seasoned(FREE, 8, 2000), thinker(BOUND)] {
        angry.store(false, Ordering::SeqCst);
        assert_eq!(compaction(&agent.ask(&proxy, NOW)), "clear");
        let view: Value = serde_json::from_slice(&seen(&tap, 1)[0]).unwrap();
        agent.user("On.");
        angry.store(true, Ordering::SeqCst);
        let answer = agent.send(&proxy, "");
        assert_eq!(answer.status(), 400);
        let own = format!("model: no, not with {} bytes", agent.body().len());
        assert_eq!(text(&answer.body), error(&own));
        let tries = all_seen(&tap);
        assert!(tries.len() <= TRIES);
        same(tries.last().unwrap(), &agent.body(), "bytes");
        // It was the client's own mistake, and costs it no overlay.
        angry.store(false, Ordering::SeqCst);
        let answer = agent.ask(&proxy, "");
        assert_eq!(figure(&answer, "stubs"), 5);
        let again: Value = serde_json::from_slice(&seen(&tap, 1)[0]).unwrap();
        let (again, view) = (unmarked(&again["messages"]), unmarked(&view["messages"]));
        assert!(continues(&again, &view));
    }
}

#[test]
fn a_refusal_of_what_we_did_not_change_is_passed_on_at_once() {
    for words in [MANY, STRANGE, BETA, EXTRA] {
        for status in [400, 422] {
            let tap = Tap::start(move |_| {
                response(status, "request-id: req_7\r\n", error(words).as_bytes())
            });
            let proxy = Proxy::before(&tap.url());
            let agent = Agent::seasoned(FREE, 8, 2000);
            let answer = agent.send(&proxy, "");
            assert_eq!(answer.status(), status);
            assert_eq!(text(&answer.body), error(words));
            assert_eq!(answer.header("request-id"), Some("req_7"));
            same(&seen(&tap, 1)[0], &agent.body(), "bytes");
        }
    }
}

/// What is too long is made smaller and sent again; the client sees nothing of it.
#[test]
fn a_request_that_is_too_long_is_made_smaller_and_sent_again() {
    let upstream = Simulated::start(Options::default().with_window(FREE, 12_000));
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = Agent::seasoned(FREE, 30, 2000);
    let answer = agent.ask(&proxy, "");
    assert_eq!(answer.status(), 200);
    assert!(compaction(&answer).contains("clear"));
    assert!(!upstream.entries()[0].is_answered());
    assert_eq!(upstream.entries().len(), 2);
    agent.user("On.");
    assert_eq!(compaction(&agent.ask(&proxy, "")), "none", "and stays so");
    let retried = proxy.metric("longhaul_reactive_retries_total{outcome=\"retried\"}");
    assert_eq!(retried, Some(1.0));
    let passes = proxy.metric(
        "longhaul_compactions_total{kind=\"clear\",outcome=\"committed\",trigger=\"reactive\"}",
    );
    assert_eq!(passes, Some(1.0));
}

/// If that does not help, the client hears what was said to its own request.
#[test]
fn a_request_that_stays_too_long_is_refused_in_the_first_words() {
    let tap = Tap::start(|request| {
        let words = format!(
            "prompt is too long: {} tokens > 8 maximum",
            request.body.len()
        );
        response(400, "", error(&words).as_bytes())
    });
    let proxy = Proxy::before(&tap.url());
    let agent = Agent::seasoned(FREE, 8, 2000);
    let answer = agent.send(&proxy, "");
    assert_eq!(answer.status(), 400);
    let first = format!("prompt is too long: {} tokens", agent.body().len());
    assert!(
        text(&answer.body).contains(&first),
        "{}",
        text(&answer.body)
    );
    assert!(all_seen(&tap).len() <= 3);
}

/// Thinking that is refused although dropping it is asked for is not ours.
#[test]
fn a_refusal_of_thinking_that_dropping_does_not_cure_is_the_first_one_word_for_word() {
    let tap = strict(|body, _| {
        let asked = !body["thinking"]["block_binding"].is_null();
        Some(format!("{BINDS} {asked}"))
    });
    let proxy = Proxy::before(&tap.url());
    let agent = thinker(BOUND);
    let answer = agent.send(&proxy, "");
    assert_eq!(text(&answer.body), error(&format!("{BINDS} false")));
    same(&seen(&tap, 2)[0], &agent.body(), "bytes");
}

/// Clients ask again after an outage, and never after a refusal: one that was
/// about to be put right must not end a session because a connection broke.
#[test]
fn where_the_next_try_is_lost_on_the_way_the_client_is_not_told_of_the_refusal() {
    for headers in ["", NOW] {
        let lost = Arc::new(AtomicBool::new(true));
        let state = lost.clone();
        let tap = Tap::start(move |request| {
            let asked = !json_of(request)["thinking"]["block_binding"].is_null();
            match (asked, state.load(Ordering::SeqCst)) {
                (false, _) => response(400, "", error(BINDS).as_bytes()),
                (true, true) => vec![Step::Close],
                (true, false) => fine(request),
            }
        });
        let proxy = Proxy::before(&tap.url());
        let agent = thinker(BOUND);
        let answer = agent.send(&proxy, headers);
        assert_eq!(answer.status(), 502, "{}", text(&answer.body));
        lost.store(false, Ordering::SeqCst);
        assert_eq!(agent.send(&proxy, headers).status(), 200);
    }
}

#[test]
fn limits_and_outages_are_the_client_s_to_wait_for() {
    for status in [401, 403, 404, 408, 429, 500, 503, 529] {
        let tap = Tap::start(move |_| response(status, "retry-after: 7\r\n", b"{\"x\":1}"));
        let proxy = Proxy::before(&tap.url());
        for headers in ["", NOW] {
            let answer = Agent::seasoned(FREE, 8, 2000).send(&proxy, headers);
            assert_eq!(answer.status(), status);
            assert_eq!(answer.body, b"{\"x\":1}");
            assert_eq!(answer.header("retry-after"), Some("7"));
            seen(&tap, 1);
        }
    }
}

/// After an outage the client sends the same again, and upstream must see the
/// same again.
#[test]
fn what_is_sent_again_after_an_outage_is_the_same_view() {
    let down = Arc::new(AtomicBool::new(false));
    let state = down.clone();
    let tap = Tap::start(move |request| {
        if state.swap(false, Ordering::SeqCst) {
            return response(529, "", b"{}");
        }
        fine(request)
    });
    let proxy = Proxy::before(&tap.url());
    // Of a credential that upstream has never accepted nothing is kept.
    let mut first = Agent::new(FREE);
    first.user("Hello.");
    assert_eq!(first.send(&proxy, "").status(), 200);
    seen(&tap, 1);
    down.store(true, Ordering::SeqCst);
    let agent = Agent::seasoned(FREE, 8, 2000);
    assert_eq!(agent.send(&proxy, NOW).status(), 529);
    assert_eq!(agent.send(&proxy, "").status(), 200);
    assert_eq!(agent.send(&proxy, "").status(), 200);
    let tries = seen(&tap, 3);
    assert_eq!(tries[0], tries[1]);
    assert_eq!(tries[0], tries[2]);
    assert!(text(&tries[0]).contains("was cleared"));
}
