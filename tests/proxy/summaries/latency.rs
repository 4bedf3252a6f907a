//! Nobody waits for a summary that could be prepared.

use std::time::{Duration, Instant};

use longhaul::sim::{Options, Persona};

use super::stage::{Stage, settings};
use crate::views::cast::{FREE, compaction};

const DELAYED: &str = "longhaul_turns_delayed_total ";
const SLOW: Duration = Duration::from_secs(2);

fn slow_stage(budget: u64) -> Stage {
    let options = Options {
        slow_summary: SLOW,
        ..Options::default()
    };
    let stage = Stage::set(FREE, options, &settings(budget, "mode = \"model\""));
    stage.persona(Persona::Slow);
    stage
}

#[test]
fn no_turn_waits_while_a_summary_is_prepared() {
    let mut stage = slow_stage(24_000);
    stage.recall(30, 350);
    let mut passed = 0;
    while passed < 2 {
        assert!(stage.passes.len() < 150, "{:?}", stage.passes);
        let begun = Instant::now();
        stage.talk("Please go on.", 150);
        passed += usize::from(stage.passes.last().unwrap() == "summary");
        assert!(begun.elapsed() < SLOW, "{:?}", begun.elapsed());
        // An agent works between two requests; this one hardly does.
        std::thread::sleep(Duration::from_millis(60));
    }
    stage.assert_accepted();
    assert_eq!(stage.count("truncate"), 0, "{:?}", stage.passes);
    assert_eq!(stage.proxy.metric(DELAYED), Some(0.0));
    println!(
        "{} turns, {passed} summaries of {SLOW:?} each, none waited for; the longest took {:?}",
        stage.passes.len(),
        stage.longest
    );
}

#[test]
fn a_jump_past_the_hard_watermark_waits_once_and_is_counted() {
    let mut stage = slow_stage(12_000);
    stage.recall(24, 400);
    stage.agent.user("What now?");
    let begun = Instant::now();
    assert_eq!(compaction(&stage.ask("")), "summary");
    assert!(begun.elapsed() >= SLOW);
    assert_eq!(stage.proxy.metric(DELAYED), Some(1.0));
    stage.talk("Go on.", 60);
    assert_eq!(stage.proxy.metric(DELAYED), Some(1.0));
    stage.assert_accepted();
}
