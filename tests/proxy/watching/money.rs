//! Money and passes: metrics, sessions, the command line and the page say the same,
//! and it is what upstream's own ledger says.

use std::path::Path;
use std::process::Command;

use longhaul::clock::{Clock, Moment};
use longhaul::sim::{Entry, Kind, Options};
use serde_json::{Value, json};

use super::exposition::page;
use super::played::play;
use crate::page::visitor::Visitor;
use crate::summaries::stage::Stage;
use crate::support::{Client, Proxy, Tap, eventually, simulated::Simulated, text};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, response, session};

/// Passes by watermarks, so that some come in a short session.
const WATERMARKS: &str = "[policy]\nclear_at = 0.60\nsummarize_at = 0.70\n";

/// What upstream's ledger has for these requests, in dollars.
fn ledger<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> f64 {
    let entries = entries.into_iter();
    let sum = entries.fold(longhaul::sim::prices::Cost::default(), |sum, entry| {
        sum.plus(entry.cost)
    });
    #[allow(clippy::cast_precision_loss, reason = "a few dollars")]
    let micro = sum.micro_dollars() as f64;
    micro / 1e6
}

/// All series of a metric together.
fn total(proxy: &Proxy, name: &str) -> f64 {
    let exported = page(proxy);
    let lines = exported.lines().filter(|line| line.starts_with(name));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// What was committed, by a counter of passes or of what they did.
fn committed(proxy: &Proxy, name: &str) -> usize {
    let exported = page(proxy);
    let lines = exported.lines().filter(|line| line.starts_with(name));
    let lines = lines.filter(|line| line.contains("outcome=\"committed\""));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
    values.sum()
}

fn passes(proxy: &Proxy) -> usize {
    committed(proxy, "longhaul_passes_total{")
}

/// To the micro-dollar: sums are rounded when they are shown.
#[track_caller]
fn assert_same(one: f64, other: f64, what: &str) {
    assert!((one - other).abs() < 0.000_002, "{what}: {one}, {other}");
}

/// Spent, without and saved, by the metrics; saved is the difference.
#[track_caller]
fn by_metrics(proxy: &Proxy) -> (f64, f64) {
    let spent = total(proxy, "longhaul_spent_usd_total{");
    let without = total(proxy, "longhaul_without_usd_total{");
    let saved = total(proxy, "longhaul_saved_usd{");
    assert_same(without - spent, saved, "saved");
    (spent, without)
}

/// The same of a session, by what the admin API or the command line says of it.
#[track_caller]
fn by_session(told: &Value) -> (f64, f64) {
    let figure = |key: &str| told[key].as_f64().unwrap_or_else(|| panic!("{told}"));
    let (spent, without) = (figure("spent_usd"), figure("without_usd"));
    assert_same(without - spent, figure("saved_usd"), "saved");
    (spent, without)
}

fn session_of(proxy: &Proxy, id: &str) -> Value {
    let request = format!("GET /longhaul/sessions/{id} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let answer = Client::connect(proxy.address).send(request).answer();
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", text(&answer.body)))
}

fn longhaul(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let command = command.args(arguments).env("LONGHAUL_DATA_DIR", folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An API and a proxy by a clock that stands still.
fn set(file: &str, folder: &Path) -> (Simulated, Proxy) {
    let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
    let upstream = Simulated::start(Options {
        clock: clock.clone(),
        ..Options::default()
    });
    let file = format!("data_dir = \"{}\"\n{file}", folder.display());
    let proxy = Proxy::keeping_time(&upstream.sim.url(), &file, folder, clock);
    (upstream, proxy)
}

/// A short day's work with a pass in the middle of it, where passes are made; the
/// session, and what the pass did.
fn work(upstream: &Simulated, proxy: &Proxy) -> (String, String) {
    let mut agent = Agent::new(FREE);
    for cycles in [4, 3, 4] {
        agent.turn(upstream, proxy, cycles);
    }
    let did = compaction(&agent.chat(upstream, proxy, NOW)).to_owned();
    agent.turn(upstream, proxy, 8);
    (session(&agent.chat(upstream, proxy, "")), did)
}

#[test]
fn the_same_figures_are_told_everywhere_and_upstream_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, mut proxy) = set(WATERMARKS, folder.path());
    let (id, did) = work(&upstream, &proxy);
    assert_eq!(did, "clear");
    let paid = ledger(&upstream.entries());
    eventually("not all is billed", || {
        (total(&proxy, "longhaul_spent_usd_total{") - paid).abs() < 0.000_002
    });
    let (spent, without) = by_metrics(&proxy);
    // The same work without a pass.
    let other = tempfile::tempdir().unwrap();
    let (alone, plain) = set("[policy]\nmode = \"off\"\n", other.path());
    work(&alone, &plain);
    let really = ledger(&alone.entries());
    assert!(really > paid, "{really}, {paid}");
    assert!((without / really - 1.0).abs() < 0.02, "{without}, {really}");
    // What goes out as it came costs the same with and without.
    plain.settle();
    let both = by_metrics(&plain);
    assert_same(both.0, really, "spent without a pass");
    assert_same(both.1, really, "without, without a pass");
    assert_eq!((passes(&proxy), passes(&plain)), (1, 0));

    let told = session_of(&proxy, &id);
    assert_eq!(told["passes"], 1);
    assert_same(by_session(&told).0, spent, "the session's spent");
    assert_same(by_session(&told).1, without, "the session's without");
    let sentence = longhaul::engine::money::sentence(spent, without);
    let visitor = Visitor::of(&proxy);
    let shown = visitor.open(&format!("/longhaul/page/{id}"));
    assert!(
        shown.contains(&sentence) && shown.contains("1 pass<"),
        "{shown}"
    );
    let shown = visitor.open("/longhaul/");
    let spent = longhaul::engine::money::dollars(spent);
    assert!(shown.contains(&spent), "{spent}: {shown}");

    proxy.join();
    let listed = longhaul(folder.path(), &["sessions", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let listed = &listed["sessions"][0];
    for key in ["spent_usd", "without_usd", "saved_usd", "passes"] {
        assert_eq!(listed[key], told[key], "{key}");
    }
    let shown = longhaul(folder.path(), &["sessions", "show", &id]);
    assert!(shown.contains(&sentence), "{shown}");
    let shown = longhaul(folder.path(), &["sessions"]);
    assert!(shown.contains(&spent), "{shown}");
}

/// Nobody knows what was paid, so no figure is made up.
#[test]
fn without_a_price_there_are_no_dollars() {
    let answer = br#"{"id":"m","type":"message","role":"assistant","model":"own","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":{"input_tokens":50,"output_tokens":5}}"#;
    let upstream = Tap::start(move |_| response(200, "content-type: application/json\r\n", answer));
    let proxy = Proxy::before(&upstream.url());
    let mut agent = Agent::new("somebody-s-own-model");
    agent.user("Hello.");
    let id = session(&agent.ask(&proxy, ""));
    proxy.settle();
    assert_eq!(by_metrics(&proxy), (0.0, 0.0));
    eventually("the session is not stored", || {
        session_of(&proxy, &id)["sent_tokens"] == 50
    });
    let told = session_of(&proxy, &id);
    for key in ["spent_usd", "without_usd", "saved_usd"] {
        assert!(told[key].is_null() && told.get(key).is_some(), "{told}");
    }
    let shown = Visitor::of(&proxy).open(&format!("/longhaul/page/{id}"));
    assert!(shown.contains("has no price"), "{shown}");
}

/// A summary is paid for whether it holds or not.
#[test]
fn summaries_are_part_of_what_was_spent_and_a_trimmed_arrival_is_no_pass() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"\ndeadline = \"300ms\"\n\
        [breaker]\nmax_failures = 2\ncooldown_turns = 50\n[trim]\nmax_chars = 6000\n";
    let mut stage = Stage::small(Options::default(), &format!("{settings}{WATERMARKS}"));
    play(&mut stage);
    let id = session(&stage.talk("Go on.", 9));
    stage.settle();
    stage.proxy.settle();
    let entries = stage.upstream.entries();
    let models = entries.iter().filter_map(|entry| entry.model.as_deref());
    for model in models.collect::<std::collections::BTreeSet<_>>() {
        let own = |entry: &&Entry| entry.model.as_deref() == Some(model);
        let paid = ledger(entries.iter().filter(own));
        let spent = stage.metric(&format!("spent_usd_total{{model=\"{model}\"}}"));
        assert_same(spent, paid, model);
    }
    let (spent, _) = by_metrics(&stage.proxy);
    let summaries = total(&stage.proxy, "longhaul_summarizer_cost_usd_total{");
    assert_same(summaries, ledger(&stage.summaries()), "summaries");
    assert!(summaries > 0.0 && spent > summaries);
    let did = stage.passes.iter().filter(|did| *did != "none");
    let kinds: Vec<&str> = did.clone().flat_map(|did| did.split('+')).collect();
    // A result that is trimmed as it arrives is no pass.
    let made = did.filter(|did| *did != "trim").count();
    assert_eq!(passes(&stage.proxy), made, "{:?}", stage.passes);
    let counted = committed(&stage.proxy, "longhaul_compactions_total{");
    assert_eq!(counted, kinds.len(), "{:?}", stage.passes);
    let told = session_of(&stage.proxy, &id);
    assert_eq!(told["passes"], made);
    // Its own requests and its summaries, but not what somebody else has asked.
    let talk = entries.iter();
    let talk = talk.filter(|entry| entry.kind == Kind::Message);
    let own = ledger(talk.filter(|entry| entry.model.as_deref() == Some(FREE)));
    assert_same(by_session(&told).0, own + summaries, "the session's spent");
}

#[test]
fn a_pass_that_does_two_things_is_one_pass() {
    let options = Options::default().with_window(FREE, 32_000);
    let upstream = Simulated::start(options);
    let file = format!("[models.\"{FREE}\"]\nwindow = 32000\n{WATERMARKS}");
    let proxy = Proxy::with(&upstream.sim.url(), &file);
    let mut agent = Agent::seasoned(FREE, 12, 4_000);
    for _ in 0..12 {
        let said = "It is the better one because of what was found. ".repeat(200);
        agent
            .history
            .push(json!({"role": "assistant", "content": said}));
        agent.user("Go on.");
    }
    let answer = agent.ask(&proxy, "");
    let kinds: Vec<&str> = compaction(&answer).split('+').collect();
    assert!(kinds.len() > 1, "{kinds:?}");
    let id = session(&answer);
    proxy.settle();
    assert_eq!(passes(&proxy), 1);
    let counted = committed(&proxy, "longhaul_compactions_total{");
    assert_eq!(counted, kinds.len());
    let told = session_of(&proxy, &id);
    assert_eq!(told["passes"], 1);
    assert_eq!(
        told["timeline"][0]["pass"]["kinds"]
            .as_array()
            .map(Vec::len),
        Some(counted)
    );
}
