//! Looks at a view: whether everything in it is the client's or explained.
//!
//! This knows nothing of overlays. It compares what a client sent with what
//! upstream got and accepts only what a view may do: a notice in place of old
//! messages, the opening of a turn that is cut inside, a stub in place of an old
//! result, thinking that is gone.

use longhaul::wire::body::{Body, Message, Role};
use longhaul::wire::splice::{Splice, joined, splice};
use serde_json::Value;

/// How what stands for hidden messages begins.
const NOTICES: [&str; 2] = ["[longhaul: messages ", "[longhaul: summary of messages "];

/// What upstream got.
#[derive(Clone)]
pub struct Sent {
    pub bytes: bytes::Bytes,
    /// Its messages without what is no part of their identity.
    pub view: Vec<String>,
    /// An overlay made it.
    pub overlaid: bool,
}

/// The messages of a body, each without cache marks, a lone text as a string.
pub fn bare(bytes: &[u8]) -> Vec<String> {
    let body = Body::split(bytes).unwrap();
    body.messages()
        .iter()
        .map(|message| bare_message(bytes, &body, message))
        .collect()
}

fn bare_message(bytes: &[u8], body: &Body, message: &Message) -> String {
    let text = match body.blocks(message) {
        [] if message.is_string => Some(message.content),
        [block] if block.is_plain_text => block.payload,
        _ => None,
    };
    if let Some(text) = text.filter(|_| message.is_plain) {
        return format!("{:?} {}", message.role, text_of(text.of(bytes)));
    }
    let start = message.span.start();
    let own = bytes::Bytes::copy_from_slice(message.span.of(bytes));
    let cut = |mark: &longhaul::wire::body::Mark| {
        Splice::remove(mark.cut.start() - start..mark.cut.end() - start)
    };
    let cuts = body.marks(message).iter().map(cut).collect();
    text_of(&joined(&splice(&own, cuts).unwrap()))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// How a view came out of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub hidden: usize,
    pub stubs: usize,
    /// Results that lost their middle.
    pub trims: usize,
    pub thinking_gone: usize,
    /// Some of it was in the latest reply.
    pub latest_gone: bool,
    pub asks_to_drop: bool,
}

/// Explains a view, or says what cannot be explained.
pub fn explain(own: &[u8], sent: &[u8]) -> Result<Shape, String> {
    let mut shape = Shape {
        asks_to_drop: fields(own, sent)?,
        ..Shape::default()
    };
    let (mine, shown) = (bare(own), bare(sent));
    let (my_values, shown_values) = (values(own), values(sent));
    let body = Body::split(own).unwrap();
    let roles: Vec<Role> = body.messages().iter().map(|m| m.role).collect();
    let assistant = |role: &Role| *role == Role::Assistant;
    let latest = roles.iter().rposition(assistant).unwrap_or(0);
    let first = roles.iter().position(assistant).unwrap_or(roles.len());
    let notice = shown
        .iter()
        .position(|m| NOTICES.iter().any(|notice| m.contains(notice)));
    let (head, tail) = match notice {
        None => (shown.len(), shown.len()),
        Some(at) => {
            let is = |at: usize, text: &str| shown.get(at).is_some_and(|m| m.contains(text));
            let before = at > 0 && is(at - 1, "Understood. What follows stands for");
            let after = is(at + 1, "Noted. I continue from the messages");
            // Else the tail follows at once.
            let behind = mine.len().checked_sub(shown.len() - at - 1);
            let follows = behind.is_some_and(|behind| mine.get(behind) == shown.get(at + 1));
            let next = shown_values.get(at + 1..at + 3);
            let carried = !follows && next.is_some_and(|next| is_opening(&my_values, next));
            let after = usize::from(after) + 2 * usize::from(carried);
            (at - usize::from(before), at + 1 + after)
        }
    };
    if notice.is_some() && head != first && !mine[..head].join("").contains("compaction") {
        return Err(format!("{head} messages are kept of a head of {first}"));
    }
    let behind = shown.len() - tail;
    let Some(cut) = mine.len().checked_sub(behind).filter(|cut| *cut >= head) else {
        return Err("there are more messages than there were".to_owned());
    };
    if notice.is_none() && cut != head {
        return Err("messages are missing without a notice".to_owned());
    }
    shape.hidden = cut - head;
    let kept = (0..head).map(|at| (at, at));
    let kept = kept.chain((0..behind).map(|at| (cut + at, tail + at)));
    for (at, place) in kept {
        if mine[at] == shown[place] {
            continue;
        }
        let changed = |what: &str| {
            let (mine, shown) = (&mine[at], &shown[place]);
            Err(format!("message {at}: {what}\n{mine}\n{shown}"))
        };
        let (stubs, gone) = (shape.stubs, shape.thinking_gone);
        if at < first {
            return changed("the head is not as it was");
        }
        if !edited(&my_values[at], &shown_values[place], &mut shape) {
            return changed("it is not as it was");
        }
        if at == latest && shape.thinking_gone > gone {
            let calls = |block: &Value| block["type"] == "tool_use";
            if my_values[at].as_array().unwrap().iter().any(calls) {
                return changed("thinking of an open tool loop is gone");
            }
            shape.latest_gone = true;
        }
        if at >= latest && shape.stubs > stubs {
            return changed("a result of the newest cycle is cleared");
        }
    }
    Ok(shape)
}

/// Whether these messages are how the last turn opens: a thought, one call, and
/// a stub for its result.
fn is_opening(own: &[Value], shown: &[Value]) -> bool {
    let only_results = |blocks: &Vec<Value>| {
        !blocks.is_empty() && blocks.iter().all(|b| b["type"] == "tool_result")
    };
    let blocks = |message: &Value| message.as_array().unwrap().clone();
    let (said, answer) = (blocks(&shown[0]), blocks(&shown[1]));
    if answer.len() != 1 {
        return false;
    }
    let own: Vec<Vec<Value>> = own.iter().map(blocks).collect();
    let opens = own.windows(3).any(|window| {
        let first = window[1].first();
        !only_results(&window[0])
            && first == said.first()
            && first.is_some_and(|block| block["type"] != "text" && block["type"] != "tool_use")
            && said.iter().all(|block| {
                let same = |own: &Value| {
                    own == block || (block["id"].is_string() && own["id"] == block["id"])
                };
                window[1].iter().any(same)
            })
            && only_results(&window[2])
            && window[2]
                .iter()
                .any(|result| result["tool_use_id"] == answer[0]["tool_use_id"])
    });
    let call = said.last().map(|call| &call["id"]);
    opens && call == Some(&answer[0]["tool_use_id"])
}

/// Compares everything but the messages; whether upstream is asked to drop.
fn fields(own: &[u8], sent: &[u8]) -> Result<bool, String> {
    const DROP: &str = r#""block_binding":{"prefix_mismatch_behavior":"drop_block"}"#;
    let list = |bytes: &[u8]| -> Vec<(String, String)> {
        let body = Body::split(bytes).unwrap();
        let pair = |field: &longhaul::wire::body::Field| {
            (text_of(field.key.of(bytes)), text_of(field.value.of(bytes)))
        };
        let fields = body.fields().iter().map(pair);
        fields.filter(|(key, _)| key != "\"messages\"").collect()
    };
    let (own, mut sent) = (list(own), list(sent));
    let mut drops = false;
    for (_, value) in sent.iter_mut().filter(|(key, _)| key == "\"thinking\"") {
        if value.contains(DROP) && !own.iter().any(|(_, own)| own == value) {
            *value = value.replace(&format!(",{DROP}"), "");
            drops = true;
        }
    }
    if drops && own.len() < sent.len() {
        sent.remove(0);
    }
    if own != sent {
        return Err(format!("top-level fields differ: {own:?} {sent:?}"));
    }
    Ok(drops)
}

fn values(bytes: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(bytes).unwrap();
    let mut messages = body["messages"].as_array().unwrap().clone();
    let blocks = |message: &mut Value| -> Vec<Value> {
        let mut blocks = message["content"].as_array().cloned().unwrap_or_default();
        for block in &mut blocks {
            block.as_object_mut().unwrap().shift_remove("cache_control");
            for nested in block["content"].as_array_mut().into_iter().flatten() {
                nested
                    .as_object_mut()
                    .unwrap()
                    .shift_remove("cache_control");
            }
            // Looking at a key that is not there has made it.
            if block["content"].is_null() {
                block.as_object_mut().unwrap().shift_remove("content");
            }
        }
        blocks
    };
    messages.iter_mut().map(|m| blocks(m).into()).collect()
}

/// Whether one result is another without its middle.
fn is_trimmed(own: &Value, shown: &Value) -> bool {
    let texts = |value: &Value| -> String {
        let blocks = value.as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| block["text"].as_str());
        value
            .as_str()
            .map_or_else(|| texts.collect(), str::to_owned)
    };
    let others = |value: &Value| -> Vec<Value> {
        let blocks = value.as_array().into_iter().flatten();
        blocks.filter(|b| b["type"] != "text").cloned().collect()
    };
    let (mine, theirs) = (texts(own), texts(shown));
    let Some((head, rest)) = theirs.split_once("[longhaul: ") else {
        return false;
    };
    let Some((notice, tail)) = rest.split_once(']') else {
        return false;
    };
    notice.contains("of this result were cut out here")
        && mine.starts_with(head.trim_end())
        && mine.ends_with(tail.trim_start())
        && others(own) == others(shown)
}

/// Whether one message is another with stubs and without some thinking.
fn edited(own: &Value, shown: &Value, shape: &mut Shape) -> bool {
    let thinks = |block: &Value| {
        matches!(
            block["type"].as_str(),
            Some("thinking" | "redacted_thinking")
        )
    };
    let mut shown = shown.as_array().unwrap().iter().peekable();
    for block in own.as_array().unwrap() {
        if shown.peek() == Some(&block) {
            shown.next();
            continue;
        }
        if thinks(block) {
            shape.thinking_gone += 1;
            continue;
        }
        let Some(other) = shown.next() else {
            return false;
        };
        let mut restored = other.clone();
        restored["content"] = block["content"].clone();
        if restored != *block {
            return false;
        }
        let stub = other["content"].as_str().unwrap_or("");
        let is_stub = stub.starts_with("[longhaul: the result of ");
        let is_error = block["is_error"] == Value::Bool(true);
        if is_stub && (!is_error || stub.contains("; it began: ")) {
            shape.stubs += 1;
        } else if is_trimmed(&block["content"], &other["content"]) {
            shape.trims += 1;
        } else {
            return false;
        }
    }
    match shown.next() {
        None => true,
        // All of it was thinking.
        Some(block) => block["text"] == "[longhaul: thinking left out]" && shown.next().is_none(),
    }
}
