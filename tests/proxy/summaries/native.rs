//! The API's own summaries, on a model that binds thinking to what stands before
//! it: nothing is lost, and nobody sees that they are in use.

use longhaul::sim::{Kind, ModelOverride, Options, Reply};
use serde_json::{Value, json};

use super::stage::{Stage, settings};
use crate::support::http::Message;
use crate::support::{Client, Tap};
use crate::views::cast::{BOUND, error, json_of, response};

const BETA: &str = "compact-2026-09-04";

impl Stage {
    /// Turns with thinking, and a tool call in each.
    fn think(&mut self, turns: usize) {
        for _ in 0..turns {
            let number = self.agent.history.len();
            self.agent.user(&format!(
                "Step {number}: look at src/part_{number}.rs and decide."
            ));
            let thought = format!("I weigh {number} against the rest. ").repeat(8);
            let call = Reply::call(
                "Read",
                &json!({"file_path": format!("src/part_{number}.rs")}),
            );
            self.upstream.sim.push_reply(call.after_thinking(&thought));
            self.ask("");
            self.agent.results(600);
            let words = format!("I decided on plan {number}. ");
            let words = words + &"It holds up well under everything that was found. ".repeat(20);
            let reply = Reply::text(words).after_thinking(&thought);
            self.upstream.sim.push_reply(reply);
            self.ask("");
        }
    }

    fn thinking_shown(&self) -> usize {
        self.text().matches("\"signature\"").count()
    }
}

fn betas(stage: &Stage) -> Vec<bool> {
    let entries = stage.upstream.entries();
    let messages = entries.iter().filter(|entry| entry.kind == Kind::Message);
    messages
        .map(|entry| format!("{:?}", entry.headers).contains(BETA))
        .collect()
}

#[test]
fn no_thinking_is_lost_and_nothing_refused_over_several_passes() {
    let file = settings(12_000, "mode = \"native\"");
    let mut stage = Stage::set(BOUND, Options::default(), &file);
    stage.agent.user("Never modify files under legacy/.");
    stage.think(60);
    stage.assert_accepted();
    assert!(stage.count("summary") >= 3, "{:?}", stage.passes);
    assert_eq!(
        stage.count("truncate") + stage.count("clear"),
        0,
        "{:?}",
        stage.passes
    );
    let calls = stage.summaries();
    assert!(calls.iter().all(|entry| entry.kind == Kind::Compaction));
    assert!(calls.iter().all(longhaul::sim::Entry::is_answered));
    // Whatever was thought in what is shown is shown.
    let shown = stage.shown();
    assert_eq!(shown[0]["content"][0]["type"], "compaction");
    let tail = &shown[1..];
    let history = &stage.agent.history[..stage.agent.history.len() - 1];
    let same = &history[history.len() - tail.len()..];
    let thoughts = |messages: &[Value]| {
        let text = Value::from(messages.to_vec()).to_string();
        text.matches("\"signature\"").count()
    };
    assert_eq!(thoughts(tail), thoughts(same));
    assert!(stage.thinking_shown() > 3);
    assert!((stage.metric("thinking_dropped_total{how=\"view\"}")).abs() < 0.5);
    assert!(stage.text().contains("Never modify files under legacy/."));
    let announced = betas(&stage);
    assert!(!announced[0] && announced[announced.len() - 1]);
    assert!(
        stage.sizes.iter().all(|size| *size < 12_000),
        "{:?}",
        stage.sizes
    );
}

#[test]
fn a_client_that_never_asked_for_it_sees_nothing_of_it() {
    let file = settings(12_000, "mode = \"native\"");
    let mut stage = Stage::set(BOUND, Options::default(), &file);
    stage.think(30);
    assert!(stage.count("summary") >= 1);
    let history = Value::from(stage.agent.history.clone()).to_string();
    assert!(!history.contains("compaction"));
}

#[test]
fn what_the_api_made_is_the_same_after_a_restart() {
    let file = settings(12_000, "mode = \"native\"");
    let mut stage = Stage::set(BOUND, Options::default(), &file);
    stage.think(30);
    assert!(stage.count("summary") >= 1, "{:?}", stage.passes);
    let before = stage.shown();
    stage.restart();
    stage.think(1);
    let after = stage.shown();
    assert_eq!(after[..before.len()], before[..]);
    stage.assert_accepted();
}

#[test]
fn an_upstream_that_does_not_know_it_is_asked_once() {
    let mut options = Options {
        compaction: false,
        ..Options::default()
    };
    options.models.insert(
        BOUND.to_owned(),
        ModelOverride {
            summarizes: Some(false),
            ..ModelOverride::default()
        },
    );
    let file = settings(12_000, "mode = \"native\"");
    let mut stage = Stage::set(BOUND, options, &file);
    stage.think(50);
    stage.settle();
    let asks = |entry: &&longhaul::sim::Entry| {
        let body = entry.body.as_ref().map(|body| body.to_vec());
        body.is_some_and(|body| memchr::memmem::find(&body, b"\"summarize\"").is_some())
    };
    let entries = stage.upstream.entries();
    let asked: Vec<_> = entries.iter().filter(asks).collect();
    assert_eq!(asked.len(), 1);
    assert!(!asked[0].is_answered());
    assert!(stage.count("summary") >= 1, "{:?}", stage.passes);
}

#[test]
fn another_model_goes_on_without_it() {
    let file = settings(12_000, "mode = \"native\"");
    let mut stage = Stage::set(BOUND, Options::default(), &file);
    stage.think(30);
    assert!(stage.count("summary") >= 1);
    stage.agent.model = crate::views::cast::FREE.to_owned();
    stage.talk("And what does another model say?", 50);
    stage.assert_accepted();
    assert!(!stage.text().contains("\"compaction\""));
    stage.agent.model = BOUND.to_owned();
    stage.think(1);
    stage.assert_accepted();
}

/// What a gateway says that does not know the block.
const NO_BLOCK: &str = "messages.0.content.0.type: Input should be 'text' or 'tool_use'";
const NO_BETA: &str = "Unexpected value(s) `compact-2026-09-04` for the `anthropic-beta` header.";

fn shows_native(request: &Message) -> bool {
    let shown = &json_of(request)["messages"][0]["content"][0];
    shown["type"] == "compaction"
}

/// A gateway that hands everything on, and so grants summaries of the API's own,
/// but takes no request that shows one.
fn gateway(sim: &str, words: &'static str) -> Tap {
    let address = sim.trim_start_matches("http://").parse().unwrap();
    Tap::start(move |request| {
        let asks = !json_of(request)["compaction"].is_null();
        if shows_native(request) && !asks {
            return response(400, "", error(words).as_bytes());
        }
        let line = request.line.split(' ').collect::<Vec<_>>();
        let kept = ["x-api-key", "anthropic-version", "anthropic-beta"];
        let mut headers = "content-type: application/json\r\n".to_owned();
        for (name, value) in &request.headers {
            if kept.contains(&name.to_ascii_lowercase().as_str()) {
                headers += &format!("{name}: {}\r\n", String::from_utf8_lossy(value));
            }
        }
        let mut client = Client::connect(address);
        let answer = client.post(line[1], &headers, &request.body).answer();
        response(answer.status(), "", &answer.body)
    })
}

#[test]
fn an_upstream_that_refuses_views_with_its_own_summaries_is_asked_for_one_only() {
    for words in [NO_BLOCK, NO_BETA] {
        let file = settings(12_000, "mode = \"native\"");
        let mut tap = None;
        let mut stage = Stage::behind(BOUND, Options::default(), &file, |upstream| {
            let gateway = tap.insert(gateway(&upstream.sim.url(), words));
            gateway.url()
        });
        stage.agent.user("Never modify files under legacy/.");
        stage.think(25);
        stage.restart();
        stage.think(25);
        stage.settle();
        let tap = tap.unwrap();
        let requests: Vec<_> = std::iter::from_fn(|| tap.try_seen()).collect();
        let asked = requests
            .iter()
            .filter(|r| !json_of(r)["compaction"].is_null());
        assert_eq!(asked.count(), 1, "{words}");
        let shown = requests.iter().filter(|request| shows_native(request));
        assert!((1..=3).contains(&shown.count()), "{words}");
        // Sessions stay small by other means.
        assert!(stage.count("summary") >= 1, "{:?}", stage.passes);
    }
}
