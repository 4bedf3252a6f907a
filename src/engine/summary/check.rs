//! Whether a narrative can be relied on.
//!
//! A model that sums up may forget, and may make up. Forgetting shows in fields
//! that cannot be empty after a long stretch of work. Making up shows in names:
//! whatever path or identifier a narrative gives must stand, letter for letter,
//! in what the model was given. Both are told to the model once; see
//! [`repair`](super::prompt::repair).

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::ops::Range;

use memchr::memmem;

use super::names::{Name, names, pieces};
use super::{KEYS, Narrative, said};
use crate::engine::conversation::Conversation;

/// A span of more messages has something to tell in every load-bearing field.
const LONG: usize = 20;
/// Invented names that are told; with so many there is no need to look further.
const MOST: usize = 24;

/// Why a narrative is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not of the form that was asked for, or breaks off.
    #[error("the summary is not of the form that was asked for")]
    Malformed,
    /// These fields say nothing.
    #[error("the summary leaves {} empty", .0.join(", "))]
    EmptyFields(Vec<&'static str>),
    /// These names do not occur in what it was made from.
    #[error("the summary names {} things that do not occur in what it sums up", .0.len())]
    Invented(Vec<String>),
}

impl Problem {
    /// The word by which it is counted.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::EmptyFields(_) => "empty_fields",
            Self::Invented(_) => "not_verbatim",
        }
    }
}

/// What a narrative is held against: everything that the model was given.
#[derive(Debug, Clone, Default)]
pub struct Source {
    text: String,
    /// The words that are worth looking up, as hashes: a word of its own for
    /// each of a million would take several times what they are taken from.
    words: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl Source {
    /// A source that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that these messages say: words, calls, results, thoughts.
    pub fn of(conversation: &Conversation<'_>, span: Range<usize>) -> Self {
        let mut source = Self::new();
        for at in span {
            said::words(conversation, at, &mut |text| source.add(text));
        }
        source
    }

    /// Adds what else was given: earlier segments, the system prompt.
    pub fn add(&mut self, text: &str) {
        for word in text.split_whitespace() {
            // Words of letters alone are hardly ever asked for, and are found
            // without this.
            if word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                continue;
            }
            for piece in pieces(word) {
                self.words.insert(hash(piece));
            }
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds every string of a JSON value, such as a tool's definition.
    pub fn add_json(&mut self, json: &serde_json::Value) {
        said::strings(json, &mut |text| self.add(text));
    }

    fn has(&self, name: &Name<'_>) -> bool {
        if self.words.contains(&hash(name.as_str())) {
            return true;
        }
        let finder = memmem::Finder::new(name.as_str());
        let mut places = finder.find_iter(self.text.as_bytes());
        match name {
            Name::Word(_) => places.next().is_some(),
            Name::Number(_) => places.any(|at| {
                let before = at
                    .checked_sub(1)
                    .and_then(|at| self.text.as_bytes().get(at));
                !before.is_some_and(u8::is_ascii_digit)
            }),
        }
    }
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Judges a narrative of so many messages by what it was made from.
pub fn check(narrative: &Narrative, source: &Source, messages: usize) -> Result<(), Problem> {
    let empty = empty_fields(narrative, messages);
    if !empty.is_empty() {
        return Err(Problem::EmptyFields(empty));
    }
    let named: BTreeSet<Name<'_>> = narrative.texts().flat_map(names).collect();
    let invented = named
        .iter()
        .filter(|name| !KEYS.contains(&name.as_str()) && !source.has(name))
        .take(MOST);
    let invented: Vec<String> = invented.map(|name| name.as_str().to_owned()).collect();
    if invented.is_empty() {
        Ok(())
    } else {
        Err(Problem::Invented(invented))
    }
}

/// The fields that ought to say something and do not. What was decided and what
/// comes next may each be nothing, but not both.
fn empty_fields(narrative: &Narrative, messages: usize) -> Vec<&'static str> {
    if messages <= LONG {
        return if narrative.is_empty() {
            KEYS.to_vec()
        } else {
            Vec::new()
        };
    }
    let is_blank = |list: &[String]| list.iter().all(|text| text.trim().is_empty());
    let mut empty = Vec::new();
    if narrative.session_intent.trim().is_empty() {
        empty.push("session_intent");
    }
    if is_blank(&narrative.decisions) && is_blank(&narrative.next_steps) {
        empty.extend(["decisions", "next_steps"]);
    }
    empty
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use proptest::prelude::*;
    use serde_json::json;

    fn saying(text: &str) -> Narrative {
        Narrative {
            session_intent: "port it".to_owned(),
            next_steps: vec![text.to_owned()],
            ..Narrative::default()
        }
    }

    fn source() -> Source {
        let bytes = json!({"messages": [
            {"role": "user", "content": "Port /srv/app/src/net/tcp.rs; never push to main."},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "maybe old_name", "signature": "s"},
                {"type": "tool_use", "id": "toolu_01", "name": "Bash",
                 "input": {"command": "cargo test --no-fail-fast", "timeout": 90000}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01",
                "content": [{"type": "text", "text": "error[E0308]: x\n --> src/lib.rs:12:5\nat 3f2a9bc1d4 v1.2.3 \\nlit_word 52801"}]}]},
        ]});
        let bytes = bytes.to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        let mut source = Source::of(&Conversation::new(bytes.as_bytes(), &body), 0..3);
        source.add("[longhaul: summary] earlier_name");
        source.add_json(&json!([{"name": "web_find", "max": 7777}]));
        source
    }

    #[test]
    fn what_occurs_may_be_named_in_any_dress() {
        for text in [
            "`src/net/tcp.rs`",
            "tcp.rs:40",
            "(net/tcp.rs:40)",
            "./src/lib.rs#L12",
            "src/lib.rs:99:1",
            "/srv/app/src/net/tcp.rs.",
            "E0308",
            "commit 3f2a9bc",
            "--no-fail-fast",
            "1.2.3",
            "v1.2.3",
            "old_name",
            "earlier_name",
            "timeout 90000",
            "toolu_01",
            "lit_word",
            "web_find 7777",
            "session_intent",
            "52801",
        ] {
            assert_eq!(check(&saying(text), &source(), 30), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_does_not_occur_is_told_by_name() {
        for (text, invented) in [
            ("src/net/udp.rs", "src/net/udp.rs"),
            (
                "`/opt/imaginary/never_mentioned.rs`:4",
                "/opt/imaginary/never_mentioned.rs",
            ),
            ("SRC/LIB.RS is src/Lib.rs", "SRC/LIB.RS"),
            ("E0309", "E0309"),
            ("3f2a9bc2", "3f2a9bc2"),
            ("--fail-fast-now", "--fail-fast-now"),
            ("1.2.4", "1.2.4"),
            ("new_name", "new_name"),
            ("port 2801", "2801"),
            ("tcp::connect_all", "connect_all"),
        ] {
            let Err(Problem::Invented(names)) = check(&saying(text), &source(), 5) else {
                panic!("{text}");
            };
            assert_eq!(names[0], invented);
        }
    }

    #[test]
    fn a_long_span_has_an_intent_and_something_done_or_to_do() {
        let none = Narrative::default();
        let mut only_intent = saying("");
        let rows = [
            (
                &none,
                21,
                &["session_intent", "decisions", "next_steps"][..],
            ),
            (&none, 20, &KEYS[..]),
            (&only_intent, 20, &[]),
            (&only_intent, 21, &["decisions", "next_steps"]),
            (&saying("go on"), 500, &[]),
        ];
        for (narrative, messages, expected) in rows {
            assert_eq!(empty_fields(narrative, messages), expected);
        }
        only_intent.decisions.push("kept the names".to_owned());
        assert_eq!(check(&only_intent, &source(), 99), Ok(()));
    }

    #[test]
    fn many_names_in_a_large_source_are_found_without_delay() {
        use std::fmt::Write;
        let mut text = String::new();
        for number in 0..200_000 {
            let _ = writeln!(text, "src/dir{number}/file_{number}.rs: fine words here");
        }
        let mut source = Source::new();
        source.add(&text);
        let mut names: Vec<String> = (0..400)
            .map(|n| format!("src/dir{n}/file_{n}.rs"))
            .collect();
        names.push("src/none/at_all.rs".to_owned());
        let problem = check(&saying(&names.join(" ")), &source, 5);
        let invented = vec!["src/none/at_all.rs".to_owned()];
        assert_eq!(problem, Err(Problem::Invented(invented)));
    }

    proptest! {
        /// A narrative in the source's own words is never refused.
        #[test]
        fn own_words_are_believed(text in "([a-zA-Z0-9_./:#~@`'\"(){}<>=*+-]{1,12}[ \n]){1,20}") {
            let mut source = Source::new();
            source.add(&text);
            prop_assert_eq!(check(&saying(&text), &source, 30), Ok(()));
        }

        #[test]
        fn any_text_can_be_checked(text in any::<String>(), given in any::<String>()) {
            let mut source = Source::new();
            source.add(&given);
            let text = format!("go {text}");
            let _ = check(&saying(&text), &source, 30);
            source.add(&text);
            prop_assert_eq!(check(&saying(&text), &source, 30), Ok(()));
        }
    }
}
