//! The user's own words in one message.
//!
//! Only text that stands in a message of the user's: what a tool gave back is
//! never the user speaking, even if it says so, because a page or a file that
//! says so would then give orders.

use super::{decode, injected};
use crate::engine::conversation::Conversation;
use crate::wire::body::{Kind, Message, Role};

/// What the user wrote in a message, the texts of several blocks a line apart;
/// `None` if nothing there is the user's.
pub fn genuine(conversation: &Conversation<'_>, at: usize) -> Option<String> {
    let texts = own_texts(conversation, at);
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The same, with the block that each text stands in.
pub(in crate::engine) fn own_texts(
    conversation: &Conversation<'_>,
    at: usize,
) -> Vec<(usize, String)> {
    let user = |message: &&Message| message.role == Role::User;
    let Some(message) = conversation.message(at).filter(user) else {
        return Vec::new();
    };
    let bytes = conversation.bytes();
    let whole = message.is_string.then_some((0, message.content));
    let blocks = conversation.blocks(at).iter().enumerate();
    let texts = blocks
        .filter(|(_, block)| block.kind == Kind::Text)
        .filter_map(|(number, block)| Some((number, block.payload?)));
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut joined = String::new();
    for (number, text) in whole.into_iter().chain(texts) {
        let own = decode::string(text.of(bytes)).and_then(|text| injected::own_words(&text));
        let Some(own) = own else {
            continue;
        };
        // A command's arguments come again, as the prompt they were made into.
        if !words.is_empty() {
            if joined.trim() == own.trim() {
                continue;
            }
            joined.push('\n');
        }
        joined.push_str(&own);
        words.push((number, own));
    }
    words
}
