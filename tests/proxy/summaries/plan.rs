//! The plan survives every pass: goal, bans, next step and failed attempts are in
//! the newest plan block after ten passes, whatever the summarizer forgets, and
//! if there is none at all.

use longhaul::sim::{Options, Persona, Reply};
use serde_json::json;

use super::stage::{Stage, settings};
use crate::views::cast::FREE;

const GOAL: &str = "Port the billing service to the new API.";
const BANS: [&str; 3] = [
    "Never modify files under legacy/.",
    "Don't add dependencies.",
    "You must not push to main.",
];
const NEXT: &str = "| [~] port the invoice endpoint";
const OPEN: &str = "| [ ] write the migration guide";
const FAILED: [&str; 2] = [
    "| Bash: cargo test --package billing",
    "| error[E0277]: the trait bound `Invoice: Serialize` is not satisfied",
];
const VALUE: &str = "| BILLING_PORT=5433 (turn 2, cat .env)";
const FILE: &str = "| /srv/billing/src/invoice.rs: edited in turn 2";

/// A call of a tool, and what it gives back.
fn call(stage: &mut Stage, tool: &str, input: &serde_json::Value, result: &str, is_error: bool) {
    stage.upstream.sim.push_reply(Reply::call(tool, input));
    stage.ask("");
    let last = stage.agent.history.last().unwrap();
    let id = last["content"].as_array().unwrap().last().unwrap()["id"].clone();
    let result = json!([{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": is_error}]);
    stage
        .agent
        .history
        .push(json!({"role": "user", "content": result}));
}

/// What is planted, in two turns behind the head.
fn plant(stage: &mut Stage) {
    stage.talk(GOAL, 60);
    stage.agent.user(&BANS.join(" "));
    let todo = json!({"todos": [
        {"content": "read the old code", "status": "completed"},
        {"content": "port the invoice endpoint", "status": "in_progress"},
        {"content": "write the migration guide", "status": "pending"},
    ]});
    call(stage, "TodoWrite", &todo, "ok", false);
    let cat = json!({"command": "cat .env"});
    call(stage, "Bash", &cat, "BILLING_PORT=5433\nMODE=test", false);
    let path = "/srv/billing/src/invoice.rs";
    let edit = json!({"file_path": path, "old_string": "a", "new_string": "b"});
    call(stage, "Edit", &edit, "edited", false);
    let test = json!({"command": "cargo test --package billing"});
    let said = "Exit code 101\n   Compiling billing\nerror[E0277]: the trait bound `Invoice: Serialize` is not satisfied\n";
    call(stage, "Bash", &test, said, true);
    stage
        .upstream
        .sim
        .push_reply(Reply::text("It does not build yet."));
    stage.ask("");
}

/// The newest plan block of the newest view, to the end of its segment.
fn newest_plan(stage: &Stage) -> String {
    let blocks = stage.shown().into_iter().flat_map(|message| {
        let blocks = message["content"].as_array().cloned();
        blocks.unwrap_or_default()
    });
    let plan = |block: serde_json::Value| {
        let text = block["text"].as_str()?;
        let at = text.find("\n## Plan as it stood at message ")?;
        Some(text[at..].to_owned())
    };
    blocks.filter_map(plan).last().unwrap_or_default()
}

#[track_caller]
fn assert_complete(stage: &Stage, what: &str) {
    let plan = newest_plan(stage);
    let bans = BANS.iter().map(|ban| format!("> {ban}"));
    let goal = format!("> {GOAL}");
    let rest = [NEXT, OPEN, FAILED[0], FAILED[1], VALUE, FILE];
    for kept in std::iter::once(goal)
        .chain(bans)
        .chain(rest.map(str::to_owned))
    {
        let stands = plan.lines().any(|line| line == kept);
        assert!(stands, "{what}: {kept:?} is lost: {plan}");
    }
    assert!(plan.len() <= 5_200, "{what}: {} bytes", plan.len());
}

/// Plays on until so many passes have closed messages; the plan is complete after
/// each.
fn survives(persona: Persona, more: &str, closes: &str) {
    let what = format!("{persona:?}, {more}");
    let mut stage = Stage::set(FREE, Options::default(), &settings(26_000, more));
    stage.persona(persona);
    plant(&mut stage);
    let mut passes = 0;
    while passes < 10 {
        assert!(stage.passes.len() < 300, "{what}: {:?}", stage.passes);
        stage.talk("Go on with the next one, please.", 1_500);
        stage.lands();
        let closed = stage.passes.last().unwrap().contains(closes);
        passes += usize::from(closed);
        if passes > 0 {
            assert_complete(&stage, &format!("{what}, after {passes} passes"));
        }
    }
    stage.assert_accepted();
}

#[test]
fn the_plan_is_complete_after_ten_passes_with_a_forgetful_summarizer() {
    survives(Persona::Forgetful, "mode = \"model\"", "truncate");
}

#[test]
fn the_plan_is_complete_after_ten_passes_with_a_good_summarizer() {
    survives(Persona::Good, "mode = \"model\"", "summary");
}

#[test]
fn the_plan_is_complete_after_ten_passes_with_no_summarizer() {
    survives(Persona::Good, "mode = \"off\"", "truncate");
}
