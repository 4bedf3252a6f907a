//! The user's own words in one message.
//!
//! Only text that stands in a message of the user's: what a tool gave back is
//! never the user speaking, even if it says so, because a page or a file that
//! says so would then give orders.

use super::{decode, injected};
use crate::engine::conversation::Conversation;
use crate::wire::body::{Kind, Role};

/// What the user wrote in a message, the texts of several blocks a line apart;
/// `None` if nothing there is the user's.
pub fn genuine(conversation: &Conversation<'_>, at: usize) -> Option<String> {
    let message = conversation.message(at)?;
    if message.role != Role::User {
        return None;
    }
    let bytes = conversation.bytes();
    let whole = message.is_string.then_some(message.content);
    let blocks = conversation.blocks(at).iter();
    let texts = blocks
        .filter(|block| block.kind == Kind::Text)
        .filter_map(|block| block.payload);
    let mut words: Option<String> = None;
    for text in whole.into_iter().chain(texts) {
        let own = decode::string(text.of(bytes)).and_then(|text| injected::own_words(&text));
        let Some(own) = own else {
            continue;
        };
        // A command's arguments come again, as the prompt they were made into.
        if words
            .as_ref()
            .is_some_and(|words| words.trim() == own.trim())
        {
            continue;
        }
        match &mut words {
            None => words = Some(own),
            Some(words) => {
                words.push('\n');
                words.push_str(&own);
            }
        }
    }
    words
}
