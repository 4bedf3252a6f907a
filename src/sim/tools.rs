//! `tools` and `tool_choice`.

use std::collections::HashSet;

use serde_json::Value;

use super::error::{ApiError, Checked};
use super::request::{Block, Request, text};
use super::shape;

const OPTIONAL: &[&str] = &[
    "description",
    "cache_control",
    "defer_loading",
    "strict",
    "eager_input_streaming",
    "allowed_callers",
    "input_examples",
];

/// Longest name of a tool.
const LONGEST_NAME: usize = 128;

/// Parses `tools`.
pub fn parse(value: Option<Value>) -> Checked<Vec<Block>> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::invalid("tools: Input should be a valid list")),
    };
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(list.len());
    for (index, tool) in list.into_iter().enumerate() {
        let Value::Object(tool) = tool else {
            return Err(ApiError::invalid(format!(
                "tools.{index}: Input should be a valid dictionary"
            )));
        };
        let custom = matches!(
            tool.get("type").and_then(Value::as_str),
            None | Some("custom")
        );
        if custom {
            let place = format!("tools.{index}.custom");
            shape::fields(&place, &tool, &["name", "input_schema"], OPTIONAL)?;
            name(&place, text(&tool, "name"))?;
            if tool
                .get("input_schema")
                .and_then(|s| s.get("type"))
                .and_then(Value::as_str)
                != Some("object")
            {
                return Err(ApiError::required(format!("{place}.input_schema.type")));
            }
        }
        let name = text(&tool, "name").to_owned();
        if !name.is_empty() && !names.insert(name) {
            return Err(ApiError::invalid("tools: Tool names must be unique."));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn name(place: &str, name: &str) -> Checked {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(legal) {
        return Err(ApiError::invalid(format!(
            "{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}$'"
        )));
    }
    Ok(())
}

/// Whether a tool's definition is part of the prompt from the start.
pub fn is_loaded(tool: &Block) -> bool {
    tool.get("defer_loading").and_then(Value::as_bool) != Some(true)
}

/// Checks `tool_choice`.
pub fn check_choice(request: &Request) -> Checked {
    let Some(choice) = request
        .fields
        .get("tool_choice")
        .filter(|choice| !choice.is_null())
    else {
        return Ok(());
    };
    if request.tools.is_empty() {
        return Err(ApiError::invalid(
            "tool_choice may only be specified while providing tools.",
        ));
    }
    let kind = choice.get("type").and_then(Value::as_str).unwrap_or("");
    match kind {
        "auto" | "none" => return Ok(()),
        "any" | "tool" => {}
        _ => {
            return Err(ApiError::invalid(
                "tool_choice: Input tag found using 'type' does not match any of the expected tags: \
                 'auto', 'any', 'tool', 'none'",
            ));
        }
    }
    if !request.model.forced_tools {
        return Err(ApiError::invalid(
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
        ));
    }
    if request.thinking.is_manual() {
        return Err(ApiError::invalid(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    let name = choice.get("name").and_then(Value::as_str).unwrap_or("");
    if kind == "tool" && !request.tools.iter().any(|tool| text(tool, "name") == name) {
        return Err(ApiError::invalid(format!(
            "tool_choice.name: Tool '{name}' not found in provided tools"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{refusal, request};
    use serde_json::json;

    fn tool(name: &str) -> Value {
        json!({"name": name, "input_schema": {"type": "object"}})
    }

    #[test]
    fn tools_have_unique_legal_names_and_a_schema() {
        assert!(parse(Some(json!([tool("a"), tool("b")]))).is_ok());
        assert!(parse(Some(json!([tool("a"), tool("a")]))).is_err());
        assert!(parse(Some(json!([tool("a b")]))).is_err());
        let error = parse(Some(json!([{"name": "a"}]))).unwrap_err();
        assert_eq!(error.message, "tools.0.custom.input_schema: Field required");
        let error = parse(Some(
            json!([{"name": "a", "input_schema": {"type": "object"}, "x": 1}]),
        ));
        assert_eq!(
            error.unwrap_err().message,
            "tools.0.custom.x: Extra inputs are not permitted"
        );
    }

    fn choice(model: &str, choice: &Value, more: &[(&str, Value)]) -> Option<String> {
        let mut body = json!({"model": model, "tools": [tool("a")], "tool_choice": choice,
            "messages": [{"role": "user", "content": "x"}]});
        for (key, value) in more {
            body[*key] = value.clone();
        }
        refusal(&body, &[], check_choice)
    }

    /// Fact: Opus 5.5, Fable 5.1 and Sonnet 5.5 refuse forced tool use always.
    #[test]
    fn some_models_refuse_forced_tools() {
        let any = json!({"type": "any"});
        for model in ["claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-5-5"] {
            assert_eq!(
                choice(model, &any, &[]).unwrap(),
                "tool_choice: type \"tool\" and \"any\" are not supported for this model."
            );
        }
        assert_eq!(choice("claude-opus-5", &any, &[]), None);
        assert_eq!(
            choice("claude-opus-5-5", &json!({"type": "auto"}), &[]),
            None
        );
    }

    /// Fact: a forced tool is refused together with manual thinking.
    #[test]
    fn manual_thinking_and_forced_tools_exclude_each_other() {
        let thinking = (
            "thinking",
            json!({"type": "enabled", "budget_tokens": 1024}),
        );
        let forced = json!({"type": "tool", "name": "a"});
        assert!(choice("claude-opus-4-5", &forced, &[thinking]).is_some());
        assert_eq!(choice("claude-opus-4-5", &forced, &[]), None);
    }

    /// Fact: `tool_choice` may only be specified while providing tools.
    #[test]
    fn a_choice_needs_tools() {
        let body = json!({"model": "claude-opus-5", "tool_choice": {"type": "auto"},
            "messages": [{"role": "user", "content": "x"}]});
        assert_eq!(
            check_choice(&request(&body, &[])).unwrap_err().message,
            "tool_choice may only be specified while providing tools."
        );
    }

    #[test]
    fn a_chosen_tool_must_exist() {
        let missing = json!({"type": "tool", "name": "b"});
        assert!(choice("claude-opus-5", &missing, &[]).is_some());
    }
}
