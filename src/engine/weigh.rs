//! What each message of a view weighs, in tokens.
//!
//! The view as a whole has been measured; here that is shared out among its
//! messages, and among the blocks that may go. The text is counted with a bound
//! on the work, so that a pass over megabytes takes milliseconds, and the shares
//! are scaled to what was measured: only their proportions come from here.

use std::collections::HashMap;

use super::conversation::Conversation;
use super::measure::{Counter, Raw, raw_block, weight};
use super::overlay::{Change, Overlay};
use crate::wire::body::Kind;

/// Raw tokens and bytes of a segment, as a ratio. Measured on recordings, with
/// digests.
const SEGMENT: (u64, u64) = (2, 7);

/// Raw tokens of the text of segments of this many bytes, about.
pub fn raw_segments(bytes: usize) -> u64 {
    share(bytes as u64, SEGMENT)
}

/// Bytes that may be tokenised to weigh a view.
const BUDGET: u64 = 128 * 1024;

/// The weights of a view.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// Tokens of each message, as it is shown; hidden ones weigh nothing.
    pub messages: Vec<u64>,
    /// Tokens of thinking in each.
    pub thinking: Vec<u64>,
    /// Pictures that are shown.
    pub images: usize,
    blocks: HashMap<(usize, usize), u64>,
    scale: (u64, u64),
    /// It is bytes that are weighed.
    in_bytes: bool,
}

impl Weights {
    /// Weighs a view whose messages come to so many tokens.
    pub fn new(conversation: &Conversation<'_>, overlay: &Overlay, tokens: u64) -> Self {
        let bytes = conversation.bytes();
        let shown = || (0..conversation.len()).filter(|at| overlay.shows(*at));
        let ahead = shown()
            .filter_map(|at| conversation.message(at))
            .map(|message| weight(bytes, message))
            .sum();
        let mut counter = Counter::bounded(BUDGET, ahead);
        let mut raws = vec![Raw::default(); conversation.len()];
        let mut blocks = HashMap::new();
        let mut images = 0;
        for at in shown() {
            let mut sum = Raw::default();
            for (index, block) in conversation.blocks(at).iter().enumerate() {
                let edit = overlay.change_at(at, index);
                let raw = match edit {
                    Some(Change::Gone) => continue,
                    Some(Change::Payload(with) | Change::Block(with)) => {
                        raw_block(&shown_as(with), &mut counter)
                    }
                    None | Some(Change::Append(_)) => {
                        images += pictures(conversation, (at, index));
                        raw_block(block.span.of(bytes), &mut counter)
                    }
                };
                if matches!(block.kind, Kind::ToolResult | Kind::ToolUse) {
                    blocks.insert((at, index), raw.total());
                }
                sum += raw;
            }
            if conversation.blocks(at).is_empty() {
                let message = conversation.message(at);
                let text = message.map_or(&[][..], |message| message.content.of(bytes));
                sum = raw_block(&shown_as_bytes(text), &mut counter);
            }
            if let Some(raw) = raws.get_mut(at) {
                *raw = sum;
            }
        }
        let all: u64 = raws.iter().map(|raw| raw.total()).sum();
        let scale = (tokens, all.max(1));
        let scaled = |raw: u64| share(raw, scale);
        Self {
            messages: raws.iter().map(|raw| scaled(raw.total())).collect(),
            thinking: raws.iter().map(|raw| scaled(raw.thinking)).collect(),
            images,
            blocks,
            scale,
            in_bytes: false,
        }
    }

    /// Weighs in bytes: for what is limited by them, and not by tokens.
    pub fn in_bytes(conversation: &Conversation<'_>, overlay: &Overlay) -> Self {
        let mut weights = Self {
            messages: vec![0; conversation.len()],
            thinking: vec![0; conversation.len()],
            scale: (3, 1),
            in_bytes: true,
            ..Self::default()
        };
        for at in (0..conversation.len()).filter(|at| overlay.shows(*at)) {
            let message = conversation.message(at);
            let mut sum = message.map_or(0, |message| message.span.len() as u64);
            for (index, block) in conversation.blocks(at).iter().enumerate() {
                let whole = block.span.len() as u64;
                let payload = block.payload.map_or(0, |payload| payload.len() as u64);
                let left = match overlay.change_at(at, index) {
                    None | Some(Change::Append(_)) => whole,
                    Some(Change::Gone) => 0,
                    Some(Change::Block(with)) => with.len() as u64,
                    Some(Change::Payload(with)) => whole - payload + with.len() as u64,
                };
                sum = sum.saturating_sub(whole) + left;
                weights.images += pictures(conversation, (at, index));
                // The scale is for text of ours, which is counted in thirds.
                weights.blocks.insert((at, index), left.div_ceil(3));
            }
            if let Some(slot) = weights.messages.get_mut(at) {
                *slot = sum;
            }
        }
        weights
    }

    /// Tokens of a tool's call or result, as it is shown.
    pub fn block(&self, place: (usize, usize)) -> u64 {
        let raw = self.blocks.get(&place).copied().unwrap_or(0);
        share(raw, self.scale)
    }

    /// Tokens of some text of ours: a rough count, because it is short.
    pub fn of_text(&self, text: &str) -> u64 {
        self.of_length(text.len())
    }

    /// Tokens of a segment, or of what stands with segments.
    pub fn of_segment(&self, block: &str) -> u64 {
        self.of_segments(block.len())
    }

    /// Tokens of that many bytes of segments.
    pub fn of_segments(&self, bytes: usize) -> u64 {
        if self.in_bytes {
            bytes as u64
        } else {
            share(raw_segments(bytes), self.scale)
        }
    }

    /// Tokens of a text of ours of this many bytes.
    pub fn of_length(&self, bytes: usize) -> u64 {
        share((bytes as u64).div_ceil(3), self.scale)
    }

    /// The same for each so many bytes of it.
    pub fn of_each_text(&self) -> (u64, u64) {
        let (tokens, raw) = self.scale;
        (tokens, raw.saturating_mul(3))
    }

    /// Tokens from each message on; one more than there are messages.
    pub fn behind(each: &[u64]) -> Vec<u64> {
        let mut sums = vec![0; each.len() + 1];
        let mut sum = 0_u64;
        for (at, weight) in each.iter().enumerate().rev() {
            sum = sum.saturating_add(*weight);
            if let Some(slot) = sums.get_mut(at) {
                *slot = sum;
            }
        }
        sums
    }
}

fn share(raw: u64, (tokens, all): (u64, u64)) -> u64 {
    let share = u128::from(raw) * u128::from(tokens) / u128::from(all);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// A text block that holds a value.
fn shown_as(value: &str) -> Vec<u8> {
    shown_as_bytes(value.as_bytes())
}

fn shown_as_bytes(value: &[u8]) -> Vec<u8> {
    [br#"{"type":"tool_result","content":"#, value, b"}"].concat()
}

/// Pictures in a block, results included.
pub fn pictures(conversation: &Conversation<'_>, place: (usize, usize)) -> usize {
    let Some(block) = conversation.block_at(place) else {
        return 0;
    };
    match (block.kind, block.payload) {
        (Kind::Image, _) => 1,
        (Kind::ToolResult, Some(payload)) => {
            let payload = payload.of(conversation.bytes());
            if payload.first() != Some(&b'[') {
                return 0;
            }
            // How it is spaced is the client's choice; a text that quotes this
            // costs no more than a wrong guess at a price.
            memchr::memmem::find_iter(payload, br#""image""#).count()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::json;

    fn body() -> (Vec<u8>, Body) {
        let result = |id: &str, content: serde_json::Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
        let call =
            |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"path": id}});
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(400_000)}});
        let bytes = json!({"messages": [
            {"role": "user", "content": "go on with the work"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "so it is ".repeat(30), "signature": "s"}, call("a")]},
            {"role": "user", "content": [result("a", json!("a word and another\n".repeat(400)))]},
            {"role": "assistant", "content": [call("b")]},
            {"role": "user", "content": [result("b", json!([image]))]},
        ]}).to_string().into_bytes();
        let body = Body::split(&bytes).unwrap();
        (bytes, body)
    }

    #[test]
    fn what_was_measured_is_shared_out() {
        let (bytes, body) = body();
        let conversation = Conversation::new(&bytes, &body);
        let weights = Weights::new(&conversation, &Overlay::default(), 10_000);
        let sum: u64 = weights.messages.iter().sum();
        assert!((9_990..=10_000).contains(&sum), "{weights:?}");
        assert!(weights.block((2, 0)) > 3_000, "{weights:?}");
        assert!(
            weights.block((4, 0)) < 6_000,
            "a picture is not its letters: {weights:?}"
        );
        assert_eq!(weights.images, 1);
        assert!(weights.thinking[1] > 50 && weights.thinking[2] == 0);
        let behind = Weights::behind(&weights.messages);
        assert_eq!(behind[0], sum);
        assert_eq!(behind[5], 0);
    }

    #[test]
    fn what_was_replaced_weighs_what_stands_there() {
        use crate::engine::overlay::Edit;
        let (bytes, body) = body();
        let conversation = Conversation::new(&bytes, &body);
        let overlay = Overlay {
            made_at: 5,
            edits: vec![Edit {
                message: 2,
                block: 0,
                change: Change::Payload(r#""[gone]""#.to_owned()),
            }],
            ..Overlay::default()
        };
        let weights = Weights::new(&conversation, &overlay, 10_000);
        assert!(weights.block((2, 0)) < weights.block((4, 0)), "{weights:?}");
    }
}
