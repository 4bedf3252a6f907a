//! A long session under a small budget.

use longhaul::sim::Options;

use super::stage::{Stage, settings};
use crate::views::cast::FREE;

#[test]
fn old_turns_become_segments_and_the_session_goes_on() {
    let mut stage = Stage::set(
        FREE,
        Options::default(),
        &settings(32_000, "mode = \"model\""),
    );
    stage
        .agent
        .user("Build a compiler. Never modify files under legacy/.");
    stage.talks(120, 300);
    stage.assert_accepted();
    assert!(stage.count("summary") >= 2, "{:?}", stage.passes);
    assert_eq!(stage.count("truncate"), 0, "{:?}", stage.passes);
    let text = stage.text();
    assert!(text.contains("[longhaul: summary of messages"), "{text}");
    assert!(text.contains("Never modify files under legacy/."));
    let most = stage.sizes.iter().max().unwrap();
    assert!(*most < 32_000, "{:?}", stage.sizes);
}
