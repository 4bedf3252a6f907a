//! What the assistant said is done and comes next.
//!
//! Agents without a to-do tool keep their plan in what they say: a list under a
//! heading such as "Next steps:", or a sentence that begins with "Next". Only
//! such plain forms count, and of each the newest. What is found is the model's
//! word and is quoted as data.

use super::decode;
use super::turns::Turns;
use crate::engine::conversation::Conversation;
use crate::engine::facts;
use crate::wire::body::{Kind, Role};

/// Messages that are looked at, from the newest on.
const LOOKS: usize = 400;
/// Items of a list that are taken, at most.
const ITEMS: usize = 8;
/// Characters of an item or a sentence, at most.
const LINE: usize = 200;
/// A longer line is no heading.
const HEADING: usize = 60;
/// A longer text is not looked into.
const TEXT: usize = 64 * 1024;

/// How a heading begins above what comes next.
const NEXT: [&str; 11] = [
    "next steps",
    "next step",
    "next",
    "remaining",
    "still to do",
    "to do",
    "todo",
    "pending",
    "left to do",
    "what's left",
    "what is left",
];
/// How a heading begins above what is done.
const DONE: [&str; 6] = [
    "done",
    "completed",
    "finished",
    "what's done",
    "what is done",
    "so far",
];
/// How a sentence begins that says what comes next.
const SENTENCES: [&str; 7] = [
    "next,",
    "next i",
    "next we",
    "next up",
    "next step",
    "the next step",
    "what remains",
];

/// Something that the assistant said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) turn: usize,
    pub(super) lines: Vec<String>,
}

/// The newest that was said of either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    pub(super) done: Option<Said>,
    pub(super) next: Option<Said>,
}

impl Outlook {
    /// What was said in the messages before this one.
    pub(super) fn before(conversation: &Conversation<'_>, to: usize, turns: &Turns) -> Self {
        let mut outlook = Self::default();
        for at in (to.saturating_sub(LOOKS)..to).rev() {
            for text in texts(conversation, at).into_iter().rev() {
                let said = |lines: Vec<String>| Said {
                    turn: turns.of(at),
                    lines,
                };
                let told = read(&text);
                let some = |lines: Vec<String>| (!lines.is_empty()).then(|| said(lines));
                outlook.done = outlook.done.or_else(|| some(told.done));
                outlook.next = outlook.next.or_else(|| some(told.next));
            }
            if outlook.done.is_some() && outlook.next.is_some() {
                break;
            }
        }
        outlook
    }
}

/// The texts that the assistant wrote in a message.
fn texts(conversation: &Conversation<'_>, at: usize) -> Vec<String> {
    let message = conversation.message(at);
    let Some(message) = message.filter(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let whole = message.is_string.then_some(message.content);
    let blocks = conversation.blocks(at).iter();
    let texts = blocks.filter(|block| block.kind == Kind::Text);
    let texts = whole
        .into_iter()
        .chain(texts.filter_map(|block| block.payload));
    let short = texts.filter(|text| text.len() <= TEXT);
    short
        .filter_map(|text| decode::string(text.of(conversation.bytes())))
        .collect()
}

/// What a text says of either.
#[derive(Default)]
struct Told {
    done: Vec<String>,
    next: Vec<String>,
}

/// Which of the two a heading announces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    Done,
    Next,
}

fn read(text: &str) -> Told {
    let mut told = Told::default();
    let mut topic: Option<Topic> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let (Some(topic), Some(item)) = (topic, item(line)) {
            told.add(topic, item);
            continue;
        }
        let found = heading(line);
        topic = found.map(|(topic, _)| topic);
        if let Some((topic, rest)) = found.filter(|(_, rest)| !rest.is_empty()) {
            told.add(topic, rest);
        }
    }
    if told.next.is_empty() {
        let sentences = facts::sentences(text).into_iter();
        let says = |sentence: &&str| SENTENCES.iter().any(|start| begins(sentence, start));
        if let Some(sentence) = sentences.rev().find(says) {
            told.add(Topic::Next, sentence);
        }
    }
    told
}

impl Told {
    fn add(&mut self, topic: Topic, text: &str) {
        let list = match topic {
            Topic::Done => &mut self.done,
            Topic::Next => &mut self.next,
        };
        let line = facts::shortened(text, LINE);
        if list.len() < ITEMS && !line.is_empty() {
            list.push(line);
        }
    }
}

/// What an item of a list says.
fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = || {
        let is_number = digits.len() < line.len();
        digits
            .strip_prefix(['.', ')'])
            .filter(|rest| is_number && rest.starts_with(' '))
    };
    let dashed = ["- ", "* ", "• "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    dashed.or_else(numbered).map(str::trim)
}

/// What a heading announces, and what stands behind its colon.
fn heading(line: &str) -> Option<(Topic, &str)> {
    let bare = line.trim_start_matches(['#', '*', '_', ' ']);
    let is_marked = bare.len() < line.len();
    let (title, rest) = match bare.split_once(':') {
        Some(parts) => parts,
        None if is_marked => (bare, ""),
        None => return None,
    };
    let title = title.trim_end_matches(['*', '_', ' ']);
    let rest = rest.trim_start_matches(['*', '_']).trim();
    let topic = |starts: &[&str], topic| {
        let known = title.len() <= HEADING && starts.iter().any(|start| begins(title, start));
        known.then_some((topic, rest))
    };
    topic(&NEXT, Topic::Next).or_else(|| topic(&DONE, Topic::Done))
}

/// Whether a text begins with these words, which are in lower case.
fn begins(text: &str, words: &str) -> bool {
    let start = text.get(..words.len());
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric) || words.ends_with(" i");
    start.is_some_and(|start| start.eq_ignore_ascii_case(words))
        && text.get(words.len()..).is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_next_is_known_by_plain_forms_only() {
        let rows = [
            (
                "Next, I'll run the tests. Then more.",
                &["Next, I'll run the tests."][..],
            ),
            (
                "It works. Next I update the docs.",
                &["Next I update the docs."],
            ),
            ("Next: run the tests", &["run the tests"]),
            (
                "**Next steps:**\n\n1. run it\n2. ship it\nBye.\n- no",
                &["run it", "ship it"],
            ),
            ("## Remaining work\n- docs\n- tests", &["docs", "tests"]),
            ("Next door is open.", &[]),
            ("The next one failed.", &[]),
            ("Nextcloud: runs", &[]),
            ("- a\n- b", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text).next, expected, "{text}");
        }
    }

    #[test]
    fn what_is_done_is_a_list_under_its_heading() {
        let told = read("Done so far:\n- parser\n- lexer\n\nNext steps:\n- renderer");
        assert_eq!(told.done, ["parser", "lexer"]);
        assert_eq!(told.next, ["renderer"]);
        assert!(read("I am done with it.").done.is_empty());
    }
}
