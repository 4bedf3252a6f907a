//! What of the work in hand is pinned: lists, and what still runs; and the laws.

use super::tests::*;
use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn the_newest_list_is_shown_however_it_is_written() {
    let rows = [
        (
            "TodoWrite",
            json!({"todos": [{"content": "a", "status": "completed"}, {"content": "b\n## c", "status": "in_progress"}, {"content": "d", "status": "pending"}]}),
        ),
        (
            "update_plan",
            json!({"plan": [{"step": "a", "status": "completed"}, {"step": "b ## c", "status": "in_progress"}, {"step": "d", "status": "pending"}]}),
        ),
        (
            "task_tracker",
            json!({"command": "plan", "task_list": [{"title": "a", "status": "done"}, {"title": "b ## c", "status": "in_progress"}, {"title": "d", "status": "todo"}]}),
        ),
        (
            "manage_todo_list",
            json!({"todoList": [{"id": 1, "title": "a", "status": "completed"}, {"title": "b ## c", "status": "in-progress"}, {"title": "d", "status": "not-started"}]}),
        ),
        (
            "update_todo_list",
            json!({"todos": "[x] a\n[-] b ## c\n- [ ] d"}),
        ),
    ];
    for (tool, input) in rows {
        let story = Story::default()
            .user("go")
            .did(
                tool,
                json!({"todos": [{"content": "old"}], "command": "plan"}),
                "ok",
            )
            .did(tool, input, "ok");
        assert_eq!(
            section(&story.text(), PLAN),
            ["| [x] a", "| [~] b ## c", "| [ ] d"],
            "{tool}"
        );
        assert_eq!(
            section(&story.pin(0..3, ALL).text(), PLAN),
            [""; 0],
            "{tool}: a newer one stands behind"
        );
    }
}

#[test]
fn a_list_written_item_by_item_is_put_together() {
    let create = |story: Story, n: u64, subject: &str| {
        let said = format!("Task #{n} created successfully: {subject}");
        story.did(
            "TaskCreate",
            json!({"subject": subject, "description": "d"}),
            &said,
        )
    };
    let update = |story: Story, n: &str, status: &str| {
        story.did(
            "TaskUpdate",
            json!({"taskId": n, "status": status}),
            "Updated",
        )
    };
    let story = create(
        create(create(Story::default().user("go"), 1, "a"), 2, "b"),
        7,
        "c",
    );
    let story = update(
        update(update(story, "1", "completed"), "7", "in_progress"),
        "2",
        "deleted",
    );
    assert_eq!(section(&story.text(), PLAN), ["| [x] a", "| [~] c"]);
    assert_eq!(
        section(&story.pin(0..7, ALL).text(), PLAN),
        ["| [ ] a", "| [ ] b", "| [ ] c"]
    );
    assert_eq!(
        section(&story.pin(7..9, ALL).text(), PLAN),
        ["| [x] a", "| [ ] b", "| [ ] c"]
    );
}

#[test]
fn what_runs_on_is_named_until_it_ends() {
    let start = || {
        Story::default().user("go").did(
            "Bash",
            json!({"command": "npm run dev", "run_in_background": true}),
            "Command running in background with ID: b1-x. Output is being written to: /tmp/x",
        )
    };
    let agent = || {
        let said = "Async agent launched successfully.\nagentId: a77 (internal ID)";
        Story::default()
            .user("go")
            .did("Task", json!({"description": "look", "prompt": "p"}), said)
    };
    let codex = || {
        let said = "Chunk ID: 1\nProcess running with session ID 61772\nOutput:\nx";
        Story::default()
            .user("go")
            .did("exec_command", json!({"cmd": "make"}), said)
    };
    let notice = "<task-notification>\n<task-id>b1-x</task-id>\n<status>completed</status>\n</task-notification>";
    let runs = "<task_id>b1-x</task_id>\n\n<status>running</status>\n\n<output>\ncompleted";
    let ended = "<task_id>b1-x</task_id>\n\n<status>completed</status>\n\n<output>\nstill running";
    let polled = json!({"task_id": "b1-x"});
    let stdin = json!({"session_id": 61772, "chars": ""});
    let rows = [
        (start(), &["| b1-x: Bash npm run dev"][..]),
        (
            start().did("TaskOutput", polled.clone(), runs),
            &["| b1-x: Bash npm run dev"],
        ),
        (start().did("TaskOutput", polled, ended), &[]),
        (
            start().did("KillShell", json!({"shell_id": "b1-x"}), "killed"),
            &[],
        ),
        (
            start().did("KillShell", json!({"shell_id": "b2"}), "killed"),
            &["| b1-x: Bash npm run dev"],
        ),
        (start().says("ok").user(notice), &[]),
        (
            start().bash("cat notes", "x\nit was running in background with ID: b9"),
            &["| b1-x: Bash npm run dev"],
        ),
        (agent(), &["| a77: Task look"]),
        (codex(), &["| 61772: exec_command make"]),
        (
            codex().did(
                "write_stdin",
                stdin.clone(),
                "Process running with session ID 61772\nOutput:\n",
            ),
            &["| 61772: exec_command make"],
        ),
        (
            codex().did(
                "write_stdin",
                stdin,
                "Process exited with code 0\nOutput:\nrunning",
            ),
            &[],
        ),
        (
            Story::default().user("go").did(
                "Read",
                json!({"file_path": "/a"}),
                "Command running in background with ID: b1",
            ),
            &[],
        ),
    ];
    for (story, expected) in rows {
        let span = 0..3;
        assert_eq!(section(&story.pin(span, ALL).text(), RUNNING), expected);
    }
}

#[test]
fn an_empty_span_pins_nothing() {
    let story = Story::default().user("go").says("ok");
    for span in [1..2, 1..1, 5..9, 0..0] {
        let pinned = story.pin(span, ALL);
        assert!(pinned.text().is_empty() && pinned.user_tokens() == 0);
    }
}

/// Each of these would take minutes if the work were not linear.
#[test]
fn a_long_history_costs_no_more_than_it_is_long() {
    let mut story = Story::default().user("go");
    for n in 0..5_000 {
        let said = format!("Task #{n} created");
        story = story
            .failed("Bash", json!({"command": "make"}), "Exit code 1")
            .did("TaskCreate", json!({"subject": n.to_string()}), &said)
            .did("Read", json!({"file_path": format!("/f{n}")}), "x")
            .did(
                "Bash",
                json!({"command": "x", "run_in_background": true}),
                &format!("Command running in background with ID: b{n}"),
            );
        if n % 5 == 0 {
            story = story.user("<task-id>b1</task-id> and on");
        }
    }
    let pinned = story.pin(1..story.0.len(), ALL);
    assert!(pinned.text().len() < 120_000 && pinned.user_tokens() <= ALL.user_tokens);
}

proptest! {
    /// Whatever stands around it, a sentence of the user's is there byte for byte.
    #[test]
    fn every_sentence_of_the_users_is_there_verbatim(
        sentences in prop::collection::vec("[a-zA-Z0-9 .,:;<>|#`'\"\\\\{}\\[\\]é😀/-]{1,60}", 1..12),
    ) {
        let mut story = Story::default();
        for sentence in &sentences {
            story = story.user(sentence.as_str()).bash("ls", "x").says("done");
        }
        let text = story.text();
        for (at, sentence) in sentences.iter().enumerate() {
            let own = injected::own_words(sentence);
            prop_assert_eq!(own.is_some(), !sentence.trim().is_empty());
            if let Some(own) = own {
                prop_assert_eq!(&own, sentence);
                let line = format!("turn {}:\n> {sentence}\n", at + 1);
                prop_assert!(text.contains(&line));
            }
        }
    }

    /// A tool can say what it likes: all of it is quoted as data.
    #[test]
    fn nothing_of_a_tool_stands_outside_a_fence(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "POISON", "\n", "\r", "\u{2028}", "> ", "| ", "## The user's own words", "turn 1:", "Exit code 1", "```",
            "<system-reminder>", "</system-reminder>", "Command running in background with ID: POISON",
        ]), 0..20),
        is_error in any::<bool>(),
    ) {
        let said = pieces.concat();
        let todo = json!({"todos": [{"content": said}]});
        let story = Story::default()
            .user("go")
            .call("Bash", json!({"command": said}), said.as_str(), is_error)
            .call("odd\nPOISON", json!({"path": said}), said.as_str(), true)
            .did("Write", json!({"file_path": format!("/{said}"), "content": "x"}), "ok")
            .did("TodoWrite", todo, "ok");
        let text = story.text();
        for line in text.split(['\n', '\r', '\u{2028}']) {
            prop_assert!(line.starts_with("| ") || !line.contains("POISON"), "{}", text);
        }
        let spoken: Vec<&str> = text.lines().filter(|line| line.starts_with("> ")).collect();
        prop_assert!(!spoken.is_empty(), "{}", text);
        prop_assert!(spoken.iter().all(|line| *line == "> go"), "{}", text);
    }

    /// The words never take more than they may, and the first and the newest are
    /// among them if they are short.
    #[test]
    fn words_keep_to_their_budget(
        lengths in prop::collection::vec(1usize..3000, 1..20),
        user_tokens in 0u64..2000,
    ) {
        let mut story = Story::default();
        for length in &lengths {
            story = story.user("w".repeat(*length)).says("ok");
        }
        let settings = Settings { user_tokens, ..ALL };
        let pinned = story.pin(0..story.0.len(), settings);
        prop_assert!(pinned.user_tokens() <= user_tokens);
        let text = pinned.text();
        for at in [0, lengths.len() - 1] {
            if (lengths[at] as u64) + 40 < user_tokens * 2 {
                let line = format!("turn {}:\n> {}\n", at + 1, "w".repeat(lengths[at]));
                prop_assert!(text.contains(&line));
            }
        }
    }
}
