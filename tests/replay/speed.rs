//! How long a long recording takes. Only told in a usual run, and only of a
//! short one: a debug build says nothing about speed. With `LONGHAUL_REPLAY=all`
//! a session of 760,000 tokens and 650 messages must be through in ten seconds,
//! in a release build on a machine that does nothing else.

use std::time::{Duration, Instant};

use longhaul::config::Sources;
use longhaul::replay::all::Plan;
use longhaul::replay::settings::Settings;

use super::cases::generated;

#[test]
fn a_long_recording_is_played_in_seconds() {
    let everything = std::env::var("LONGHAUL_REPLAY").is_ok_and(|which| which == "all");
    let (cycles, tokens) = if everything {
        (310, 760_000)
    } else {
        (12, 20_000)
    };
    let session = generated("coding", 76, cycles, tokens);
    let plan = Plan {
        sessions: vec![session],
        settings: Settings::new("claude-opus-5-5", None, None, Sources::default()).unwrap(),
        variations: Vec::new(),
    };
    let begun = Instant::now();
    let told = plan.play(&|_| false, &|| {}).unwrap();
    let time = begun.elapsed();
    let (messages, peak) = (told[0].messages, told[0].alone.0.peak);
    println!(
        "replay: {messages} messages, {peak} tokens, both ways in {:.1} s",
        time.as_secs_f64()
    );
    assert!(told[0].with[0].0.with.completed);
    let limit = Duration::from_secs(10);
    assert!(
        cfg!(debug_assertions) || !everything || time < limit,
        "{time:?}"
    );
}
