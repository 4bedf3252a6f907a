//! A recorded conversation, in the form in which it can be played.
//!
//! Recordings hold more than an API takes: calls that were interrupted, results
//! without their call, empty texts, fields of the agent's own. [`legal`] makes
//! of them what the API would have been sent. Where an agent began its history
//! anew, because it compacted it, another stretch begins: only within a stretch
//! does one history grow. Where a stretch begins in the middle of the work, one
//! line stands for the start that was not recorded, so that its requests are
//! played too.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::sim::Reply;

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    /// The message: a role and a list of blocks.
    pub message: Value,
    /// When, in milliseconds since 1970, if that was recorded.
    pub at: Option<u64>,
}

/// A recorded conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// What it is called.
    pub name: String,
    /// Its stretches, each with a history of its own.
    pub stretches: Vec<Vec<Spoken>>,
    /// The system prompt, where it was recorded.
    pub system: Option<Value>,
    /// The tools, where they were recorded.
    pub tools: Option<Value>,
    /// The model that was asked, where requests were recorded.
    pub model: Option<String>,
    /// Requests that were recorded and are not played.
    pub not_played: Vec<NotPlayed>,
}

/// Requests that are not played, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPlayed {
    /// Number of them.
    pub requests: usize,
    /// The reason.
    pub why: &'static str,
}

impl NotPlayed {
    /// Nothing, if there are no such requests.
    pub fn some(requests: usize, why: &'static str) -> Option<Self> {
        (requests > 0).then_some(Self { requests, why })
    }
}

/// What stands for a result that was never recorded.
const NO_RESULT: &str = "[no result was recorded]";
/// What stands for the start of a history that was never recorded.
const NO_START: &str = "[the start of this history was not recorded]";

/// What an API takes of what was said: it begins with the user, calls and
/// results in pairs, results first, nothing empty, one message a turn.
pub fn legal(spoken: &[Spoken]) -> Vec<Spoken> {
    let mut legal: Vec<Spoken> = Vec::new();
    let mut open = BTreeSet::new();
    for Spoken { message, at } in spoken {
        let is_assistant = text(message, "role") == "assistant";
        let role = if is_assistant { "assistant" } else { "user" };
        let mut blocks = blocks(message);
        blocks.retain(|block| match kind(block) {
            "text" => !text(block, "text").trim().is_empty(),
            "tool_result" => open.remove(text(block, "tool_use_id")),
            _ => true,
        });
        if blocks.is_empty() {
            continue;
        }
        if legal.is_empty() && is_assistant {
            legal.push(Spoken {
                message: json!({"role": "user", "content": [{"type": "text", "text": NO_START}]}),
                at: None,
            });
        }
        let goes_on = legal
            .last()
            .is_some_and(|last| text(&last.message, "role") == role);
        if !goes_on {
            if is_assistant {
                open.clear();
            }
            legal.push(Spoken {
                message: json!({"role": role, "content": []}),
                at: None,
            });
        }
        let Some(last) = legal.last_mut() else {
            continue;
        };
        last.at = at.or(last.at);
        if is_assistant {
            let calls = blocks.iter().filter(|block| kind(block) == "tool_use");
            open.extend(calls.map(|call| text(call, "id").to_owned()));
        }
        if let Some(Value::Array(said)) = last.message.get_mut("content") {
            said.extend(blocks);
            said.sort_by_key(|block| kind(block) != "tool_result" && !is_assistant);
        }
    }
    answer_all(&mut legal);
    legal
}

/// Whether a stretch has a request that can be played.
pub fn is_playable(spoken: &[Spoken]) -> bool {
    let is_user = |spoken: &Spoken| text(&spoken.message, "role") != "assistant";
    spoken.iter().any(is_user) && legal(spoken).len() > 1
}

/// Whether the start of a history was not recorded.
pub fn lacks_start(spoken: &[Spoken]) -> bool {
    let legal = legal(spoken);
    let first = legal.first().map(|first| blocks(&first.message));
    first.is_some_and(|blocks| blocks.iter().any(|it| text(it, "text") == NO_START))
}

/// How many answers follow another one directly: they are played as one with it.
pub fn count_joined(stretches: &[Vec<Spoken>]) -> usize {
    let is_assistant = |spoken: &Spoken| text(&spoken.message, "role") == "assistant";
    let joined = |pair: &&[Spoken]| pair.iter().all(is_assistant);
    let each = stretches.iter();
    each.map(|stretch| stretch.windows(2).filter(joined).count())
        .sum()
}

/// Calls that were interrupted get a result that says so.
fn answer_all(messages: &mut [Spoken]) {
    for at in 1..messages.len() {
        let Some((before, after)) = messages.split_at_mut_checked(at) else {
            return;
        };
        let (Some(asked), Some(answered)) = (before.last(), after.first_mut()) else {
            return;
        };
        let asked = blocks(&asked.message);
        let calls = asked.iter().filter(|block| kind(block) == "tool_use");
        let known = blocks(&answered.message);
        let is_answered = |id: &str| {
            let mut results = known.iter().filter(|block| kind(block) == "tool_result");
            results.any(|result| text(result, "tool_use_id") == id)
        };
        let missing: Vec<Value> = calls
            .map(|call| text(call, "id"))
            .filter(|id| !is_answered(id))
            .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": NO_RESULT}))
            .collect();
        if let Some(Value::Array(said)) = answered.message.get_mut("content") {
            said.splice(0..0, missing);
        }
    }
}

/// Whether a message opens a turn: the user speaks, and not only tools.
pub fn opens_turn(message: &Value) -> bool {
    let results = |block: &Value| kind(block) == "tool_result";
    text(message, "role") == "user" && !blocks(message).iter().any(results)
}

/// What the assistant said, to be said again and signed anew. With `manual`
/// thinking there is always some.
pub fn said(message: &Value, manual: bool) -> Reply {
    let mut blocks = blocks(message);
    for block in blocks.iter_mut().filter(|block| is_thinking(block)) {
        let thought = match text(block, "thinking") {
            "" => "…",
            thought => thought,
        };
        *block = json!({"type": "thinking", "thinking": thought});
    }
    if manual && !blocks.iter().any(is_thinking) {
        blocks.insert(0, json!({"type": "thinking", "thinking": "…"}));
    }
    if blocks.iter().all(is_thinking) {
        blocks.push(json!({"type": "text", "text": "…"}));
    }
    Reply::blocks(blocks)
}

/// Whether a block is thinking of either kind.
pub fn is_thinking(block: &Value) -> bool {
    kind(block).contains("thinking")
}

/// The blocks of a message; a string is one of them.
pub fn blocks(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// A block's type.
pub fn kind(block: &Value) -> &str {
    text(block, "type")
}

/// A field that holds a text, or nothing.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let field = value.get(field).and_then(Value::as_str);
    field.unwrap_or_default()
}

/// A block with the fields that an API knows and no others; the type, if it is
/// none of those that can be played.
pub fn clean(block: &Value) -> Result<Value, String> {
    let keep = |fields: &[&str]| {
        let kept = fields.iter().filter_map(|field| {
            let value = block.get(*field).filter(|value| !value.is_null())?;
            Some(((*field).to_owned(), value.clone()))
        });
        kept.collect::<Map<String, Value>>()
    };
    let mut cleaned = match kind(block) {
        "text" => keep(&["type", "text"]),
        "image" => keep(&["type", "source"]),
        "document" => keep(&["type", "source", "title", "context"]),
        "thinking" => keep(&["type", "thinking", "signature"]),
        "redacted_thinking" => keep(&["type", "data"]),
        "tool_use" => keep(&["type", "id", "name", "input"]),
        "tool_result" => keep(&["type", "tool_use_id", "content", "is_error"]),
        other => return Err(other.to_owned()),
    };
    if let Some(name) = cleaned.get_mut("name") {
        *name = tool_name(name.as_str().unwrap_or_default()).into();
    }
    if kind(block) == "tool_use" && !cleaned.get("input").is_some_and(Value::is_object) {
        let input = cleaned.get("input").cloned().unwrap_or_default();
        cleaned.insert("input".to_owned(), json!({ "input": input }));
    }
    if let Some(Value::Array(nested)) = cleaned.get_mut("content") {
        // What a result holds is for the model to read, whatever its type.
        let shown = |inner: &Value| match kind(inner) {
            "text" | "image" | "document" => clean(inner).ok(),
            _ => Some(json!({"type": "text", "text": inner.to_string()})),
        };
        let mut kept: Vec<Value> = nested.iter().filter_map(shown).collect();
        kept.retain(|inner| kind(inner) != "text" || !text(inner, "text").trim().is_empty());
        *nested = kept;
    }
    Ok(Value::Object(cleaned))
}

/// A tool's name, with letters that an API takes.
fn tool_name(name: &str) -> String {
    let letter = |c: char| {
        let fine = c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if fine { c } else { '_' }
    };
    let name: String = name.chars().take(128).map(letter).collect();
    if name.is_empty() {
        "tool".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(role: &str, blocks: impl Into<Value>) -> Spoken {
        let blocks: Value = blocks.into();
        Spoken {
            message: json!({"role": role, "content": blocks}),
            at: None,
        }
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": id})
    }

    fn word(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn calls_and_results_are_paired_and_turns_alternate() {
        let recorded = [
            spoken("assistant", json!([word("early")])),
            spoken("user", json!("go")),
            spoken("assistant", json!([word("I look."), call("a")])),
            spoken("assistant", json!([call("b")])),
            spoken("user", json!([word("and hurry"), result("a")])),
            spoken("user", json!([result("zzz"), word(" ")])),
            spoken("assistant", json!([word("done")])),
        ];
        let legal: Vec<Value> = legal(&recorded).into_iter().map(|s| s.message).collect();
        let no_result = json!({"type": "tool_result", "tool_use_id": "b", "content": NO_RESULT});
        let expected = [
            json!({"role": "user", "content": [word(NO_START)]}),
            json!({"role": "assistant", "content": [word("early")]}),
            json!({"role": "user", "content": [word("go")]}),
            json!({"role": "assistant", "content": [word("I look."), call("a"), call("b")]}),
            json!({"role": "user", "content": [no_result, result("a"), word("and hurry")]}),
            json!({"role": "assistant", "content": [word("done")]}),
        ];
        assert_eq!(legal, expected);
    }

    #[test]
    fn work_whose_start_was_not_recorded_is_played_from_its_first_answer() {
        let recorded = [
            spoken("user", json!([result("before")])),
            spoken("assistant", json!([call("a")])),
            spoken("user", json!([result("a")])),
            spoken("assistant", json!([word("done")])),
        ];
        let legal: Vec<Value> = legal(&recorded).into_iter().map(|s| s.message).collect();
        assert_eq!(legal[0]["content"], json!([word(NO_START)]));
        assert_eq!(legal[1..], recorded.clone().map(|s| s.message)[1..]);
        assert!(lacks_start(&recorded) && is_playable(&recorded));
        assert!(!is_playable(&recorded[3..]));
        let joined = [recorded[1].clone(), recorded[3].clone()].to_vec();
        assert_eq!(count_joined(&[recorded.to_vec(), joined]), 1);
    }

    #[test]
    fn a_block_keeps_what_an_api_knows() {
        let block = json!({"type": "tool_use", "id": "a", "name": "my.tool", "input": "x",
            "cache_control": {}, "extra": 1});
        let expected =
            json!({"type": "tool_use", "id": "a", "name": "my_tool", "input": {"input": "x"}});
        assert_eq!(clean(&block), Ok(expected));
        assert_eq!(
            clean(&json!({"type": "hologram"})),
            Err("hologram".to_owned())
        );
        let nested = json!({"type": "tool_result", "tool_use_id": "a",
            "content": [{"type": "odd"}, {"type": "text", "text": ""}]});
        let cleaned = clean(&nested).unwrap();
        assert_eq!(cleaned["content"], json!([word("{\"type\":\"odd\"}")]));
    }
}
