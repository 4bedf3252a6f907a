//! The user's own words in a span, as many as there is room for.
//!
//! What the user wrote is mostly short, and the few long texts are pasted: so if
//! not everything fits, the longest give first, each keeping its beginning and
//! its end. If that is not enough, the first message and the newest come before
//! all others, and then the newer before the older: the first says what it is
//! all about, the newest what holds now.
//!
//! Text beside them that may be somebody else's is shown in the same way, but
//! quoted as data.

use std::ops::Range;

use super::genuine::{doubtful, genuine};
use super::quote::{self, Clipped, DATA, USER};
use super::turns::{Turns, heading};
use crate::engine::conversation::Conversation;

/// Bytes of a token, about.
const TOKEN: u64 = 4;

/// The words that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// What begins each of their lines.
    mark: &'static str,
    shown: Vec<(usize, Clipped)>,
    /// Messages that had no room, and their letters.
    left_out: (usize, usize),
}

/// A message of the user's: its turn, and what of it is to be shown.
struct Said {
    turn: usize,
    text: String,
    mark: &'static str,
}

impl Said {
    /// Bytes that it takes to show all of it.
    fn length(&self) -> usize {
        heading(self.turn).len() + quote::length(self.mark, &self.text)
    }

    fn clipped(&self, room: usize) -> Option<Clipped> {
        Clipped::new(
            self.mark,
            &self.text,
            room.checked_sub(heading(self.turn).len())?,
        )
    }
}

impl Words {
    /// The user's own words.
    pub(super) fn of_user(
        conversation: &Conversation<'_>,
        span: Range<usize>,
        turns: &Turns,
        tokens: u64,
    ) -> Self {
        let texts = span.filter_map(|at| Some((at, genuine(conversation, at)?)));
        Self::new(texts, turns, USER, tokens)
    }

    /// Texts in the user's messages that may be somebody else's.
    pub(super) fn doubtful(
        conversation: &Conversation<'_>,
        span: Range<usize>,
        turns: &Turns,
        tokens: u64,
    ) -> Self {
        let texts = span.filter_map(|at| Some((at, doubtful(conversation, at)?)));
        Self::new(texts, turns, DATA, tokens)
    }

    fn new(
        texts: impl Iterator<Item = (usize, String)>,
        turns: &Turns,
        mark: &'static str,
        tokens: u64,
    ) -> Self {
        let said = |(at, text)| Said {
            turn: turns.of(at),
            text,
            mark,
        };
        let said: Vec<Said> = texts.map(said).collect();
        let room = usize::try_from(tokens.saturating_mul(TOKEN)).unwrap_or(usize::MAX);
        Self::fitting(&said, mark, room)
    }

    fn fitting(said: &[Said], mark: &'static str, mut room: usize) -> Self {
        let lengths: Vec<usize> = said.iter().map(Said::length).collect();
        let most = level(&lengths, room).max(room / 2);
        let mut shown: Vec<Option<Clipped>> = vec![None; said.len()];
        let mut show = |at: usize, most: usize, room: &mut usize| {
            let clipped = said.get(at).and_then(|said| said.clipped(most));
            let (Some(place), Some(clipped)) = (shown.get_mut(at), clipped) else {
                return;
            };
            let turn = said.get(at).map_or(0, |said| said.turn);
            *room = room.saturating_sub(heading(turn).len() + clipped.length(mark));
            *place = Some(clipped);
        };
        let mut waiting = Vec::new();
        let newer_first = (1..said.len()).rev();
        for at in (0..said.len().min(1)).chain(newer_first) {
            let wants = lengths.get(at).map_or(0, |length| *length.min(&most));
            if wants <= room {
                show(at, wants, &mut room);
            } else {
                waiting.push(at);
            }
        }
        for at in waiting {
            let most = room;
            show(at, most, &mut room);
        }
        let mut words = Self {
            mark,
            shown: Vec::new(),
            left_out: (0, 0),
        };
        for (said, shown) in said.iter().zip(shown) {
            if let Some(clipped) = shown {
                words.shown.push((said.turn, clipped));
            } else {
                words.left_out.0 += 1;
                words.left_out.1 += said.text.chars().count();
            }
        }
        words
    }

    /// Tokens that they take, about.
    pub(super) fn tokens(&self) -> u64 {
        let lengths = self.shown.iter();
        let bytes: usize = lengths
            .map(|(turn, clipped)| heading(*turn).len() + clipped.length(self.mark))
            .sum();
        (bytes as u64).div_ceil(TOKEN)
    }

    /// The words, quoted.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (turn, clipped) in &self.shown {
            text.push_str(&heading(*turn));
            clipped.quote(&mut text, self.mark);
        }
        if let (count @ 1.., letters) = self.left_out {
            let what = if self.mark == USER {
                "messages of the user's"
            } else {
                "such texts"
            };
            text.push_str(&quote::notice(&format!(
                "{count} more {what}, {letters} characters, had no room"
            )));
        }
        text
    }
}

/// The most that each may take so that all together have room.
fn level(lengths: &[usize], room: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut room = room;
    for (at, length) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - at);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[&str], tokens: usize) -> String {
        let said: Vec<Said> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Said {
                turn: at + 1,
                text: (*text).to_owned(),
                mark: USER,
            })
            .collect();
        let words = Words::fitting(&said, USER, tokens * 4);
        let text = words.text();
        let notice = " had no room]\n";
        let last = text.rfind("[longhaul: ").filter(|_| text.ends_with(notice));
        assert!(last.unwrap_or(text.len()) <= tokens * 4, "{text}");
        assert!(words.tokens() <= tokens as u64);
        text
    }

    #[test]
    fn what_fits_is_there_in_order() {
        let text = shown(&["one", "two\nlines", "three"], 100);
        assert_eq!(
            text,
            "turn 1:\n> one\nturn 2:\n> two\n> lines\nturn 3:\n> three\n"
        );
    }

    #[test]
    fn the_longest_gives_first() {
        let plan = format!("begin {} end", "x".repeat(9000));
        let text = shown(&["never push", &plan, "use tabs", "go"], 500);
        for kept in [
            "> never push\n",
            "> begin x",
            "x end\n",
            "> use tabs\n",
            "> go\n",
        ] {
            assert!(text.contains(kept), "{kept}");
        }
        assert!(text.len() > 1700 && text.contains(" characters left out here]\n> x"));
    }

    #[test]
    fn the_first_and_the_newest_come_before_the_others() {
        let long: Vec<String> = (1..=9).map(|n| format!("{n}{}", "y".repeat(980))).collect();
        let texts: Vec<&str> = long.iter().map(String::as_str).collect();
        let text = shown(&texts, 800);
        let whole: Vec<usize> = (1..=9).filter(|n| text.contains(&long[n - 1])).collect();
        assert_eq!(whole, [1, 8, 9]);
        assert!(text.contains("> 7yyy") && text.contains("[longhaul: 5 more messages"));
    }

    #[test]
    fn without_room_it_is_said_how_much_there_was() {
        let text = shown(&["one", "two"], 0);
        assert_eq!(
            text,
            "[longhaul: 2 more messages of the user's, 6 characters, had no room]\n"
        );
        assert_eq!(shown(&[], 0), "");
        assert!(
            shown(&["a", &"b".repeat(100), "c"], 10).starts_with("turn 1:\n> a\nturn 3:\n> c\n")
        );
    }

    #[test]
    fn the_level_is_what_all_can_have() {
        let rows = [
            (&[][..], 5, usize::MAX),
            (&[1, 2], 3, usize::MAX),
            (&[10], 7, 7),
            (&[1, 10, 10], 11, 5),
            (&[10, 1, 4], 9, 4),
            (&[10, 10], 0, 0),
        ];
        for (lengths, room, expected) in rows {
            assert_eq!(level(lengths, room), expected, "{lengths:?}");
        }
    }
}
