//! Which view a reply belongs to.
//!
//! One history can be sent twice, by two replicas that did not know of each
//! other, and by two overlays. At its place one of them holds. But the client
//! goes on with one of the two replies, and what the model thought in it belongs
//! to the view it was given. The calls of a reply have ids that upstream made up
//! and the client sends back, so they tell. A mark that does not hold at its
//! place is therefore kept at a place of its own, made of the history and the
//! first call that answered it, and goes before the one that does. A reply that
//! calls nothing cannot be told from another.

use super::chain::link;
use super::conversation::Conversation;
use super::figures::Figures;
use super::ids::ChainHash;
use crate::wire::body::Kind;

/// The place of a history that was answered with this call.
pub fn place(history: ChainHash, call: &str) -> ChainHash {
    link(history, [b"longhaul reply 1\0".as_slice(), call.as_bytes()])
}

/// Where a mark goes that does not hold at its place, and its figures there;
/// `None` if nothing tells its reply.
pub fn beside(history: ChainHash, figures: &[u8]) -> Option<(ChainHash, Vec<u8>)> {
    let mut figures = Figures::read(figures);
    let calls = std::mem::take(&mut figures.reply);
    Some((place(history, calls.first()?), figures.store()))
}

/// The message before the newest reply of a conversation, and the call that
/// tells this reply.
pub fn newest(conversation: &Conversation<'_>) -> Option<(usize, String)> {
    let reply = conversation.last_assistant()?;
    let mut blocks = conversation.blocks(reply).iter();
    let call = blocks.find(|block| block.kind == Kind::ToolUse)?;
    let id = serde_json::from_slice(call.id?.of(conversation.bytes())).ok()?;
    Some((reply.checked_sub(1)?, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::json;

    #[test]
    fn a_mark_that_lost_its_place_has_one_of_its_own_and_loses_that_to_nobody() {
        let here = ChainHash::from_bytes([1; 32]);
        let mut figures = Figures::default();
        assert_eq!(beside(here, &figures.store()), None);
        figures.reply = vec!["toolu_1".to_owned(), "toolu_2".to_owned()];
        let (there, rest) = beside(here, &figures.store()).unwrap();
        assert_eq!(there, place(here, "toolu_1"));
        assert_ne!(there, place(here, "toolu_2"));
        assert_ne!(there, place(ChainHash::from_bytes([2; 32]), "toolu_1"));
        assert_eq!(beside(there, &rest), None);
    }

    #[test]
    fn a_reply_is_told_by_its_first_call() {
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "n", "input": {}});
        let rows = [
            (json!([call("a\u{e9}"), call("b")]), Some((0, "a\u{e9}"))),
            (
                json!([{"type": "text", "text": "x"}, call("b")]),
                Some((0, "b")),
            ),
            (json!([{"type": "text", "text": "x"}]), None),
            (json!("x"), None),
        ];
        for (content, expected) in rows {
            let messages = json!([
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": "on"},
            ]);
            let bytes = json!({"model": "m", "messages": messages}).to_string();
            let body = Body::split(bytes.as_bytes()).unwrap();
            let found = newest(&Conversation::new(bytes.as_bytes(), &body));
            let expected = expected.map(|(at, id)| (at, id.to_owned()));
            assert_eq!(found, expected, "{content}");
        }
    }
}
