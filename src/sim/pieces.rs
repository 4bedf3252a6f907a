//! The content blocks that are left once the API has cut its input down.
//!
//! Everything before the last compaction block is dead; thinking that was
//! dropped is not shown; older models lose the thinking of earlier turns.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::request::{Block, Request, Role, is_thinking, kind};

/// A content block that is still in the prompt after all editing.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    /// Index of its message.
    pub message: usize,
    /// Index of the block in it.
    pub index: usize,
    /// Who says it.
    pub role: Role,
    /// The block, changed or not.
    pub block: Cow<'a, Block>,
}

/// The content blocks the model gets to see, before context editing: from the
/// last compaction block on, without thinking that was dropped.
pub fn pieces<'a>(request: &'a Request, dropped: &BTreeSet<(usize, usize)>) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let last_user = request
        .messages
        .iter()
        .rposition(|message| message.role == Role::User);
    for (number, message) in request.messages.iter().enumerate() {
        if message.fleeting && last_user > Some(number) {
            continue;
        }
        for (index, block) in message.blocks.iter().enumerate() {
            if kind(block) == "compaction" {
                if block.get("content").is_none_or(Value::is_null) {
                    continue;
                }
                pieces.clear();
            }
            if is_thinking(block)
                && (dropped.contains(&(number, index)) || !request.thinking.is_on())
            {
                continue;
            }
            pieces.push(Piece {
                message: number,
                index,
                role: message.role,
                block: Cow::Borrowed(block),
            });
        }
    }
    pieces
}

/// Leaves out the thinking of earlier turns, as older models do unless the
/// request says what to keep.
pub fn strip(pieces: &mut Vec<Piece<'_>>) {
    let asked = last_question(pieces);
    pieces.retain(|piece| !is_thinking(&piece.block) || Some(piece.message) > asked);
}

/// The number of the turn that each piece belongs to: a user message that is not
/// only tool results begins a new one.
pub fn turns(pieces: &[Piece<'_>]) -> Vec<usize> {
    let (mut turn, mut asked) = (0, None);
    let number = |piece: &Piece<'_>| {
        if is_question(piece) && asked != Some(piece.message) {
            turn += 1;
            asked = Some(piece.message);
        }
        turn
    };
    pieces.iter().map(number).collect()
}

fn is_question(piece: &Piece<'_>) -> bool {
    piece.role == Role::User && kind(&piece.block) != "tool_result"
}

/// The message of the newest user block that is no tool result.
fn last_question(pieces: &[Piece<'_>]) -> Option<usize> {
    let asked = pieces.iter().rfind(|piece| is_question(piece));
    asked.map(|piece| piece.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{assistant, request, user};
    use serde_json::json;

    /// Fact: everything before the last compaction block is ignored.
    #[test]
    fn a_compaction_block_hides_what_is_before_it() {
        let block = assistant(json!([{"type": "compaction", "content": "sum"}]));
        let failed = assistant(json!([{"type": "compaction", "content": null}]));
        let run = |messages: Value| {
            let request = request(&json!({"messages": messages}), &["compact-2026-01-12"]);
            pieces(&request, &BTreeSet::new()).len()
        };
        assert_eq!(run(json!([user("a"), block, user("b")])), 2);
        assert_eq!(run(json!([user("a"), failed, user("b")])), 2);
    }

    /// Fact: older models lose earlier thinking when a user message that is not
    /// only tool results arrives.
    #[test]
    fn old_thinking_is_stripped_on_old_models() {
        let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
        let call = crate::sim::testing::call("a");
        let result = crate::sim::testing::result("a");
        let run = |model: &str, last: Value| {
            let body = json!({"model": model, "messages": [user("x"), assistant(json!([thinking, call])), last],
                "thinking": {"type": "enabled", "budget_tokens": 1024}});
            let request = request(&body, &[]);
            let mut pieces = pieces(&request, &BTreeSet::new());
            if request.model.strips_thinking {
                strip(&mut pieces);
            }
            pieces
                .iter()
                .filter(|piece| is_thinking(&piece.block))
                .count()
        };
        assert_eq!(run("claude-haiku-4-5", user(json!([result]))), 1);
        assert_eq!(
            run(
                "claude-haiku-4-5",
                user(json!([result, {"type": "text", "text": "y"}]))
            ),
            0
        );
        assert_eq!(
            run(
                "claude-opus-4-5",
                user(json!([result, {"type": "text", "text": "y"}]))
            ),
            1
        );
    }

    /// Fact: a system message may be cleared at the next user message.
    #[test]
    fn a_fleeting_system_message_is_cleared() {
        let system =
            |clear_at: &str| json!({"role": "system", "content": "now", "clear_at": clear_at});
        let run = |clear_at: &str| {
            let messages = json!([user("x"), system(clear_at), assistant("y"), user("z")]);
            let betas = ["mid-conversation-system-clear-at-2026-08-21"];
            pieces(
                &request(&json!({"messages": messages}), &betas),
                &BTreeSet::new(),
            )
            .len()
        };
        assert_eq!(run("never"), 4);
        assert_eq!(run("next_user_message"), 3);
    }
}
