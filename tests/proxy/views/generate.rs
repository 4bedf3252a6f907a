//! Generated conversations: what models and clients say, odd shapes included.

use fastrand::Rng;
use longhaul::sim::Reply;
use serde_json::{Value, json};

use super::talk::{MARKS, Style, Talk};

const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What may occur.
#[derive(Clone, Copy)]
pub struct Oddities {
    /// Messages of role `system`.
    pub system: bool,
    /// Results in several messages, and other messages behind them.
    pub split: bool,
    /// Blocks of a kind that nobody knows.
    pub holograms: bool,
}

/// A client of a random kind.
pub fn talk(rng: &mut Rng, number: usize, model: &str) -> Talk {
    let mut talk = Talk::new(number, model);
    talk.style = [Style::Compact, Style::Pretty, Style::Escaped][rng.usize(0..3)];
    talk.marks = MARKS[rng.usize(0..MARKS.len())];
    if rng.bool() {
        talk.fields.reverse();
    }
    if !model.contains("4-5") {
        let thinking = match rng.u8(0..4) {
            0 => json!({"type": "adaptive", "display": "omitted"}),
            1 => json!({"type": "adaptive"}),
            _ => json!({"type": "adaptive", "display": "summarized"}),
        };
        *talk.field("thinking").unwrap() = thinking;
    }
    talk
}

fn words(rng: &mut Rng, most: usize) -> String {
    const WORDS: [&str; 10] = [
        "file",
        "größer",
        "\"quoted\"",
        "a/b",
        "error:",
        "日本",
        "\n",
        "{\"x\":1}",
        "line",
        "\\",
    ];
    let count = rng.usize(1..=most);
    let mut text = String::from("x");
    for _ in 0..count {
        text.push(' ');
        text.push_str(WORDS[rng.usize(0..WORDS.len())]);
    }
    text.push('.');
    text
}

/// What the model says next.
pub fn reply(rng: &mut Rng, talk: &Talk, odd: Oddities) -> Reply {
    let mut blocks = Vec::new();
    let thought = |rng: &mut Rng| match rng.u8(0..8) {
        0 => json!({"type": "redacted_thinking", "data": ""}),
        _ => json!({"type": "thinking", "thinking": words(rng, 12)}),
    };
    // First, so that a turn with manual thinking begins as it must.
    blocks.push(thought(rng));
    if rng.u8(0..4) == 0 {
        blocks.push(thought(rng));
    }
    if rng.u8(0..12) == 0 {
        // Nothing but thinking, where it is always allowed for.
        if talk.model.contains("4-5") {
            blocks.push(json!({"type": "text", "text": "…"}));
        }
        return Reply::blocks(blocks);
    }
    if rng.bool() {
        blocks.push(json!({"type": "text", "text": words(rng, 30)}));
    }
    let calls = [0, 1, 1, 1, 2, 4][rng.usize(0..6)];
    for _ in 0..calls {
        let name = ["Bash", "Read"][rng.usize(0..2)];
        let input = json!({"command": words(rng, 8), "cache_control": {"type": "none"}});
        blocks.push(json!({"type": "tool_use", "name": name, "input": input}));
        if rng.u8(0..8) == 0 {
            blocks.push(thought(rng));
        }
    }
    if calls == 0 {
        blocks.push(json!({"type": "text", "text": words(rng, 20)}));
        if odd.holograms && rng.u8(0..4) == 0 {
            blocks.push(json!({"type": "hologram", "depth": {"z": [1, 2]}}));
        }
    }
    Reply::blocks(blocks)
}

fn result(rng: &mut Rng, id: &str) -> Value {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}});
    let mut result = match rng.u8(0..10) {
        0 => json!({"type": "tool_result", "tool_use_id": id}),
        1 => json!({"type": "tool_result", "tool_use_id": id, "content": ""}),
        2 => json!({"type": "tool_result", "tool_use_id": id, "content": [image]}),
        3 => {
            let text = json!({"type": "text", "text": words(rng, 200)});
            json!({"content": [text, image], "tool_use_id": id, "type": "tool_result"})
        }
        4 | 5 => {
            let text = json!({"type": "text", "text": words(rng, 300)});
            json!({"tool_use_id": id, "type": "tool_result", "content": [text]})
        }
        _ => json!({"type": "tool_result", "tool_use_id": id, "content": words(rng, 400)}),
    };
    match rng.u8(0..8) {
        0 => result["is_error"] = json!(true),
        1 => result["is_error"] = json!(false),
        _ => {}
    }
    result
}

fn said(rng: &mut Rng, odd: Oddities) -> Value {
    let text = json!({"type": "text", "text": words(rng, 60)});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}});
    let document = json!({"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": words(rng, 50)}});
    let hologram = json!({"hue": 3, "type": "hologram"});
    match rng.u8(0..8) {
        0 | 1 => words(rng, 60).into(),
        2 => json!([image, text]),
        3 => json!([document, text]),
        4 if odd.holograms => json!([hologram, text, hologram]),
        5 => json!([text, {"text": words(rng, 9), "type": "text"}]),
        _ => json!([text]),
    }
}

/// What the client says next: the results that are due, or something new.
pub fn user(rng: &mut Rng, talk: &mut Talk, odd: Oddities) {
    let calls = talk.calls();
    let due = talk
        .messages
        .last()
        .is_some_and(|m| m["role"] == "assistant");
    if calls.is_empty() || !due {
        let said_now = said(rng, odd);
        talk.push("user", said_now);
        if odd.split && rng.u8(0..6) == 0 {
            let more = said(rng, odd);
            talk.push("user", more);
        }
    } else {
        let mut results: Vec<Value> = calls.iter().map(|id| result(rng, id)).collect();
        if rng.bool() {
            rng.shuffle(&mut results);
        }
        let mut rest = Vec::new();
        if odd.split && results.len() > 1 && rng.u8(0..3) == 0 {
            rest = results.split_off(1);
        }
        if rest.is_empty() && rng.u8(0..6) == 0 {
            results.push(json!({"type": "text", "text": words(rng, 10)}));
        }
        talk.push("user", results);
        if !rest.is_empty() {
            talk.push("user", rest);
        }
        if odd.split && rng.u8(0..6) == 0 {
            talk.push("user", words(rng, 10));
        }
    }
    if odd.system && rng.u8(0..6) == 0 {
        let note: Value = if rng.bool() {
            words(rng, 10).into()
        } else {
            json!([{"type": "text", "text": words(rng, 10)}])
        };
        talk.push("system", note);
    }
}
