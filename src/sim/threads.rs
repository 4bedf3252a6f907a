//! Server-held threads, and which requests belong to one conversation.
//!
//! A client that continues a thread sends only what is new; the rest is kept
//! here under the id of the last message, `system` and `tools` included, and
//! must not be sent again. An upstream without threads says so
//! with a code that makes SDKs resend the full history.

use std::collections::HashMap;
use std::sync::Arc;

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

/// What is kept of a thread. Every message of a thread can be continued, so the
/// parts are shared: whole copies would grow with the square of its length.
#[derive(Debug)]
pub(super) struct Held {
    system: Arc<[Block]>,
    tools: Arc<[Block]>,
    messages: Vec<Arc<Message>>,
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
            let id = previous(thread);
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
            request.system = held.system.to_vec();
            request.tools = held.tools.to_vec();
            let before = held.messages.iter().map(|message| (**message).clone());
            request.messages.splice(0..0, before);
            Ok(())
        }
        _ => Err(ApiError::invalid(
            "thread: Input tag found using 'type' does not match any of the expected tags: 'create', \
             'continue'",
        )),
    }
}

fn creates(thread: &Value) -> bool {
    thread.get("type").and_then(Value::as_str) == Some("create")
}

fn previous(thread: &Value) -> &str {
    let id = thread.get("previous_message_id").and_then(Value::as_str);
    id.unwrap_or("")
}

/// Keeps the history of a thread under its newest message.
pub(super) fn remember(state: &mut State, judged: &Judged, message: &Answered) {
    let request = &judged.request;
    let thread = request.fields.get("thread");
    let Some(thread) = thread.filter(|thread| !thread.is_null()) else {
        return;
    };
    let workspace = &judged.account.workspace;
    let continued = (workspace.clone(), previous(thread).to_owned());
    let held = state.threads.get(&continued);
    let (system, tools, mut messages) = match held.filter(|_| !creates(thread)) {
        Some(held) => (
            Arc::clone(&held.system),
            Arc::clone(&held.tools),
            held.messages.clone(),
        ),
        None => (
            Arc::from(request.system.as_slice()),
            Arc::from(request.tools.as_slice()),
            Vec::new(),
        ),
    };
    let new = request.messages.iter().skip(messages.len()).cloned();
    messages.extend(new.map(Arc::new));
    messages.push(Arc::new(Message {
        role: Role::Assistant,
        blocks: message.content.clone(),
        fleeting: false,
    }));
    let held = Held {
        system,
        tools,
        messages,
    };
    state
        .threads
        .insert((workspace.clone(), message.id.clone()), held);
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
