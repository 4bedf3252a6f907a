//! What stands for messages that nobody has summed up: a few words on where they
//! are, and what code has copied out of them.
//!
//! Where the window is full and no summary could be made it is a loss, and the
//! notice says so loudly. In the journal style it is the usual way: old turns
//! are shown no longer and looked up when they are needed. Either way a notice
//! is added behind the earlier segments, which stay as they are; when there are
//! too many, the notices at the end are written anew as one, from the messages
//! themselves.

use std::ops::Range;

use super::conversation::Conversation;
use super::digest::Size;
use super::ids::ChainHash;
use super::overlay::{Origin, Overlay, Segment};
use super::pinned::{self, Pinned, pinned};
use super::recall::reference::reference_of_span;
use super::recall::telling::Telling;
use super::stub;

/// The part of the budget for the user's words that every notice may have.
const AT_LEAST: u64 = 8;

/// How notices are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notice {
    /// How much is pinned; none: nothing.
    pub pins: Option<pinned::Settings>,
    /// Segments from which on notices are merged.
    pub max_segments: usize,
    /// What is left out is kept, and may be promised in these words.
    pub archives: Option<Telling>,
    /// It is the usual way, and no loss.
    pub journal: bool,
    /// How long the digests of what is hidden are.
    pub digest: Size,
}

impl Notice {
    /// Where a notice begins that follows on what is hidden: behind the last
    /// segment, or with the notices before it, when there are many segments, or
    /// when the user's words have no more room in another.
    pub fn begins(&self, conversation: &Conversation<'_>, overlay: &Overlay) -> usize {
        let head = conversation.head();
        let hidden = (overlay.cut as usize).max(head);
        if overlay.native.is_some() {
            // The API's own summary goes, and with it all account of the rest.
            return head;
        }
        let segments = alive(overlay, head);
        let crowded = self.max_segments > 0 && segments.len() >= self.max_segments;
        let words: u64 = segments.iter().map(|segment| segment.pinned).sum();
        let room = self
            .pins
            .as_ref()
            .map_or(u64::MAX, |pins| pins.user_tokens / 4 * 3);
        let merges = crowded || (self.journal && words > room);
        if !merges {
            return hidden;
        }
        let notices = segments.iter().rev();
        let run = notices.take_while(|segment| segment.origin == Origin::Truncated);
        run.last().map_or(hidden, |first| first.from as usize)
    }

    /// The notice that stands for these messages.
    pub fn segment(
        &self,
        conversation: &Conversation<'_>,
        overlay: &Overlay,
        seed: ChainHash,
        messages: Range<usize>,
    ) -> Segment {
        let pins = self.left(conversation, overlay, messages.start);
        let pinned = pins.map(|pins| pinned(conversation, messages.clone(), &pins));
        let words = pinned.as_ref().map_or(0, Pinned::user_tokens);
        let text = pinned.map_or_else(String::new, |pinned| pinned.text());
        let count = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let (from, to) = (count(messages.start), count(messages.end));
        let archived = self.archives.as_ref();
        let archived = archived.map(|telling| (reference_of_span(seed, from, to), telling));
        Segment {
            // What is not kept is lost, whatever the style.
            block: match archived.filter(|_| self.journal) {
                Some(archived) => stub::journaled(from, to, archived, &text),
                None => stub::truncated(from, to, archived, &text),
            },
            from,
            to,
            origin: Origin::Truncated,
            pinned: words,
        }
    }

    /// How much may be pinned in a segment that begins there: what the ones
    /// before it have left.
    fn left(
        &self,
        conversation: &Conversation<'_>,
        overlay: &Overlay,
        from: usize,
    ) -> Option<pinned::Settings> {
        let pins = self.pins.clone()?;
        let before = alive(overlay, conversation.head()).iter();
        let before = before.filter(|segment| (segment.from as usize) < from);
        let used: u64 = before.clone().map(|segment| segment.pinned).sum();
        let left = pins.user_tokens.saturating_sub(used);
        Some(pinned::Settings {
            user_tokens: left.max(pins.user_tokens / AT_LEAST),
            digest_bytes: self.digest.for_segment(before),
            ..pins
        })
    }
}

/// The segments that are shown. A summary of the API's own that came behind what
/// was hidden is the head now, and has made them dead.
fn alive(overlay: &Overlay, head: usize) -> &[Segment] {
    if (overlay.cut as usize) < head {
        &[]
    } else {
        &overlay.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::json;

    fn segment(from: u32, to: u32, origin: Origin, pinned: u64) -> Segment {
        Segment {
            block: String::new(),
            from,
            to,
            origin,
            pinned,
        }
    }

    fn overlay(segments: Vec<Segment>) -> Overlay {
        Overlay {
            made_at: 40,
            head: 1,
            cut: segments.last().map_or(1, |last| last.to),
            segments,
            ..Overlay::default()
        }
    }

    fn with<T>(ask: impl FnOnce(&Conversation<'_>) -> T) -> T {
        let turn = |at: usize| {
            let said = json!({"role": "user", "content": format!("step {at}, and mind the gap")});
            [said, json!({"role": "assistant", "content": "done"})]
        };
        let messages: Vec<_> = (0..20).flat_map(turn).collect();
        let bytes = json!({"model": "m", "messages": messages}).to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        ask(&Conversation::new(bytes.as_bytes(), &body))
    }

    fn notice(journal: bool) -> Notice {
        Notice {
            pins: Some(pinned::Settings {
                user_tokens: 1_000,
                plan_tokens: 1_200,
                former_plan: None,
                files: 10,
                errors: 2,
                digest_bytes: 0,
            }),
            max_segments: 3,
            archives: Some(Telling::Archived),
            journal,
            digest: Size::default(),
        }
    }

    /// Segments with what they pin, and where a notice begins, loud and quiet.
    type Row = (&'static [(Origin, u64)], [usize; 2]);

    #[test]
    fn a_notice_follows_the_last_segment_until_there_are_too_many() {
        use Origin::{Summary, Truncated};
        let held = |rows: &[(Origin, u64)]| {
            let mut at = 1;
            let segments = rows.iter().map(|(origin, pinned)| {
                at += 4;
                segment(at - 4, at, *origin, *pinned)
            });
            overlay(segments.collect())
        };
        let rows: [Row; 6] = [
            (&[], [1, 1]),
            (&[(Truncated, 10), (Truncated, 10)], [9, 9]),
            (&[(Truncated, 10); 3], [1, 1]),
            (&[(Summary, 10), (Truncated, 10), (Truncated, 10)], [5, 5]),
            (&[(Summary, 10), (Summary, 10), (Summary, 10)], [13, 13]),
            (&[(Truncated, 800)], [5, 1]),
        ];
        for (segments, [loud, quiet]) in rows {
            let overlay = held(segments);
            with(|conversation| {
                let begins = |journal| notice(journal).begins(conversation, &overlay);
                assert_eq!([begins(false), begins(true)], [loud, quiet], "{overlay:?}");
            });
        }
    }

    #[test]
    fn the_journal_s_notice_warns_of_nothing_and_says_where_the_messages_are() {
        let none = overlay(Vec::new());
        let start = ChainHash::from_bytes([1; 32]);
        let [loud, quiet] = [false, true].map(|journal| {
            with(|conversation| {
                notice(journal)
                    .segment(conversation, &none, start, 1..9)
                    .block
            })
        });
        for text in [&loud, &quiet] {
            assert!(text.contains("[longhaul: messages 2 to 9 of this conversation"));
            assert!(text.contains("> step 3, and mind the gap"), "{text}");
        }
        assert!(loud.contains("no summary of them could be made"));
        assert!(!quiet.contains("could be made") && quiet.contains("journal"));
    }

    #[test]
    fn later_notices_have_what_earlier_ones_left_of_the_room_for_words() {
        let used = |pinned: u64| {
            let held = overlay(vec![segment(1, 9, Origin::Truncated, pinned)]);
            let left = with(|conversation| notice(true).left(conversation, &held, 9));
            left.unwrap().user_tokens
        };
        assert_eq!([used(0), used(700), used(1_000)], [1_000, 300, 125]);
    }
}
