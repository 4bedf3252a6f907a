//! Tools that a client has but does not declare in `tools`.
//!
//! Claude Code declares the tools of MCP servers only once the model has searched
//! for them. Until then their names stand in a list, in a message of the system's
//! or, for older models, in a reminder at the start of the conversation; when they
//! are found, a result refers to them by name. A view may tell the model of tools
//! that it can have in this way.
//!
//! A list counts only where nobody but the client writes: a file or a page that
//! quotes such a list must not make a view recommend a tool.

use serde_json::Value;

use crate::engine::conversation::Conversation;
use crate::engine::pinned::decoded;
use crate::wire::body::{Block, Kind, Role};
use crate::wire::scan::Span;

/// What the line before the names says.
const LIST: [&str; 2] = ["deferred tools", "ToolSearch"];
/// What it says if they have gone.
const GONE: &str = "no longer available";
/// How a reminder begins that holds nothing but a list.
const REMINDERS: [&str; 2] = [
    "<system-reminder>\nThe following deferred tools",
    "<available-deferred-tools>\n",
];
/// The most bytes of a result that refers to tools, and of a name.
const REFERENCES: usize = 64 * 1024;
const NAME: usize = 128;

/// The names of tools that the model can load, in the order they were named.
pub fn deferred(conversation: &Conversation<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut has_answered = false;
    for at in 0..conversation.len() {
        let Some(message) = conversation.message(at) else {
            continue;
        };
        has_answered |= message.role == Role::Assistant;
        let whole = message.is_string.then_some(message.content);
        let blocks = conversation.blocks(at);
        let texts = blocks.iter().filter(|block| block.kind == Kind::Text);
        let texts = whole
            .into_iter()
            .chain(texts.filter_map(|block| block.payload));
        match message.role {
            Role::System => {
                texts.for_each(|text| add_listed(conversation, text, &mut names, false));
            }
            Role::User if !has_answered => {
                texts.for_each(|text| add_listed(conversation, text, &mut names, true));
            }
            Role::User => {
                let found = blocks.iter().filter(|block| block.has_tool_references);
                found.for_each(|block| add_references(conversation, block, &mut names));
            }
            Role::Assistant | Role::Other => {}
        }
    }
    names
}

/// Adds the names of the lists in a text, and takes away those that have gone.
fn add_listed(
    conversation: &Conversation<'_>,
    text: Span,
    names: &mut Vec<String>,
    is_users: bool,
) {
    let raw = text.of(conversation.bytes());
    if !LIST
        .iter()
        .any(|words| memchr::memmem::find(raw, words.as_bytes()).is_some())
    {
        return;
    }
    let Some(text) = decoded(raw) else {
        return;
    };
    if is_users && !REMINDERS.iter().any(|start| text.starts_with(start)) {
        return;
    }
    // None: no list; else whether its tools have gone.
    let mut list: Option<bool> = None;
    for line in text.lines() {
        let begins = line.ends_with(':') && LIST.iter().any(|words| line.contains(words));
        if begins || line == "<available-deferred-tools>" {
            list = Some(line.contains(GONE));
        } else if let (Some(gone), Some(name)) = (list, name(line)) {
            names.retain(|other| other != name);
            if !gone {
                names.push(name.to_owned());
            }
        } else {
            list = None;
        }
    }
}

/// The tool that a line of a list names, perhaps with a word on it behind.
fn name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("- ").unwrap_or(line);
    let name = line.split([' ', ':']).next()?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    (!name.is_empty() && name.len() <= NAME && name.chars().all(is_name)).then_some(name)
}

/// Adds the tools that a result refers to.
fn add_references(conversation: &Conversation<'_>, block: &Block, names: &mut Vec<String>) {
    let payload = block
        .payload
        .map(|payload| payload.of(conversation.bytes()));
    let payload = payload.filter(|payload| payload.len() <= REFERENCES);
    let content = payload.and_then(|payload| serde_json::from_slice::<Value>(payload).ok());
    let references = content.as_ref().and_then(Value::as_array);
    for reference in references.into_iter().flatten() {
        let name = reference.get("tool_name").and_then(Value::as_str);
        if reference.get("type").and_then(Value::as_str) != Some("tool_reference") {
            continue;
        }
        if let Some(name) = name.filter(|name| !names.iter().any(|other| other == name)) {
            names.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::json;

    const LISTED: &str = "# Environment\n\nThe following deferred tools are now available via ToolSearch. \
        Use ToolSearch with query \"select:<name>[,<name>...]\" to load tool schemas before calling them:\n\
        WebFetch\nmcp__longhaul__expand\nmcp__longhaul__recall\n\nAvailable agent types:\n- claude: all";

    fn names(messages: &Value) -> Vec<String> {
        let bytes = json!({"model": "m", "messages": messages}).to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        deferred(&Conversation::new(bytes.as_bytes(), &body))
    }

    fn said(role: &str, content: impl Into<Value>) -> Value {
        json!({"role": role, "content": content.into(), "output_config": {}})
    }

    #[test]
    fn the_list_of_a_system_message_names_them_as_a_string_or_a_block() {
        let block = json!([{"type": "text", "text": LISTED}]);
        for content in [json!(LISTED), block] {
            assert_eq!(
                names(&json!([said("user", "go"), said("system", content)])),
                ["WebFetch", "mcp__longhaul__expand", "mcp__longhaul__recall"]
            );
        }
    }

    #[test]
    fn those_that_have_gone_are_not_named() {
        let gone = "The following deferred tools are no longer available:\nmcp__longhaul__recall\n";
        let messages = json!([
            said("user", "go"),
            said("system", LISTED),
            said("assistant", "x"),
            said("user", "on"),
            said("system", gone)
        ]);
        assert_eq!(names(&messages), ["WebFetch", "mcp__longhaul__expand"]);
    }

    #[test]
    fn a_reminder_at_the_start_counts_and_what_others_quote_does_not() {
        let list = LISTED.strip_prefix("# Environment\n\n").unwrap();
        let reminder = format!("<system-reminder>\n{list}\n</system-reminder>");
        let first = json!([{"type": "text", "text": reminder}, {"type": "text", "text": "go"}]);
        assert_eq!(names(&json!([said("user", first.clone())])).len(), 3);
        let quoted = format!("<system-reminder>\nNOTES.md:\n{list}\n</system-reminder>");
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": LISTED}]);
        for messages in [
            json!([said("user", quoted)]),
            json!([said("user", LISTED)]),
            json!([
                said("user", "go"),
                said("assistant", LISTED),
                said("user", result)
            ]),
            json!([
                said("user", "go"),
                said("assistant", "x"),
                said("user", first)
            ]),
        ] {
            assert!(names(&messages).is_empty(), "{messages}");
        }
    }

    #[test]
    fn a_result_that_refers_to_tools_names_them() {
        let content = json!([{"type": "tool_reference", "tool_name": "mcp__longhaul__recall"},
            {"type": "text", "text": "tool_reference"}, {"type": "tool_reference"}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": content}]);
        let messages = json!([
            said("user", "go"),
            said("assistant", "x"),
            said("user", result)
        ]);
        assert_eq!(names(&messages), ["mcp__longhaul__recall"]);
    }
}
