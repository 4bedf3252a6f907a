//! What each form of recording is read as, and how mistakes are told.

use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;
use crate::replay::recording::{NotPlayed, Spoken, legal};

fn file(lines: &[String]) -> NamedTempFile {
    let mut file = NamedTempFile::with_suffix(".jsonl").unwrap();
    file.write_all(lines.join("\n").as_bytes()).unwrap();
    file
}

fn read_lines(lines: &[Value]) -> Read {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    read(file(&lines).path()).unwrap()
}

/// The roles and texts of each stretch, in short.
fn told(read: &Read) -> Vec<String> {
    told_of(&read.recording)
}

/// How many requests are not played, by reason.
fn not_played(read: &Read) -> Vec<(usize, &'static str)> {
    let each = read.recording.not_played.iter();
    each.map(|NotPlayed { requests, why }| (*requests, *why))
        .collect()
}

fn told_of(recording: &Recording) -> Vec<String> {
    let stretch = |spoken: &Vec<Spoken>| {
        let said = legal(spoken).into_iter().map(|spoken| {
            let blocks = crate::replay::recording::blocks(&spoken.message);
            let words = blocks.iter().map(|block| match block["type"].as_str() {
                Some("text") => block["text"].as_str().unwrap().to_owned(),
                Some("tool_use") => format!("<{}>", block["name"].as_str().unwrap()),
                Some("tool_result") => format!("={}", block["content"].as_str().unwrap()),
                other => format!("({})", other.unwrap()),
            });
            let role = &spoken.message["role"].as_str().unwrap()[..1];
            format!("{role}:{}", words.collect::<Vec<_>>().join(","))
        });
        said.collect::<Vec<_>>().join(" ")
    };
    recording.stretches.iter().map(stretch).collect()
}

#[test]
fn plain_messages_are_read_line_by_line() {
    let read = read_lines(&[
        json!({"role": "user", "content": "go", "timestamp": "1970-01-01T00:00:01Z"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]}),
    ]);
    assert_eq!(told(&read), ["u:go a:done"]);
    assert_eq!(read.recording.stretches[0][0].at, Some(1_000));
}

#[test]
fn an_answer_of_claude_code_is_put_together_and_sub_agents_are_left_out() {
    let line = |kind: &str, id: &str, content: Value| {
        json!({"type": kind, "uuid": format!("{kind}{id}{content}"), "sessionId": "s",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": kind, "id": id, "content": content}})
    };
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": format!("of {id}")}]);
    let mut aside = line("user", "", json!("aside"));
    aside["isSidechain"] = json!(true);
    let mut summary = line("user", "", json!("in short"));
    summary["isCompactSummary"] = json!(true);
    let read = read_lines(&[
        json!({"type": "file-history-snapshot", "messageId": "x"}),
        line("user", "", json!("go")),
        aside,
        line(
            "assistant",
            "m1",
            json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        ),
        line("assistant", "m1", call("a")),
        line("user", "", result("a")),
        line("assistant", "m1", call("b")),
        line("user", "", result("b")),
        line("assistant", "m2", json!([{"type": "text", "text": "done"}])),
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "c"}),
        summary,
        line("assistant", "m3", json!([{"type": "text", "text": "on"}])),
    ]);
    let first = "u:go a:(thinking),<Read>,<Read> u:=of a,=of b a:done";
    assert_eq!(told(&read), [first, "u:in short a:on"]);
    let [warning] = read.warnings.as_slice() else {
        panic!("{:?}", read.warnings);
    };
    assert!(
        warning.ends_with(".jsonl: left out: 1 line of sub-agents"),
        "{warning}"
    );
}

#[test]
fn errors_that_the_client_wrote_down_are_nobodys_words() {
    let line = |kind: &str, text: &str| json!({"type": kind, "uuid": text, "message": {"role": kind, "content": text, "id": text}});
    let mut error = line("assistant", "API Error: 529");
    error["isApiErrorMessage"] = json!(true);
    let read = read_lines(&[
        line("user", "go"),
        error,
        line("user", "again"),
        line("assistant", "done"),
    ]);
    assert_eq!(told(&read), ["u:go,again a:done"]);
    let expected = [(1, "the API answered with an error")];
    assert_eq!(not_played(&read), expected);
}

#[test]
fn a_file_of_sub_agents_only_is_told_from_a_broken_one() {
    let line = |kind: &str| json!({"type": kind, "isSidechain": true, "message": {"role": kind, "content": kind}});
    let lines = [line("user"), line("assistant")].map(|line| line.to_string());
    let error = read(file(&lines).path()).unwrap_err();
    assert!(matches!(error, Unreadable::SubAgents { .. }), "{error}");
}

#[test]
fn what_the_api_ran_itself_is_left_out_and_named() {
    let call = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let found = json!({"type": "text", "text": "found"});
    let go = json!({"role": "user", "content": "go"});
    let answer = json!({"role": "assistant", "content": [call, result, found]});
    for lines in [
        vec![go.clone(), answer.clone()],
        vec![json!({"messages": [go, answer]})],
    ] {
        let read = read_lines(&lines);
        assert_eq!(told(&read), ["u:go a:found"]);
        assert!(read.warnings[0].ends_with("were asked and said: web_search"));
    }
}

#[test]
fn what_was_rewound_is_gone() {
    let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent,
            "message": {"role": kind, "content": text, "id": uuid}})
    };
    let read = read_lines(&[
        line("1", "", "user", "go"),
        line("2", "1", "assistant", "one way"),
        line("3", "2", "user", "no"),
        line("4", "3", "assistant", "sorry"),
        line("5", "2", "user", "yes"),
        line("6", "5", "assistant", "fine"),
    ]);
    assert_eq!(told(&read), ["u:go a:one way u:yes a:fine"]);
    let expected = [(1, "the user went back to an earlier message")];
    assert_eq!(not_played(&read), expected);
}

#[test]
fn items_of_codex_become_messages() {
    let item = |payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload});
    let said = |role: &str, text: &str| {
        item(
            json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}),
        )
    };
    let read = read_lines(&[
        json!({"type": "session_meta", "payload": {"id": "x", "instructions": "rules",
            "base_instructions": {"text": "be brief"}}}),
        said("developer", "rules"),
        said("user", "go"),
        item(json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]})),
        item(
            json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "c1"}),
        ),
        json!({"type": "event_msg", "payload": {"type": "token_count"}}),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": "a.rs"})),
        item(
            json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"}),
        ),
        item(json!({"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"})),
        item(json!({"type": "hologram"})),
        said("assistant", "done"),
        json!({"type": "compacted", "payload": {"message": "in short"}}),
        said("assistant", "on"),
    ]);
    let first = "u:rules,go a:(thinking),<shell> u:=a.rs a:<apply_patch> u:=ok a:done";
    assert_eq!(told(&read), [first, "u:in short a:on"]);
    assert_eq!(read.recording.system, Some(json!("be brief")));
    assert_eq!(read.warnings.len(), 1);
    assert!(
        read.warnings[0].contains(".jsonl:10: "),
        "{:?}",
        read.warnings
    );
}

#[test]
fn of_growing_request_bodies_the_last_counts() {
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]});
    let plain = |text: &str| json!({"role": "user", "content": text});
    let assistant = json!({"role": "assistant", "content": "done"});
    let body = |messages: Value| json!({"model": "m", "system": "be kind", "tools": [{"name": "t"}], "messages": messages});
    let read = read_lines(&[
        body(json!([user("go")])),
        body(json!([plain("go"), assistant, user("more")])),
        body(json!([plain("go"), assistant, plain("more"), assistant])),
        body(json!([user("else"), assistant])),
    ]);
    assert_eq!(told(&read), ["u:go a:done u:more a:done", "u:else a:done"]);
    assert_eq!(read.recording.system, Some(json!("be kind")));
    assert_eq!(read.recording.tools, Some(json!([{"name": "t"}])));
}

/// Titles and sub-agents in between do not make the main line begin anew.
#[test]
fn conversations_that_were_captured_together_are_told_apart() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let body = |system: &str, messages: Value| json!({"model": system, "system": system, "tools": [{"name": "t"}], "messages": messages});
    let main = [
        user("go"),
        assistant("1"),
        user("on"),
        assistant("2"),
        user("more"),
        assistant("3"),
        user("end"),
    ];
    let billed = |messages: &[Value], cost: usize| {
        let header = format!("x-anthropic-billing-header: {cost}");
        let system = json!([{"type": "text", "text": header}, {"type": "text", "text": "main"}]);
        json!({"model": "main", "system": system, "tools": [{"name": "t"}], "messages": messages})
    };
    let aside = json!([main[0], main[1], user("what next?")]);
    let read = read_lines(&[
        body("title", json!([user("go")])),
        billed(&main[..1], 1),
        body("title", json!([user("go")])),
        body("agent", json!([user("look")])),
        billed(&main[..3], 2),
        body("main", aside),
        body(
            "agent",
            json!([user("look"), assistant("a"), user("further")]),
        ),
        billed(&main[..5], 3),
        billed(&main[..5], 3),
        billed(&main, 4),
        body("title", json!([user("go")])),
    ]);
    let expected = "u:go a:1 u:on a:2 u:more a:3 u:end a:…";
    assert_eq!(told(&read), [expected]);
    assert_eq!(read.recording.system.as_ref().unwrap()[1]["text"], "main");
    assert_eq!(read.recording.model.as_deref(), Some("main"));
    let [agent] = read.others.as_slice() else {
        panic!("{:?}", read.others);
    };
    assert_eq!(told_of(agent), ["u:look a:a u:further a:…"]);
    assert_eq!(agent.system, Some(json!("agent")));
    assert!(agent.name.ends_with(" (2)"), "{}", agent.name);
    assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
    assert!(read.warnings[0].contains(": left out: 1 request that nothing"));
    assert!(read.warnings[1].contains(": left out: 3 requests on the side"));
    let expected = [
        (1, "nothing went on from it"),
        (3, "it was asked on the side and never went on"),
        (1, "it was sent again"),
    ];
    assert_eq!(not_played(&read), expected);
}

#[test]
fn a_body_may_be_spread_over_lines() {
    let body = json!({"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]});
    let pretty = serde_json::to_string_pretty(&body).unwrap();
    let read = read(file(&[pretty]).path()).unwrap();
    assert_eq!(told(&read), ["u:go a:done"]);
}

#[test]
fn mistakes_name_the_file_and_the_line() {
    let go = r#"{"role": "user", "content": "go"}"#;
    let odd = r#"{"role": "assistant", "content": [{"type": "hologram"}]}"#;
    let done = r#"{"role": "assistant", "content": "done"}"#;
    for (lines, expected) in [
        (&[][..], ": the file is empty"),
        (&["  ", ""], ": the file is empty"),
        (&["hello"], ":1: not JSON: "),
        (&[r#"{"a": 1}"#], ":1: no known form: expected "),
        (&["5"], ":1: no known form: "),
        (&[go, "{\"role\": \"assis", done], ":2: not JSON: "),
        (&[go, odd], ":2: a block of type \"hologram\" is not known"),
        (&[go, "{}"], ":2: this is no message: it has no role"),
        (&[go], ": nothing to play: "),
    ] {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let file = file(&lines);
        let error = read(file.path()).unwrap_err().to_string();
        let expected = format!("{}{expected}", file.path().display());
        assert!(error.starts_with(&expected), "{error}");
    }
    let missing = read(Path::new("/nowhere/at/all.jsonl")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("/nowhere/at/all.jsonl: cannot be read: ")
    );
}

#[test]
fn instructions_that_an_old_rollout_says_anyway_are_not_its_system_prompt() {
    let said = |role: &str, text: &str| {
        json!({"type": "response_item", "payload": {"type": "message", "role": role,
            "content": [{"type": "input_text", "text": text}]}})
    };
    let meta = json!({"type": "session_meta", "payload": {"instructions": "own rules"}});
    for (first, expected) in [("go", Some(json!("own rules"))), ("own rules: go", None)] {
        let read = read_lines(&[meta.clone(), said("user", first), said("assistant", "done")]);
        assert_eq!(read.recording.system, expected);
    }
}

#[test]
fn a_mark_of_the_encoding_is_no_part_of_the_text() {
    let lines = [
        "\u{feff}{\"role\": \"user\", \"content\": \"go\"}".to_owned(),
        r#"{"role": "assistant", "content": "done"}"#.to_owned(),
    ];
    assert_eq!(told(&read(file(&lines).path()).unwrap()), ["u:go a:done"]);
}

#[test]
fn what_is_no_text_is_told_with_its_line() {
    let text =
        b"{\"role\": \"user\", \"content\": \"go\"}\n{\"role\": \"assistant\", \"content\": \"";
    for (end, expected) in [
        (&b"a\xff\xfeb\"}\n"[..], ".jsonl:2: not UTF-8"),
        (b"a\xc3", ": nothing to play: "),
    ] {
        let mut file = NamedTempFile::with_suffix(".jsonl").unwrap();
        file.write_all(&[&text[..], end].concat()).unwrap();
        let error = read(file.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn lines_of_another_form_are_counted() {
    let line = |kind: &str| json!({"type": kind, "message": {"role": kind, "content": kind}});
    let read = read_lines(&[
        json!({"role": "user", "content": "hi"}),
        line("user"),
        line("assistant"),
    ]);
    assert_eq!(told(&read), ["u:user a:assistant"]);
    let expected = ": left out: 1 line of another form than the rest";
    assert!(read.warnings[0].ends_with(expected), "{:?}", read.warnings);
}

#[test]
fn a_folder_is_one_recording_or_many_or_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let error = recordings_at(folder.path()).unwrap_err().to_string();
    assert!(error.contains("the folder has neither"), "{error}");
    for name in ["b.jsonl", "a.jsonl", "c.txt"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let expected = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));
    assert_eq!(recordings_at(folder.path()).unwrap(), expected);
    std::fs::write(folder.path().join("messages.jsonl"), "").unwrap();
    assert_eq!(recordings_at(folder.path()).unwrap(), [folder.path()]);
}

/// A client that compacts may leave no word of the user's behind.
#[test]
fn work_whose_start_was_not_recorded_is_read_and_told() {
    let item = |payload: Value| json!({"type": "response_item", "payload": payload});
    let call = |id: &str| {
        item(json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id}))
    };
    let output =
        |id: &str| item(json!({"type": "function_call_output", "call_id": id, "output": id}));
    let said = |role: &str| {
        item(
            json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": role}]}),
        )
    };
    let read = read_lines(&[
        said("user"),
        said("assistant"),
        json!({"type": "compacted", "payload": {"replacement_history": []}}),
        call("a"),
        output("a"),
        call("b"),
        output("b"),
        said("assistant"),
    ]);
    let start = "u:[the start of this history was not recorded]";
    let second = format!("{start} a:<shell> u:=a a:<shell> u:=b a:assistant");
    assert_eq!(told(&read), ["u:user a:assistant".to_owned(), second]);
    let expected = ": the start of a history was not recorded, 1 time: one line stands for it";
    assert!(read.warnings[0].ends_with(expected), "{:?}", read.warnings);
    assert_eq!(not_played(&read), []);
}

#[test]
fn answers_in_a_row_are_played_as_one_and_counted() {
    let say = |role: &str| json!({"role": role, "content": role});
    let read = read_lines(&[say("user"), say("assistant"), say("assistant")]);
    assert_eq!(told(&read), ["u:user a:assistant,assistant"]);
    let [(1, why)] = not_played(&read)[..] else {
        panic!("{:?}", read.recording.not_played);
    };
    assert!(why.contains("played as one"), "{why}");
    let alone = file(&[say("assistant").to_string()]);
    assert!(read_error(&alone).ends_with("is followed by an answer"));
}

fn read_error(file: &NamedTempFile) -> String {
    read(file.path()).unwrap_err().to_string()
}

#[test]
fn a_last_line_that_is_half_written_is_left_out() {
    let lines = [
        r#"{"role": "user", "content": "go"}"#.to_owned(),
        r#"{"role": "assistant", "content": "done"}"#.to_owned(),
        r#"{"role": "user", "conte"#.to_owned(),
    ];
    let read = read(file(&lines).path()).unwrap();
    assert_eq!(told(&read), ["u:go a:done"]);
    assert!(read.warnings[0].contains(".jsonl:3: the last line is only half written"));
}
