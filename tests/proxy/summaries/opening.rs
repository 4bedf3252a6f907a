//! The story that this project begins with.
//!
//! A session has filled most of its window, the tokenizer is a little off, the
//! summarizer's own window is a quarter of what there is to sum up, and then a
//! tool gives back more than there is room for. The session goes on.

use longhaul::sim::{Options, Reply};
use serde_json::json;

use super::facts::words;
use super::stage::Stage;
use crate::views::cast::{FREE, figure};

const SUMMARIZER: &str = "claude-haiku-5-5";

fn story(patient: bool) {
    let (window, theirs) = (800_000, 200_000);
    let options = Options {
        drift: 1.02,
        ..Options::default()
    }
    .with_window(FREE, window)
    .with_window(SUMMARIZER, theirs);
    // A patient one goes on until the very end; else the session is summed up as
    // soon as it is seen.
    let more = if patient {
        "window.margin = 0.01\npolicy.hard_at = 0.97\n"
    } else {
        ""
    };
    let file = format!(
        "{more}trim.enabled = false\n[models.{FREE:?}]\nwindow = {window}\n\
         [summarizer]\nmode = \"model\"\nwindow = {theirs}\n"
    );
    let mut stage = Stage::set(FREE, options, &file);
    stage
        .agent
        .user("Build a compiler. Never modify files under legacy/.");
    stage.ask("");
    stage.recall(56, 10_450);
    stage.agent.user("The port is 54817. Now read the log.");
    let call = Reply::call("Read", &json!({"file_path": "build/log.txt"}));
    stage.upstream.sim.push_reply(call);
    stage.ask("");
    // Enough to burst it.
    stage.agent.results(600_000);
    stage
        .upstream
        .sim
        .push_reply(Reply::text("I have read it."));
    let answer = stage.ask("");
    let (before, after) = (stage.sizes[1], stage.sizes[2]);
    let calls = stage.summaries();
    println!(
        "{before} tokens sent of {window}, then a burst to {}: {after} sent, {} calls to a summarizer of {theirs}, {:?}, the longest took {:?}",
        figure(&answer, "original"),
        calls.len(),
        stage.passes,
        stage.longest
    );
    let expected = if patient {
        ["none", "summary"]
    } else {
        ["summary", "none"]
    };
    assert_eq!(stage.passes[1..], expected);
    assert!(figure(&answer, "original") > window);
    assert!(!patient || before > window / 100 * 90, "{before}");
    assert!(after < window, "{after}");
    assert!(calls.len() > 2, "in parts, and merged");
    assert!(
        calls.iter().all(longhaul::sim::Entry::is_answered),
        "in parts that fit"
    );
    for _ in 0..3 {
        stage.talk("And on.", 60);
    }
    let shown = words(&stage.shown());
    assert!(shown.contains("Never modify files under legacy/"));
    assert!(shown.contains("The port is 54817."));
    assert_eq!(stage.count("truncate"), 0, "{:?}", stage.passes);
}

#[test]
fn a_session_at_its_limit_goes_on_when_a_result_bursts_it() {
    story(true);
    story(false);
}

/// So far off, in tokens or in what is thought of the window, that upstream has
/// to say so.
#[test]
fn it_goes_on_when_the_estimate_was_wrong() {
    let options = Options {
        drift: 1.02,
        ..Options::default()
    }
    .with_window(FREE, 80_000)
    .with_window(SUMMARIZER, 20_000);
    let file = format!(
        "[models.{FREE:?}]\nwindow = 130000\n[summarizer]\nmode = \"model\"\nwindow = 20000\n"
    );
    let mut stage = Stage::set(FREE, options, &file);
    stage.recall(63, 1010);
    stage.agent.user("The port is 54817. What now?");
    let answer = stage.ask("");
    let entries = stage.upstream.entries();
    let refused = entries.iter().filter(|entry| !entry.is_answered()).count();
    println!(
        "refused {refused} times, then {} sent by {:?}",
        figure(&answer, "sent"),
        stage.passes
    );
    assert!(refused > 0, "nothing was wrong");
    assert_eq!(stage.passes, ["summary"]);
    assert!(words(&stage.shown()).contains("The port is 54817."));
    stage.talk("And on.", 60);
}
