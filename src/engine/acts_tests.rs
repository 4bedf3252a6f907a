//! What calls are taken for.

use super::*;

/// What a call does, in a line.
pub(super) fn told(tool: &str, input: &str) -> String {
    let file = |file: &File| {
        let world = if file.world.is_empty() {
            String::new()
        } else {
            format!("[{}]", file.world)
        };
        let base = match file.base {
            Base::Root => "",
            Base::Session => "session:",
            Base::Shell => "shell:",
        };
        format!("{world}{base}{}", file.path)
    };
    let read = |reading: &Reading| {
        let part = match &reading.part {
            Part::Whole => String::new(),
            Part::Lines(from, Some(to)) => format!(" {from}-{to}"),
            Part::Lines(from, None) => format!(" {from}-"),
            Part::Tail(count) => format!(" tail {count}"),
            Part::Other(arguments) => format!(" other {}", arguments.trim()),
        };
        format!("reads {}{part}", file(&reading.file))
    };
    match act(tool, input.as_bytes()) {
        Act::Reads(reading) => read(&reading),
        Act::Writes(writings) => {
            let verb = |full: bool| if full { "writes" } else { "edits" };
            let each = writings
                .iter()
                .map(|w| format!("{} {}", verb(w.is_full), file(&w.file)));
            each.collect::<Vec<_>>().join(", ")
        }
        Act::Runs(command) => match (&command.reading, &command.directory) {
            (Some(reading), _) => read(reading),
            (None, Some(folder)) => format!("runs {} in {folder}", command.text),
            (None, None) => format!("runs {}", command.text),
        },
        Act::Asks(query) => format!("asks {}", query.arguments.trim()),
        Act::Plans => "plans".to_owned(),
        Act::Opaque => "opaque".to_owned(),
    }
}

fn check(rows: &[(&str, &str, &str)]) {
    for (tool, input, expected) in rows {
        assert_eq!(told(tool, input), *expected, "{tool} {input}");
    }
}

#[test]
fn the_tools_of_claude_code_are_known() {
    check(&[
        ("Read", r#"{"file_path":"/a/./b//c.rs"}"#, "reads /a/b/c.rs"),
        (
            "Read",
            r#"{"file_path":"/a/x/../c.rs","offset":10,"limit":5}"#,
            "reads /a/c.rs 10-14",
        ),
        ("Read", r#"{"file_path":"/a","limit":5}"#, "reads /a 1-5"),
        ("Read", r#"{"file_path":"/a","offset":"7"}"#, "reads /a 7-"),
        ("Read", r#"{"file_path":"/a","offset":null}"#, "reads /a"),
        (
            "Read",
            r#"{"pages":"1-3","file_path":"/a.pdf"}"#,
            r#"reads /a.pdf other file_path="/a.pdf" pages="1-3""#,
        ),
        (
            "Write",
            r#"{"file_path":"/a","content":"\"x\\"}"#,
            "writes /a",
        ),
        (
            "Edit",
            r#"{"file_path":"/a","old_string":"x","new_string":"y"}"#,
            "edits /a",
        ),
        ("MultiEdit", r#"{"file_path":"/a","edits":[]}"#, "edits /a"),
        (
            "NotebookEdit",
            r#"{"notebook_path":"/n.ipynb","new_source":"x"}"#,
            "edits /n.ipynb",
        ),
        (
            "NotebookRead",
            r#"{"notebook_path":"/n.ipynb"}"#,
            "reads /n.ipynb",
        ),
        (
            "Bash",
            r#"{"command":" ls -la ","description":"x"}"#,
            "runs ls -la",
        ),
        (
            "Bash",
            r#"{"command":"npm start","run_in_background":true}"#,
            "opaque",
        ),
        (
            "Grep",
            r#"{"pattern":"x","-n":true}"#,
            r#"asks -n=true pattern="x""#,
        ),
        (
            "Grep",
            r#"{"-n":true,"pattern":"x"}"#,
            r#"asks -n=true pattern="x""#,
        ),
        ("TodoWrite", r#"{"todos":[]}"#, "plans"),
        ("TaskCreate", r#"{"subject":"x"}"#, "opaque"),
        ("TaskUpdate", r#"{"taskId":"1"}"#, "opaque"),
        ("Task", r#"{"prompt":"read the file"}"#, "opaque"),
        ("BashOutput", r#"{"bash_id":"1"}"#, "opaque"),
        ("AskUserQuestion", r#"{"questions":[]}"#, "opaque"),
        (
            "WebFetch",
            r#"{"url":"http://a","prompt":"p"}"#,
            r#"asks prompt="p" url="http://a""#,
        ),
    ]);
}

#[test]
fn the_tools_of_codex_are_known() {
    check(&[
        (
            "exec_command",
            r#"{"cmd":"ls","workdir":"/w","yield_time_ms":1}"#,
            "runs ls in /w",
        ),
        (
            "exec_command",
            r#"{"cmd":"sed -n '3,9p' a/b","workdir":"/w/"}"#,
            "reads /w/a/b 3-9",
        ),
        (
            "shell",
            r#"{"command":["bash","-lc","cat a"],"workdir":"/w"}"#,
            "reads /w/a",
        ),
        (
            "shell",
            r#"{"command":["rg","a b"],"workdir":"/w"}"#,
            "runs rg 'a b' in /w",
        ),
        ("write_stdin", r#"{"session_id":1,"chars":""}"#, "opaque"),
        ("update_plan", r#"{"plan":[]}"#, "plans"),
        (
            "apply_patch",
            r#"{"input":"*** Begin Patch\n*** Update File: /a\n@@\n*** Add File: b/c\n+x\n*** End Patch"}"#,
            "edits /a, writes session:b/c",
        ),
        ("apply_patch", r#"{"input":"--- a\n+++ b"}"#, "opaque"),
    ]);
}

#[test]
fn the_tools_of_other_agents_are_known() {
    check(&[
        // opencode, pi, Copilot.
        (
            "read",
            r#"{"filePath":"/a","offset":2,"limit":3}"#,
            "reads /a 2-4",
        ),
        ("read", r#"{"path":"src/a.ts"}"#, "reads session:src/a.ts"),
        ("write", r#"{"path":"a","content":"x"}"#, "writes session:a"),
        (
            "edit",
            r#"{"path":"a","oldText":"x","newText":"y"}"#,
            "edits session:a",
        ),
        (
            "view",
            r#"{"path":"/a","view_range":[5,9]}"#,
            "reads /a 5-9",
        ),
        (
            "view",
            r#"{"path":"/a","view_range":[5,-1]}"#,
            "reads /a 5-",
        ),
        ("create", r#"{"path":"/a","file_text":"x"}"#, "writes /a"),
        ("read_bash", r#"{"shellId":"1","delay":2}"#, "opaque"),
        // SWE-agent, OpenHands.
        (
            "str_replace_editor",
            r#"{"command":"view","path":"/a"}"#,
            "reads /a",
        ),
        (
            "str_replace_editor",
            r#"{"command":"create","path":"/a"}"#,
            "writes /a",
        ),
        (
            "str_replace_editor",
            r#"{"command":"str_replace","path":"/a"}"#,
            "edits /a",
        ),
        (
            "str_replace_editor",
            r#"{"command":"insert","path":"/a"}"#,
            "edits /a",
        ),
        (
            "str_replace_editor",
            r#"{"command":"undo_edit","path":"/a"}"#,
            "edits /a",
        ),
        (
            "str_replace_editor",
            r#"{"command":"dance","path":"/a"}"#,
            "opaque",
        ),
        ("str_replace_editor", r#"{"path":"/a"}"#, "opaque"),
        ("execute_bash", r#"{"command":"make"}"#, "runs make"),
        (
            "execute_bash",
            r#"{"command":"y","is_input":"true"}"#,
            "opaque",
        ),
    ]);
}

#[test]
fn an_mcp_server_is_a_world_of_its_own() {
    check(&[
        ("mcp__disk__read_file", r#"{"path":"/a"}"#, "reads [disk]/a"),
        (
            "mcp__disk__read_text_file",
            r#"{"path":"/a","head":9}"#,
            "reads [disk]/a 1-9",
        ),
        (
            "mcp__disk__write_file",
            r#"{"path":"/a","content":""}"#,
            "writes [disk]/a",
        ),
        (
            "mcp__disk__edit_file",
            r#"{"path":"/a","edits":[]}"#,
            "edits [disk]/a",
        ),
        (
            "mcp__disk__list_directory",
            r#"{"path":"/a"}"#,
            r#"asks path="/a""#,
        ),
        ("mcp__web__fetch", r#"{"url":"u"}"#, r#"asks url="u""#),
        ("mcp__box__bash", r#"{"command":"cat /a"}"#, "reads [box]/a"),
    ]);
}

#[test]
fn an_unknown_tool_is_judged_by_its_words_and_in_doubt_not_at_all() {
    check(&[
        (
            "get_file_contents",
            r#"{"repo":"r","path":"a.rs"}"#,
            r#"reads [get_file_contents]session:a.rs other path="a.rs" repo="r""#,
        ),
        ("getReservationDetails", r#"{"id":"A"}"#, r#"asks id="A""#),
        ("search_issues", r#"{"q":"x"}"#, r#"asks q="x""#),
        (
            "update_document",
            r#"{"target":"docs/a.md"}"#,
            "edits [update_document]session:docs/a.md",
        ),
        ("update_reservation", r#"{"id":"A"}"#, "opaque"),
        ("get_next_message", "{}", "opaque"),
        ("read_terminal_output", r#"{"id":"1"}"#, "opaque"),
        ("browser_snapshot", "{}", "opaque"),
        ("frobnicate", r#"{"path":"/a"}"#, "opaque"),
        ("calculate", r#"{"expression":"1+1"}"#, "opaque"),
        (
            "open_and_delete_file",
            r#"{"path":"/a"}"#,
            "edits [open_and_delete_file]/a",
        ),
    ]);
}

#[test]
fn what_cannot_be_understood_is_opaque() {
    let long = format!(r#"{{"command":"{}"}}"#, "x".repeat(100_000));
    let many: Vec<String> = (0..100).map(|n| format!("\"k{n}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    for input in [
        "",
        "null",
        "[]",
        "\"x\"",
        "{",
        r#"{"file_path":1}"#,
        r#"{"file_path":""}"#,
        r#"{"file_path":"a\nb"}"#,
        r#"{"file_path":"/a","file_path":"/b"}"#,
        r#"{"file_path":"\ud800"}"#,
        "{}",
        &long,
        &many,
    ] {
        for tool in ["Read", "Write", "Bash", "apply_patch", "str_replace_editor"] {
            assert_eq!(act(tool, input.as_bytes()), Act::Opaque, "{tool} {input}");
        }
    }
    assert_eq!(act("", b"{}"), Act::Opaque);
    assert_eq!(act("mcp____", b"{}"), Act::Opaque);
}

#[test]
fn a_path_is_tidied_by_its_letters_alone() {
    for (path, tidied) in [
        ("/a//b/./c", "/a/b/c"),
        ("/a/x/../b", "/a/b"),
        ("/../a", "/a"),
        ("./a/", "a"),
        ("../a", "../a"),
        ("a/../../b", "../b"),
        (".", "."),
        ("/", "/"),
        ("~/../a", "~/../a"),
        ("/A/b", "/A/b"),
    ] {
        assert_eq!(paths::tidy(path), tidied);
    }
}

#[test]
fn the_same_thing_has_one_key_however_it_is_fetched() {
    let of = |tool: &str, input: &str| key(tool, &act(tool, input.as_bytes()));
    let whole = of("Read", r#"{"file_path":"/w/a"}"#);
    assert!(whole.is_some());
    assert_eq!(of("view", r#"{"path":"/w/./a"}"#), whole);
    assert_eq!(of("Bash", r#"{"command":"cd /w && cat a"}"#), whole);
    assert_ne!(of("Read", r#"{"file_path":"/w/A"}"#), whole);
    assert_ne!(of("Read", r#"{"file_path":"/w/a","limit":9}"#), whole);
    assert_ne!(of("mcp__x__read", r#"{"path":"/w/a"}"#), whole);
    assert_eq!(
        of("Grep", r#"{"pattern":"x","path":"y"}"#),
        of("Grep", r#"{"path":"y","pattern":"x"}"#)
    );
    assert_ne!(
        of("Grep", r#"{"pattern":"x"}"#),
        of("Glob", r#"{"pattern":"x"}"#)
    );
    assert!(of("Bash", r#"{"command":"ls -la"}"#).is_some());
    for (tool, input) in [
        ("Bash", r#"{"command":"make"}"#),
        ("Write", r#"{"file_path":"/w/a","content":""}"#),
        ("Edit", r#"{"file_path":"/w/a"}"#),
        ("TodoWrite", r#"{"todos":[]}"#),
        ("Task", r#"{"prompt":"x"}"#),
    ] {
        assert_eq!(of(tool, input), None, "{tool}");
    }
    // Keys may be kept, so they must not change from one version to the next.
    assert_eq!(whole, Some(9_620_771_099_638_988_045));
}
