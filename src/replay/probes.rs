//! Natural probes: what a recording itself shows to be needed later.
//!
//! Nobody has to make up questions about a conversation to find out whether its
//! view still holds what matters. The recording goes on: it names files,
//! identifiers and values that were mentioned before, acts on what was decided,
//! and stays bound to what the user forbade. Here is how such things are told in
//! a text; whether they were in view when they were needed is seen in `watch`.

use std::collections::HashSet;

use serde_json::Value;

use super::recording::{kind, text};

/// The shortest and longest word that tells something.
const LENGTH: std::ops::RangeInclusive<usize> = 6..=160;
/// The shortest and longest line that sets a rule.
const RULE: std::ops::RangeInclusive<usize> = 12..=400;
/// Long words of a rule that an answer must have to be about it, and the share.
const SHARED: usize = 3;
const PART: usize = 3;
/// The shortest of them.
const LONG: usize = 5;

/// What kind of thing is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A name or value of somebody's making.
    Identifier,
    /// A file.
    Path,
    /// Something that the assistant named when it decided.
    Decision,
    /// A rule of the user's, word for word.
    Constraint,
    /// A fact that the replay itself has put into the recording.
    Planted,
    /// A number, version or address. It counts for line recovery only.
    Number,
}

impl Kind {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Identifier,
        Self::Path,
        Self::Decision,
        Self::Constraint,
        Self::Planted,
        Self::Number,
    ];

    /// Whether the recording itself needs it by its name.
    pub fn is_natural(self) -> bool {
        !matches!(self, Self::Planted | Self::Number)
    }

    /// Its name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Path => "path",
            Self::Decision => "decision",
            Self::Constraint => "constraint",
            Self::Planted => "planted",
            Self::Number => "number",
        }
    }
}

/// Words that tell something: paths, and names and values that no language has.
pub fn terms(text: &str) -> impl Iterator<Item = &str> {
    bare_words(text).filter(|word| is_term(word))
}

/// Whether a word tells something.
pub fn is_term(word: &str) -> bool {
    LENGTH.contains(&word.len()) && is_telling(word)
}

/// The words of a text as they may stand in code, without signs at their ends.
pub(super) fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || "_./-@".contains(c));
    let words = text.split(part).filter(|word| !word.is_empty());
    words.map(|word| {
        let word = word.trim_start_matches(['.', '-', '@']);
        word.trim_end_matches(['.', '-', '@', '/'])
    })
}

/// Whether a word is a path.
pub fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let has_ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        let letters = ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        !stem.is_empty() && (1..=6).contains(&ending.len()) && letters
    });
    word.contains('/') && !word.starts_with("//") && (has_ending || word.starts_with('/'))
}

/// Nothing that one would write without having read it here: it is put together
/// from words, or from words and numbers.
pub(super) fn is_telling(word: &str) -> bool {
    let bytes = word.as_bytes();
    let letters = bytes.iter().any(u8::is_ascii_alphabetic);
    let digits = bytes.iter().any(u8::is_ascii_digit);
    let joined = bytes.contains(&b'_') || (word.contains('/') && is_path(word));
    let mut pairs = bytes.array_windows::<2>();
    let humped = pairs.any(|[a, b]| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    letters && (digits || joined || humped)
}

/// The lines in which a user sets a rule.
pub fn constraints(words: &str) -> impl Iterator<Item = &str> {
    const RULES: [&str; 12] = [
        "never ",
        "always ",
        "must not",
        "do not ",
        "don't ",
        "only use",
        "make sure",
        "must be",
        "should not",
        "shouldn't",
        "prefer ",
        "instead of",
    ];
    let sets_rule = |line: &&str| {
        let lower = line.to_lowercase();
        RULE.contains(&line.len()) && RULES.iter().any(|rule| lower.contains(rule))
    };
    words.lines().map(str::trim).filter(sets_rule)
}

/// The sentences in which the assistant decides something.
pub fn decisions(words: &str) -> impl Iterator<Item = &str> {
    const DECIDES: [&str; 11] = [
        "decided",
        "i'll use",
        "instead of",
        "root cause",
        "the fix is",
        "go with",
        "will not ",
        "the problem is",
        "the issue is",
        "the solution",
        "we should",
    ];
    let decides = |sentence: &&str| {
        let lower = sentence.to_lowercase();
        DECIDES.iter().any(|word| lower.contains(word))
    };
    words.split_inclusive(['\n', '!', '?']).filter(decides)
}

/// Everything that a block says, thinking aside: it is not shown for ever, and
/// nobody relies on it.
pub fn words(block: &Value) -> Vec<&str> {
    let mut words = Vec::new();
    match kind(block) {
        "text" => words.push(text(block, "text")),
        "tool_result" => gather(block.get("content"), &mut words),
        "tool_use" => gather(block.get("input"), &mut words),
        _ => {}
    }
    words
}

/// Every string in a value.
pub fn gather<'a>(value: Option<&'a Value>, words: &mut Vec<&'a str>) {
    match value {
        Some(Value::String(text)) => words.push(text),
        Some(Value::Array(list)) => list.iter().for_each(|inner| gather(Some(inner), words)),
        Some(Value::Object(fields)) => {
            fields.values().for_each(|inner| gather(Some(inner), words));
        }
        _ => {}
    }
}

/// The long words of a text, in lower case.
pub(super) fn long_words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.chars().count() >= LONG);
    long.map(str::to_lowercase).collect()
}

/// Whether a rule is what an answer with these long words is about: it has a good
/// part of the rule's own.
pub(super) fn uses(rule: &str, said: &HashSet<String>) -> bool {
    let own = long_words(rule);
    let shared = own.intersection(said).count();
    shared >= SHARED && shared * PART >= own.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn telling_words_are_paths_and_names_that_no_language_has() {
        let text = "Look at `src/engine/reduce.rs:12` and parseHeader(max_bytes) of either/or, \
                    not the README, in v2.14.0-rc1; see https://example.com. Commit deadbeef1.";
        let found: Vec<&str> = terms(text).collect();
        assert_eq!(
            found,
            [
                "src/engine/reduce.rs",
                "parseHeader",
                "max_bytes",
                "v2.14.0-rc1",
                "deadbeef1"
            ]
        );
        for (word, expected) in [
            ("src/a.rs", true),
            ("/etc/hosts", true),
            ("either/or", false),
            ("a.rs", false),
        ] {
            assert_eq!(is_path(word), expected, "{word}");
        }
    }

    #[test]
    fn rules_and_decisions_are_told_by_their_words() {
        let said = "Please port it.\nNever touch files under legacy/.\n  Always run the tests \nok";
        let rules: Vec<&str> = constraints(said).collect();
        assert_eq!(
            rules,
            ["Never touch files under legacy/.", "Always run the tests"]
        );
        let said = "I looked around.\nThe root cause is cache_key.\nMore follows.";
        let decided: Vec<&str> = decisions(said).collect();
        assert_eq!(decided, ["The root cause is cache_key.\n"]);
    }

    #[test]
    fn all_that_a_call_says_counts_and_thinking_does_not() {
        let call =
            json!({"type": "tool_use", "input": {"path": "a_b", "content": "x".repeat(500)}});
        assert_eq!(words(&call).len(), 2);
        assert!(words(&json!({"type": "thinking", "thinking": "x"})).is_empty());
    }

    #[test]
    fn a_rule_is_used_by_an_answer_that_shares_a_good_part_of_its_words() {
        let rule = "Never touch the legacy tables before the migration.";
        for (said, expected) in [
            (
                "I leave the legacy tables as they are: the migration comes first.",
                true,
            ),
            ("The tables of the migration are fine.", false),
            ("", false),
        ] {
            assert_eq!(uses(rule, &long_words(said)), expected, "{said}");
        }
    }
}
