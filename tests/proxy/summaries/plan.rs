//! The plan survives every pass: goal, bans, next step and failed attempts are in
//! the newest plan block after ten passes, whatever the summarizer forgets, and
//! if there is none at all.

use longhaul::sim::{Options, Persona, Reply};
use serde_json::json;

use super::stage::{Stage, settings};
use crate::views::agent::Agent;
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
    blocks.filter_map(plan).next_back().unwrap_or_default()
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
        let is_one = stage.passes.last().unwrap().contains(closes);
        passes += usize::from(is_one);
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

/// Talks until one more pass has closed messages.
fn until_truncated(stage: &mut Stage) {
    let before = stage.count("truncate");
    while stage.count("truncate") == before {
        assert!(stage.passes.len() < 300, "{:?}", stage.passes);
        stage.talk("Go on with the next one, please.", 1_500);
    }
}

#[test]
fn after_a_client_s_own_compaction_the_plan_goes_on_from_the_old_one() {
    let file = settings(26_000, "mode = \"off\"");
    for session in ["x-claude-code-session-id: one\r\n", ""] {
        let mut stage = Stage::set(FREE, Options::default(), &file);
        stage.agent = Agent::new(FREE).saying(session);
        plant(&mut stage);
        until_truncated(&mut stage);
        stage.talk(
            "Your task is to create a detailed summary of the conversation so far.",
            60,
        );
        stage.agent.history.clear();
        stage.agent.user(
            "This session is being continued from a previous conversation that ran out of \
             context.\n1. Primary Request and Intent:\n   They port something.\n7. Pending \
             Tasks:\n   - the second half\n",
        );
        stage.upstream.sim.push_reply(Reply::text("I go on."));
        stage.ask("");
        for pass in 0..3 {
            until_truncated(&mut stage);
            let plan = newest_plan(&stage);
            let stands = |kept: &str| plan.lines().any(|line| line == kept);
            // The summary tells this much, whoever the client says it is.
            for kept in ["| They port something.", "| - the second half"] {
                assert!(stands(kept), "pass {pass}: {kept:?} is lost: {plan}");
            }
            let goal = format!("| > {GOAL}");
            let ban = format!("| > {}", BANS[0]);
            let failed = format!("| {}", FAILED[1]);
            let next = format!("| {NEXT}");
            for kept in [goal, ban, failed, next] {
                let knows = !session.is_empty();
                assert_eq!(stands(&kept), knows, "pass {pass}: {kept:?}: {plan}");
            }
        }
        stage.assert_accepted();
    }
}
