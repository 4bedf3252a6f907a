//! Server-held threads, and which requests belong to one conversation.
//!
//! A client that continues a thread sends only what is new; the rest is kept
//! here under the id of the last message, `system` and `tools` included, and
//! must not be sent again. An upstream without threads says so
//! with a code that makes SDKs resend the full history.

use std::collections::HashMap;

use serde_json::Value;

use super::account::{Account, short_hash};
use super::canonical::Digest;
use super::error::{ApiError, Checked};
use super::exchange::Judged;
use super::message::Message as Answered;
use super::options::Options;
use super::request::{Block, Message, Request, Role};
use super::state::State;

/// Threads by workspace and the id of their last message.
pub(super) type Threads = HashMap<(String, String), Held>;

/// What is kept of a thread.
#[derive(Debug)]
pub(super) struct Held {
    system: Vec<Block>,
    tools: Vec<Block>,
    messages: Vec<Message>,
}

/// Puts what is held in front of what a continued thread sends.
pub(super) fn expand(
    request: &mut Request,
    account: &Account,
    options: &Options,
    threads: &Threads,
) -> Checked {
    let Some(thread) = request
        .fields
        .get("thread")
        .filter(|thread| !thread.is_null())
    else {
        return Ok(());
    };
    if !options.threads {
        return Err(
            ApiError::invalid("thread: this request cannot be served with a thread")
                .with_code("thread_unsupported_request"),
        );
    }
    match thread.get("type").and_then(Value::as_str) {
        Some("create") => Ok(()),
        Some("continue") => {
            let id = thread
                .get("previous_message_id")
                .and_then(Value::as_str)
                .unwrap_or("");
            let repeated = [("system", &request.system), ("tools", &request.tools)];
            if let Some((field, _)) = repeated.iter().find(|(_, blocks)| !blocks.is_empty()) {
                return Err(ApiError::invalid(format!(
                    "{field}: cannot be set when a thread is continued"
                )));
            }
            let held = threads
                .get(&(account.workspace.clone(), id.to_owned()))
                .ok_or_else(|| {
                    ApiError::invalid(format!(
                        "thread.previous_message_id: message {id} not found"
                    ))
                    .with_code("thread_not_found")
                })?;
            request.system.clone_from(&held.system);
            request.tools.clone_from(&held.tools);
            request.messages.splice(0..0, held.messages.iter().cloned());
            Ok(())
        }
        _ => Err(ApiError::invalid(
            "thread: Input tag found using 'type' does not match any of the expected tags: 'create', \
             'continue'",
        )),
    }
}

/// Keeps the history of a thread under its newest message.
pub(super) fn remember(state: &mut State, judged: &Judged, message: &Answered) {
    if judged
        .request
        .fields
        .get("thread")
        .is_none_or(Value::is_null)
    {
        return;
    }
    let mut messages = judged.request.messages.clone();
    messages.push(Message {
        role: Role::Assistant,
        blocks: message.content.clone(),
        fleeting: false,
    });
    state.threads.insert(
        (judged.account.workspace.clone(), message.id.clone()),
        Held {
            system: judged.request.system.clone(),
            tools: judged.request.tools.clone(),
            messages,
        },
    );
}

/// A name for the conversation: its first message, or what a signed compaction
/// block at the start says it continues.
pub(super) fn conversation(
    request: &Request,
    account: &Account,
    compacted: Option<&str>,
) -> String {
    if let Some(conversation) = compacted {
        return conversation.to_owned();
    }
    let blocks = request
        .messages
        .first()
        .map(|message| message.blocks.as_slice())
        .unwrap_or_default();
    let first = blocks.iter().map(|block| Digest::block(Role::User, block));
    let digest = first.fold(Digest::of(&account.workspace), Digest::then);
    short_hash(&format!("{} {digest}", request.model.id))
}
