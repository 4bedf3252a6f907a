//! The block types of the API, with the fields each one has.

use super::betas::{Betas, beta};
use super::error::{ApiError, Checked};
use super::request::{Block, kind};
use super::shape;

/// Name, required fields, optional fields.
pub type Type = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// The type of that name, if the request's betas let it exist.
pub fn find(kind: &str, betas: &Betas) -> Option<&'static Type> {
    TYPES
        .iter()
        .find(|(name, _, _)| *name == kind && unlocked(name, betas))
}

/// Some types exist only with their beta.
fn unlocked(kind: &str, betas: &Betas) -> bool {
    match kind {
        "compaction" => betas.any(&[beta::COMPACT_ON_DEMAND, beta::COMPACT_THRESHOLD]),
        "tool_addition" | "tool_removal" => betas.any(&[
            "mid-conversation-tool-changes-2026-07-01",
            "inline-tools-2026-09-15",
        ]),
        _ => true,
    }
}

/// The refusal of a type the API does not know.
pub fn unknown(place: &str, kind: &str) -> ApiError {
    let known: Vec<_> = TYPES
        .iter()
        .map(|(name, _, _)| format!("'{name}'"))
        .collect();
    ApiError::invalid(format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {}",
        known.join(", ")
    ))
}

/// Block types: name, required fields, optional fields.
const TYPES: &[Type] = &[
    ("text", &["text"], &["cache_control", "citations"]),
    ("image", &["source"], &["cache_control"]),
    (
        "document",
        &["source"],
        &["title", "context", "citations", "cache_control"],
    ),
    (
        "search_result",
        &["content", "source", "title"],
        &["citations", "cache_control"],
    ),
    ("thinking", &["thinking", "signature"], &[]),
    ("redacted_thinking", &["data"], &[]),
    (
        "tool_use",
        &["id", "name", "input"],
        &["cache_control", "caller", "toolset_name"],
    ),
    (
        "tool_result",
        &["tool_use_id"],
        &["content", "is_error", "cache_control", "toolset_name"],
    ),
    (
        "server_tool_use",
        &["id", "name", "input"],
        &["caller", "cache_control"],
    ),
    (
        "web_search_tool_result",
        &["tool_use_id", "content"],
        &["caller", "cache_control"],
    ),
    (
        "web_fetch_tool_result",
        &["tool_use_id", "content"],
        &["caller", "cache_control"],
    ),
    (
        "code_execution_tool_result",
        &["tool_use_id", "content"],
        &["cache_control"],
    ),
    (
        "bash_code_execution_tool_result",
        &["tool_use_id", "content"],
        &["cache_control"],
    ),
    (
        "text_editor_code_execution_tool_result",
        &["tool_use_id", "content"],
        &["cache_control"],
    ),
    (
        "tool_search_tool_result",
        &["tool_use_id", "content"],
        &["cache_control"],
    ),
    (
        "advisor_tool_result",
        &["tool_use_id", "content"],
        &["cache_control"],
    ),
    (
        "mcp_tool_use",
        &["id", "name", "server_name", "input"],
        &["cache_control"],
    ),
    (
        "mcp_tool_result",
        &["tool_use_id"],
        &["content", "is_error", "cache_control"],
    ),
    (
        "mcp_tool_listing",
        &["mcp_server_name", "tools"],
        &["cache_control"],
    ),
    ("container_upload", &["file_id"], &["cache_control"]),
    (
        "compaction",
        &["content"],
        &[
            "encrypted_content",
            "signature",
            "tool_changes",
            "cache_control",
        ],
    ),
    ("fallback", &["from", "to"], &["trigger"]),
    ("tool_addition", &["tool"], &["cache_control"]),
    ("tool_removal", &["tool"], &["cache_control"]),
];

/// Types that may stand inside a tool result.
pub const NESTED: &[&str] = &[
    "text",
    "image",
    "search_result",
    "document",
    "tool_reference",
    "browser_state",
];

/// Checks a block inside a tool result: the same fields as anywhere else.
pub fn nested(place: &str, block: &Block, betas: &Betas) -> Checked {
    match kind(block) {
        "tool_reference" => shape::fields(place, block, &["tool_name"], &["cache_control"]),
        // Its fields are not documented.
        "browser_state" => Ok(()),
        kind => {
            let Some((_, required, optional)) = find(kind, betas) else {
                return Err(unknown(place, kind));
            };
            shape::fields(place, block, required, optional)?;
            values(place, block)
        }
    }
}

/// Checks the values of a block whose fields are right.
pub fn values(place: &str, block: &Block) -> Checked {
    let sources: &[(&str, &[&str])] = match kind(block) {
        "image" => &[
            ("base64", &["media_type", "data"]),
            ("url", &["url"]),
            ("file", &["file_id"]),
        ],
        "document" => &[
            ("base64", &["media_type", "data"]),
            ("text", &["data"]),
            ("content", &["content"]),
            ("url", &["url"]),
            ("file", &["file_id"]),
        ],
        "tool_result" | "mcp_tool_result" => return flag(place, "is_error", block),
        _ => return Ok(()),
    };
    let place = format!("{place}.source");
    let Some(source) = block.get("source").and_then(serde_json::Value::as_object) else {
        return Err(ApiError::invalid(format!(
            "{place}: Input should be a valid dictionary"
        )));
    };
    match sources.iter().find(|(name, _)| *name == kind(source)) {
        Some((name, required)) => shape::fields(
            &format!("{place}.{name}"),
            source,
            required,
            &["media_type"],
        ),
        None => Err(ApiError::invalid(format!(
            "{place}: Input tag '{}' found using 'type' does not match any of the expected tags",
            kind(source)
        ))),
    }
}

fn flag(place: &str, field: &str, block: &Block) -> Checked {
    match block.get(field) {
        None | Some(serde_json::Value::Null | serde_json::Value::Bool(_)) => Ok(()),
        Some(_) => Err(ApiError::invalid(format!(
            "{place}.{field}: Input should be a valid boolean"
        ))),
    }
}
