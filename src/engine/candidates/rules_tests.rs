//! What is never taken, whatever its reason, and how a candidate is told.

use super::*;

fn found(cycles: &[Vec<Did>], choice: &Choice<'_>) -> Vec<Candidate> {
    found_in(&history(cycles), &Overlay::default(), choice)
}

fn alone(calls: &[Did]) -> Vec<Vec<Did>> {
    calls.iter().map(|did| vec![did.clone()]).collect()
}

#[test]
fn the_newest_calls_and_excluded_tools_stay() {
    let calls = alone(&[
        bash("a", "1"),
        read("/a", "2"),
        bash("b", "3"),
        bash("c", "4"),
    ]);
    let excluded = ["Read".to_owned()];
    let choice = Choice {
        keep_tool_uses: 1,
        exclude_tools: &excluded,
        ..ALL
    };
    let subjects: Vec<String> = found(&calls, &choice)
        .into_iter()
        .map(|c| c.subject)
        .collect();
    assert_eq!(subjects, ["a", "b"]);
    let choice = Choice {
        keep_tool_uses: 9,
        ..ALL
    };
    assert!(found(&calls, &choice).is_empty());
}

/// It may be that very request that it is trimmed for.
#[test]
fn what_is_too_large_to_be_shown_whole_supersedes_nothing() {
    let calls = alone(&[
        range("/a", 1, 200),
        read("/a", &lines(1, 2000)),
        bash("make", &lines(1, 1500)),
        bash("make", &lines(1, 1500)),
    ]);
    let told = |oversized: usize| -> Vec<String> {
        let choice = Choice { oversized, ..ALL };
        let found = found(&calls, &choice);
        found.into_iter().map(|c| told(c.reason)).collect()
    };
    assert_eq!(told(usize::MAX), ["read 1", "old", "run 3", "old"]);
    assert_eq!(told(40_000), ["old"; 4]);
}

#[test]
fn without_superseding_everything_is_merely_old() {
    let calls = alone(&[
        bash("make", "1"),
        bash("make", "2"),
        failed("Bash", json!({"command": "x"}), "no"),
        bash("x", "yes"),
        failed("Bash", json!({"command": "y"}), "no"),
        bash("z", &lines(1, 20)),
        bash("w", &lines(1, 20)),
    ]);
    let choice = Choice {
        supersede: false,
        ..ALL
    };
    let found = found(&calls, &choice);
    assert!(
        found
            .iter()
            .all(|candidate| candidate.reason == Reason::Old)
    );
    let places: Vec<usize> = found.iter().map(|candidate| candidate.used.0).collect();
    assert_eq!(
        places,
        [1, 3, 5, 7, 11, 13],
        "the failure that stands is not there"
    );
}

#[test]
fn the_head_the_open_cycle_and_unanswered_calls_stay() {
    let mut messages = history(&alone(&[bash("a", "1"), bash("b", "2"), bash("c", "3")]));
    messages.truncate(7);
    let places = |messages: &[Value]| {
        let found = found_in(messages, &Overlay::default(), &ALL);
        found
            .iter()
            .map(|candidate| candidate.result.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&messages), [2, 4], "the newest is being answered");
    messages.truncate(6);
    assert_eq!(places(&messages), [2, 4], "the newest call has no result");
    let summary = json!({"type": "compaction", "content": "all that was"});
    messages[3]["content"] = json!([summary]);
    messages[4] = json!({"role": "user", "content": "on"});
    assert!(places(&messages).is_empty());
    assert!(places(&[]).is_empty());
    assert!(places(&[json!({"role": "user", "content": "x"})]).is_empty());
}

#[test]
fn what_is_hidden_or_changed_neither_goes_nor_supersedes() {
    let calls = alone(&[bash("make", "1"), bash("make", "2"), bash("make", "3")]);
    let messages = history(&calls);
    let edit = |message: u32| Edit {
        message,
        block: 0,
        change: Change::Payload("\"stub\"".to_owned()),
    };
    let with = |edits: Vec<Edit>, cut: u32| {
        let current = Overlay {
            made_at: 9,
            head: 1,
            cut,
            edits,
            ..Overlay::default()
        };
        let found = found_in(&messages, &current, &ALL);
        found
            .iter()
            .map(|c| (c.result.0, told(c.reason)))
            .collect::<Vec<_>>()
    };
    let row = |at: usize, reason: &str| (at, reason.to_owned());
    assert_eq!(with(vec![edit(6)], 1), [row(2, "run 1"), row(4, "old")]);
    assert_eq!(with(vec![edit(4)], 1), [row(2, "run 2"), row(6, "old")]);
    assert_eq!(
        with(vec![edit(5)], 1),
        [row(2, "run 1"), row(4, "old")],
        "the call itself"
    );
    assert_eq!(with(vec![], 5), [row(6, "old")]);
}

#[test]
fn results_that_load_tools_or_hold_nothing_stay() {
    let reference = json!([{"type": "tool_reference", "tool_name": "x"}]);
    let mut messages = history(&alone(&[
        did("ToolSearch", json!({"query": "x"}), reference),
        bash("a", "1"),
    ]));
    messages[4]["content"][0]
        .as_object_mut()
        .unwrap()
        .remove("content");
    assert!(found_in(&messages, &Overlay::default(), &ALL).is_empty());
}

#[test]
fn calls_made_together_do_not_supersede_each_other() {
    let one = vec![
        read("/a", &lines(1, 30)),
        write("/a"),
        read("/a", &lines(1, 31)),
        bash("make", "1"),
        bash("make", "2"),
    ];
    let found = found(&[one], &ALL);
    assert_eq!(found.len(), 5);
    assert!(
        found
            .iter()
            .all(|candidate| candidate.reason == Reason::Old)
    );
}

#[test]
fn the_same_bytes_further_down_are_a_duplicate() {
    let same = lines(1, 20);
    let twice = vec![read("/a", &same), read("/a", &same)];
    let reasons = |cycles: &[Vec<Did>]| {
        let found = found(cycles, &ALL);
        found.iter().map(|c| told(c.reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&[twice]), ["same 0", "old"], "read twice at once");
    let calls = alone(&[bash("ls a", &same), bash("ls b", &same)]);
    assert_eq!(reasons(&calls), ["same 1", "old"]);
    let calls = alone(&[bash("ls a", "short"), bash("ls b", "short")]);
    assert_eq!(reasons(&calls), ["old", "old"]);
    // What the first said is only in the second, and that may go as well.
    let calls = alone(&[
        bash("ls a", &same),
        bash("ls b", &same),
        bash("ls b", "new"),
    ]);
    assert_eq!(reasons(&calls), ["old", "run 2", "old"]);
}

#[test]
fn an_error_goes_only_when_it_was_made_good() {
    let no_edit = failed(
        "Edit",
        json!({"file_path": "/a", "old_string": "x"}),
        "not found",
    );
    let no_read = failed("Read", json!({"file_path": "/a"}), "too large");
    let refused = failed(
        "Bash",
        json!({"command": "make"}),
        "The user doesn't want to proceed. The user said: use ninja",
    );
    check(&[
        (
            "edited later",
            vec![no_edit.clone(), edit("/a")],
            &["old", "old"],
        ),
        (
            "written later",
            vec![no_edit.clone(), write("/a")],
            &["old", "old"],
        ),
        (
            "another edited",
            vec![no_edit.clone(), edit("/b")],
            &["-", "old"],
        ),
        (
            "only read later",
            vec![no_edit.clone(), read("/a", "x")],
            &["-", "old"],
        ),
        (
            "read in part later",
            vec![no_read.clone(), range("/a", 1, 9)],
            &["read 1", "old"],
        ),
        (
            "read otherwise",
            vec![no_read, bash("cat /a", "x")],
            &["-", "old"],
        ),
        (
            "a person's no",
            vec![refused, bash("make", "ok")],
            &["-", "old"],
        ),
        (
            "a failed edit between",
            vec![read("/a", &lines(1, 9)), no_edit, read("/a", &lines(1, 10))],
            &["read 2", "-", "old"],
        ),
    ]);
}

#[test]
fn a_subject_is_one_short_line() {
    let long = format!("echo {} \n\u{7} {}", "é".repeat(40), "é".repeat(90));
    let find = |did: Did| {
        let calls = alone(&[did]);
        let mut found = found(&calls, &ALL);
        found.remove(0).subject
    };
    let subject = find(bash(&long, "x"));
    assert!(subject.starts_with("echo é") && subject.ends_with('…'));
    assert!(subject.len() <= 120 && !subject.contains(char::is_control));
    assert_eq!(find(range("/a/./b", 5, 9)), "/a/b, lines 5-9");
    assert_eq!(find(did("Grep", json!({"pattern": "x y"}), "z")), "x y");
    assert_eq!(find(did("Task", json!({"prompt": "p"}), "z")), "");
}

#[test]
fn pictures_and_odd_results_do_no_harm() {
    let picture = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(5000)}}]);
    let odd = [
        json!([]),
        json!(""),
        json!([{"type": "text", "text": "Error: x"}]),
        picture.clone(),
    ];
    let calls: Vec<Did> = odd
        .iter()
        .map(|content| read("/a", "").clone_with(content))
        .collect();
    let found = found(&alone(&calls), &ALL);
    assert!(found.iter().all(|candidate| candidate.bytes > 0));
    let twice = [
        read("/p.png", "").clone_with(&picture),
        read("/p.png", "").clone_with(&picture),
    ];
    assert_eq!(reasons(&twice), ["read 1", "old"]);
}

impl Did {
    fn clone_with(&self, content: &Value) -> Self {
        Self {
            content: content.clone(),
            ..self.clone()
        }
    }
}

#[test]
fn the_best_reasons_come_first() {
    let superseded = Reason::Superseded {
        how: How::RunAgain,
        by: (9, 9),
    };
    assert!(superseded < Reason::Duplicate { of: (0, 0) });
    assert!(Reason::Duplicate { of: (9, 9) } < Reason::Old);
}
