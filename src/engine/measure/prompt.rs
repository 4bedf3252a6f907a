//! Raw counts of messages, of system and tools, and of a whole prompt.
//!
//! A conversation is resent with every request, so nothing here should be
//! called for more than is new: what was counted before is kept with the mark
//! ([`Size`]), and [`Size::grown`] adds to it. System and tools are recounted
//! only when their digest says that they changed.

use super::counter::Counter;
use super::parts::{self, Part, Sink};
use super::raw::Raw;
use crate::wire::body::{Body, Kind, Message};
use crate::wire::scan::Span;

/// Tokens around a conversation.
pub const CONVERSATION: u64 = 8;

/// Bytes by which a seal is longer than the thought it holds.
const SEAL_BYTES: u64 = 175;
/// By how many bytes a thought must be longer than what is shown of it to count
/// as hidden: seals vary a little.
const SEAL_SLACK: u64 = 64;
/// Bytes of hidden content that make a token.
const HIDDEN_BYTES: u64 = 4;

/// System and tools: what stands before the messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Base {
    /// Tells whether they are still the same, to the byte.
    pub digest: [u8; 16],
    /// Their raw count.
    pub raw: Raw,
}

/// The raw count of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// System and tools.
    pub base: Base,
    /// The messages.
    pub messages: Raw,
}

impl Size {
    /// Everything.
    pub fn raw(&self) -> Raw {
        self.base.raw + self.messages + Raw::fixed(CONVERSATION)
    }

    /// The same conversation with the messages from `from` on added. System and
    /// tools are counted if they are others than before. What stands before the
    /// API's own summary is dead and weighs nothing.
    #[must_use]
    pub fn grown(self, bytes: &[u8], body: &Body, from: usize, budget: u64) -> Self {
        let same = base_digest(bytes, body) == self.base.digest;
        let added = body.messages().get(from..).unwrap_or(&[]);
        let summary = added.iter().rposition(|m| is_summed_up(bytes, body, m));
        let (before, added) = match summary {
            Some(at) => (Raw::default(), added.get(at..).unwrap_or(&[])),
            None => (self.messages, added),
        };
        let base = if same { 0 } else { base_weight(bytes, body) };
        let ahead = added
            .iter()
            .map(|message| weight(bytes, message))
            .sum::<u64>()
            + base;
        let mut counter = Counter::bounded(budget, ahead);
        let base = if same {
            self.base
        } else {
            raw_base(bytes, body, &mut counter)
        };
        let added: Raw = added
            .iter()
            .map(|message| raw_message(bytes, message, &mut counter))
            .sum();
        Self {
            base,
            messages: before + added,
        }
    }
}

/// The raw count of a whole prompt.
pub fn raw_prompt(bytes: &[u8], body: &Body, budget: u64) -> Size {
    Size::default().grown(bytes, body, 0, budget)
}

/// Whether a message holds the API's own summary; one that failed says nothing.
fn is_summed_up(bytes: &[u8], body: &Body, message: &Message) -> bool {
    let says = |payload: Span| payload.of(bytes) != b"null";
    let mut blocks = body.blocks(message).iter();
    blocks.any(|block| block.kind == Kind::Compaction && block.payload.is_some_and(says))
}

/// The raw count of a message.
pub fn raw_message(bytes: &[u8], message: &Message, counter: &mut Counter) -> Raw {
    count(counter, |sink| {
        parts::content(message.content.of(bytes), sink);
    })
}

/// The raw count of a block, given as JSON.
pub fn raw_block(block: &[u8], counter: &mut Counter) -> Raw {
    count(counter, |sink| parts::block(block, sink))
}

/// The raw count of any value that is shown as JSON.
pub fn raw_value(value: &[u8], counter: &mut Counter) -> Raw {
    count(counter, |sink| parts::json(value, sink))
}

/// System and tools, counted.
pub fn raw_base(bytes: &[u8], body: &Body, counter: &mut Counter) -> Base {
    Base {
        digest: base_digest(bytes, body),
        raw: count(counter, |sink| base_parts(bytes, body, sink)),
    }
}

/// How many bytes of a message are text that would have to be counted.
pub fn weight(bytes: &[u8], message: &Message) -> u64 {
    weigh(|sink| parts::content(message.content.of(bytes), sink))
}

fn base_weight(bytes: &[u8], body: &Body) -> u64 {
    weigh(|sink| base_parts(bytes, body, sink))
}

fn base_parts<'a>(bytes: &'a [u8], body: &Body, sink: Sink<'_, 'a>) {
    if let Some(system) = body.field(bytes, "system") {
        parts::system(system.of(bytes), sink);
    }
    if let Some(tools) = body.field(bytes, "tools") {
        parts::tools(tools.of(bytes), sink);
    }
}

fn base_digest(bytes: &[u8], body: &Body) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for name in ["system", "tools"] {
        let value = body
            .field(bytes, name)
            .map_or(&[][..], |value| value.of(bytes));
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

fn weigh<'a>(each: impl FnOnce(Sink<'_, 'a>)) -> u64 {
    let mut bytes = 0;
    each(&mut |part| {
        if let Part::Text(text) | Part::Json(text) | Part::Thinking(text, _) = part {
            bytes += text.len() as u64;
        }
    });
    bytes
}

fn count<'a>(counter: &mut Counter, each: impl FnOnce(Sink<'_, 'a>)) -> Raw {
    let mut raw = Raw::default();
    each(&mut |part| match part {
        Part::Text(string) => raw.text += counter.json_string(string),
        Part::Json(value) => raw.text += counter.json(value),
        Part::Thinking(shown, seal) => {
            raw.thinking += counter.json_string(shown) + hidden(shown.len() as u64, seal as u64);
        }
        Part::Sealed(length) => raw.text += (length as u64).div_ceil(HIDDEN_BYTES),
        Part::Fixed(tokens) => raw.fixed += tokens,
    });
    raw
}

/// Raw tokens of a thought beyond what is shown of it.
fn hidden(shown: u64, seal: u64) -> u64 {
    let sealed = (seal / 4 * 3).saturating_sub(SEAL_BYTES);
    match sealed.saturating_sub(shown) {
        rest if shown > 2 && rest <= SEAL_SLACK => 0,
        rest => rest.div_ceil(HIDDEN_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::measure::anchor::{Anchor, measure};
    use crate::engine::measure::factor::Factor;
    use serde_json::{Value, json};

    fn size(body: &Value) -> Size {
        let bytes = body.to_string().into_bytes();
        raw_prompt(&bytes, &Body::split(&bytes).unwrap(), u64::MAX)
    }

    fn message(content: &Value) -> Raw {
        size(&json!({"messages": [{"role": "user", "content": content}]})).messages
    }

    #[test]
    fn a_string_is_one_text_block_and_marks_weigh_nothing() {
        let plain = message(&json!("hello there"));
        let mark = json!({"type": "ephemeral"});
        assert!(plain.text > 0 && plain.fixed > 0 && plain.thinking == 0);
        assert_eq!(
            plain,
            message(&json!([{"type": "text", "text": "hello there"}]))
        );
        assert_eq!(
            plain,
            message(&json!([{"type": "text", "text": "hello there", "cache_control": mark}]))
        );
    }

    #[test]
    fn the_data_of_a_picture_is_never_tokenised() {
        let data = "iVBORw0KGgo".repeat(100_000);
        let block =
            json!({"type": "image", "source": {"type": "base64", "data": data}}).to_string();
        let mut counter = Counter::exact();
        let raw = raw_block(block.as_bytes(), &mut counter);
        assert_eq!((counter.tokenised(), raw.text), (0, 0));
        assert!((1_600..=4_900).contains(&raw.fixed));
    }

    /// Fact: thinking whose text is omitted is complete, and is billed.
    #[test]
    fn hidden_thinking_weighs_by_its_seal() {
        let thinking = |text: &str, sealed: usize| {
            let seal = "A".repeat((sealed + 175) * 4 / 3);
            message(&json!([{"type": "thinking", "thinking": text, "signature": seal}])).thinking
        };
        let words = "so the cache must be checked first, then the index ".repeat(20);
        let shown = thinking(&words, words.len());
        assert_eq!(shown, Counter::exact().text(&words), "nothing is hidden");
        let hidden = thinking("", words.len());
        assert!(
            (shown..=shown * 3 / 2).contains(&hidden),
            "{hidden} {shown}"
        );
        let short = thinking("so the cache", words.len());
        assert!((shown..=shown * 3 / 2).contains(&short), "{short} {shown}");
        assert_eq!(thinking("", 0), 0);
    }

    #[test]
    fn counting_what_is_new_gives_the_same_as_counting_everything() {
        let turns: Vec<Value> = (0..6)
            .map(|turn| json!({"role": "user", "content": format!("turn {turn} says this")}))
            .collect();
        let request = |count: usize, system: &str| {
            let body =
                json!({"system": system, "tools": [{"name": "n"}], "messages": turns[..count]});
            body.to_string().into_bytes()
        };
        let (short, long) = (request(2, "s"), request(6, "s"));
        let (one, other) = (Body::split(&short).unwrap(), Body::split(&long).unwrap());
        let before = raw_prompt(&short, &one, u64::MAX);
        let whole = raw_prompt(&long, &other, u64::MAX);
        assert_eq!(before.grown(&long, &other, 2, u64::MAX), whole);
        let changed = request(6, "another system prompt");
        let body = Body::split(&changed).unwrap();
        let grown = before.grown(&changed, &body, 2, u64::MAX);
        assert_ne!(grown.base.digest, before.base.digest);
        assert_eq!(grown, raw_prompt(&changed, &body, u64::MAX));
    }

    /// Fact: everything before the last compaction block is ignored.
    #[test]
    fn what_stands_before_the_apis_own_summary_is_dead() {
        let turns = |content: Value| {
            json!({"messages": [
                {"role": "user", "content": "a long story ".repeat(50)},
                {"role": "assistant", "content": [{"type": "compaction", "content": content}]},
                {"role": "user", "content": "go on"},
            ]})
        };
        assert!(size(&turns(json!("summary"))).messages.text < 10);
        assert!(size(&turns(Value::Null)).messages.text > 100);
    }

    /// Fact: upstream counts from the summary on, and so must what is added to a
    /// count from before it.
    #[test]
    fn a_summary_of_the_api_s_that_comes_later_begins_the_count_anew() {
        let story = json!({"role": "user", "content": "a long story ".repeat(3_000)});
        let summary = |content: Value| json!({"role": "assistant", "content": [{"type": "compaction", "content": content}]});
        let request = |messages: &[Value]| json!({"messages": messages}).to_string().into_bytes();
        let short = request(std::slice::from_ref(&story));
        let before = raw_prompt(&short, &Body::split(&short).unwrap(), u64::MAX);
        let on = json!({"role": "user", "content": "go on"});
        let grown = |content: Value| {
            let long = request(&[story.clone(), summary(content), on.clone()]);
            let body = Body::split(&long).unwrap();
            let grown = before.grown(&long, &body, 1, u64::MAX);
            assert_eq!(grown, raw_prompt(&long, &body, u64::MAX));
            grown
        };
        assert!(grown(Value::Null).raw().scaled() > 9_000);
        // Upstream reports sixty tokens of what is left; a turn is added to that.
        let size = grown(json!("so far the story went on and on"));
        let anchor = Anchor { tokens: 60, size };
        let more = json!({"role": "user", "content": "and then"});
        let longer = request(&[
            story.clone(),
            summary(json!("so far the story went on and on")),
            on.clone(),
            more,
        ]);
        let now = size.grown(&longer, &Body::split(&longer).unwrap(), 3, u64::MAX);
        let measured = measure(Some(&anchor), &now, &Factor::assumed(1.0));
        assert!((60..90).contains(&measured.tokens), "{measured:?}");
    }

    #[test]
    fn any_value_has_a_size() {
        for value in [
            &b""[..],
            b"x",
            b"{",
            b"[{",
            b"\"",
            b"null",
            b"[[[[[[[[1]]]]]]]]",
            b"{\"type\":\"text\"}",
        ] {
            let mut counter = Counter::exact();
            raw_block(value, &mut counter);
            raw_value(value, &mut counter);
        }
    }
}
