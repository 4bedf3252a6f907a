//! Messages of role `system` in the middle of a conversation.
//!
//! They add an instruction without breaking the cached prefix. Only some models
//! take them, and only behind something the model has not yet answered.

use super::error::{ApiError, Checked};
use super::request::{Message, Request, Role, kind};

/// Checks where system messages stand; `runs` allows several in a row.
pub fn check(request: &Request, runs: bool) -> Checked {
    let messages = &request.messages;
    for (number, message) in messages.iter().enumerate() {
        if message.role != Role::System {
            continue;
        }
        if !request.model.system_messages {
            return Err(ApiError::invalid(
                "role 'system' is not supported on this model",
            ));
        }
        let before = previous(messages, number, runs);
        if !before.is_some_and(may_precede) {
            return Err(misplaced(
                number,
                "must follow a `user` message or an assistant turn that ends in a server tool result",
            ));
        }
        let after = following(messages, number, runs);
        if after.is_some_and(|message| message.role != Role::Assistant) {
            return Err(misplaced(
                number,
                "must be last or be followed by an `assistant` message",
            ));
        }
    }
    Ok(())
}

fn previous(messages: &[Message], number: usize, runs: bool) -> Option<&Message> {
    let mut before = messages.iter().take(number).rev();
    if runs {
        before.find(|message| message.role != Role::System)
    } else {
        before.next()
    }
}

fn following(messages: &[Message], number: usize, runs: bool) -> Option<&Message> {
    let mut after = messages.iter().skip(number + 1);
    if runs {
        after.find(|message| message.role != Role::System)
    } else {
        after.next()
    }
}

fn may_precede(message: &Message) -> bool {
    match message.role {
        Role::User => true,
        Role::System => false,
        Role::Assistant => message.blocks.last().is_some_and(|block| {
            let kind = kind(block);
            kind.ends_with("_tool_result") && kind != "tool_result"
        }),
    }
}

fn misplaced(number: usize, rule: &str) -> ApiError {
    ApiError::invalid(format!(
        "messages.{number}: a message with role 'system' {rule}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{assistant, call, refusal, result, user};
    use serde_json::{Value, json};

    #[allow(clippy::needless_pass_by_value, reason = "calls read as tables")]
    fn refuse(model: &str, messages: Value) -> Option<String> {
        refusal(
            &json!({"model": model, "messages": messages}),
            &[],
            |request| check(request, false),
        )
    }

    fn system() -> Value {
        json!({"role": "system", "content": "mind the gap"})
    }

    const NEW: &str = "claude-opus-5-5";

    /// Fact: only some models take mid-conversation system messages.
    #[test]
    fn some_models_refuse_them() {
        let messages = json!([user("x"), system()]);
        for model in [
            "claude-opus-4-8",
            "claude-opus-5",
            NEW,
            "claude-fable-5",
            "claude-sonnet-5",
        ] {
            assert_eq!(refuse(model, messages.clone()), None, "{model}");
        }
        for model in ["claude-opus-4-7", "claude-haiku-4-5", "claude-sonnet-4-6"] {
            assert_eq!(
                refuse(model, messages.clone()).unwrap(),
                "role 'system' is not supported on this model"
            );
        }
    }

    /// Fact: not first; behind a user message; last or before an assistant message.
    #[test]
    fn their_place_is_behind_the_user() {
        assert_eq!(
            refuse(NEW, json!([user("x"), system(), assistant("y"), user("z")])),
            None
        );
        assert!(refuse(NEW, json!([system(), user("x")])).is_some());
        assert!(refuse(NEW, json!([user("x"), assistant("y"), system()])).is_some());
        assert!(refuse(NEW, json!([user("x"), system(), user("y")])).is_some());
        assert!(refuse(NEW, json!([user("x"), system(), system()])).is_some());
    }

    /// Fact: tool results count as a user message; between a call and its result is no place.
    #[test]
    fn never_between_a_call_and_its_result() {
        let calls = assistant(json!([call("a")]));
        let results = user(json!([result("a")]));
        assert_eq!(
            refuse(NEW, json!([user("x"), calls, results, system()])),
            None
        );
        assert!(refuse(NEW, json!([user("x"), calls, system(), results])).is_some());
    }

    /// Fact: an assistant turn that ends in a server tool result may come before.
    #[test]
    fn a_server_tool_result_may_come_before() {
        let server = json!([{"type": "web_search_tool_result", "tool_use_id": "s", "content": []}]);
        assert_eq!(
            refuse(NEW, json!([user("x"), assistant(server), system()])),
            None
        );
    }
}
