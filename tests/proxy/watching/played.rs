//! A session in which everything happens that a panel can show: passes of every
//! kind, summaries that are made and summaries that fail, a breaker that opens.

use std::sync::LazyLock;

use longhaul::sim::{Options, Persona};

use super::exposition::page;
use crate::summaries::stage::Stage;
use crate::views::agent::Agent;
use crate::views::cast::NOW;

/// What such a session needs in the configuration of the summarizer, and after it.
pub const SETTINGS: &str = "mode = \"model\"\ntimeout = \"20s\"\ndeadline = \"300ms\"\n[breaker]\nmax_failures = 2\ncooldown_turns = 50\n[trim]\nmax_chars = 6000";

/// What the proxy exports after such a session.
pub static PAGE: LazyLock<String> = LazyLock::new(|| {
    let mut stage = Stage::small(Options::default(), SETTINGS);
    play(&mut stage);
    page(&stage.proxy)
});

/// Plays it.
pub fn play(stage: &mut Stage) {
    // Tool results that can be cleared, and one that is too long.
    for number in 0..6 {
        stage.call(&format!("src/part_{number}.rs"), 4_000);
    }
    stage.call("src/long.rs", 30_000);
    stage.agent.user("Tidy up.");
    stage.ask(NOW);
    // Words, until somebody has to sum them up.
    for _ in 0..60 {
        if stage.count("summary") > 0 {
            break;
        }
        stage.talk("Go on.", 900);
        stage.begins();
        stage.lands();
    }
    assert!(stage.count("summary") > 0, "{:?}", stage.passes);
    stage.persona(Persona::Malformed);
    for _ in 0..60 {
        if stage.count("truncate") > 0 {
            break;
        }
        stage.talk("Go on.", 900);
        stage.begins();
        stage.lands();
    }
    assert!(stage.count("truncate") > 0, "{:?}", stage.passes);
    assert_eq!(stage.breakers.last().unwrap(), "open");
    stage.assert_accepted();
    // Somebody else's, in passing.
    let mut other = Agent::new("claude-haiku-4-5");
    other.user("What is a compiler?");
    other.ask(&stage.proxy, "");
}
