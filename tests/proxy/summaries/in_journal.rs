//! The journal style: nobody sums anything up, and old turns are looked up.

use longhaul::sim::Options;
use serde_json::Value;

use super::stage::{LEFT_OUT, Stage};
use crate::views::cast::{BOUND, FREE, NOW};

/// What stands for old turns.
const JOURNALED: &str = "are not shown; its journal has them";
/// Passes that left turns to the journal.
const PASSES: &str = "compactions_total{kind=\"journal\",outcome=\"committed\",trigger=\"budget\"}";
const RULE: &str = "Never touch files under legacy/.";

/// The style with so many turns; a summarizer is there, and is not to be asked.
fn file(turns: usize, budget: u64) -> String {
    format!(
        "window.budget = {budget}\npolicy.style = \"journal\"\njournal.live_turns = {turns}\n\
         [summarizer]\nmode = \"auto\"\n"
    )
}

fn stage(model: &str, turns: usize, budget: u64) -> Stage {
    let mut stage = Stage::set(model, Options::default(), &file(turns, budget));
    stage.agent.fields["max_tokens"] = 4_000.into();
    stage
}

/// The segments of the newest request, as they stand.
fn segments(stage: &Stage) -> Vec<String> {
    let shown = stage.shown();
    let holds = |message: &&Value| {
        message["content"]
            .to_string()
            .contains("[longhaul: messages")
    };
    let message = shown.iter().find(holds);
    let blocks = message.and_then(|message| message["content"].as_array());
    let blocks = blocks.into_iter().flatten();
    blocks
        .map(|block| block["text"].as_str().unwrap().to_owned())
        .collect()
}

fn nobody_was_asked(stage: &Stage) {
    stage.assert_accepted();
    assert_eq!(stage.summaries().len(), 0);
    assert_eq!(stage.count("summary") + stage.count("truncate"), 0);
    let unexplained = "prefix_breaks_total{cause=\"unexplained\"}";
    assert_eq!(stage.number(unexplained), 0);
    assert!(!stage.text().contains(LEFT_OUT));
}

#[test]
fn old_turns_are_left_to_the_journal_and_what_the_user_said_stays() {
    for model in [FREE, BOUND] {
        let mut stage = stage(model, 4, 60_000);
        stage.talk("Build it.", 60);
        stage.talk(RULE, 60);
        let mut before: Vec<String> = Vec::new();
        for _ in 0..60 {
            stage.talks(1, 500);
            let now = segments(&stage);
            if now.len() > before.len() {
                assert_eq!(now[..before.len()], before[..], "earlier ones stay");
            }
            before = now;
        }
        nobody_was_asked(&stage);
        assert!(before.len() > 1, "{:?}", stage.passes);
        assert!(stage.number(PASSES) > 1, "{:?}", stage.passes);
        let text = stage.text();
        assert!(text.contains(JOURNALED) && text.contains(RULE));
        // In batches: most requests go on from the view before.
        let moved = stage.count("journal");
        assert!(moved * 5 < stage.passes.len(), "{:?}", stage.passes);
        let shown = stage.shown().len();
        assert!((9..60).contains(&shown), "{shown} messages are shown");
    }
}

#[test]
fn one_long_turn_is_cut_inside_and_never_outgrows_its_budget() {
    let mut stage = stage(FREE, 12, 20_000);
    stage.agent.user(RULE);
    for number in 0..50 {
        let words = format!("Step {number}. ") + &"I look at what the next part says. ".repeat(40);
        let call = serde_json::json!({"command": format!("make {number}")});
        let reply = longhaul::sim::Reply::blocks(vec![
            serde_json::json!({"type": "text", "text": words}),
            serde_json::json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": call}),
        ]);
        stage.upstream.sim.push_reply(reply);
        stage.ask("");
        stage.agent.results(1_200);
    }
    nobody_was_asked(&stage);
    assert!(stage.count("journal") > 0, "{:?}", stage.passes);
    assert!(
        stage.sizes.iter().all(|size| *size <= 20_000),
        "{:?}",
        stage.sizes
    );
    assert!(stage.text().contains(RULE));
}

#[test]
fn a_view_is_the_same_after_a_restart_and_in_the_other_style_it_is_healed() {
    let mut stage = stage(FREE, 3, 30_000);
    stage.talk(RULE, 60);
    stage.talks(12, 400);
    stage.ask_for_a_pass();
    let before = segments(&stage);
    assert_eq!(before.len(), 1, "{:?}", stage.passes);
    stage.restart();
    stage.talk("Go on.", 60);
    assert_eq!(segments(&stage), before);
    nobody_was_asked(&stage);
    stage.restart_with("window.budget = 30000\n[summarizer]\nmode = \"model\"\n");
    stage.talk("Go on.", 60);
    assert_eq!(segments(&stage), before, "an overlay outlives its settings");
    for _ in 0..6 {
        stage.talk("Go on.", 60);
        stage.begins();
        stage.lands();
    }
    stage.assert_accepted();
    assert!(stage.count("summary") > 0, "{:?}", stage.passes);
    assert!(!stage.text().contains(JOURNALED));
}

impl Stage {
    fn ask_for_a_pass(&mut self) {
        self.agent.user("Make room.");
        self.upstream
            .sim
            .push_reply(longhaul::sim::Reply::text("Made."));
        self.ask(NOW);
        assert_eq!(self.passes.last().unwrap(), "journal", "{:?}", self.sizes);
    }
}
