//! The identity of a conversation: one hash per message, each over all before.
//!
//! A conversation is recognised by the content of its beginning, so no session
//! name is needed: two requests with the same chain hash at a message have the
//! same history up to it, and forks, retries and sub-agents sort themselves
//! out. The chain starts from the tenant, so equal histories of two tenants have
//! nothing in common. Collisions must be out of reach even for someone who
//! tries, because the hash decides whose summary is shown: hence BLAKE3.

use super::ids::ChainHash;
use crate::wire::body::Body;
use crate::wire::canonical::canonical;

/// Where the conversations of a tenant start.
pub fn start(tenant: &str) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"longhaul chain 1\0");
    hasher.update(tenant.as_bytes());
    ChainHash::from_bytes(hasher.finalize().into())
}

/// One hash per message, the n-th covering the first n + 1 messages.
pub fn chain(tenant: &str, bytes: &[u8], body: &Body) -> Vec<ChainHash> {
    let mut last = start(tenant);
    let link = |message| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(last.as_bytes());
        canonical(bytes, body, message, |piece| {
            hasher.update(piece);
        });
        last = ChainHash::from_bytes(hasher.finalize().into());
        last
    };
    body.messages().iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(tenant: &str, messages: &Value) -> Vec<ChainHash> {
        let source = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        chain(tenant, &source, &Body::split(&source).unwrap())
    }

    fn same(one: &Value, other: &Value) -> bool {
        of("t", &json!([one])) == of("t", &json!([other]))
    }

    /// Claude Code and opencode mark the newest message and unmark the older.
    #[test]
    fn a_moving_cache_mark_changes_nothing() {
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let call = |marked: bool| {
            let mut call =
                json!({"type": "tool_use", "id": "t", "name": "n", "input": {"cache_control": 1}});
            if marked {
                call["cache_control"] = mark.clone();
            }
            json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, call]})
        };
        assert!(same(&call(true), &call(false)));
        let nested = |block: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [block]}]});
        let marked = nested(json!({"type": "text", "text": "x", "cache_control": mark}));
        assert!(same(&marked, &nested(json!({"type": "text", "text": "x"}))));
    }

    #[test]
    fn a_string_is_one_text_block_in_any_order_of_keys_marked_or_not() {
        let forms = [
            json!({"role": "user", "content": "x"}),
            json!({"content": "x", "role": "user"}),
            json!({"role": "user", "content": [{"type": "text", "text": "x"}]}),
            json!({"role": "user", "content": [{"text": "x", "type": "text"}]}),
            json!({"role": "user", "content": [{"cache_control": {}, "type": "text", "text": "x"}]}),
        ];
        for form in &forms {
            assert!(same(form, &forms[0]), "{form}");
        }
    }

    #[test]
    fn whatever_else_differs_makes_another_message() {
        let forms = [
            json!({"role": "user", "content": "x"}),
            json!({"role": "assistant", "content": "x"}),
            json!({"role": "system", "content": "x"}),
            json!({"role": "system", "content": "x", "clear_at": "never"}),
            json!({"role": "user", "content": "x "}),
            json!({"role": "user", "content": []}),
            json!({"role": "user", "content": [{"type": "text", "text": "x", "citations": []}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "x"}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1, "b": 2}}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"b": 2, "a": 1}}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"cache_control": 1}}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}),
        ];
        for (index, one) in forms.iter().enumerate() {
            for other in &forms[index + 1..] {
                assert!(!same(one, other), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_longer_history_begins_with_the_chain_of_the_shorter_and_forks_part() {
        let turn = |text: &str| json!({"role": "user", "content": text});
        let short = of("t", &json!([turn("a"), turn("b")]));
        let long = of("t", &json!([turn("a"), turn("b"), turn("c")]));
        let fork = of("t", &json!([turn("a"), turn("x"), turn("c")]));
        assert_eq!(long[..2], short[..]);
        assert_eq!(fork[0], long[0]);
        assert!(fork[1..].iter().all(|hash| !long.contains(hash)));
    }

    /// Invariant 9: equal histories of two tenants have nothing in common.
    #[test]
    fn tenants_share_no_hash() {
        let history = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
        let (one, other) = (of("one", &history), of("other", &history));
        assert!(one.iter().all(|hash| !other.contains(hash)));
    }

    /// Guards against one message being taken for two, or two for one.
    #[test]
    fn messages_do_not_run_into_each_other() {
        let turn = |text: &str| json!({"role": "user", "content": text});
        let split = of("t", &json!([turn("ab"), turn("c")]));
        let other = of("t", &json!([turn("a"), turn("bc")]));
        assert!(split.iter().all(|hash| !other.contains(hash)));
    }
}
