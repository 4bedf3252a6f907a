//! Roles: who may begin, who may end, and which blocks belong to whom.

use serde_json::Value;

use super::betas::Version;
use super::error::{ApiError, Checked};
use super::request::{Message, Placed, Request, Role, Turn, kind, text};

/// Checks the roles of a conversation.
pub fn check(request: &Request) -> Checked {
    first(&request.messages)?;
    contents(request)?;
    placement(request)?;
    last(request)
}

fn first(messages: &[Message]) -> Checked {
    let Some(message) = messages.first() else {
        return Ok(());
    };
    // What an on-demand compaction returned stands first, as the assistant's.
    let compacted = message.role == Role::Assistant
        && message
            .blocks
            .first()
            .is_some_and(|block| kind(block) == "compaction");
    if message.role == Role::User || compacted {
        return Ok(());
    }
    Err(ApiError::invalid(
        "messages: first message must use the \"user\" role",
    ))
}

/// A message without content.
pub fn empty(number: usize) -> ApiError {
    ApiError::invalid(format!(
        "messages.{number}: all messages must have non-empty content except for the optional final \
         assistant message"
    ))
}

/// The rules against empty content. A system message may be an empty list: clients
/// send such ones to the API, which answers.
fn contents(request: &Request) -> Checked {
    let last = request.messages.len().saturating_sub(1);
    for (number, message) in request.messages.iter().enumerate() {
        let prefill = number == last && message.role == Role::Assistant;
        let says_nothing = message.role == Role::System;
        if message.blocks.is_empty() && !prefill && !says_nothing {
            return Err(empty(number));
        }
        for (index, block) in message.blocks.iter().enumerate() {
            if kind(block) != "text" {
                continue;
            }
            let words = text(block, "text");
            if words.is_empty()
                && block
                    .get("cache_control")
                    .is_some_and(|mark| !mark.is_null())
            {
                return Err(ApiError::invalid(format!(
                    "messages.{number}.content.{index}.text: cache_control cannot be set for empty \
                     text blocks"
                )));
            }
            if words.is_empty() {
                return Err(ApiError::invalid(
                    "messages: text content blocks must be non-empty",
                ));
            }
            if words.trim().is_empty() {
                return Err(ApiError::invalid(
                    "messages: text content blocks must contain non-whitespace text",
                ));
            }
        }
    }
    Ok(())
}

/// Which block types each role may use.
fn placement(request: &Request) -> Checked {
    for (number, message) in request.messages.iter().enumerate() {
        for (index, block) in message.blocks.iter().enumerate() {
            let placed = Placed {
                message: number,
                index,
                block,
            };
            let kind = kind(block);
            let owner = match kind {
                "tool_result" | "image" | "search_result" | "container_upload" => Some(Role::User),
                "tool_use" | "server_tool_use" | "thinking" | "redacted_thinking"
                | "compaction" | "fallback" | "mcp_tool_use" | "mcp_tool_result" => {
                    Some(Role::Assistant)
                }
                "tool_addition" | "tool_removal" => Some(Role::System),
                "document" if request.version == Version::October2026 => Some(Role::User),
                _ if kind.ends_with("_tool_result") => Some(Role::Assistant),
                _ => None,
            };
            let text_only = message.role == Role::System && kind != "text";
            if owner.is_some_and(|owner| owner != message.role) || (text_only && owner.is_none()) {
                return Err(ApiError::invalid(format!(
                    "{}: `{kind}` blocks can only be in `{}` messages",
                    placed.path(),
                    owner.map_or("user", name)
                )));
            }
            citations(request, message.role, &placed)?;
        }
    }
    Ok(())
}

/// Version 2026-10-21 refuses citations on what the user says.
fn citations(request: &Request, role: Role, placed: &Placed<'_>) -> Checked {
    if request.version != Version::October2026 || role != Role::User {
        return Ok(());
    }
    let cited = |block: &Value| {
        block
            .get("citations")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    let nested = placed.block.get("content").and_then(Value::as_array);
    let bad = match kind(placed.block) {
        "text" => cited(&Value::Object(placed.block.clone())),
        "search_result" => nested.is_some_and(|list| list.iter().any(cited)),
        _ => false,
    };
    if bad {
        return Err(ApiError::invalid(format!(
            "{}.text.citations: citations are not permitted in `user` messages",
            placed.path()
        )));
    }
    Ok(())
}

fn name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    }
}

/// A trailing assistant message is a prefill, which newer models refuse.
fn last(request: &Request) -> Checked {
    let turns = request.turns();
    let Some(turn) = turns.last() else {
        return Ok(());
    };
    if turn.role != Role::Assistant || request.wants_compaction() || resumes(turn) {
        return Ok(());
    }
    if request.fields.contains_key("fallback_credit_token") {
        return Ok(());
    }
    if !request.model.prefill {
        return Err(ApiError::invalid(
            "This model does not support assistant message prefill. The conversation must end with a \
             user message.",
        ));
    }
    let ending = turn
        .blocks
        .last()
        .map_or("", |placed| text(placed.block, "text"));
    if ending.ends_with(char::is_whitespace) {
        return Err(ApiError::invalid(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}

/// Whether an assistant turn is to be resumed: it was paused in a server tool or
/// after a compaction, or it is all that a compaction left.
fn resumes(turn: &Turn<'_>) -> bool {
    turn.blocks.last().is_some_and(|placed| {
        let kind = kind(placed.block);
        matches!(kind, "server_tool_use" | "compaction")
            || (kind.ends_with("_tool_result") && kind != "tool_result")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::betas::beta;
    use crate::sim::testing::{assistant, refusal, request, user, words};
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "calls read as tables")]
    fn refuse(model: &str, messages: Value) -> Option<String> {
        refusal(&json!({"model": model, "messages": messages}), &[], check)
    }

    const NEW: &str = "claude-opus-5-5";
    const OLD: &str = "claude-haiku-4-5";

    /// Fact: the first message must be the user's.
    #[test]
    fn the_user_begins() {
        assert_eq!(
            refuse(NEW, json!([assistant("hi"), user("x")])).unwrap(),
            "messages: first message must use the \"user\" role"
        );
        assert_eq!(refuse(NEW, json!([user("x")])), None);
    }

    /// Fact: after on-demand compaction the compaction block stands first, as the assistant's.
    #[test]
    fn a_compaction_block_may_begin() {
        let block = json!({"type": "compaction", "content": "s"});
        let body = json!({"messages": [assistant(json!([block])), user("x")]});
        assert_eq!(refusal(&body, &[beta::COMPACT_ON_DEMAND], check), None);
    }

    /// Fact: consecutive messages of one role are merged, not refused.
    #[test]
    fn roles_need_not_alternate() {
        assert_eq!(
            refuse(
                NEW,
                json!([
                    user("a"),
                    user("b"),
                    assistant("c"),
                    assistant("d"),
                    user("e")
                ])
            ),
            None
        );
    }

    /// Fact: Claude 4.6 and later refuse a trailing assistant message.
    #[test]
    fn prefill_is_refused_by_newer_models() {
        let messages = json!([user("x"), assistant("The answer is")]);
        assert_eq!(
            refuse(NEW, messages.clone()).unwrap(),
            "This model does not support assistant message prefill. The conversation must end with a \
             user message."
        );
        assert_eq!(refuse(OLD, messages), None);
    }

    /// Fact: a prefill must not end in whitespace.
    #[test]
    fn prefill_ends_in_a_word() {
        assert_eq!(
            refuse(OLD, json!([user("x"), assistant("The answer is ")])).unwrap(),
            "messages: final assistant content cannot end with trailing whitespace"
        );
    }

    /// Fact: a paused server-tool turn may come last, to be resumed.
    #[test]
    fn a_paused_turn_may_come_last() {
        let block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
        assert_eq!(
            refuse(NEW, json!([user("x"), assistant(json!([block]))])),
            None
        );
    }

    /// Fact: the SDKs' tool runners send nothing but the compaction block after they
    /// had the history compacted, and go on from there.
    #[test]
    fn a_compaction_may_come_last() {
        let block = json!({"type": "compaction", "content": "so far"});
        let body = json!({"model": NEW, "messages": [assistant(json!([block]))]});
        assert_eq!(refusal(&body, &[beta::COMPACT_ON_DEMAND], check), None);
    }

    /// Fact: the four texts against empty content.
    #[test]
    fn empty_content_is_refused() {
        let empty = "messages: text content blocks must be non-empty";
        let blank = "messages: text content blocks must contain non-whitespace text";
        let nothing = "messages.0: all messages must have non-empty content except for the optional \
                       final assistant message";
        let marked = "messages.0.content.0.text: cache_control cannot be set for empty text blocks";
        let table = [
            (json!([words("")]), empty),
            (json!([words(" \n")]), blank),
            (json!([]), nothing),
            (json!(""), nothing),
            (
                json!([{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]),
                marked,
            ),
        ];
        for (content, expected) in table {
            assert_eq!(refuse(NEW, json!([user(content)])).unwrap(), expected);
        }
        assert_eq!(refuse(OLD, json!([user("x"), assistant("")])), None);
    }

    /// Fact (Claude Code, after `/compact`): a system message may be an empty list.
    #[test]
    fn a_system_message_may_be_an_empty_list() {
        let system = json!({"role": "system", "content": []});
        assert_eq!(refuse(NEW, json!([user("x"), system])), None);
    }

    /// Fact: tool calls are the assistant's, tool results the user's.
    #[test]
    fn blocks_belong_to_roles() {
        let call = json!([{"type": "tool_use", "id": "a", "name": "n", "input": {}}]);
        assert_eq!(
            refuse(NEW, json!([user(call)])).unwrap(),
            "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"
        );
        let result = json!([{"type": "tool_result", "tool_use_id": "a"}]);
        assert!(refuse(NEW, json!([user("x"), assistant(result), user("y")])).is_some());
    }

    /// Fact: version 2026-10-21 refuses a document placed directly in an assistant
    /// message, and citations on the user's text; the older version accepts both.
    #[test]
    fn the_new_version_is_stricter_about_blocks() {
        let document = json!([{"type": "document", "source": {"type": "text", "data": "d"}}]);
        let cited =
            json!([{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}]);
        for messages in [
            json!([user("x"), assistant(document), user("y")]),
            json!([user(cited)]),
        ] {
            let mut parsed = request(&json!({"messages": messages}), &[]);
            assert!(check(&parsed).is_ok());
            parsed.version = Version::October2026;
            assert!(check(&parsed).is_err());
        }
    }
}
