//! The identity of a conversation: one hash per message, each over all before.
//!
//! A conversation is recognised by the content of its beginning, so no session
//! name is needed: two requests with the same chain hash at a message have the
//! same history up to it, and forks, retries and sub-agents sort themselves
//! out. The chain starts from the tenant, so equal histories of two tenants have
//! nothing in common. Collisions must be out of reach even for someone who
//! tries, because the hash decides whose summary is shown: hence BLAKE3. It is
//! the dearest thing that is done to a body, so it is done to each message once:
//! what is already known is found by [`super::swift`], and the chain goes on
//! from there.

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
    chain_from(start(tenant), bytes, body, 0)
}

/// The rest of a chain whose hash before message `from` is `last`: one hash for
/// each message from there on.
pub fn chain_from(last: ChainHash, bytes: &[u8], body: &Body, from: usize) -> Vec<ChainHash> {
    let messages = body.messages().get(from..).unwrap_or(&[]);
    let mut last = last;
    let next = |message| {
        last = after(last, |sink| canonical(bytes, body, message, sink));
        last
    };
    messages.iter().map(next).collect()
}

/// The hash of a conversation that goes on with one more message, given in
/// canonical form in any number of pieces. So a view, which is not in any
/// client's bytes, has a chain of the same kind: that of a view in which nothing
/// was changed is the chain of the history.
pub fn link<'a>(previous: ChainHash, pieces: impl IntoIterator<Item = &'a [u8]>) -> ChainHash {
    after(previous, |sink| pieces.into_iter().for_each(sink))
}

fn after(previous: ChainHash, message: impl FnOnce(&mut dyn FnMut(&[u8]))) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous.as_bytes());
    message(&mut |piece| {
        hasher.update(piece);
    });
    ChainHash::from_bytes(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Role;
    use crate::wire::canonical::{Shape, opening};
    use serde_json::{Value, json};

    fn source(messages: &Value) -> Vec<u8> {
        serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap()
    }

    fn of(tenant: &str, messages: &Value) -> Vec<ChainHash> {
        let source = source(messages);
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

    /// Claude Code sends its first system message as a block with a cache mark, and
    /// as a string in every later request, with `output_config` beside it.
    #[test]
    fn a_string_is_one_text_block_beside_further_keys_too() {
        let with = |content: Value| json!({"role": "system", "content": content, "output_config": {"effort": "high"}});
        let mark = json!({"type": "ephemeral"});
        let forms = [
            with(json!("x\n\"y\"")),
            with(json!([{"type": "text", "text": "x\n\"y\""}])),
            with(json!([{"type": "text", "text": "x\n\"y\"", "cache_control": mark}])),
            with(json!([{"cache_control": mark, "text": "x\n\"y\"", "type": "text"}])),
        ];
        for form in &forms {
            assert!(same(form, &forms[0]), "{form}");
        }
        let mut other = with(json!("x\n\"y\""));
        other["output_config"]["effort"] = json!("low");
        for other in [
            other,
            json!({"role": "system", "content": "x\n\"y\""}),
            with(json!([])),
            with(json!([{"type": "text", "text": "x\n\"y\"", "citations": []}])),
            with(json!([{"type": "text", "text": "x\n\"y\""}, {"type": "text", "text": "z"}])),
        ] {
            assert!(!same(&other, &forms[0]), "{other}");
        }
    }

    /// What is stored was found by these hashes.
    #[test]
    fn a_string_beside_further_keys_hashes_as_it_always_did() {
        let message = r#"{"role":"system","content":"x","output_config":{"effort":"high"}}"#;
        let expected = link(start("t"), [&b"m"[..], message.as_bytes()]);
        let source = format!(r#"{{"messages":[{message}]}}"#);
        let body = Body::split(source.as_bytes()).unwrap();
        assert_eq!(chain("t", source.as_bytes(), &body), [expected]);
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

    fn history() -> Value {
        let mark = json!({"type": "ephemeral"});
        json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x", "cache_control": mark}]},
            {"role": "user", "content": [{"type": "text", "text": "b", "cache_control": mark}], "key": 1},
            {"role": "narrator", "content": "c"},
        ])
    }

    #[test]
    fn a_chain_goes_on_from_any_place_as_if_it_had_not_stopped() {
        let source = source(&history());
        let body = Body::split(&source).unwrap();
        let whole = chain("t", &source, &body);
        for from in 0..=whole.len() {
            let last = from.checked_sub(1).map_or(start("t"), |at| whole[at]);
            assert_eq!(chain_from(last, &source, &body, from), whole[from..]);
        }
        assert!(chain_from(start("t"), &source, &body, whole.len() + 1).is_empty());
    }

    #[test]
    fn a_view_identical_to_the_history_has_its_chain() {
        let source = source(&history());
        let body = Body::split(&source).unwrap();
        let mut last = start("t");
        let mut view = Vec::new();
        for message in body.messages() {
            let mut form = Vec::new();
            canonical(&source, &body, message, |piece| {
                form.extend_from_slice(piece);
            });
            // However it happens to be cut into pieces.
            last = link(last, form.chunks(7));
            view.push(last);
        }
        assert_eq!(view, chain("t", &source, &body));
    }

    #[test]
    fn a_message_of_our_own_is_recognised_when_a_client_sends_the_same() {
        let blocks = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        let ours = [
            link(
                start("t"),
                [opening(Role::Assistant, Shape::Text), b"\"yes\""],
            ),
            link(
                start("t"),
                [opening(Role::User, Shape::Blocks), blocks.as_bytes()],
            ),
        ];
        let blocks = serde_json::from_str::<Value>(blocks).unwrap();
        let sent = [
            json!({"role": "assistant", "content": "yes"}),
            json!({"role": "user", "content": blocks}),
        ];
        for (ours, sent) in ours.iter().zip(sent) {
            assert_eq!(of("t", &json!([sent])), [*ours]);
        }
    }
}
