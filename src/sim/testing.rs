//! Short ways to build requests in the simulator's own tests.

use http::HeaderMap;
use serde_json::{Value, json};

use super::error::Checked;
use super::options::Options;
use super::request::{Endpoint, Request};

/// Parses a body with these betas; `model` and `max_tokens` may be left out.
pub fn try_request(body: &Value, betas: &[&str], options: &Options) -> Checked<Request> {
    let mut body = body.clone();
    if body.get("model").is_none() {
        body["model"] = json!("claude-opus-5-5");
    }
    if body.get("max_tokens").is_none() {
        body["max_tokens"] = json!(4096);
    }
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", "2023-06-01".parse().unwrap());
    if !betas.is_empty() {
        headers.insert("anthropic-beta", betas.join(",").parse().unwrap());
    }
    Request::parse(
        Endpoint::Messages,
        &headers,
        body.to_string().as_bytes(),
        options,
    )
}

/// A request whose shape is right.
pub fn request(body: &Value, betas: &[&str]) -> Request {
    try_request(body, betas, &Options::default()).unwrap()
}

/// The text with which a check refuses a body.
pub fn refusal(
    body: &Value,
    betas: &[&str],
    check: impl Fn(&Request) -> Checked,
) -> Option<String> {
    check(&request(body, betas))
        .err()
        .map(|error| error.message)
}

/// A user message.
pub fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

/// An assistant message.
pub fn assistant(content: impl Into<Value>) -> Value {
    json!({"role": "assistant", "content": content.into()})
}

/// A tool call block.
pub fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": id}})
}

/// A tool result block.
pub fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": format!("result of {id}")})
}

/// A text block.
pub fn words(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
