//! The same request once more, with an instruction at its end.
//!
//! A model that is asked on the very prefix it has in its cache reads it at the
//! price of a cache. So nothing before the instruction may change: not the
//! tools, not the thinking settings, not a byte of the messages. Only how much
//! may be written changes, and that the answer comes in one piece. Where
//! something of the server's would act on the question, or the answer would be
//! forced into another form, there is no such request.

use bytes::Bytes;
use serde_json::{Value, json};

use super::body::{Body, Role};
use super::scan::says;
use super::splice::{Splice, joined, splice};

/// Tools that the server runs by itself, by how their type begins.
const SERVER_TOOLS: [&str; 5] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "tool_search_tool",
    "advisor",
];
/// Fields by which something acts, or another form is asked for.
const ACTING: [&str; 5] = [
    "mcp_servers",
    "container",
    "compaction",
    "thread",
    "fallback_credit_token",
];
/// What a client asks for that is about its own agent, which a question of ours
/// has nothing to do with.
const OF_THE_CLIENT: &str = "safeguards";

/// A request with an instruction at its end; `None` if it would not be answered
/// in words. `max_tokens` is room for the answer alone: what the client sets
/// aside for thinking is added.
pub fn fork(bytes: &Bytes, body: &Body, instruction: &str, max_tokens: u64) -> Option<Bytes> {
    if acts(bytes, body) {
        return None;
    }
    let room = max_tokens + thinking_room(bytes, body);
    let mut changes = vec![append(bytes, body, instruction)?];
    for field in body.fields() {
        let key = field.key.of(bytes);
        if says(key, "max_tokens") {
            changes.push(Splice::replace(field.value.range(), room.to_string()));
        } else if says(key, "stream") {
            changes.push(Splice::replace(field.value.range(), "false"));
        } else if says(key, OF_THE_CLIENT) {
            changes.push(Splice::remove(field.cut.range()));
        }
    }
    splice(bytes, changes).ok().map(|pieces| joined(&pieces))
}

/// A request once more, after an answer that called tools instead: each call is
/// met with an error, so that the next answer is in words.
pub fn declined(bytes: &Bytes, body: &Body, answer: &[Value], why: &str) -> Option<Bytes> {
    let calls = answer.iter().filter(|block| says_type(block, "tool_use"));
    let results: Vec<Value> = calls
        .map(|call| json!({"type": "tool_result", "tool_use_id": call.get("id"), "is_error": true, "content": why}))
        .collect();
    let last = body.messages().last()?;
    let said = json!({"role": "assistant", "content": answer});
    let met = json!({"role": "user", "content": results});
    let more = Splice::insert(last.span.end(), format!(",{said},{met}"));
    splice(bytes, vec![more]).ok().map(|pieces| joined(&pieces))
}

fn says_type(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

/// Puts a text block behind the last message's own.
fn append(bytes: &Bytes, body: &Body, instruction: &str) -> Option<Splice> {
    let last = body.messages().last()?;
    if matches!(last.role, Role::Assistant | Role::Other) {
        return None;
    }
    let block = json!({"type": "text", "text": instruction});
    if last.is_string {
        let text = String::from_utf8_lossy(last.content.of(bytes));
        let content = format!(r#"[{{"type":"text","text":{text}}},{block}]"#);
        return Some(Splice::replace(last.content.range(), content));
    }
    let comma = if body.blocks(last).is_empty() {
        ""
    } else {
        ","
    };
    let bracket = last.content.end().checked_sub(1)?;
    Some(Splice::insert(bracket, format!("{comma}{block}")))
}

fn acts(bytes: &Bytes, body: &Body) -> bool {
    let value = |name: &str| {
        let span = body.field(bytes, name)?;
        serde_json::from_slice::<Value>(span.of(bytes)).ok()
    };
    let set = |name: &str| value(name).is_some_and(|value| !value.is_null());
    let forced = value("tool_choice").is_some_and(|choice| {
        let kind = choice.get("type").and_then(Value::as_str);
        matches!(kind, Some("any" | "tool"))
    });
    let shaped = value("output_config")
        .is_some_and(|config| config.get("format").is_some_and(|format| !format.is_null()));
    let tools = value("tools");
    let tools = tools.as_ref().and_then(Value::as_array);
    let server = tools.into_iter().flatten().any(|tool| {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or("");
        SERVER_TOOLS.iter().any(|name| kind.starts_with(name))
    });
    forced || shaped || server || ACTING.iter().any(|name| set(name))
}

/// What thinking may take besides the answer.
fn thinking_room(bytes: &Bytes, body: &Body) -> u64 {
    /// Thinking without a limit of its own.
    const ADAPTIVE: u64 = 8_192;
    let thinking = body.field(bytes, "thinking");
    let thinking = thinking.and_then(|span| serde_json::from_slice::<Value>(span.of(bytes)).ok());
    let Some(thinking) = thinking else {
        return ADAPTIVE;
    };
    match thinking.get("type").and_then(Value::as_str) {
        Some("enabled") => thinking
            .get("budget_tokens")
            .and_then(Value::as_u64)
            .unwrap_or(ADAPTIVE),
        Some("disabled") => 0,
        _ => ADAPTIVE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forked(source: &Value) -> Option<Value> {
        let bytes = Bytes::from(source.to_string());
        let body = Body::split(&bytes).unwrap();
        let forked = fork(&bytes, &body, "sum \"up\"", 1_000)?;
        Some(serde_json::from_slice(&forked).unwrap())
    }

    fn asked(content: &Value) -> Value {
        json!({"model": "m", "max_tokens": 32_000, "stream": true,
            "messages": [{"role": "user", "content": content}]})
    }

    #[test]
    fn safeguards_stay_with_the_client_s_own_request() {
        let mut source = asked(&json!("go"));
        source["safeguards"] = json!({"mode": "auto", "rules": ["a", {"b": 1}]});
        source["tools"] = json!([]);
        let forked = forked(&source).unwrap();
        assert_eq!(forked.get("safeguards"), None);
        assert_eq!(forked["tools"], json!([]));
    }

    #[test]
    fn the_instruction_stands_behind_the_last_words_and_nothing_else_changes() {
        let block = json!({"type": "text", "text": "sum \"up\""});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "x",
            "cache_control": {"type": "ephemeral"}});
        let said = json!({"type": "text", "text": "é\n"});
        let rows = [
            (json!("é\n"), json!([said, block])),
            (json!([result]), json!([result, block])),
            (json!([]), json!([block])),
        ];
        for (content, expected) in rows {
            let forked = forked(&asked(&content)).unwrap();
            assert_eq!(forked["messages"][0]["content"], expected);
            assert_eq!(forked["stream"], false);
            assert_eq!(forked["max_tokens"], 9_192, "with room for thinking");
            assert_eq!(forked["model"], "m");
        }
    }

    #[test]
    fn every_byte_before_the_instruction_is_the_client_s() {
        let source = r#"{"model":"m","messages":[ {"role":"user","content":[{"text":"\u00e9","type":"text"} ]}],"tools":[],"x":1E5}"#;
        let bytes = Bytes::from(source);
        let body = Body::split(&bytes).unwrap();
        let forked = fork(&bytes, &body, "now", 10).unwrap();
        let expected = source.replace(
            r#"{"text":"\u00e9","type":"text"} "#,
            r#"{"text":"\u00e9","type":"text"} ,{"type":"text","text":"now"}"#,
        );
        assert_eq!(forked, expected);
    }

    #[test]
    fn room_for_thinking_follows_the_client_s_settings() {
        for (thinking, expected) in [
            (json!({"type": "enabled", "budget_tokens": 5_000}), 6_000),
            (json!({"type": "disabled"}), 1_000),
            (json!({"type": "adaptive"}), 9_192),
        ] {
            let mut source = asked(&json!("x"));
            source["thinking"] = thinking;
            assert_eq!(forked(&source).unwrap()["max_tokens"], expected);
        }
    }

    #[test]
    fn where_something_would_act_there_is_no_fork() {
        let rows = [
            ("tool_choice", json!({"type": "any"})),
            ("tool_choice", json!({"type": "tool", "name": "x"})),
            ("output_config", json!({"format": {"type": "json_schema"}})),
            ("mcp_servers", json!([{}])),
            ("container", json!("c")),
            (
                "tools",
                json!([{"type": "web_search_20250305", "name": "web_search"}]),
            ),
        ];
        for (name, value) in rows {
            let mut source = asked(&json!("x"));
            source[name] = value;
            assert_eq!(forked(&source), None, "{name}");
        }
        for (name, value) in [
            ("tool_choice", json!({"type": "auto"})),
            ("output_config", json!({"effort": "high"})),
            (
                "tools",
                json!([{"name": "x"}, {"type": "bash_20250124", "name": "bash"}]),
            ),
        ] {
            let mut source = asked(&json!("x"));
            source[name] = value;
            assert!(forked(&source).is_some(), "{name}");
        }
        let prefilled = json!({"model": "m", "messages": [{"role": "assistant", "content": "x"}]});
        assert_eq!(forked(&prefilled), None);
    }

    #[test]
    fn an_answer_that_calls_tools_is_met_with_errors() {
        let bytes = Bytes::from(asked(&json!("x")).to_string());
        let body = Body::split(&bytes).unwrap();
        let answer = [
            json!({"type": "text", "text": "let me look"}),
            json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {}}),
        ];
        let met = declined(&bytes, &body, &answer, "not now").unwrap();
        let met: Value = serde_json::from_slice(&met).unwrap();
        assert_eq!(met["messages"][1]["content"], json!(answer));
        assert_eq!(met["messages"][2]["content"][0]["tool_use_id"], "t1");
        assert_eq!(met["messages"][2]["content"][0]["is_error"], true);
    }
}
