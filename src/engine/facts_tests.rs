//! What facts are taken in the shapes of several clients, and the laws.

use super::*;
use crate::engine::pinned::{Settings, pinned};
use crate::wire::body::Body;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A history in the making.
#[derive(Default, Clone)]
pub(in crate::engine) struct Story(pub(in crate::engine) Vec<Value>);

impl Story {
    pub(in crate::engine) fn user(mut self, text: impl Into<Value>) -> Self {
        self.0.push(json!({"role": "user", "content": text.into()}));
        self
    }

    pub(in crate::engine) fn says(mut self, text: &str) -> Self {
        self.0.push(json!({"role": "assistant", "content": text}));
        self
    }

    #[allow(clippy::needless_pass_by_value)]
    fn call(mut self, tool: &str, input: Value, result: &str, is_error: bool) -> Self {
        let id = format!("t{}", self.0.len());
        self.0.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": tool, "input": input}]}));
        self.0.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result, "is_error": is_error}]}));
        self
    }

    pub(in crate::engine) fn did(self, tool: &str, input: Value, result: &str) -> Self {
        self.call(tool, input, result, false)
    }

    pub(in crate::engine) fn failed(self, tool: &str, input: Value, result: &str) -> Self {
        self.call(tool, input, result, true)
    }

    pub(in crate::engine) fn facts(&self) -> Vec<Fact> {
        self.between(0, self.0.len())
    }

    fn between(&self, from: usize, to: usize) -> Vec<Fact> {
        let bytes = serde_json::to_vec(&json!({"model": "m", "messages": self.0})).unwrap();
        let body = Body::split(&bytes).unwrap();
        facts(&Conversation::new(&bytes, &body), from, to)
    }

    /// Kind, path and text of each.
    fn told(&self) -> Vec<(&'static str, String, String)> {
        let told = |fact: Fact| (fact.kind.name(), fact.path.unwrap_or_default(), fact.text);
        self.facts().into_iter().map(told).collect()
    }
}

#[test]
fn a_call_is_told_whatever_its_tool_is_called() {
    let patch =
        "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: b.rs\n+z\n*** End Patch";
    let rows = [
        // Claude Code.
        (Story::default().did("Read", json!({"file_path": "/w/a.rs", "offset": 3, "limit": 2}), "x"),
            vec![("file_read", "/w/a.rs", "read /w/a.rs, lines 3-4")]),
        (Story::default().did("Write", json!({"file_path": "/w/a.rs", "content": "x"}), "ok"),
            vec![("file_written", "/w/a.rs", "wrote /w/a.rs")]),
        (Story::default().did("Edit", json!({"file_path": "/w/a.rs", "old_string": "x", "new_string": "y"}), "ok"),
            vec![("file_written", "/w/a.rs", "changed /w/a.rs")]),
        (Story::default().did("Bash", json!({"command": "cargo test"}), "ok"),
            vec![("command", "", "worked: cargo test")]),
        (Story::default().failed("Bash", json!({"command": "cargo test"}), "Exit code 101\nE0308"),
            vec![("command", "", "failed: cargo test"), ("error", "", "Exit code 101\nE0308")]),
        (Story::default().failed("Bash", json!({"command": "rm -r x"}), "The user doesn't want to proceed"),
            vec![("command", "", "refused: rm -r x"), ("error", "", "The user doesn't want to proceed")]),
        (Story::default().did("Bash", json!({"command": "npm run dev", "run_in_background": true}), "Command running in background with ID: b1"),
            vec![("command", "", "unfinished: npm run dev")]),
        (Story::default().failed("Edit", json!({"file_path": "/w/a.rs", "old_string": "x", "new_string": "y"}), "not found"),
            vec![("error", "/w/a.rs", "not found")]),
        // Codex.
        (Story::default().did("exec_command", json!({"cmd": "sed -n 1,20p src/a.rs", "workdir": "/w"}), "Process exited with code 0\nOutput:\nx"),
            vec![("file_read", "/w/src/a.rs", "read /w/src/a.rs, lines 1-20")]),
        (Story::default().did("exec_command", json!({"cmd": "make", "workdir": "/w"}), "Process exited with code 2\nOutput:\nx"),
            vec![("command", "/w", "failed: make"), ("error", "", "Process exited with code 2\nOutput:\nx")]),
        (Story::default().did("shell", json!({"command": ["bash", "-lc", "make all"]}), "ok"),
            vec![("command", "", "worked: make all")]),
        (Story::default().did("apply_patch", json!({"input": patch}), "ok"),
            vec![("file_written", "a.rs", "changed a.rs"), ("file_written", "b.rs", "wrote b.rs")]),
        (Story::default().did("update_plan", json!({"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}]}), "ok"),
            vec![("todo", "", "[x] a\n[ ] b")]),
        // Others, and tools that nobody knows.
        (Story::default().did("str_replace_editor", json!({"command": "create", "path": "/w/a", "file_text": "x"}), "ok"),
            vec![("file_written", "/w/a", "wrote /w/a")]),
        (Story::default().did("mcp__disk__read_file", json!({"path": "/w/a"}), "x"),
            vec![("file_read", "/w/a (disk)", "read /w/a")]),
        (Story::default().did("cancel_booking", json!({"id": "B7"}), "ok"),
            vec![("command", "", "worked: cancel_booking id=\"B7\"")]),
        (Story::default().did("get_weather", json!({"city": "Bonn"}), "rain"), vec![]),
        (Story::default().failed("get_weather", json!({"city": "Bonn"}), ""),
            vec![("error", "", "failed without a word")]),
        (Story::default().did("TodoWrite", json!({"todos": []}), "ok"), vec![("todo", "", "no items")]),
        (Story::default().did("TaskCreate", json!({"subject": "test"}), "Task #4 created successfully"),
            vec![("todo_item", "", "#4 [ ] test")]),
        (Story::default().did("TaskUpdate", json!({"taskId": "4", "status": "completed"}), "ok"),
            vec![("todo_item", "", "#4 [x]")]),
    ];
    for (story, expected) in rows {
        let told = story.told();
        let told: Vec<_> = told
            .iter()
            .map(|(k, p, t)| (*k, p.as_str(), t.as_str()))
            .collect();
        assert_eq!(told, expected, "{:?}", story.0);
    }
}

#[test]
fn what_is_said_is_told_with_its_turn_and_its_block() {
    let story = Story::default()
        .user(json!([
            {"type": "text", "text": "<system-reminder>\nNever rest.\n</system-reminder>"},
            {"type": "text", "text": "Port it. Never push to main."},
        ]))
        .did("Bash", json!({"command": "ls"}), "You must not read this.")
        .says("The fix is to flush the cache. Shall I commit it?")
        .user("no");
    let told: Vec<_> = story
        .facts()
        .into_iter()
        .map(|fact| {
            (
                fact.kind.name(),
                fact.message,
                fact.block,
                fact.turn,
                fact.text,
            )
        })
        .collect();
    let expected = [
        ("words", 0, 1, 1, "Port it. Never push to main."),
        ("constraint", 0, 1, 1, "Never push to main."),
        ("command", 2, 0, 1, "worked: ls"),
        ("decision", 3, 0, 1, "The fix is to flush the cache."),
        ("question", 3, 0, 1, "Shall I commit it?"),
        ("words", 4, 0, 2, "no"),
    ];
    assert_eq!(
        told,
        expected.map(|(k, m, b, t, text)| (k, m, b, t, text.to_owned()))
    );
}

#[test]
fn a_question_counts_only_where_the_assistant_waits() {
    let mut story = Story::default().user("go");
    story.0.push(json!({"role": "assistant", "content": [
        {"type": "text", "text": "Shall I look?"},
        {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make"}}]}));
    let kinds: Vec<_> = story.facts().iter().map(|fact| fact.kind).collect();
    assert_eq!(kinds, [FactKind::Words], "nor does a call without a result");
}

#[test]
fn turns_are_those_of_the_pinned_index() {
    let story = Story::default()
        .user("one")
        .did("Bash", json!({"command": "make"}), "ok")
        .user("<system-reminder>\nx\n</system-reminder>")
        .says("ok")
        .user("three");
    let bytes = serde_json::to_vec(&json!({"messages": story.0})).unwrap();
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let settings = Settings {
        user_tokens: 999,
        plan_tokens: 1_200,
        former_plan: None,
        files: 9,
        errors: 9,
        digest_bytes: 0,
    };
    let index = pinned(&conversation, 0..story.0.len(), &settings).text();
    for fact in facts(&conversation, 0, 99) {
        if fact.kind == FactKind::Words {
            assert!(index.contains(&format!("turn {}:\n> {}\n", fact.turn, fact.text)));
        }
    }
    assert_eq!(turns(&conversation), 3);
}

#[test]
fn texts_and_names_keep_to_their_bounds() {
    let long = "é\n".repeat(50_000);
    let items: Vec<Value> = (0..300)
        .map(|n| json!({"content": format!("{n} {}", "w ".repeat(60)), "status": "pending"}))
        .collect();
    let story = Story::default()
        .user(format!("Never {}.", "x ".repeat(700)))
        .user(long.as_str())
        .failed(&"t".repeat(900), json!({"path": "/a"}), &long)
        .did("Bash", json!({"command": format!("echo {long}")}), "ok")
        .did(
            "Bash",
            json!({"command": "make", "workdir": "/x".repeat(9000)}),
            "ok",
        )
        .did("TodoWrite", json!({"todos": items}), "ok")
        .did(
            "Read",
            json!({"file_path": format!("/{}", "p".repeat(3000))}),
            "nul \0",
        );
    let facts = story.facts();
    assert_eq!(facts.len(), 8);
    for fact in facts {
        let most = if matches!(fact.kind, FactKind::Words | FactKind::Todo) {
            LONG
        } else {
            TEXT
        };
        assert!(
            (1..=most).contains(&fact.text.chars().count()),
            "{}",
            fact.kind.name()
        );
        assert!(fact.tool.is_none_or(|tool| tool.chars().count() <= 64));
        assert!(fact.path.is_none_or(|path| path.len() <= 4200));
    }
}

#[test]
fn a_kind_is_found_by_its_name() {
    for kind in FactKind::ALL {
        assert_eq!(FactKind::named(kind.name()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
    assert_eq!(FactKind::named("other"), None);
}

/// Each of these would take minutes if the work were not linear.
#[test]
fn a_history_made_to_hurt_costs_no_more_than_it_is_long() {
    const COUNT: usize = 20_000;
    let call = |n: usize| json!({"type": "tool_use", "id": n.to_string(), "name": "Bash", "input": {"command": "x"}});
    let result = |n: usize| json!({"type": "tool_result", "tool_use_id": (COUNT - 1 - n).to_string(), "content": "Exit code 1"});
    let text =
        |_| json!({"type": "text", "text": "Never push it now. I'll use a instead of b. ok?"});
    let message = |role: &str, blocks: Vec<Value>| json!({"role": role, "content": blocks});
    let rows = [
        vec![
            message("assistant", (0..COUNT).map(call).collect()),
            message("user", (0..COUNT).map(result).collect()),
        ],
        vec![
            message("user", (0..COUNT).map(text).collect()),
            message("assistant", (0..COUNT).map(text).collect()),
        ],
        (0..COUNT)
            .map(|n| message("assistant", vec![call(n)]))
            .collect(),
        (0..COUNT)
            .map(|_| json!({"role": "system", "content": "Never."}))
            .collect(),
        vec![json!({"role": "user", "content": "Never ".repeat(COUNT)})],
    ];
    for messages in rows {
        let story = Story(messages);
        let facts = story.facts();
        assert!(facts.len() <= 3 * COUNT);
        super::super::status::Status::of(&facts, 1, 1).text();
    }
}

/// Messages as odd as a client can send them.
fn message() -> impl Strategy<Value = Value> {
    let words = || {
        prop::sample::select(vec![
            "Never push to main.",
            "The fix is to flush it now.",
            "Shall I go on?",
            "go",
            "",
            "<system-reminder>\nx\n</system-reminder>",
            "é\0\u{2028}```",
            "[Image #1]",
        ])
    };
    let id = || prop::sample::select(vec!["a", "b", "c"]);
    let tool = prop::sample::select(vec![
        ("Bash", json!({"command": "make"})),
        ("Bash", json!({"command": "cat a"})),
        (
            "Edit",
            json!({"file_path": "/a", "old_string": "x", "new_string": "y"}),
        ),
        ("TodoWrite", json!({"todos": [{"content": "x"}]})),
        ("TaskUpdate", json!({"taskId": 3, "status": "deleted"})),
        ("odd\n", json!([1, 2])),
        ("Read", json!(null)),
    ]);
    let block = prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        (id(), tool).prop_map(|(id, (name, input))| json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        (id(), prop::sample::select(vec!["ok", "Exit code 1", ""]), any::<bool>()).prop_map(|(id, text, is_error)| {
            json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error})
        }),
        Just(json!({"type": "tool_result"})),
        Just(json!({"type": "new_thing", "text": "Never."})),
    ];
    let content = prop_oneof![
        prop::collection::vec(block, 0..5).prop_map(Value::from),
        words().prop_map(Value::from),
    ];
    let role = prop::sample::select(vec![
        "user",
        "assistant",
        "user",
        "assistant",
        "system",
        "other",
    ]);
    (role, content).prop_map(|(role, content)| json!({"role": role, "content": content}))
}

proptest! {
    /// A journal that is fed request by request holds what one fed at once does.
    #[test]
    fn facts_are_those_of_the_parts_wherever_a_history_is_cut(
        messages in prop::collection::vec(message(), 0..12), odd in 0usize..20,
    ) {
        let story = Story(messages);
        let all = story.facts();
        for cut in 0..=story.0.len() {
            let mut parts = story.between(0, cut);
            parts.extend(story.between(cut, story.0.len()));
            prop_assert_eq!(&parts, &all);
        }
        prop_assert!(story.between(odd, 3).len() <= all.len());
        for fact in &all {
            prop_assert!(!fact.text.trim().is_empty() && (fact.message as usize) < story.0.len());
        }
        let in_order = all.is_sorted_by_key(|fact| (fact.message, fact.block));
        prop_assert!(in_order);
        let json = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Fact>>(&json).unwrap(), all);
    }

    /// What was known stays as it was when more is said.
    #[test]
    fn later_messages_change_no_fact(messages in prop::collection::vec(message(), 1..12)) {
        let story = Story(messages);
        let all = story.facts();
        for count in 0..story.0.len() {
            let earlier = Story(story.0[..count].to_vec()).facts();
            prop_assert_eq!(&earlier[..], &all[..earlier.len()]);
            prop_assert!(all[earlier.len()..].iter().all(|fact| fact.message as usize >= count));
        }
    }
}
