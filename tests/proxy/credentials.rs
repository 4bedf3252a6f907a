//! Credentials that upstream has not accepted: nobody pays for them, nothing is
//! kept of their requests, and whoever is accepted has everything.

use std::sync::Arc;
use std::time::Duration;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Key, Options, Reply};
use longhaul::store::{Memory, Store};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Proxy};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, figure, shown};

const GOOD: &str = "x-api-key: k\r\n";
/// What a client may send that nobody vouches for.
const BAD: [&str; 3] = ["", "x-api-key: wrong\r\n", "authorization: Bearer no\r\n"];
const BUDGET: &str = "[window]\nbudget = 12000\n";
const HOUR: Duration = Duration::from_hours(1);

/// An upstream that knows one key.
fn strict(credential: &str) -> Simulated {
    let key = Key {
        credential: credential.to_owned(),
        organization: "org".to_owned(),
        workspace: "wrkspc".to_owned(),
    };
    Simulated::start(Options {
        keys: vec![key],
        ..Options::default()
    })
}

/// Sends a history by a credential.
fn send(proxy: &Proxy, agent: &Agent, credential: &str, more: &str) -> Answer {
    let headers = format!(
        "{credential}anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n{more}"
    );
    let mut client = Client::connect(proxy.address);
    client
        .post("/v1/messages", &headers, &agent.body())
        .answer()
}

/// An agent that has talked at length, so that only a summary makes it smaller.
fn talker(name: &str) -> Agent {
    let mut agent = Agent::new(FREE);
    for number in 0..24 {
        agent.user(&format!("{name}: please do step {number} now."));
        let reply = "It is the better one because of what was found. ".repeat(80);
        let reply = json!([{"type": "text", "text": reply}]);
        agent
            .history
            .push(json!({"role": "assistant", "content": reply}));
    }
    agent.user("Go on.");
    agent
}

/// A small request that makes a credential accepted.
fn greet(proxy: &Proxy) {
    let mut agent = Agent::new(FREE);
    agent.user("Hello.");
    assert_eq!(send(proxy, &agent, GOOD, "").status(), 200);
}

/// Settings with a summarizer that the operator pays for.
fn paid_by_the_operator(summarizer: &Simulated) -> String {
    let url = summarizer.sim.url();
    format!(
        "{BUDGET}[summarizer]\nmode = \"model\"\nmodel = \"claude-haiku-4-5\"\n\
         upstream = \"{url}\"\napi_key_env = \"OPERATOR\"\n"
    )
}

#[test]
fn nobody_pays_for_a_summary_of_what_upstream_does_not_accept() {
    let (upstream, summarizer) = (strict("k"), strict("of-the-operator"));
    let proxy = Proxy::with(&upstream.sim.url(), &paid_by_the_operator(&summarizer));
    for credential in BAD {
        let answer = send(&proxy, &talker(credential), credential, "");
        assert_eq!(answer.status(), 401, "{credential}");
    }
    proxy.settle();
    assert!(summarizer.entries().is_empty(), "the operator has paid");
    greet(&proxy);
    assert_eq!(send(&proxy, &talker("good"), GOOD, "").status(), 200);
    let asked = summarizer.entries().len();
    assert!(asked > 0, "an accepted credential is worth a summary");
    let answer = send(&proxy, &talker("later"), BAD[1], "");
    assert_eq!(answer.status(), 401);
    proxy.settle();
    assert_eq!(summarizer.entries().len(), asked);
}

#[test]
fn an_accepted_credential_is_remembered_for_a_day_and_over_a_restart() {
    let (upstream, summarizer) = (strict("k"), strict("of-the-operator"));
    let (url, file) = (upstream.sim.url(), paid_by_the_operator(&summarizer));
    let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
    let folder = tempfile::tempdir().unwrap();
    let start = || Proxy::keeping_time(&url, &file, folder.path(), clock.clone());
    let mut proxy = start();
    greet(&proxy);
    proxy.join();
    clock.advance(23 * HOUR);
    let mut proxy = start();
    assert_eq!(send(&proxy, &talker("one"), GOOD, "").status(), 200);
    let asked = summarizer.entries().len();
    assert!(asked > 0, "it was accepted within a day");
    proxy.join();
    clock.advance(25 * HOUR);
    let proxy = start();
    let answer = send(&proxy, &talker("two"), GOOD, "");
    assert_eq!(compaction(&answer), "truncate", "no model is asked first");
    assert!(figure(&answer, "sent") <= 12_000);
}

#[test]
fn processes_that_share_a_store_share_what_was_accepted() {
    let (upstream, summarizer) = (strict("k"), strict("of-the-operator"));
    let (url, file) = (upstream.sim.url(), paid_by_the_operator(&summarizer));
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [(); 2].map(|()| Proxy::keeping(&url, &file, folder.path()));
    greet(&one);
    one.settle();
    assert_eq!(send(&other, &talker("good"), GOOD, "").status(), 200);
    assert!(!summarizer.entries().is_empty(), "nobody was asked");
}

/// The memory of a proxy, looked at from outside.
struct Memories {
    store: Arc<Memory>,
    runtime: Runtime,
}

impl Memories {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let store = Arc::new(Memory::new());
        Self { store, runtime }
    }

    /// Sessions, branches and bytes of the journal, and what was learned.
    fn kept(&self) -> (usize, u64, u64, Vec<(String, String)>) {
        self.runtime.block_on(async {
            let sessions = self.store.sessions().list(None, 100).await.unwrap();
            let extent = self.store.journal().extent().await.unwrap();
            let learned = self.store.learned().await.unwrap();
            (sessions.len(), extent.branches, extent.bytes, learned)
        })
    }
}

#[test]
fn nothing_is_kept_of_what_upstream_does_not_accept() {
    let upstream = strict("k");
    let memories = Memories::new();
    let proxy = Proxy::on(memories.store.clone(), &upstream.sim.url(), BUDGET, None);
    let agent = Agent::seasoned(FREE, 30, 4_000);
    for credential in BAD {
        for wish in ["", NOW, "x-longhaul-compact: off\r\n"] {
            let answer = send(&proxy, &agent, credential, wish);
            assert_eq!(answer.status(), 401, "{credential}");
        }
    }
    proxy.settle();
    assert_eq!(memories.kept(), (0, 0, 0, Vec::new()));
    let compactions =
        "longhaul_compactions_total{kind=\"clear\",outcome=\"committed\",trigger=\"budget\"}";
    assert_eq!(proxy.metric(compactions), Some(0.0));
}

#[test]
fn a_pass_that_the_first_request_needs_is_recorded_with_its_answer() {
    let upstream = strict("k");
    let memories = Memories::new();
    let proxy = Proxy::on(memories.store.clone(), &upstream.sim.url(), BUDGET, None);
    let mut agent = Agent::seasoned(FREE, 30, 4_000);
    upstream.sim.push_reply(Reply::text("Yes."));
    let answer = send(&proxy, &agent, GOOD, "");
    assert_eq!(answer.status(), 200);
    assert_ne!(compaction(&answer), "none");
    assert_eq!(answer.header("x-longhaul-notice"), None);
    let before = shown(&upstream);
    let reply: Value = serde_json::from_slice(&answer.body).unwrap();
    agent
        .history
        .push(json!({"role": "assistant", "content": reply["content"]}));
    agent.user("And now?");
    proxy.settle();
    let (sessions, branches, bytes, learned) = memories.kept();
    assert_eq!((sessions, branches), (1, 1));
    assert!(bytes > 1_000, "what was left out is in the journal");
    let is_note = |(key, _): &(String, String)| key.starts_with("accepted:");
    assert_eq!(learned.iter().filter(|note| is_note(note)).count(), 1);
    assert!(!format!("{learned:?}").contains("\"k\""));
    let answer = send(&proxy, &agent, GOOD, "");
    assert_eq!(compaction(&answer), "none", "the plan holds");
    let after = shown(&upstream);
    let common = before.len() - 1;
    assert_eq!(after[..common], before[..common]);
}

/// Its session's plan is another's, as far as anybody knows.
#[test]
fn a_wrong_credential_changes_nothing_in_a_session() {
    let upstream = strict("k");
    let proxy = Proxy::with(&upstream.sim.url(), BUDGET);
    let mut agent = Agent::seasoned(FREE, 30, 4_000);
    upstream.sim.push_reply(Reply::text("Yes."));
    let first = agent.ask(&proxy, "");
    assert_ne!(compaction(&first), "none");
    let before = shown(&upstream);
    agent.user("And now?");
    for wish in ["x-longhaul-compact: off\r\n", NOW] {
        assert_eq!(send(&proxy, &agent, BAD[1], wish).status(), 401);
    }
    let answer = send(&proxy, &agent, GOOD, "");
    assert_eq!(compaction(&answer), "none");
    let common = before.len() - 1;
    assert_eq!(shown(&upstream)[..common], before[..common]);
}

/// A rejected key is a stranger's again.
#[test]
fn a_key_that_upstream_rejects_is_not_accepted_any_more() {
    let (upstream, summarizer) = (strict("k"), strict("of-the-operator"));
    let proxy = Proxy::with(&upstream.sim.url(), &paid_by_the_operator(&summarizer));
    greet(&proxy);
    upstream.sim.push_fault(longhaul::sim::Fault::status(401));
    let mut agent = Agent::new(FREE);
    agent.user("Hello again.");
    assert_eq!(send(&proxy, &agent, GOOD, "").status(), 401);
    let answer = send(&proxy, &talker("one"), GOOD, "");
    assert_eq!(answer.status(), 200);
    assert_eq!(compaction(&answer), "truncate", "no model is asked first");
}

#[test]
fn a_web_page_of_another_origin_needs_a_key() {
    let upstream = Simulated::start(Options {
        credential_required: false,
        ..Options::default()
    });
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = Agent::new(FREE);
    agent.user("Hello.");
    let host = format!("origin: http://{}\r\n", proxy.address);
    let rows = [
        ("", "", 200),
        ("", "origin: https://evil.example\r\n", 403),
        ("", "origin: null\r\n", 403),
        ("x-api-key: \r\n", "origin: https://evil.example\r\n", 403),
        ("x-api-key: k\r\n", "origin: vscode-webview://1\r\n", 200),
        ("authorization: Bearer k\r\n", "origin: null\r\n", 200),
        ("", host.as_str(), 200),
    ];
    for (credential, origin, status) in rows {
        let asked = upstream.entries().len();
        let host = format!("host: {}\r\n{origin}", proxy.address);
        let headers = format!("{credential}anthropic-version: 2023-06-01\r\n{host}");
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\n{headers}content-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            agent.body().len()
        );
        let mut client = Client::connect(proxy.address);
        let answer = client.send([request.as_bytes(), &agent.body()].concat());
        let answer = answer.answer();
        assert_eq!(answer.status(), status, "{credential}{origin}");
        let went = upstream.entries().len() - asked;
        assert_eq!(went, usize::from(status == 200), "{credential}{origin}");
        if status == 403 {
            let said: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(said["error"]["type"], "permission_error");
        }
    }
}
