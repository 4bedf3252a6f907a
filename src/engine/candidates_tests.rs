//! What may go, and what may not.

use super::*;
use crate::engine::overlay::{Change, Edit};
use crate::wire::body::Body;
use serde_json::{Value, json};

/// A call: tool, arguments, result.
#[derive(Clone)]
struct Did {
    tool: &'static str,
    input: Value,
    content: Value,
    is_error: bool,
}

fn did(tool: &'static str, input: Value, content: impl Into<Value>) -> Did {
    Did {
        tool,
        input,
        content: content.into(),
        is_error: false,
    }
}

fn failed(tool: &'static str, input: Value, content: &str) -> Did {
    Did {
        is_error: true,
        ..did(tool, input, content)
    }
}

fn bash(command: &str, content: &str) -> Did {
    did("Bash", json!({ "command": command }), content)
}

/// A file of so many lines, each of which can be told from the others.
fn lines(from: usize, to: usize) -> String {
    let line = |n: usize| format!("{n:>6}\u{2192}let value_{n} = compute_{n}({n});");
    (from..=to).map(line).collect::<Vec<_>>().join("\n")
}

fn read(path: &str, content: &str) -> Did {
    did("Read", json!({ "file_path": path }), content)
}

/// Lines of a file that has not changed.
fn range(path: &str, from: usize, to: usize) -> Did {
    let input = json!({"file_path": path, "offset": from, "limit": to - from + 1});
    did("Read", input, lines(from, to))
}

fn write(path: &str) -> Did {
    did(
        "Write",
        json!({"file_path": path, "content": "x"}),
        "written",
    )
}

fn edit(path: &str) -> Did {
    let input = json!({"file_path": path, "old_string": "x", "new_string": "y"});
    did("Edit", input, "edited")
}

/// A history in which each list of calls is made in one message.
fn history(cycles: &[Vec<Did>]) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for (at, calls) in cycles.iter().enumerate() {
        let id = |n: usize| format!("t{at}-{n}");
        let uses = calls.iter().enumerate().map(
            |(n, did)| json!({"type": "tool_use", "id": id(n), "name": did.tool, "input": did.input}),
        );
        let results = calls.iter().enumerate().map(|(n, did)| {
            json!({"type": "tool_result", "tool_use_id": id(n), "content": did.content, "is_error": did.is_error})
        });
        messages.push(json!({"role": "assistant", "content": uses.collect::<Vec<_>>()}));
        messages.push(json!({"role": "user", "content": results.collect::<Vec<_>>()}));
    }
    messages.push(json!({"role": "assistant", "content": "done"}));
    messages.push(json!({"role": "user", "content": "next"}));
    messages
}

const ALL: Choice<'static> = Choice {
    keep_tool_uses: 0,
    exclude_tools: &[],
    supersede: true,
    oversized: usize::MAX,
};

fn found_in(messages: &[Value], current: &Overlay, choice: &Choice<'_>) -> Vec<Candidate> {
    let bytes = json!({ "messages": messages }).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    candidates(&conversation, current, choice)
}

/// The reason for each call, one a message: `-` for none.
fn reasons(calls: &[Did]) -> Vec<String> {
    let cycles: Vec<Vec<Did>> = calls.iter().map(|did| vec![did.clone()]).collect();
    let found = found_in(&history(&cycles), &Overlay::default(), &ALL);
    let reason = |at: usize| {
        let here = found.iter().find(|found| found.used.0 == 1 + at * 2);
        here.map_or("-".to_owned(), |found| told(found.reason))
    };
    (0..calls.len()).map(reason).collect()
}

/// A reason with the number of the call that it names.
fn told(reason: Reason) -> String {
    match reason {
        Reason::Superseded { how, by } => {
            let how = match how {
                How::ReadAgain => "read",
                How::WrittenLater => "written",
                How::RunAgain => "run",
            };
            format!("{how} {}", (by.0 - 1) / 2)
        }
        Reason::Duplicate { of } => format!("same {}", (of.0 - 2) / 2),
        Reason::Old => "old".to_owned(),
    }
}

fn check(rows: &[(&str, Vec<Did>, &[&str])]) {
    for (rule, calls, expected) in rows {
        assert_eq!(reasons(calls), *expected, "{rule}");
    }
}

#[test]
fn a_file_read_again_supersedes_what_it_shows_again() {
    let other = |n: usize| lines(n, n + 40);
    check(&[
        (
            "whole again",
            vec![read("/a", &other(1)), read("/a", &other(2))],
            &["read 1", "old"],
        ),
        (
            "the newest is named",
            vec![
                read("/a", &other(1)),
                read("/a", &other(2)),
                read("/a", &other(3)),
            ],
            &["read 2", "read 2", "old"],
        ),
        (
            "another spelling",
            vec![read("/x/../a", &other(1)), read("/./a", &other(2))],
            &["read 1", "old"],
        ),
        (
            "another file",
            vec![read("/a", &other(1)), read("/b", &other(2))],
            &["old", "old"],
        ),
        (
            "another case",
            vec![read("/a", &other(1)), read("/A", &other(2))],
            &["old", "old"],
        ),
        (
            "whole over a range",
            vec![range("/a", 10, 20), read("/a", &other(1))],
            &["read 1", "old"],
        ),
        (
            "a range over a whole",
            vec![read("/a", &other(1)), range("/a", 10, 20)],
            &["old", "old"],
        ),
        (
            "a range within",
            vec![range("/a", 10, 20), range("/a", 5, 25)],
            &["read 1", "old"],
        ),
        (
            "a range that ends before",
            vec![range("/a", 10, 20), range("/a", 5, 19)],
            &["old", "old"],
        ),
        (
            "a range that begins after",
            vec![range("/a", 10, 20), range("/a", 11, 30)],
            &["old", "old"],
        ),
        (
            "two ranges that only together show it",
            vec![
                range("/a", 10, 30),
                range("/a", 10, 20),
                range("/a", 20, 30),
            ],
            &["old", "old", "old"],
        ),
        (
            "by a command",
            vec![read("/w/a", &other(1)), bash("cd /w && cat a", &other(2))],
            &["read 1", "old"],
        ),
        (
            "a link is not known to be one",
            vec![read("/link/a", &other(1)), read("/real/a", &other(2))],
            &["old", "old"],
        ),
        (
            "a piped command shows who knows what",
            vec![read("/a", &other(1)), bash("cat /a | grep -v x", &other(2))],
            &["old", "old"],
        ),
        (
            "a relative path is another than an absolute one",
            vec![read("a", &other(1)), read("/w/a", &other(2))],
            &["old", "old"],
        ),
    ]);
}

#[test]
fn line_numbers_do_not_count_where_lines_have_moved() {
    // Fifty lines were inserted above: the same numbers show other lines.
    let moved = did(
        "Read",
        json!({"file_path": "/a", "offset": 100, "limit": 20}),
        lines(50, 69),
    );
    check(&[(
        "moved away",
        vec![range("/a", 100, 119), edit("/a"), moved],
        &["old", "old", "old"],
    )]);
    // A line in the middle was changed, and one inserted.
    let changed = lines(98, 125).replace("compute_110(110)", "other()\\n   111\u{2192}inserted()");
    let changed = did(
        "Read",
        json!({"file_path": "/a", "offset": 98, "limit": 29}),
        changed,
    );
    check(&[(
        "changed within",
        vec![range("/a", 100, 119), edit("/a"), changed],
        &["read 2", "old", "old"],
    )]);
}

#[test]
fn a_read_that_does_not_show_the_file_supersedes_nothing() {
    let file = lines(1, 60);
    check(&[
        (
            "failed",
            vec![
                read("/a", &file),
                failed("Read", json!({"file_path": "/a"}), "gone"),
            ],
            &["old", "-"],
        ),
        (
            "failed unmarked",
            vec![read("/a", &file), read("/a", "Error: no such file")],
            &["old", "-"],
        ),
        (
            "shrunk to a notice",
            vec![read("/a", &file), read("/a", "see above")],
            &["old", "old"],
        ),
        (
            "cut",
            vec![
                range("/a", 50, 60),
                read("/a", &format!("{}\\n[truncated]", lines(1, 40))),
            ],
            &["old", "old"],
        ),
        (
            "cleared by the client",
            vec![
                read("/a", &lines(1, 3)),
                read("/a", "[Old tool result content cleared]"),
            ],
            &["old", "old"],
        ),
    ]);
}

#[test]
fn a_result_that_a_later_one_points_back_at_stays() {
    let unchanged = "File unchanged since last read. Refer to the earlier result.";
    check(&[
        (
            "pointed at",
            vec![read("/a", &lines(1, 9)), read("/a", unchanged)],
            &["-", "old"],
        ),
        (
            "until it is read again",
            vec![
                read("/a", &lines(1, 9)),
                read("/a", unchanged),
                read("/a", &lines(1, 10)),
            ],
            &["read 2", "old", "old"],
        ),
    ]);
}

#[test]
fn only_a_file_written_in_full_supersedes_a_read() {
    let file = lines(1, 60);
    check(&[
        (
            "written",
            vec![read("/a", &file), write("/a")],
            &["written 1", "old"],
        ),
        (
            "range",
            vec![range("/a", 5, 9), write("/a")],
            &["written 1", "old"],
        ),
        (
            "edited",
            vec![read("/a", &file), edit("/a")],
            &["old", "old"],
        ),
        (
            "edited twice",
            vec![read("/a", &file), edit("/a"), edit("/a")],
            &["old", "old", "old"],
        ),
        (
            "edited and read again",
            vec![
                read("/a", &file),
                edit("/a"),
                read("/a", &file.replace("value_3 ", "value_0 ")),
            ],
            &["read 2", "read 2", "old"],
        ),
        (
            "failed to write",
            vec![
                read("/a", &file),
                failed("Write", json!({"file_path": "/a", "content": "x"}), "no"),
            ],
            &["old", "-"],
        ),
        (
            "another file",
            vec![read("/a", &file), write("/b")],
            &["old", "old"],
        ),
        (
            "by a redirection, which is not looked into",
            vec![read("/a", &file), bash("echo x > /a", "")],
            &["old", "old"],
        ),
        (
            "appended",
            vec![
                read("/a", &file),
                did(
                    "Write",
                    json!({"file_path": "/a", "content": "x", "append": true}),
                    "ok",
                ),
            ],
            &["old", "old"],
        ),
        (
            "the answer to an edit",
            vec![edit("/a"), edit("/a"), write("/a")],
            &["written 2", "written 2", "old"],
        ),
        (
            "a patch over two files, one of them written",
            vec![
                did(
                    "apply_patch",
                    json!({"input": "*** Begin Patch\n*** Update File: /a\n*** Update File: /b\n"}),
                    "ok",
                ),
                write("/a"),
            ],
            &["old", "old"],
        ),
        (
            "a notebook's cell",
            vec![
                did(
                    "NotebookRead",
                    json!({"notebook_path": "/n", "cell_id": "1"}),
                    file.as_str(),
                ),
                did(
                    "NotebookEdit",
                    json!({"notebook_path": "/n", "cell_id": "2"}),
                    "ok",
                ),
                did(
                    "NotebookRead",
                    json!({"notebook_path": "/n", "cell_id": "2"}),
                    file.as_str(),
                ),
            ],
            &["same 2", "old", "old"],
        ),
    ]);
}

#[path = "candidates/commands_tests.rs"]
mod commands;

#[path = "candidates/rules_tests.rs"]
mod rules;
