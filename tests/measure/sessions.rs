//! Sessions to measure: recorded ones, and one that is made up.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::recordings;

/// A session, as the messages of its last request.
pub struct Session {
    pub name: String,
    pub messages: Vec<Value>,
}

/// The recordings.
pub fn recorded() -> Vec<Session> {
    let recordings = recordings::all();
    let session = |path: &PathBuf| Session {
        name: recordings::name(path),
        messages: recordings::lines(path)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    };
    recordings.iter().map(session).collect()
}

/// Everything there is to measure.
pub fn all() -> Vec<Session> {
    let mut all = recorded();
    all.insert(0, made_up());
    all
}

/// A session with every kind of text: prose, code, JSON, logs, other scripts,
/// pictures, and thinking.
pub fn made_up() -> Session {
    let mut messages =
        vec![json!({"role": "user", "content": "Please find out why the build fails."})];
    for turn in 0..24 {
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": thought(turn), "signature": "foreign"},
            {"type": "text", "text": format!("Step {turn}: I look at the next file.")},
            {"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Read",
             "input": {"path": format!("src/module_{turn}/näme.rs"), "lines": [turn, turn * 40], "quoted": "a \"b\"\n"}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("toolu_{turn}"), "content": result(turn)},
        ]}));
        if turn % 6 == 5 {
            messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "That is all for now.\n\n- one\n- two"}]}));
            messages.push(
                json!({"role": "user", "content": format!("Thanks. Now go on with part {turn}.")}),
            );
        }
    }
    Session {
        name: "made up".to_owned(),
        messages,
    }
}

fn thought(turn: usize) -> String {
    "The index is stale, so the cache must be checked before the file is read again. "
        .repeat(1 + turn % 5)
}

fn result(turn: usize) -> Value {
    let line = match turn % 5 {
        0 => "    if let Some(value) = self.entries.get_mut(&key) { value.count += 1; }\n",
        1 => {
            "2026-11-16T10:22:33.123Z ERROR [worker-7] request 9f8a7b6c failed: timeout after 30000ms\n"
        }
        2 => "{\"id\":12345,\"tags\":[\"a\",\"b\"],\"price\":19.99,\"ok\":true}\n",
        3 => {
            "Der Übersetzer prüft die Abhängigkeiten. 依存関係を確認します。 Проверка зависимостей. 🚀\n"
        }
        _ => {
            "It was the best of times, it was the worst of times, and nobody had written it down.\n"
        }
    };
    let text = line.repeat(5 + turn * 7 % 60);
    if turn == 9 {
        let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
        return json!([{"type": "text", "text": text}, picture]);
    }
    json!(text)
}
