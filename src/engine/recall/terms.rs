//! The words by which a text is found.
//!
//! The same rules make the words of what is kept and of what is asked, so that
//! both meet: lower case, identifiers as a whole and in their parts, English
//! words without their endings (`terms/words.rs`, `terms/stem.rs`). What is
//! stored was made by the rules of its day, so a change here makes older entries
//! harder to find and wants a reason.

mod joined;
mod stem;
mod words;

pub use words::{Found, each};

use std::collections::HashSet;

/// Terms of one passage, at most.
const MOST: usize = 4_000;
/// Terms of a question, at most.
const ASKED: usize = 24;

/// Words that say nothing about what is looked for.
const STOP: [&str; 120] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does",
    "doing", "done", "for", "from", "give", "got", "had", "has", "have", "having", "he", "her",
    "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "know", "let",
    "like", "look", "me", "mean", "might", "more", "most", "must", "my", "need", "no", "nor",
    "now", "of", "off", "on", "one", "only", "or", "other", "our", "out", "over", "please",
    "really", "remember", "said", "same", "say", "see", "she", "should", "so", "some", "such",
    "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "up", "us", "very", "want", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "why", "will", "with", "would", "you", "your", "yours",
];

/// The words a text is found by, each once, in the order in which they come.
pub fn terms(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    add(&mut all, &mut HashSet::new(), text);
    all
}

/// The words of several texts together, those of the first texts first.
pub fn terms_of(texts: &[&str]) -> Vec<String> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for text in texts {
        add(&mut all, &mut seen, text);
    }
    all
}

fn add(all: &mut Vec<String>, seen: &mut HashSet<String>, text: &str) {
    each(text, |found| {
        if all.len() < MOST && !seen.contains(found.term) {
            seen.insert(found.term.to_owned());
            all.push(found.term.to_owned());
        }
    });
}

/// The words that are looked for when somebody asks this, the most telling first:
/// identifiers, then long words, then what the words may be joined to, as far as
/// there is room. Words that say nothing are left out, unless nothing else is
/// left.
pub fn query(text: &str) -> Vec<String> {
    let (mut telling, mut rest): (Vec<Asked>, Vec<Asked>) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    each(text, |found| {
        // Whatever stands behind the first thousands of words is no question.
        if seen.len() >= MOST || !seen.insert(found.term.to_owned()) {
            return;
        }
        let asked = Asked {
            is_identifier: found.is_identifier && found.term.len() > 1,
            length: found.term.chars().count(),
            term: found.term.to_owned(),
        };
        let single = found.term.len() == 1;
        if single || is_stop(found.word) {
            rest.push(asked);
        } else {
            telling.push(asked);
        }
    });
    let mut asked = if telling.is_empty() { rest } else { telling };
    asked.sort_by_key(|asked| std::cmp::Reverse((asked.is_identifier, asked.length)));
    asked.truncate(ASKED);
    let mut terms: Vec<String> = asked.into_iter().map(|asked| asked.term).collect();
    for term in joined::joined(text) {
        if terms.len() < ASKED && !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

struct Asked {
    is_identifier: bool,
    length: usize,
    term: String,
}

/// Whether a word in lower case says nothing about what is looked for.
pub fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
