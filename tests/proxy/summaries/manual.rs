//! A pass that somebody asks for, at any size: down to the working set, with the
//! request that asks if clearing is enough, else with the first one after the
//! summary is ready.

use std::time::{Duration, Instant};

use longhaul::sim::{Options, Reply};
use serde_json::json;

use super::stage::Stage;
use crate::views::cast::{BOUND, FREE, figure};

/// What the default aim keeps verbatim.
const KEPT: u64 = 12_000;
/// What a segment, the user's words in it and the parts of a message at the cut
/// may come to.
const SEGMENT: u64 = 8_000;

/// A conversation of about this many thousand tokens on a window of a million, by
/// the default aim. The last turns are thought about, where the model thinks.
fn long(model: &str, thousands: usize, clearing: bool) -> Stage {
    let file = format!(
        "[policy]\naim = \"balanced\"\n[clear]\nenabled = {clearing}\n[summarizer]\nmode = \"auto\"\n"
    );
    let options = Options::default().with_window(model, 1_000_000);
    let mut stage = Stage::set(model, options, &file);
    stage
        .agent
        .user("Build it. Never touch files under legacy/.");
    stage.recall(thousands * 9 / 10, 1_000);
    for step in 0..3 {
        stage.agent.user(&format!("Look at part {step}."));
        let call = Reply::call("Read", &json!({"file_path": format!("src/{step}.rs")}));
        let call = if model == BOUND {
            call.after_thinking("I look at it first.")
        } else {
            call
        };
        stage.upstream.sim.push_reply(call);
        stage.ask("");
        stage.agent.results(800);
        stage
            .upstream
            .sim
            .push_reply(Reply::text("I have read it."));
        stage.ask("");
        stage.settle();
    }
    stage
}

/// Waits until one more summary has been written.
fn summed_up(stage: &mut Stage, calls: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while stage.summaries().len() <= calls && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    stage.lands();
    stage.settle();
}

fn base(stage: &Stage) -> u64 {
    let fields = stage.agent.fields.to_string();
    fields.len() as u64 / 3
}

#[test]
fn it_comes_down_to_the_working_set_within_two_requests_at_any_size() {
    for model in [FREE, BOUND] {
        for (thousands, clearing) in [(50, true), (50, false), (200, false), (400, true)] {
            let mut stage = long(model, thousands, clearing);
            let (passes, calls) = (stage.passes.len(), stage.summaries().len());
            stage.agent.user("Go on.");
            stage.upstream.sim.push_reply(Reply::text("Yes."));
            let asked = stage.ask("x-longhaul-compact: now\r\n");
            let before = figure(&asked, "original");
            summed_up(&mut stage, calls);
            stage.agent.user("And on.");
            stage.upstream.sim.push_reply(Reply::text("Yes."));
            stage.ask("");
            let left = *stage.sizes.last().unwrap();
            let most = base(&stage) + KEPT + SEGMENT;
            assert!(
                left <= most && left < before,
                "{model}, {thousands}K, clearing {clearing}: {before} to {left}, at most {most}; {:?}",
                &stage.passes[passes..]
            );
            stage.assert_accepted();
        }
    }
}

#[test]
fn who_would_rather_wait_has_it_with_the_same_request() {
    let mut stage = long(FREE, 50, false);
    stage.agent.user("Go on.");
    stage.upstream.sim.push_reply(Reply::text("Yes."));
    let asked = stage.ask("x-longhaul-compact: Now , wait\r\n");
    assert_eq!(asked.header("x-longhaul-compaction"), Some("summary"));
    assert!(*stage.sizes.last().unwrap() <= base(&stage) + KEPT + SEGMENT);
}
