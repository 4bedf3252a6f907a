//! One turn that outgrows its window again and again, where nothing may be
//! cleared: there is always a view that fits.
//!
//! With manual thinking only the first reply of a turn has any, and a turn that
//! goes on must begin with it; with other kinds it stands in every reply, bound
//! to what is before it or not. Results are too small to be trimmed, so that only
//! hiding old messages of the open turn helps.

use longhaul::sim::{Enforcement, Options};
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{compaction, last_body};
use super::look::explain;
use crate::support::{Proxy, simulated::Simulated};

const WINDOW: u64 = 5_000;
const CYCLES: usize = 32;
const NOTHING_CLEARED: &str = "[clear]\nenabled = false\n[trim]\nenabled = false\n[summarizer]\nmode = \"off\"\n[pin]\nuser_tokens = 300\n";
const STYLES: [&str; 2] = ["compact", "journal"];

/// Every kind of thinking that the simulator knows.
fn kinds() -> [(&'static str, Value); 9] {
    let adaptive = json!({"type": "adaptive"});
    let manual = json!({"type": "enabled", "budget_tokens": 1024});
    [
        ("claude-opus-4-8", json!({"type": "disabled"})),
        ("claude-opus-4-8", adaptive.clone()),
        ("claude-opus-5-5", adaptive.clone()),
        ("claude-sonnet-5-5", json!({"type": "between_tools"})),
        ("claude-opus-4-6", adaptive),
        ("claude-opus-4-6", manual.clone()),
        ("claude-opus-4-5", manual.clone()),
        ("claude-sonnet-4-5", manual.clone()),
        ("claude-haiku-4-5", manual),
    ]
}

fn outgrows(model: &str, thinking: &Value, style: &str, enforcement: Enforcement) {
    let name = format!("{model} {thinking} {style} {enforcement:?}");
    let options = Options {
        enforcement,
        ..Options::default().with_window(model, WINDOW)
    };
    let upstream = Simulated::start(options);
    let settings = format!(
        "models.\"claude-*\" = {{ window = {WINDOW} }}\n[policy]\nstyle = \"{style}\"\n{NOTHING_CLEARED}"
    );
    let proxy = Proxy::with(&upstream.sim.url(), &settings);
    let mut agent = Agent::new(model);
    agent.fields["max_tokens"] = json!(1100);
    agent.fields["system"] = json!("You are an agent.");
    agent.fields["thinking"] = thinking.clone();
    agent.user("Build it.");
    let mut passes = 0;
    for number in 0..CYCLES {
        let own = agent.body();
        let answer = agent.cycle(&upstream, &proxy, "");
        passes += usize::from(compaction(&answer) != "none");
        if let Err(what) = explain(&own, &last_body(&upstream)) {
            panic!("{name}, cycle {number}: {what}");
        }
        // Too small to be trimmed.
        agent.history.pop();
        agent.results(900);
    }
    assert!((2..CYCLES / 2).contains(&passes), "{name}: {passes} passes");
}

#[test]
fn one_turn_outgrows_its_window_for_ever_and_every_request_is_answered() {
    for (model, thinking) in kinds() {
        for style in STYLES {
            outgrows(model, &thinking, style, Enforcement::Enforced);
        }
    }
    let adaptive = json!({"type": "adaptive"});
    outgrows(
        "claude-opus-5-5",
        &adaptive,
        "compact",
        Enforcement::Recorded,
    );
}
