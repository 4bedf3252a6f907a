//! What the plan block holds, how large it is, and who speaks in it.

use crate::engine::pinned::tests::{ALL, Story, section};
use proptest::prelude::*;
use serde_json::json;

/// Enough talk for the block to have all of its room.
fn filled(story: Story) -> Story {
    story.user("ok").says(&"It went on. ".repeat(3_000))
}

fn block(story: &Story) -> String {
    let text = story.text();
    let at = text.find("\n## Plan as it stood").expect("a plan");
    text[at..].to_owned()
}

fn work() -> Story {
    let todo = json!({"todos": [
        {"content": "port the lexer", "status": "completed"},
        {"content": "port the parser", "status": "in_progress"},
        {"content": "write the docs", "status": "pending"},
    ]});
    Story::default()
        .user("Port it to the new API. Never touch legacy/.")
        .did("TodoWrite", todo, "ok")
        .bash("cat .env", "DB_PORT=5433\nNAME=x")
        .did(
            "Read",
            json!({"file_path": "/src/lexer.rs"}),
            "fn port() { 80 }",
        )
        .user("Now do the parser, and don't add dependencies.")
        .did(
            "Edit",
            json!({"file_path": "/src/lexer.rs", "old_string": "a", "new_string": "b"}),
            "done",
        )
        .failed(
            "Bash",
            json!({"command": "cargo test"}),
            "Exit code 101\nCompiling\nerror[E0308]: mismatched types",
        )
        .failed(
            "Bash",
            json!({"command": "make docs"}),
            "Exit code 2\nno rule",
        )
        .bash("make docs", "built")
        .says("The parser stands. Next, I'll fix the types in the parser.")
        .user("yes")
}

#[test]
fn everything_that_a_successor_needs_is_there() {
    let text = block(&filled(work()));
    let rows: [(&str, &[&str]); 8] = [
        (
            "Goal",
            &["turn 1:", "> Port it to the new API. Never touch legacy/."],
        ),
        (
            "Asked for last",
            &[
                "turn 2:",
                "> Now do the parser, and don't add dependencies.",
            ],
        ),
        (
            "Rules the user set",
            &[
                "turn 1:",
                "> Never touch legacy/.",
                "turn 2:",
                "> Now do the parser, and don't add dependencies.",
            ],
        ),
        (
            "To do",
            &[
                "| [x] port the lexer",
                "| [~] port the parser",
                "| [ ] write the docs",
            ],
        ),
        (
            "Said to be done and next",
            &["next, turn 2:", "| Next, I'll fix the types in the parser."],
        ),
        (
            "Tried and failed, not seen to work since",
            &[
                "turn 2:",
                "| Bash: cargo test",
                "| error[E0308]: mismatched types",
            ],
        ),
        (
            "Files in hand",
            &[
                "| /src/lexer.rs: edited in turn 2, read in turn 1",
                "| .env: read in turn 1",
            ],
        ),
        (
            "Values that were looked up",
            &["| DB_PORT=5433 (turn 1, cat .env)"],
        ),
    ];
    for (heading, expected) in rows {
        assert_eq!(section(&text, heading), expected, "{text}");
    }
}

#[test]
fn a_later_segment_has_all_of_it_and_an_early_one_nothing_from_behind() {
    let story = filled(filled(work()));
    let all = story.0.len();
    let late = story.pin(all - 2..all, ALL).text();
    for kept in [
        "> Port it to the new API",
        "> Never touch legacy/.",
        "| [~] port the parser",
        "| Bash: cargo test",
    ] {
        assert!(late.contains(kept), "{kept}: {late}");
    }
    let mut long = Story::default()
        .user("Port it. Never push.")
        .says(&"So it is. ".repeat(3_000));
    let cut = long.0.len();
    long.0.extend(work().0);
    let early = long.pin(1..cut, ALL).text();
    assert!(
        early.contains("> Never push.") && !early.contains("legacy"),
        "{early}"
    );
}

#[test]
fn a_short_span_has_no_block() {
    assert!(!work().text().contains("## Plan"));
}

#[test]
fn a_client_s_summary_is_where_the_plan_starts_from() {
    let summary = "This session is being continued from a previous conversation that ran out of \
        context.\n1. Primary Request and Intent:\n   Port the parser.\n7. Pending Tasks:\n   - docs\n";
    let story = filled(Story::default().user(summary).says("ok"));
    let text = block(&story);
    let carried = section(
        &text,
        "From the summary that the client made of what came before",
    );
    assert!(
        carried.contains(&"| Port the parser.") && carried.contains(&"| - docs"),
        "{text}"
    );
    assert!(!text.contains("> Port the parser."), "{text}");
}

proptest! {
    /// However much there is to tell, and whatever tools say: the block keeps to
    /// its size, and nothing of a tool stands outside a quotation.
    #[test]
    fn the_block_keeps_to_its_size_and_its_fence(
        rules in prop::collection::vec("[a-z\u{2028}é ]{0,400}", 0..30),
        said in "(POISON|\n|\r|> |### Goal|PORT=80|version 1.2|error){0,30}",
    ) {
        let mut story = Story::default().user("go on then");
        for (number, rule) in rules.iter().enumerate() {
            let command = json!({"command": format!("make {number} {said}")});
            story = story
                .user(format!("Never do POI{number} {rule}"))
                .did("Read", json!({"file_path": format!("/{said}{number}.toml")}), &said)
                .failed("Bash", command, &said)
                .says(&format!("Next steps:\n- {said}"));
        }
        let text = block(&filled(story));
        prop_assert!(text.len() <= 4_800, "{}", text.len());
        for line in text.split(['\n', '\r', '\u{2028}']) {
            prop_assert!(line.starts_with("| ") || !line.contains("POISON"), "{}", text);
        }
    }
}
