//! What of a client's request goes along when a model is asked for a summary.

use longhaul::sim::{Kind, Options};
use serde_json::{Value, json};

use super::stage::{Stage, settings};
use crate::views::cast::{BOUND, FREE};

/// Claude Code sends both: `safeguards` in auto mode, and after `/compact` a system
/// message that says nothing.
#[test]
fn safeguards_go_with_the_conversation_and_with_no_call_for_a_summary() {
    for (mode, model) in [("model", FREE), ("fork", FREE), ("native", BOUND)] {
        let file = settings(16_000, &format!("mode = {mode:?}"));
        let mut stage = Stage::set(model, Options::default(), &file);
        let safeguards = json!({"mode": "auto", "rules": ["ask before deleting"]});
        stage.agent.fields["safeguards"] = safeguards.clone();
        stage
            .agent
            .user("Build it. Never touch files under legacy/.");
        let nothing = json!({"role": "system", "content": []});
        stage.agent.history.push(nothing);
        stage.ask("");
        while stage.count("summary") < 1 {
            assert!(stage.passes.len() < 100, "{mode}: {:?}", stage.passes);
            stage.talk("Please go on with the next step.", 700);
            stage.settle();
        }
        stage.assert_accepted();
        let entries = stage.upstream.entries();
        let of_conversation = entries.iter().filter(|entry| entry.kind == Kind::Message);
        for entry in of_conversation {
            assert_eq!(entry.json().unwrap()["safeguards"], safeguards, "{mode}");
        }
        let summaries = stage.summaries();
        assert!(!summaries.is_empty(), "{mode}");
        for entry in summaries {
            assert!(entry.is_answered(), "{mode}: {:?}", entry.outcome);
            let body: Value = entry.json().unwrap();
            assert_eq!(body.get("safeguards"), None, "{mode}");
        }
    }
}
