//! Every tool call is answered in the next message, and nothing else is.
//!
//! Judged on merged turns: messages of one role in a row are one turn. Whether a
//! result may stand in the second of two user messages in a row is not known, so
//! it is a switch. Errors name the messages as they were sent.

use std::collections::HashSet;

use super::error::{ApiError, Checked};
use super::options::Options;
use super::request::{Placed, Request, Role, Turn, kind, path, text};

/// Checks tool calls and results of the whole conversation.
pub fn check(request: &Request, options: &Options) -> Checked {
    if !options.calls_without_tools && request.tools.is_empty() && has_calls(request) {
        return Err(ApiError::invalid(
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        ));
    }
    pairs(request, options.split_results)
}

fn has_calls(request: &Request) -> bool {
    let mut blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks.any(|block| matches!(kind(block), "tool_use" | "tool_result"))
}

fn pairs(request: &Request, split: bool) -> Checked {
    unique_ids(request)?;
    served(request)?;
    let turns = request.turns();
    for (number, turn) in turns.iter().enumerate() {
        let next = turns.get(number + 1);
        let previous = number.checked_sub(1).and_then(|before| turns.get(before));
        match turn.role {
            Role::Assistant => {
                answered(turn, next, split)?;
                server_tools(request, turn, next)?;
            }
            Role::User => expected(turn, previous)?,
            Role::System => {}
        }
    }
    Ok(())
}

fn unique_ids(request: &Request) -> Checked {
    let mut seen = HashSet::new();
    for message in &request.messages {
        for block in message
            .blocks
            .iter()
            .filter(|block| kind(block) == "tool_use")
        {
            let id = text(block, "id");
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if id.is_empty() || !id.bytes().all(legal) {
                return Err(ApiError::invalid(format!(
                    "messages: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id}"
                )));
            }
            if !seen.insert(id) {
                return Err(ApiError::invalid("messages: `tool_use` ids must be unique"));
            }
        }
    }
    Ok(())
}

/// All results of one assistant turn stand first in the next user turn, in one
/// message unless results may be split.
fn answered(turn: &Turn<'_>, next: Option<&Turn<'_>>, split: bool) -> Checked {
    let first = next
        .and_then(|next| next.blocks.first())
        .map(|at| at.message);
    let results: HashSet<&str> = next
        .map(|next| {
            leading_results(next)
                .filter(|placed| split || Some(placed.message) == first)
                .map(|placed| text(placed.block, "tool_use_id"))
                .collect()
        })
        .unwrap_or_default();
    let calls = turn
        .blocks
        .iter()
        .filter(|placed| kind(placed.block) == "tool_use");
    let missing: Vec<_> = calls
        .filter(|placed| !results.contains(text(placed.block, "id")))
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let ids: Vec<_> = missing
        .iter()
        .map(|placed| text(placed.block, "id"))
        .collect();
    Err(ApiError::invalid(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. \
         Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        first.message,
        ids.join(", ")
    )))
}

fn leading_results<'a>(turn: &'a Turn<'a>) -> impl Iterator<Item = &'a Placed<'a>> {
    turn.blocks
        .iter()
        .take_while(|placed| kind(placed.block) == "tool_result")
}

/// Each result answers a call of the turn before, once.
fn expected(turn: &Turn<'_>, previous: Option<&Turn<'_>>) -> Checked {
    let calls: HashSet<&str> = previous
        .into_iter()
        .flat_map(|previous| previous.blocks.iter())
        .filter(|placed| kind(placed.block) == "tool_use")
        .map(|placed| text(placed.block, "id"))
        .collect();
    let mut seen = HashSet::new();
    for placed in turn
        .blocks
        .iter()
        .filter(|placed| kind(placed.block) == "tool_result")
    {
        let id = text(placed.block, "tool_use_id");
        if !calls.contains(id) {
            return Err(ApiError::invalid(format!(
                "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` \
                 block must have a corresponding `tool_use` block in the previous message.",
                placed.path()
            )));
        }
        if !seen.insert(id) {
            return Err(ApiError::invalid(format!(
                "{}: each tool_use must have a single result. Found multiple `tool_result` blocks with \
                 id: {id}",
                placed.path()
            )));
        }
    }
    Ok(())
}

/// The result of a server tool has its call somewhere before it: a history that
/// is cut must not be cut between them.
fn served(request: &Request) -> Checked {
    let mut calls = HashSet::new();
    for (number, message) in request.messages.iter().enumerate() {
        for (index, block) in message.blocks.iter().enumerate() {
            let kind = kind(block);
            if matches!(kind, "server_tool_use" | "mcp_tool_use") {
                calls.insert(text(block, "id"));
            } else if kind.ends_with("_tool_result") && !calls.contains(text(block, "tool_use_id"))
            {
                return Err(ApiError::invalid(format!(
                    "{}: unexpected `tool_use_id` found in `{kind}` blocks: {}. Each `{kind}` block \
                     must have a corresponding `server_tool_use` block before it.",
                    path(number, index),
                    text(block, "tool_use_id")
                )));
            }
        }
    }
    Ok(())
}

/// A server tool is answered by the API itself, in the same turn or, while
/// client tools are answered, in the next.
fn server_tools(request: &Request, turn: &Turn<'_>, next: Option<&Turn<'_>>) -> Checked {
    let results: HashSet<&str> = turn
        .blocks
        .iter()
        .filter(|placed| kind(placed.block).ends_with("_tool_result"))
        .map(|placed| text(placed.block, "tool_use_id"))
        .collect();
    for placed in turn
        .blocks
        .iter()
        .filter(|placed| kind(placed.block) == "server_tool_use")
    {
        let (id, name) = (text(placed.block, "id"), text(placed.block, "name"));
        // Without a next turn this one is paused and is being resumed.
        let pending = !results.contains(id) && next.is_some_and(|next| !next.only_results());
        if pending {
            return Err(ApiError::invalid(format!(
                "`{name}` tool use with id `{id}` was found without a corresponding \
                 `{name}_tool_result` block"
            )));
        }
        let still_open = !results.contains(id);
        if still_open && !request.tools.iter().any(|tool| text(tool, "name") == name) {
            return Err(ApiError::invalid(format!(
                "`{name}` tool use with id `{id}` was found but no `{name}` tool was provided"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{assistant, call, refusal, result, user, words};
    use serde_json::{Value, json};

    #[allow(clippy::needless_pass_by_value, reason = "calls read as tables")]
    fn refuse(messages: Value) -> Option<String> {
        refusal(&json!({"messages": messages}), &[], |request| {
            pairs(request, false)
        })
    }

    /// Fact: each call is answered in the next message; the error names the assistant message and all ids.
    #[test]
    fn a_call_without_a_result_is_refused() {
        let messages = json!([
            user("x"),
            assistant(json!([call("a"), call("b")])),
            user("y")
        ]);
        assert_eq!(
            refuse(messages).unwrap(),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a, \
             b. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        );
        assert!(refuse(json!([user("x"), assistant(json!([call("a")]))])).is_some());
    }

    /// Fact: each result answers a call of the previous message; the error names the block.
    #[test]
    fn a_result_without_a_call_is_refused() {
        let messages = json!([user("x"), assistant("y"), user(json!([result("a")]))]);
        assert_eq!(
            refuse(messages).unwrap(),
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous message."
        );
        assert!(refuse(json!([user(json!([result("a")]))])).is_some());
    }

    /// Fact: tool results stand first; text before them is refused, text after them is not.
    #[test]
    fn results_stand_first() {
        let calls = assistant(json!([call("a")]));
        let before = json!([user("x"), calls, user(json!([words("hm"), result("a")]))]);
        let after = json!([user("x"), calls, user(json!([result("a"), words("hm")]))]);
        assert!(refuse(before).unwrap().contains("ids were found without"));
        assert_eq!(refuse(after), None);
    }

    /// Fact: consecutive messages of one role are one turn, so two assistant messages
    /// may share their results. All results go into ONE next user message; whether
    /// two in a row will do is not known.
    #[test]
    fn merged_turns_count_as_one() {
        let calls = [assistant(json!([call("a")])), assistant(json!([call("b")]))];
        let [first, second] = calls;
        let both = user(json!([result("a"), result("b")]));
        assert_eq!(refuse(json!([user("x"), first, second, both])), None);
        assert_eq!(
            refuse(json!([user("x"), first, second, both, user("y")])),
            None
        );
        let [one, two] = [user(json!([result("a")])), user(json!([result("b")]))];
        let split = json!([user("x"), first, second, one, two]);
        assert!(
            refuse(split.clone())
                .unwrap()
                .starts_with("messages.2: `tool_use` ids were found without")
        );
        let body = json!({"messages": split});
        assert_eq!(refusal(&body, &[], |request| pairs(request, true)), None);
    }

    /// Fact: `tool_use` ids must be unique.
    #[test]
    fn ids_are_unique() {
        let cycle = [assistant(json!([call("a")])), user(json!([result("a")]))];
        let [calls, results] = cycle;
        assert_eq!(
            refuse(json!([user("x"), calls, results, calls, results])).unwrap(),
            "messages: `tool_use` ids must be unique"
        );
    }

    /// Fact: one result per call.
    #[test]
    fn a_call_has_one_result() {
        let twice = user(json!([result("a"), result("a")]));
        let messages = json!([user("x"), assistant(json!([call("a")])), twice]);
        assert!(refuse(messages).unwrap().contains("single result"));
    }

    fn search(id: &str) -> Value {
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
    }

    /// Fact: with a pending server tool the next user message holds only tool results.
    #[test]
    fn a_pending_server_tool_allows_only_results() {
        let turn = assistant(json!([search("srvtoolu_1"), call("a")]));
        let tools = json!([{"type": "web_search_20250305", "name": "web_search"}]);
        let run = |last: Value| {
            let body = json!({"tools": tools, "messages": [user("x"), turn, user(last)]});
            refusal(&body, &[], |request| pairs(request, false))
        };
        assert_eq!(run(json!([result("a")])), None);
        assert_eq!(
            run(json!([result("a"), words("and?")])).unwrap(),
            "`web_search` tool use with id `srvtoolu_1` was found without a corresponding \
             `web_search_tool_result` block"
        );
    }

    /// Known from the API's behaviour: the result of a server tool needs its call.
    #[test]
    fn a_server_result_without_its_call_is_refused() {
        let found =
            json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
        let whole = assistant(json!([search("srvtoolu_1"), found]));
        assert_eq!(refuse(json!([user("x"), whole, user("y")])), None);
        let cut = json!([user("x"), assistant(json!([found])), user("y")]);
        assert!(
            refuse(cut)
                .unwrap()
                .starts_with("messages.1.content.0: unexpected `tool_use_id`")
        );
    }

    /// Fact: a pending server tool needs the same tools.
    #[test]
    fn a_pending_server_tool_needs_its_tool() {
        let turn = assistant(json!([search("srvtoolu_1"), call("a")]));
        let messages = json!([user("x"), turn, user(json!([result("a")]))]);
        assert!(
            refuse(messages)
                .unwrap()
                .ends_with("no `web_search` tool was provided")
        );
    }
}
