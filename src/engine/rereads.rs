//! Does the agent fetch again what a pass has removed? The live sign of lost
//! quality.
//!
//! What was fetched is told by the same rules that pair calls and results. A
//! thing counts as removed if no result that shows it is left in the view, so
//! that reading a file once more because it has changed is not held against the
//! pass.

use std::collections::HashSet;

use super::acts::{act, key};
use super::conversation::{Call, Conversation};
use super::overlay::Overlay;
use crate::wire::body::{Block, Kind};

/// What an overlay has removed from a view, and no result shows any more.
pub fn removed(conversation: &Conversation<'_>, overlay: &Overlay) -> HashSet<u64> {
    let (mut gone, mut shown) = (HashSet::new(), HashSet::new());
    for Call { used, result } in conversation.calls() {
        let Some(result) = result.filter(|result| result.0 < overlay.made_at as usize) else {
            continue;
        };
        let Some(key) = conversation
            .block_at(used)
            .and_then(|block| fetches(conversation, block))
        else {
            continue;
        };
        let stub = overlay.change_at(result.0, result.1);
        let is_gone = !overlay.shows(result.0) || stub.is_some_and(super::overlay::Change::is_stub);
        if is_gone {
            gone.insert(key);
        } else {
            shown.insert(key);
        }
    }
    gone.retain(|key| !shown.contains(key));
    gone
}

/// What the newest message of the assistant's fetches.
pub fn fetched(conversation: &Conversation<'_>) -> Vec<u64> {
    let last = conversation.last_assistant();
    let blocks = last.map_or(&[][..], |last| conversation.blocks(last));
    blocks
        .iter()
        .filter_map(|block| fetches(conversation, block))
        .collect()
}

fn fetches(conversation: &Conversation<'_>, block: &Block) -> Option<u64> {
    let bytes = conversation.bytes();
    if block.kind != Kind::ToolUse {
        return None;
    }
    let name: String = serde_json::from_slice(block.name?.of(bytes)).ok()?;
    key(&name, &act(&name, block.payload?.of(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Change, Edit};
    use crate::wire::body::Body;
    use serde_json::{Value, json};

    fn cycle(id: &str, path: &str) -> [Value; 2] {
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "text"}]}),
        ]
    }

    #[test]
    fn what_was_removed_and_is_fetched_again_is_told_from_what_is_still_shown() {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        for (id, path) in [("1", "/a"), ("2", "/b"), ("3", "/b"), ("4", "/c")] {
            messages.extend(cycle(id, path));
        }
        for (path, expected) in [("/a", true), ("/b", false), ("/c", false), ("/d", false)] {
            let mut messages = messages.clone();
            messages.extend(cycle("9", path));
            let bytes = json!({ "messages": messages }).to_string().into_bytes();
            let body = Body::split(&bytes).unwrap();
            let conversation = Conversation::new(&bytes, &body);
            let stub = |message| Edit {
                message,
                block: 0,
                change: Change::Payload("\"[gone]\"".to_owned()),
            };
            let overlay = Overlay {
                made_at: 9,
                edits: vec![stub(2), stub(4)],
                ..Overlay::default()
            };
            let gone = removed(&conversation, &overlay);
            assert_eq!(gone.len(), 1);
            let again = fetched(&conversation);
            assert_eq!(again.len(), 1);
            assert_eq!(gone.contains(&again[0]), expected, "{path}");
        }
    }
}
