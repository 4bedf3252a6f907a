//! Sessions played by `longhaul replay`, and what it tells of them held against
//! what it told before.
//!
//! `golden.json` has the signals of each case. One that has become worse by more
//! than is allowed for fails and says by how much; one that has become better is
//! told, and `LONGHAUL_GOLDEN=write` writes everything down anew. A usual run
//! plays a few short sessions; `LONGHAUL_REPLAY=all` every one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs
)]

mod cases;
#[allow(dead_code)]
#[path = "../proxy/economy/coding.rs"]
mod coding;
mod command;
mod facts;
mod golden;
mod reached;
#[path = "../recordings/mod.rs"]
mod recordings;
mod speed;
#[allow(dead_code)]
#[path = "../proxy/economy/text.rs"]
mod text;
mod yardstick;

use std::collections::BTreeMap;
use std::time::Instant;

use cases::{Case, all, few, generated};

/// Signals by name.
type Signals = BTreeMap<String, f64>;

#[test]
fn no_signal_gets_worse() {
    let everything = std::env::var("LONGHAUL_REPLAY").is_ok_and(|which| which == "all");
    let cases = if everything { all() } else { few() };
    let mut seen = BTreeMap::new();
    for case in &cases {
        let begun = Instant::now();
        let signals = case.play();
        println!(
            "{}: {} requests, {:.1} s, {signals:?}",
            case.name,
            case.session.steps.len(),
            begun.elapsed().as_secs_f64()
        );
        seen.insert(case.name.clone(), signals);
    }
    if std::env::var("LONGHAUL_GOLDEN").is_ok_and(|what| what == "write") {
        golden::write(&seen);
        return;
    }
    let known = golden::read();
    let mut worse = Vec::new();
    for (name, signals) in &seen {
        let Some(before) = known.get(name) else {
            worse.push(format!(
                "{name}: is not in golden.json: LONGHAUL_GOLDEN=write adds it"
            ));
            continue;
        };
        let compared = golden::compare(name, before, signals);
        compared.better.iter().for_each(|line| println!("{line}"));
        worse.extend(compared.worse);
    }
    assert!(worse.is_empty(), "{worse:#?}");
}

/// What happens in the background is over before the next request, so nothing
/// depends on how fast the machine is.
#[test]
fn a_session_tells_the_same_each_time() {
    let case = Case {
        name: "twice".to_owned(),
        session: generated("wordy", 75, 16, 24_000),
        model: "claude-opus-5-5",
        budget: 20_000,
        forced: cases::Forced::Each(6),
    };
    let (one, other) = (case.play(), case.play());
    assert!(one["passes"] > 0.0, "{one:?}");
    assert_eq!(one, other);
}
