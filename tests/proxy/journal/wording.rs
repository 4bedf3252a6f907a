//! What a view promises, as upstream sees it: only what is true.

use std::sync::Arc;

use longhaul::sim::Options;
use longhaul::store::journal::Extent;
use longhaul::store::{Memory, Store};
use serde_json::{Value, json};

use super::promised::references;
use super::stock::wait;
use crate::summaries::stage::{Stage, settings};
use crate::support::{Proxy, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, shown, worked};

/// The tools of our server, as one client names them.
fn tools(agent: &mut Agent, names: &[&str]) {
    let all = agent.fields["tools"].as_array_mut().unwrap();
    for name in names {
        all.push(json!({"name": name, "input_schema": {"type": "object"}}));
    }
}

const OURS: [&str; 2] = ["mcp__longhaul__recall", "mcp__longhaul__expand"];

/// Settings, tools, and what is said of a result and of messages.
const ROWS: [(&str, &[&str], &str, &str); 6] = [
    ("auto", &[], "; archived as lh-", "are archived as lh-"),
    (
        "auto",
        &OURS,
        "call mcp__longhaul__expand with ref lh-",
        "call mcp__longhaul__recall with ref lh-",
    ),
    (
        "auto",
        &["recall", "expand"],
        "; archived as lh-",
        "are archived as lh-",
    ),
    (
        "true",
        &[],
        "call the longhaul tool expand with ref lh-",
        "call the longhaul tool recall with ref lh-",
    ),
    (
        "true",
        &OURS,
        "call mcp__longhaul__expand with ref lh-",
        "call mcp__longhaul__recall with ref lh-",
    ),
    ("false", &OURS, "; archived as lh-", "are archived as lh-"),
];

#[test]
fn a_stub_names_the_tools_that_the_model_has_and_no_others() {
    for (mcp, names, expected, _) in ROWS {
        let upstream = Simulated::start(Options::default());
        let file = format!("[recall]\nmcp = {mcp:?}\n");
        let proxy = Proxy::with(&upstream.sim.url(), &file);
        let mut agent = worked(&upstream, &proxy, FREE);
        tools(&mut agent, names);
        assert_eq!(compaction(&agent.chat(&upstream, &proxy, NOW)), "clear");
        let view = Value::from(shown(&upstream)).to_string();
        assert!(view.contains(expected), "{mcp}, {names:?}: {view}");
        let calls = view.matches("call ").count();
        assert_eq!(calls > 0, expected.starts_with("call"), "{mcp}, {names:?}");
    }
}

/// A conversation of words that outgrows a budget, and what its view says.
fn outgrown(file: &str, names: &[&str]) -> (Stage, String) {
    let mut stage = Stage::set(FREE, Options::default(), file);
    tools(&mut stage.agent, names);
    stage.agent.user("Build it.");
    for _ in 0..40 {
        stage.talk("Go on.", 400);
        if stage.count("truncate") + stage.count("journal") + stage.count("summary") > 0 {
            let text = stage.text();
            return (stage, text);
        }
    }
    panic!("{:?}", stage.passes);
}

#[test]
fn a_notice_and_a_summary_name_the_tools_that_the_model_has() {
    for (mcp, names, _, expected) in ROWS {
        let recall = format!("[recall]\nmcp = {mcp:?}\n");
        let without = format!("[window]\nbudget = 9000\n{recall}");
        let style = format!("{without}[policy]\nstyle = \"journal\"\n");
        for file in [
            without,
            style,
            settings(9_000, "mode = \"model\"") + &recall,
        ] {
            let (_, view) = outgrown(&file, names);
            assert!(view.contains(expected), "{file}, {names:?}: {view}");
        }
    }
}

fn promises_nothing(view: &str) {
    assert!(references(view).is_empty(), "{view}");
    for word in ["archived", "not lost", "with ref"] {
        assert!(!view.contains(word), "{word}: {view}");
    }
}

#[test]
fn without_a_journal_nothing_is_written_and_nothing_promised() {
    let upstream = Simulated::start(Options::default());
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let off = "[journal]\nenabled = false\n";
    let mut proxy = Proxy::on(store.clone(), &upstream.sim.url(), off, None);
    let mut agent = worked(&upstream, &proxy, FREE);
    tools(&mut agent, &OURS);
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, NOW)), "clear");
    let view = shown(&upstream);
    promises_nothing(&Value::from(view[1..].to_vec()).to_string());
    let appends = proxy.metric("longhaul_journal_appends_total");
    assert_eq!(appends, Some(0.0));
    proxy.join();
    assert_eq!(wait(store.journal().extent()).unwrap(), Extent::default());
    for more in ["", "[summarizer]\nmode = \"model\"\n"] {
        let file = format!("[window]\nbudget = 9000\n{off}{more}");
        let (stage, view) = outgrown(&file, &OURS);
        promises_nothing(&view);
        assert_eq!(stage.metric("journal_appends_total").to_string(), "0");
    }
}
