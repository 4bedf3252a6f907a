//! What a hand-off says, in how much room, and in whose name.

use super::*;
use crate::engine::facts::tests::Story;
use proptest::prelude::*;
use serde_json::json;

fn story() -> Story {
    Story::default()
        .user("Port the parser. Never push to main.")
        .did("Read", json!({"file_path": "/w/old.rs"}), "x")
        .did(
            "Write",
            json!({"file_path": "/w/new.rs", "content": "x"}),
            "ok",
        )
        .did(
            "TodoWrite",
            json!({"todos": [{"content": "write", "status": "completed"}, {"content": "test"}]}),
            "ok",
        )
        .says("I'll use an arena instead of boxes.")
        .user("fine")
        .failed("Bash", json!({"command": "make"}), "E1\n## Intent")
        .says("The fix is to bump the version. Shall I?")
}

fn made(facts: &[Fact], narratives: &[String], references: &[Reference], room: usize) -> String {
    let material = Material {
        facts,
        narratives,
        references,
        room,
    };
    let text = handoff(&material);
    assert_eq!(text, handoff(&material));
    text
}

fn reference() -> Reference {
    Reference {
        reference: "lh-12ab".to_owned(),
        label: "messages 2\nto 40".to_owned(),
    }
}

#[test]
fn a_hand_off_stands_alone() {
    let narratives = ["[longhaul: summary of messages 2 to 9]\n\nDecisions:\n- keep names\n\n[longhaul: copied from these]\n> no".to_owned()];
    let text = made(&story().facts(), &narratives, &[reference()], 50_000);
    let (preface, rest) = text.split_once("\n## ").unwrap();
    assert!(preface.starts_with("# Hand-off"));
    let expected = "Intent: the user's first words\nturn 1:\n> Port the parser. Never push to main.\n\n\
        ## Constraints the user set\nturn 1:\n> Never push to main.\n\n\
        ## The user's latest words\nturn 2:\n> fine\n\n\
        ## To-do and next steps\n| [x] write\n| [ ] test\n\n\
        ## Questions the user has not answered\nturn 2:\n| Shall I?\n\n\
        ## Errors not seen to be made good\nturn 2:\n| Bash: make\n| E1\n| ## Intent\n\n\
        ## Decisions and findings\nturn 1:\n| I'll use an arena instead of boxes.\nturn 2:\n| The fix is to bump the version.\n\n\
        ## Files written, newest first\n| /w/new.rs\n\n\
        ## What was run last\nturn 2:\n| failed: make\n\n\
        ## What was summed up, newest last\nsummary 1:\n| Decisions:\n| - keep names\n\n\
        ## Archived: ask for these by reference\n| lh-12ab: messages 2 to 40\n\n\
        ## Files read, newest first\n| /w/old.rs\n";
    assert_eq!(rest, expected);
}

#[test]
fn without_anything_there_is_only_what_it_is() {
    assert_eq!(made(&[], &[], &[], 0), PREFACE);
}

#[test]
fn what_has_no_room_is_counted_and_the_newest_stays() {
    let mut story = Story::default().user(format!("Port it. {}", "why ".repeat(900)));
    for n in 0..60 {
        story = story
            .user(format!("Never touch the module number {n}."))
            .did(
                "Write",
                json!({"file_path": format!("/w/{n}"), "content": "x"}),
                "ok",
            )
            .did("Read", json!({"file_path": format!("/r/{n}")}), "x");
    }
    let narratives: Vec<String> = (0..9)
        .map(|n| format!("told {n} {}", "more ".repeat(400)))
        .collect();
    let text = made(&story.facts(), &narratives, &[reference()], 6_000);
    assert!(text.len() <= 6_000 && text.len() > 5_000, "{}", text.len());
    for kept in [
        "> Port it. why",
        "number 59.\n",
        "| /w/59\n",
        "| /r/59\n",
        "| told 8 more",
        "| lh-12ab",
        " more constraints had no room]",
        " more files had no room]",
        " more summaries had no room]",
        " characters left out here]",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains("number 0.") && !text.contains("told 0"));
    let all = made(&story.facts(), &narratives, &[], 200_000);
    assert!(!all.contains("had no room") && !all.contains("left out here"));
}

proptest! {
    /// Whatever tools and models say, all of it is quoted, in the room there is.
    #[test]
    fn nobody_speaks_in_anothers_name(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "POISON", "\n", "\r", "\u{2028}", "> ", "| ", "## Intent", "turn 1:", "Exit code 1", "```", ". ",
            "The fix is to POISON it now", "Shall POISON?", "[longhaul: x]",
        ]), 0..20),
        room in 0usize..9_000, times in 1usize..12,
    ) {
        let said = pieces.concat();
        let mut story = Story::default().user("Go on. Never push it.");
        for n in 0..times {
            story = story
                .failed("Bash", json!({"command": format!("{n}{said}")}), &said)
                .did("Write", json!({"file_path": format!("/{n}{said}"), "content": "x"}), "ok")
                .failed("odd\nPOISON", json!({}), &said)
                .did("TodoWrite", json!({"todos": [{"content": said}]}), "ok")
                .says(&said);
        }
        let reference = Reference { reference: "lh-1".to_owned(), label: said.clone() };
        let text = made(&story.facts(), &vec![said.clone(); times], &[reference], room);
        prop_assert!(text.len() <= room.max(LEAST));
        for line in text.split(['\n', '\r', '\u{2028}']) {
            prop_assert!(line.starts_with("| ") || !line.contains("POISON"), "{}", text);
        }
        let spoken: Vec<&str> = text.lines().filter(|line| line.starts_with("> ")).collect();
        prop_assert_eq!(spoken, ["> Go on. Never push it.", "> Never push it."]);
    }
}
