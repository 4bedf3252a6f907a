//! What was left out for want of a summary gets one as soon as there is one.

use std::time::Duration;

use longhaul::sim::{Options, Persona};

use super::stage::{HEALED, LEFT_OUT, Stage};
use crate::support::eventually;

/// A summarizer that is too slow for the request that needs it, and done a
/// little later.
fn outrun() -> Stage {
    let options = Options {
        slow_summary: Duration::from_millis(1_200),
        ..Options::default()
    };
    let settings = "mode = \"model\"\ndeadline = \"100ms\"\ntimeout = \"10s\"";
    let mut stage = Stage::small(options, settings);
    stage.persona(Persona::Slow);
    stage.talks(6, 2_000);
    assert_eq!(stage.summaries().len(), 0, "{:?}", stage.sizes);
    // Nothing is prepared yet when the next question is past the limit.
    stage
        .agent
        .user(&"And this is what the log says: it failed. ".repeat(1_300));
    stage.ask("");
    assert_eq!(
        stage.passes.last().unwrap(),
        "truncate",
        "{:?}",
        stage.sizes
    );
    assert!(stage.text().contains(LEFT_OUT));
    // On a busy machine the deadline may have passed before it was even asked for.
    eventually("a summary is asked for", || !stage.summaries().is_empty());
    stage
}

#[test]
fn a_summary_that_came_too_late_for_its_request_heals_the_next_ones() {
    let mut stage = outrun();
    stage.lands();
    stage.persona(Persona::Good);
    let asked = stage.summaries().len();
    for _ in 0..6 {
        stage.talk("Go on.", 60);
        stage.lands();
    }
    stage.assert_accepted();
    assert!(!stage.text().contains(LEFT_OUT), "{:?}", stage.passes);
    assert!(stage.number(HEALED) >= 1, "{:?}", stage.passes);
    assert!(stage.summaries().len() <= asked + 1);
}

#[test]
fn what_was_left_out_is_healed_after_a_restart_too() {
    let mut stage = outrun();
    stage.persona(Persona::Good);
    stage.restart();
    for _ in 0..4 {
        stage.talk("Go on.", 60);
        stage.begins();
        stage.lands();
    }
    stage.assert_accepted();
    assert!(!stage.text().contains(LEFT_OUT), "{:?}", stage.passes);
    assert!(stage.number(HEALED) >= 1, "{:?}", stage.passes);
}
