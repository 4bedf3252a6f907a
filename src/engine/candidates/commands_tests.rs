//! Commands, questions and plans that are repeated.

use super::*;

#[test]
fn a_command_run_again_supersedes_its_earlier_output() {
    let failed = |command: &str| failed("Bash", json!({ "command": command }), "Exit code 1");
    check(&[
        (
            "again",
            vec![bash("make", "a"), bash(" make ", "b")],
            &["run 1", "old"],
        ),
        (
            "another",
            vec![bash("make", "a"), bash("make x", "b")],
            &["old", "old"],
        ),
        (
            "another tool",
            vec![
                bash("make", "a"),
                did("shell", json!({"command": "make"}), "b"),
            ],
            &["old", "old"],
        ),
        (
            "failed the second time",
            vec![bash("make", "a"), failed("make")],
            &["old", "-"],
        ),
        (
            "worked the second time",
            vec![failed("make"), bash("make", "b")],
            &["run 1", "old"],
        ),
        (
            "failed for good",
            vec![failed("make"), failed("make")],
            &["-", "-"],
        ),
        (
            "in another way",
            vec![failed("make"), bash("make -k", "b")],
            &["-", "old"],
        ),
        (
            "a record",
            vec![bash("git commit -m x", "a"), bash("git commit -m x", "b")],
            &["old", "old"],
        ),
        (
            "figures",
            vec![bash("cargo bench", "a"), bash("cargo bench", "b")],
            &["old", "old"],
        ),
        (
            "a log",
            vec![
                bash("tail -5 x | grep e", "a"),
                bash("tail -5 x | grep e", "b"),
            ],
            &["old", "old"],
        ),
        (
            "on another branch",
            vec![
                bash("make", "a"),
                bash("git checkout x", ""),
                bash("make", "b"),
            ],
            &["old", "old", "old"],
        ),
        (
            "a difference that is gone",
            vec![bash("git diff", &lines(1, 9)), bash("git diff", "")],
            &["old", "old"],
        ),
        (
            "the exit code is in the text",
            vec![
                bash("make", "a"),
                bash("make", "x\n<shellId: 1 completed with exit code 2>"),
            ],
            &["old", "-"],
        ),
        (
            "it still runs",
            vec![
                bash("make", "a"),
                bash("make", "Process running with session ID 5\nOutput:\n"),
            ],
            &["old", "old"],
        ),
    ]);
}

#[test]
fn a_command_in_another_folder_is_another_command() {
    let codex = |cmd: &str, folder: &str| {
        did(
            "exec_command",
            json!({"cmd": cmd, "workdir": folder}),
            "output",
        )
    };
    check(&[
        (
            "said",
            vec![codex("make", "/a"), codex("make", "/b")],
            &["old", "old"],
        ),
        (
            "said alike",
            vec![codex("make", "/a"), codex("make", "/a/")],
            &["run 1", "old"],
        ),
        (
            "moved",
            vec![bash("make", "a"), bash("cd x", ""), bash("make", "b")],
            &["old", "old", "old"],
        ),
        (
            "moved and back, which is not followed",
            vec![
                bash("make", "a"),
                bash("cd x && ls", ""),
                bash("cd ..", ""),
                bash("make", "b"),
            ],
            &["old", "old", "old", "old"],
        ),
        (
            "there by name",
            vec![
                bash("cd /x && make", "a"),
                bash("cd /y", ""),
                bash("cd /x && make", "b"),
            ],
            &["run 2", "old", "old"],
        ),
        (
            "cat where it stands",
            vec![
                bash("cat a", &lines(1, 5)),
                bash("cd x && cat a", &lines(6, 10)),
                bash("cat a", &lines(11, 15)),
            ],
            &["old", "old", "old"],
        ),
        (
            "cat is not the read of another root",
            vec![read("a", &lines(1, 5)), bash("cat a", &lines(1, 6))],
            &["old", "old"],
        ),
    ]);
}

#[test]
fn a_shell_that_enters_the_same_folder_again_and_again_begins_anew() {
    let calls = vec![
        bash("cd web && make", "a"),
        bash("cat web/a", &lines(1, 9)),
        bash("cd web && make", "b"),
        bash("cd web && make", "c"),
        bash("cat web/a", &lines(1, 10)),
    ];
    let expected = ["run 3", "read 4", "run 3", "old", "old"];
    check(&[("anew", calls.clone(), &expected)]);
    // One that remembers cannot enter it from within.
    let mut remembers = calls;
    remembers[2] = bash("cd web && make", "bash: cd: web: No such file or directory");
    remembers[3] = bash("cd web && make", "bash: cd: web: No such file or directory");
    check(&[("remembers", remembers, &["old", "old", "old", "old", "old"])]);
}

#[test]
fn output_that_was_cut_shorter_supersedes_nothing() {
    let run = |most: u64, output: &str| {
        let input = json!({"cmd": "make", "workdir": "/w", "max_output_tokens": most});
        did("exec_command", input, output)
    };
    check(&[
        (
            "room enough",
            vec![run(100, "a"), run(200, "b [truncated]")],
            &["run 1", "old"],
        ),
        (
            "less, and cut",
            vec![run(200, "a"), run(100, "b [truncated]")],
            &["old", "old"],
        ),
        (
            "less, and not cut",
            vec![run(200, "a"), run(100, "b")],
            &["run 1", "old"],
        ),
    ]);
}

#[test]
fn a_question_is_repeated_only_by_the_same_question() {
    let grep =
        |pattern: &str, found: &str| did("Grep", json!({"pattern": pattern, "-n": true}), found);
    let get = |tool: &'static str, id: &str| did(tool, json!({"id": id}), id.repeat(9));
    check(&[
        (
            "again",
            vec![grep("x", "a"), grep("x", "b")],
            &["run 1", "old"],
        ),
        (
            "another",
            vec![grep("x", "a"), grep("y", "b")],
            &["old", "old"],
        ),
        (
            "its hits are gone",
            vec![grep("x", &lines(1, 9)), grep("x", "none")],
            &["old", "old"],
        ),
        (
            "order and manner do not count",
            vec![
                grep("x", "a"),
                did(
                    "Grep",
                    json!({"-n": true, "description": "d", "pattern": "x"}),
                    "b",
                ),
            ],
            &["run 1", "old"],
        ),
        (
            "a record of a custom tool",
            vec![get("get_order", "a"), get("get_order", "a")],
            &["run 1", "old"],
        ),
        (
            "two servers",
            vec![get("mcp__a__get_order", "a"), get("mcp__b__get_order", "a")],
            &["old", "old"],
        ),
        (
            "two servers and one path",
            vec![
                did("mcp__a__read_file", json!({"path": "/a"}), lines(1, 9)),
                did("mcp__b__read_file", json!({"path": "/a"}), lines(1, 10)),
                read("/a", &lines(1, 11)),
            ],
            &["old", "old", "old"],
        ),
        (
            "the next output of a process",
            vec![
                did("write_stdin", json!({"session_id": 1, "chars": ""}), "a"),
                did("write_stdin", json!({"session_id": 1, "chars": ""}), "b"),
            ],
            &["old", "old"],
        ),
    ]);
}

#[test]
fn a_list_written_anew_supersedes_the_one_before() {
    let plan = |item: &str| did("TodoWrite", json!({"todos": [item]}), "ok");
    let task = |item: &str| did("TaskCreate", json!({"subject": item}), "created");
    check(&[
        ("a list", vec![plan("a"), plan("b")], &["run 1", "old"]),
        (
            "a part of a list",
            vec![task("a"), task("b")],
            &["old", "old"],
        ),
    ]);
}
