//! Requests that never start a pass: rendered by the plan that is there, byte
//! for byte without one, reduced for once if they would not fit.

use longhaul::sim::Options;
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    FREE, NOW, OFF, compacted, compaction, continues, figure, fine, last_body, same, shown, stubs,
    worked,
};
use crate::support::{Answer, Client, Proxy, Tap, simulated::Simulated};

const SUMMARIZE: &str = "anthropic-beta: compact-2026-09-04\r\n";
const CREDIT: &str = "anthropic-beta: fallback-credit-2026-06-01\r\n";
const THREADS: &str = "anthropic-beta: message-threads-2026-08-12\r\n";
const SMALL: &str = "[models.\"claude-opus-4-8\"]\nwindow = 12000\n";

/// Claude Code asks at the end of the last message, opencode in one of its own.
const CLAUDE_CODE: &str = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests.";
const OPENCODE: &str = "Provide a detailed prompt for continuing our conversation above. Focus on information that would be helpful for continuing the conversation.";

type Change = fn(&Agent) -> Agent;

/// Every kind, made from an agent whose history ends with the user.
const KINDS: [(&str, Change); 5] = [
    ("compaction", |agent| {
        agent
            .with("compaction", json!({"type": "summarize"}))
            .saying(SUMMARIZE)
    }),
    ("fallback_credit_token", |agent| {
        agent
            .with("fallback_credit_token", json!("credit"))
            .saying(CREDIT)
    }),
    ("max_tokens: 0", |agent| agent.with("max_tokens", json!(0))),
    ("Claude Code's summary", |agent| {
        let mut agent = agent.clone();
        let last = agent.history.last_mut().unwrap();
        if let Some(text) = last["content"].as_str() {
            last["content"] = json!([{"type": "text", "text": text}]);
        }
        let blocks = last["content"].as_array_mut().unwrap();
        blocks.push(json!({"type": "text", "text": CLAUDE_CODE}));
        agent
    }),
    ("opencode's summary", |agent| {
        let mut agent = agent.clone();
        agent.history.pop();
        agent.user(OPENCODE);
        agent
    }),
];

#[test]
fn without_a_plan_they_go_byte_for_byte_even_if_a_pass_is_asked_for() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = worked(&upstream, &proxy, FREE);
    agent.user("And?");
    for (kind, change) in KINDS {
        let request = change(&agent);
        let answer = request.send(&proxy, NOW);
        assert_eq!(answer.status(), 200, "{kind}");
        same(&last_body(&upstream), &request.body(), kind);
        assert_eq!(compaction(&answer), "none", "{kind}");
    }
}

#[test]
fn with_a_plan_they_are_rendered_by_it_and_start_no_pass() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, FREE);
    let view = shown(&upstream);
    // There is more to clear by now.
    agent.turn(&upstream, &proxy, 4);
    agent.user("And?");
    for (kind, change) in KINDS {
        let answer = change(&agent).send(&proxy, NOW);
        assert_eq!(answer.status(), 200, "{kind}");
        let sent = shown(&upstream);
        assert!(continues(&sent, &view), "{kind}");
        assert_eq!(stubs(&sent), stubs(&view), "{kind}");
        assert_eq!(compaction(&answer), "none", "{kind}");
    }
    agent.ask(&proxy, "");
    let answer = agent.chat(&upstream, &proxy, NOW);
    assert_eq!(compaction(&answer), "clear", "an ordinary one does");
}

/// It redeems a refusal, and must be what was refused but for the token.
#[test]
fn a_fallback_credit_is_redeemed_with_the_very_bytes_that_were_refused() {
    let tap = Tap::start(fine);
    let proxy = Proxy::before(&tap.url());
    let agent = Agent::seasoned(FREE, 8, 2000);
    assert_eq!(compaction(&agent.send(&proxy, NOW)), "clear");
    let refused = String::from_utf8(tap.seen().body).unwrap();
    let credit = agent.with("fallback_credit_token", json!("t-1"));
    credit.send(&proxy, "");
    let redeemed = String::from_utf8(tap.seen().body).unwrap();
    assert_ne!(redeemed, refused);
    assert_eq!(
        redeemed.replace(",\"fallback_credit_token\":\"t-1\"", ""),
        refused
    );
}

#[test]
fn a_count_is_of_the_view_and_raw_if_asked_for() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = worked(&upstream, &proxy, FREE);
    agent.user("And?");
    let raw = agent.count(&proxy, NOW);
    assert_eq!(raw, agent.count(&proxy, OFF));
    let answer = agent.ask(&proxy, NOW);
    assert_eq!(figure(&answer, "stubs"), 4);
    let sent = upstream.last().tokens.prompt();
    agent.history.pop();
    assert_eq!(agent.count(&proxy, ""), sent);
    assert_eq!(agent.count(&proxy, NOW), sent);
    assert_eq!(agent.count(&proxy, OFF), raw);
    assert!(sent < raw);
    // Counting raw was no reset.
    agent.user("Still there?");
    assert_eq!(figure(&agent.ask(&proxy, ""), "stubs"), 4);
}

#[test]
fn what_would_not_fit_is_reduced_for_once_and_nothing_is_remembered() {
    for (kind, change) in KINDS {
        let upstream = Simulated::start(Options::default().with_window(FREE, 12_000));
        let proxy = Proxy::with(&upstream.sim.url(), SMALL);
        let mut agent = Agent::seasoned(FREE, 30, 2000);
        let reduced = change(&agent).send(&proxy, "");
        assert_eq!(reduced.status(), 200, "{kind}");
        assert!(compaction(&reduced).starts_with("clear"), "{kind}");
        // The conversation itself gets a pass of its own.
        agent.user("Go on.");
        let answer = agent.send(&proxy, "");
        assert_eq!(answer.status(), 200, "{kind}");
        assert!(compaction(&answer).starts_with("clear"), "{kind}");
    }
}

/// A plan stands for ever once a reply has begun, however large it is.
#[test]
fn an_ordinary_request_sent_again_is_not_reduced_again() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), SMALL);
    let agent = Agent::seasoned(FREE, 30, 2000);
    assert_eq!(agent.send(&proxy, "").status(), 200);
    let first = last_body(&upstream);
    for _ in 0..3 {
        let answer = agent.send(&proxy, "");
        assert_eq!(compaction(&answer), "none");
        same(&last_body(&upstream), &first, "bytes");
    }
}

/// A budget is a wish of the operator's; only the window makes a request fail.
#[test]
fn a_budget_reduces_nothing_for_once() {
    let upstream = Simulated::start(Options::default());
    let file = "[models.\"claude-opus-4-8\"]\nbudget = 12000\n";
    let proxy = Proxy::with(&upstream.sim.url(), file);
    let agent = Agent::seasoned(FREE, 30, 2000);
    for (kind, change) in KINDS {
        let request = change(&agent);
        assert_eq!(request.send(&proxy, "").status(), 200, "{kind}");
        same(&last_body(&upstream), &request.body(), kind);
    }
}

fn said(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn a_thread_is_declined_when_it_opens_and_never_when_it_goes_on() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = Agent::new(FREE).saying(THREADS);
    agent.user("Go.");
    let opens = agent.with("thread", json!({"type": "create"}));
    let answer = opens.send(&proxy, NOW);
    assert_eq!(answer.status(), 400);
    let code = &said(&answer)["error"]["details"]["error_code"];
    assert_eq!(code, "thread_unsupported_request");
    assert!(upstream.entries().is_empty());
    let goes_on = json!({"type": "continue", "previous_message_id": "msg_0"});
    let continued = agent.with("thread", goes_on);
    let answer = continued.send(&proxy, NOW);
    same(&last_body(&upstream), &continued.body(), "bytes");
    assert_eq!(answer.header("x-longhaul-session"), None);
}

#[test]
fn threads_pass_if_the_operator_says_so() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "threads = \"pass\"");
    let mut agent = Agent::new(FREE).saying(THREADS);
    agent.user("Go.");
    let opens = agent.with("thread", json!({"type": "create"}));
    let answer = opens.send(&proxy, NOW);
    assert_eq!(answer.status(), 200);
    same(&last_body(&upstream), &opens.body(), "bytes");
    let previous = said(&answer)["id"].clone();
    let mut later = Agent::new(FREE).saying(THREADS);
    later.user("On.");
    later.fields = json!({"max_tokens": 100,
        "thread": {"type": "continue", "previous_message_id": previous}});
    assert_eq!(later.send(&proxy, NOW).status(), 200);
    same(&last_body(&upstream), &later.body(), "bytes");
}

#[test]
fn what_is_not_understood_passes_byte_for_byte() {
    let tap = Tap::start(fine);
    let proxy = Proxy::before(&tap.url());
    let text = String::from_utf8(Agent::seasoned(FREE, 8, 2000).body()).unwrap();
    let mut invalid = text.clone().into_bytes();
    let at = text.find("Build it").unwrap();
    invalid[at] = 0xff;
    let twice = |key: &str| text.replacen('{', &format!("{{\"{key}\":[],"), 1);
    let bodies: Vec<Vec<u8>> = vec![
        invalid,
        twice("messages").into(),
        twice("model").into(),
        twice("\\u006dessages").into(),
        text.replacen("{\"model\"", "{\"modell\"", 1).into(),
        text.replacen("\"claude-opus-4-8\"", "17", 1).into(),
        text[..text.len() - 1].into(),
        format!("{text}{text}").into(),
        format!("\u{feff}{text}").into(),
        b"{\"model\":\"m\",\"messages\":{\"0\":\"x\"}}".to_vec(),
        b"{\"model\":\"m\",\"messages\":\"x\"}".to_vec(),
        b"{\"model\":\"m\",\"messages\":[]}".to_vec(),
        b"{\"model\":\"m\",\"messages\":[17]}".to_vec(),
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}".to_vec(),
        b"{\"model\":\"m\"}".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"".to_vec(),
        b"model=m".to_vec(),
    ];
    for body in bodies {
        let mut client = Client::connect(proxy.address);
        let answer = client.post("/v1/messages", NOW, &body).answer();
        assert_eq!(answer.status(), 200);
        same(&tap.seen().body, &body, "not understood");
    }
}
