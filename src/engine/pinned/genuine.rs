//! The user's own words in one message.
//!
//! Only text that stands in a message of the user's: what a tool gave back is
//! never the user speaking, even if it says so, because a page or a file that
//! says so would then give orders. What a client wrote into the message, and what
//! may have come with that, is not the user's either (`injected.rs`).

use super::decode;
use super::injected::{self, Spoken};
use crate::engine::conversation::Conversation;
use crate::wire::body::{Kind, Message, Role};

/// What the user wrote in a message, the texts of several blocks a line apart;
/// `None` if nothing there is the user's.
pub fn genuine(conversation: &Conversation<'_>, at: usize) -> Option<String> {
    let texts = own_texts(conversation, at);
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What stands in a message of the user's and may be somebody else's; `None` if
/// there is no such text.
pub(super) fn doubtful(conversation: &Conversation<'_>, at: usize) -> Option<String> {
    let texts = spoken_texts(conversation, at).into_iter();
    let texts: Vec<String> = texts.filter_map(|(_, spoken)| spoken.doubtful).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What the user wrote in a message, with the block that each text stands in.
pub(in crate::engine) fn own_texts(
    conversation: &Conversation<'_>,
    at: usize,
) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut joined = String::new();
    for (number, spoken) in spoken_texts(conversation, at) {
        let Some(own) = spoken.own else {
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

/// The texts of a message of the user's, with their blocks.
fn spoken_texts(conversation: &Conversation<'_>, at: usize) -> Vec<(usize, Spoken)> {
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
    whole
        .into_iter()
        .chain(texts)
        .filter_map(|(number, text)| {
            let text = decode::string(text.of(bytes))?;
            Some((number, injected::spoken(&text)))
        })
        .collect()
}
