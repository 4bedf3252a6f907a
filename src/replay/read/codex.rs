//! Rollouts of Codex: an item a line, in an envelope with its time.
//!
//! Items are finer than messages: a call, an output, a thought are each one.
//! They become blocks, and what follows each other becomes a message later.
//! Where the client compacted its history a new one begins, with what it kept.

use serde_json::{Value, json};

use super::Line;
use super::moment::moment;
use crate::replay::recording::{Recording, Spoken, blocks, clean, kind, text};

const ENVELOPES: [&str; 5] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
];

/// Items that are no part of what the model is shown.
const SILENT: [&str; 5] = [
    "web_search_call",
    "ghost_snapshot",
    "image_generation_call",
    "tool_search_call",
    "other",
];

/// Whether a line is an item of a rollout.
pub fn is(value: &Value) -> bool {
    let enveloped = value.get("payload").is_some() && ENVELOPES.contains(&kind(value));
    let bare = matches!(kind(value), "function_call" | "function_call_output")
        && value.get("call_id").is_some();
    enveloped || bare
}

/// Reads a rollout.
pub fn read(lines: &[Line], warnings: &mut Vec<String>) -> Recording {
    let mut recording = Recording::default();
    let mut spoken: Vec<Spoken> = Vec::new();
    for Line { number, value } in lines {
        let at = moment(value.get("timestamp"));
        let payload = value.get("payload");
        match (kind(value), payload) {
            ("compacted", Some(payload)) => {
                recording.stretches.push(std::mem::take(&mut spoken));
                let kept = payload.get("replacement_history").and_then(Value::as_array);
                for item in kept.into_iter().flatten() {
                    say(&mut spoken, item, at);
                }
                if kept.is_none() {
                    let summary = json!({"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": text(payload, "message")}]});
                    say(&mut spoken, &summary, at);
                }
            }
            ("response_item", Some(item)) => {
                let known = say(&mut spoken, item, at);
                let warning = (!known).then(|| {
                    let kind = kind(item);
                    format!(":{number}: an item of type {kind:?} is not known and is left out")
                });
                warnings.extend(warning);
            }
            // Old rollouts have no envelope; what else they hold is no item.
            (_, None) => {
                say(&mut spoken, value, at);
            }
            _ => {}
        }
    }
    recording.stretches.push(spoken);
    recording.system = system(lines, &recording);
    recording
}

/// The system prompt, where the rollout begins with it. Old ones have only the
/// user's own instructions there, which may also be said in the conversation.
fn system(lines: &[Line], recording: &Recording) -> Option<Value> {
    let meta = lines.iter().map(|line| &line.value);
    let mut meta = meta.filter(|value| kind(value) == "session_meta");
    let meta = meta.find_map(|value| value.get("payload"))?;
    let base = meta.get("base_instructions").map(|base| match base {
        Value::String(base) => base.as_str(),
        base => text(base, "text"),
    });
    let is_said = |words: &str| {
        let spoken = recording.stretches.iter().flatten();
        let mut blocks = spoken.flat_map(|spoken| blocks(&spoken.message));
        blocks.any(|block| text(&block, "text").contains(words))
    };
    let base = base.filter(|base| !base.is_empty());
    let own = || Some(text(meta, "instructions")).filter(|own| !own.is_empty() && !is_said(own));
    base.or_else(own).map(Value::from)
}

/// Adds what an item says; `false` if it is not known.
fn say(spoken: &mut Vec<Spoken>, item: &Value, at: Option<u64>) -> bool {
    let (role, blocks) = match kind(item) {
        "message" => {
            let role = match text(item, "role") {
                "assistant" => "assistant",
                _ => "user",
            };
            let pieces = item.get("content").and_then(Value::as_array);
            (role, pieces.into_iter().flatten().map(piece).collect())
        }
        "reasoning" => {
            let summary = item.get("summary").and_then(Value::as_array);
            let thoughts = summary.into_iter().flatten().map(|part| text(part, "text"));
            let thought = thoughts.collect::<Vec<_>>().join("\n");
            let block = json!({"type": "thinking", "thinking": thought});
            (
                "assistant",
                if thought.is_empty() {
                    vec![]
                } else {
                    vec![block]
                },
            )
        }
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            ("assistant", vec![call(item)])
        }
        "function_call_output" | "custom_tool_call_output" => ("user", vec![output(item)]),
        other => return SILENT.contains(&other),
    };
    let cleaned: Vec<Value> = blocks
        .iter()
        .filter_map(|block| clean(block).ok())
        .collect();
    if !cleaned.is_empty() {
        spoken.push(Spoken {
            message: json!({"role": role, "content": cleaned}),
            at,
        });
    }
    true
}

/// A piece of a message.
fn piece(piece: &Value) -> Value {
    let url = text(piece, "image_url");
    let data = url
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"));
    match data {
        Some((media, data)) => json!({"type": "image",
            "source": {"type": "base64", "media_type": media, "data": data}}),
        None if !url.is_empty() => json!({"type": "text", "text": "[an image]"}),
        None => json!({"type": "text", "text": text(piece, "text")}),
    }
}

fn call(item: &Value) -> Value {
    let id = match text(item, "call_id") {
        "" => text(item, "id"),
        id => id,
    };
    let (name, input) = match kind(item) {
        "local_shell_call" => (
            "local_shell",
            item.get("action").cloned().unwrap_or_default(),
        ),
        "custom_tool_call" => (text(item, "name"), json!({"input": text(item, "input")})),
        _ => {
            let written = text(item, "arguments");
            let input = serde_json::from_str(written);
            let input = input.unwrap_or_else(|_| json!({ "arguments": written }));
            (text(item, "name"), input)
        }
    };
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn output(item: &Value) -> Value {
    let output = item.get("output").cloned().unwrap_or_default();
    let content = match &output {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let texts = pieces.iter().map(|piece| text(piece, "text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(held) if held.contains_key("content") => text(&output, "content").to_owned(),
        other => other.to_string(),
    };
    let failed = output.get("success").and_then(Value::as_bool) == Some(false);
    let is_error = failed.then_some(true);
    json!({"type": "tool_result", "tool_use_id": text(item, "call_id"), "content": content,
        "is_error": is_error})
}
