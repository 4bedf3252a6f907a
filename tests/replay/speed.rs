//! How long a long recording takes. A usual run plays a short one and only tells;
//! with `LONGHAUL_REPLAY=all` and a release build, 650 messages of more than
//! 760,000 tokens may take ten seconds on the clock, both ways together.

use std::time::Instant;

use longhaul::config::Sources;
use longhaul::replay::all::Plan;
use longhaul::replay::settings::Settings;

use super::cases::generated;

/// Seconds of processor time that this process has taken, where the system tells.
fn taken() -> Option<f64> {
    let told = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = told.rsplit_once(')')?;
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / 100.0)
}

#[test]
fn a_long_recording_is_played_in_seconds() {
    let everything = std::env::var("LONGHAUL_REPLAY").is_ok_and(|which| which == "all");
    let (cycles, tokens) = if everything {
        (310, 865_000)
    } else {
        (12, 20_000)
    };
    let plan = Plan {
        sessions: vec![generated("coding", 76, cycles, tokens)],
        settings: Settings::new("claude-opus-5-5", None, None, Sources::default()).unwrap(),
        variations: Vec::new(),
    };
    let (begun, before) = (Instant::now(), taken());
    let told = plan.play(&|_| false, &|_, _| {}).unwrap();
    let took = taken()
        .zip(before)
        .map_or(0.0, |(after, before)| after - before);
    let clock = begun.elapsed().as_secs_f64();
    println!(
        "replay: {} messages, {} tokens, both ways: {took:.1} s of processor time, {clock:.1} s on the clock",
        told[0].messages, told[0].alone.0.peak,
    );
    assert!(told[0].with[0].0.with.completed);
    let is_fair = everything && !cfg!(debug_assertions);
    assert!(!is_fair || clock < 10.0, "{clock:.1} s");
}
