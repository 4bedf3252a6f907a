//! From a history and an overlay to the changes that make the view.
//!
//! Rendering decides nothing and writes nothing of its own: every byte it puts
//! in stands in the overlay, and every byte it leaves is the client's. The same
//! history and the same overlay always give the same view.

use super::conversation::Conversation;
use super::overlay::{Change, Edit, Overlay};
use crate::wire::body::{Block, Message};
use crate::wire::splice::Splice;

/// The overlay speaks of something that the history does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the overlay does not fit the history at message {0}")]
pub struct Misfit(pub usize);

/// The changes that turn a history into its view. `segment_mark` is put at the
/// end of the last segment: `,"cache_control":...`, or nothing.
pub fn render(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    segment_mark: &str,
) -> Result<Vec<Splice>, Misfit> {
    let mut changes = Vec::with_capacity(overlay.edits.len() + 1);
    if overlay.hides() {
        changes.push(hide(conversation, overlay, segment_mark)?);
    }
    let edits = overlay.edits.as_slice();
    for group in edits.chunk_by(|a, b| a.message == b.message) {
        let at = group.first().map_or(0, |edit| edit.message as usize);
        let message = conversation.message(at).ok_or(Misfit(at))?;
        edit(conversation.blocks(at), message, group, &mut changes).ok_or(Misfit(at))?;
    }
    Ok(changes)
}

/// Puts the segments where the hidden messages stand.
fn hide(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    segment_mark: &str,
) -> Result<Splice, Misfit> {
    let (head, cut) = (overlay.head as usize, overlay.cut as usize);
    if let Some(block) = &overlay.native {
        return native(conversation, cut, block, segment_mark);
    }
    let kept = head.checked_sub(1).and_then(|at| conversation.message(at));
    let kept = kept.ok_or(Misfit(head))?;
    let tail = conversation.message(cut).ok_or(Misfit(cut))?;
    let inserted = inserted(overlay, segment_mark);
    Ok(Splice::replace(
        kept.span.end()..tail.span.start(),
        format!(",{inserted},"),
    ))
}

/// Puts the API's own summary where everything before the tail stands.
fn native(
    conversation: &Conversation<'_>,
    cut: usize,
    block: &str,
    mark: &str,
) -> Result<Splice, Misfit> {
    let first = conversation.message(0).ok_or(Misfit(0))?;
    let tail = conversation.message(cut).ok_or(Misfit(cut))?;
    let inner = block.strip_suffix('}').ok_or(Misfit(0))?;
    Ok(Splice::replace(
        first.span.start()..tail.span.start(),
        format!(r#"{{"role":"assistant","content":[{inner}{mark}}}]}},"#),
    ))
}

/// The messages that stand for the hidden ones.
fn inserted(overlay: &Overlay, segment_mark: &str) -> String {
    let blocks: Vec<&str> = overlay.segments.iter().map(|s| s.block.as_str()).collect();
    let mut blocks = blocks.join(",");
    if blocks.ends_with('}') && !segment_mark.is_empty() {
        blocks.pop();
        blocks.push_str(segment_mark);
        blocks.push('}');
    }
    let segments = format!(r#"{{"role":"user","content":[{blocks}]}}"#);
    let before = overlay.before.iter().map(String::as_str);
    let after = overlay.after.iter().map(String::as_str);
    let messages: Vec<&str> = before.chain([segments.as_str()]).chain(after).collect();
    messages.join(",")
}

/// Puts a block behind a message's own; a string becomes the block it stands for.
fn append(blocks: &[Block], message: &Message, block: &str) -> Option<Vec<Splice>> {
    let content = message.content;
    if message.is_string {
        return Some(vec![
            Splice::insert(content.start(), r#"[{"type":"text","text":"#),
            Splice::insert(content.end(), format!("}},{block}]")),
        ]);
    }
    let comma = if blocks.is_empty() { "" } else { "," };
    let bracket = content.end().checked_sub(1)?;
    Some(vec![Splice::insert(bracket, format!("{comma}{block}"))])
}

/// Changes the blocks of one message; `None` if it has no such blocks.
fn edit(
    blocks: &[Block],
    message: &Message,
    edits: &[Edit],
    changes: &mut Vec<Splice>,
) -> Option<()> {
    let mut gone = vec![false; blocks.len()];
    for edit in edits {
        if let Change::Append(block) = &edit.change {
            changes.extend(append(blocks, message, block)?);
            continue;
        }
        let block = blocks.get(edit.block as usize)?;
        match &edit.change {
            Change::Payload(value) => {
                let payload = block.payload?;
                changes.push(Splice::replace(payload.range(), value.clone()));
            }
            Change::Block(value) => {
                changes.push(Splice::replace(block.span.range(), value.clone()));
            }
            Change::Gone => *gone.get_mut(edit.block as usize)? = true,
            // Seen to above: it has no block of its own.
            Change::Append(_) => {}
        }
    }
    if !gone.contains(&true) {
        return Some(());
    }
    // Blocks that go take the comma before them, or, at the start, after them.
    let mut from = message.content.start() + 1;
    let mut any = false;
    let mut pending: Option<usize> = None;
    for (block, gone) in blocks.iter().zip(&gone) {
        if *gone {
            pending = pending.or(Some(if any { from } else { block.span.start() }));
        } else {
            if let Some(start) = pending.take() {
                let end = block.span.start();
                let separator = if any { "," } else { "" };
                changes.push(Splice::replace(start..end, separator));
            }
            any = true;
        }
        from = block.span.end();
    }
    if let Some(start) = pending {
        changes.push(Splice::remove(start..from));
    }
    // A message may not be left empty.
    any.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Origin, Segment};
    use crate::wire::body::Body;
    use crate::wire::splice::{joined, splice};
    use bytes::Bytes;
    use serde_json::{Value, json};

    const SOURCE: &str = r#"{ "model": "m", "messages": [ {"role":"user","content":"go"} , {"role":"assistant","content":[ {"type":"thinking","thinking":"","signature":"s"} , {"type":"text","text":"1.0"}, {"type":"thinking","thinking":"x","signature":"t"}]},
 {"role":"user","content":"2"}, {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"n":1E5}}]}, {"content":[{"content":"long","tool_use_id":"a","type":"tool_result"}],"role":"user"} ], "max_tokens": 1e2 }"#;

    fn view(overlay: &Overlay, mark: &str) -> Result<String, Misfit> {
        let bytes = Bytes::from_static(SOURCE.as_bytes());
        let body = Body::split(&bytes).unwrap();
        let changes = render(&Conversation::new(&bytes, &body), overlay, mark)?;
        Ok(String::from_utf8(joined(&splice(&bytes, changes).unwrap()).to_vec()).unwrap())
    }

    fn messages(text: &str) -> Value {
        serde_json::from_str::<Value>(text).unwrap()["messages"].clone()
    }

    fn edit(message: u32, block: u32, change: Change) -> Edit {
        Edit {
            message,
            block,
            change,
        }
    }

    #[test]
    fn an_empty_overlay_shows_the_client_s_own_bytes() {
        assert_eq!(view(&Overlay::default(), "").unwrap(), SOURCE);
    }

    #[test]
    fn segments_stand_between_head_and_tail_and_nothing_else_changes() {
        let overlay = Overlay {
            made_at: 5,
            head: 1,
            cut: 2,
            native: None,
            before: vec![r#"{"role":"assistant","content":"ok"}"#.into()],
            segments: ["one", "two"]
                .map(|text| Segment {
                    block: format!(r#"{{"type":"text","text":"{text}"}}"#),
                    from: 1,
                    to: 2,
                    origin: Origin::Truncated,
                    pinned: 0,
                })
                .to_vec(),
            after: vec![r#"{"role":"assistant","content":"on"}"#.into()],
            edits: vec![],
        };
        let text = view(&overlay, r#","cache_control":{"type":"ephemeral"}"#).unwrap();
        assert!(
            text.starts_with(r#"{ "model": "m", "messages": [ {"role":"user","content":"go"},"#)
        );
        assert!(text.ends_with(r#"}]}, {"content":[{"content":"long","tool_use_id":"a","type":"tool_result"}],"role":"user"} ], "max_tokens": 1e2 }"#));
        let shown = messages(&text);
        assert_eq!(shown.as_array().unwrap().len(), 7);
        assert_eq!(
            shown[2],
            json!({"role": "user", "content": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
            ]})
        );
    }

    #[test]
    fn blocks_are_replaced_or_left_out_wherever_they_stand() {
        let overlay = |edits: Vec<Edit>| Overlay {
            made_at: 5,
            edits,
            ..Overlay::default()
        };
        let rows = [
            (vec![edit(1, 0, Change::Gone)], vec!["text", "thinking"]),
            (vec![edit(1, 2, Change::Gone)], vec!["thinking", "text"]),
            (vec![edit(1, 1, Change::Gone)], vec!["thinking", "thinking"]),
            (
                vec![edit(1, 0, Change::Gone), edit(1, 2, Change::Gone)],
                vec!["text"],
            ),
            (
                vec![edit(1, 0, Change::Gone), edit(1, 1, Change::Gone)],
                vec!["thinking"],
            ),
            (
                vec![edit(1, 1, Change::Gone), edit(1, 2, Change::Gone)],
                vec!["thinking"],
            ),
            (
                vec![
                    edit(1, 0, Change::Block(r#"{"type":"text","text":"."}"#.into())),
                    edit(1, 1, Change::Gone),
                    edit(1, 2, Change::Gone),
                ],
                vec!["text"],
            ),
        ];
        for (edits, kinds) in rows {
            let shown = messages(&view(&overlay(edits), "").unwrap());
            let found: Vec<&str> = shown[1]["content"]
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["type"].as_str().unwrap())
                .collect();
            assert_eq!(found, kinds);
        }
        let stub = overlay(vec![edit(4, 0, Change::Payload("\"stub\"".into()))]);
        let text = view(&stub, "").unwrap();
        assert_eq!(text, SOURCE.replace("\"long\"", "\"stub\""));
    }

    #[test]
    fn an_overlay_that_does_not_fit_is_refused() {
        let hide = Overlay {
            made_at: 9,
            head: 1,
            cut: 8,
            ..Overlay::default()
        };
        assert!(view(&hide, "").is_err());
        let all = |edits| Overlay {
            made_at: 5,
            edits,
            ..Overlay::default()
        };
        assert!(view(&all(vec![edit(0, 0, Change::Gone)]), "").is_err());
        assert!(
            view(&all(vec![edit(3, 0, Change::Gone)]), "").is_err(),
            "emptied"
        );
        assert!(view(&all(vec![edit(9, 0, Change::Gone)]), "").is_err());
    }
}
