//! Which sentences state something that must be remembered.
//!
//! Of the assistant: what it found out or settled, and what it asks the user and
//! then waits. Of the user: rules. Precise rather than complete: the words are
//! there in full elsewhere, and what is listed as a rule or a decision is read as
//! one. What stands in code or in quotation marks is somebody else's and does not
//! make a statement.

use super::phrases::{
    ASKING, BEFORE_ORDERS, BEFORE_RULES, CHANGES, CONTRASTS, DOUBTS, EMPTY, FINDS, FIRST_PERSON,
    LOOKS, NO_ORDER, ONLY, SETTLES, WISHERS,
};
use super::sentences::sentences;
use super::{FactKind, LONG, TEXT, Taken, bounds};
use crate::engine::conversation::Conversation;
use crate::engine::pinned;

/// Statements of a kind that are taken from one text, at most.
const MOST: usize = 24;
/// Questions that are taken from one text: the last.
const QUESTIONS: usize = 3;
/// Words of a decision and of a rule, at least, and bytes, at most: longer is no
/// sentence.
const DECISION: usize = 4;
const RULE: usize = 2;
const LONGEST: usize = 2_000;
/// Words behind what tells that something was found, at least.
const FOUND: usize = 3;

/// Adds what the user wrote and the rules in it.
pub(super) fn by_the_user(taken: &mut Taken, conversation: &Conversation<'_>, at: usize) {
    let texts = pinned::own_texts(conversation, at);
    if let Some((block, _)) = texts.first() {
        let texts: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        taken.add(
            FactKind::Words,
            *block,
            bounds::ends(&texts.join("\n"), LONG),
        );
    }
    for (block, text) in &texts {
        for rule in rules(text) {
            taken.add(FactKind::Constraint, *block, bounds::start(rule, TEXT));
        }
    }
}

/// The sentences of a text that set a rule, the first of them if there are many.
pub(in crate::engine) fn rules(text: &str) -> Vec<&str> {
    let rules = sentences(text).into_iter().filter(|text| sets_rule(text));
    rules.take(MOST).collect()
}

/// Adds what the assistant states in a text, and asks if it waits for an answer.
pub(super) fn by_the_assistant(taken: &mut Taken, block: usize, text: &str, waits: bool) {
    let sentences = sentences(text);
    let questions = sentences.iter().filter(|text| waits && asks(text));
    let older = questions.clone().count().saturating_sub(QUESTIONS);
    let mut questions = questions.skip(older).peekable();
    let mut count = 0;
    for sentence in &sentences {
        // Both are pieces of one text, so the same place is the same sentence.
        if questions
            .next_if(|next| std::ptr::eq(**next, *sentence))
            .is_some()
        {
            taken.add(FactKind::Question, block, bounds::start(sentence, TEXT));
        } else if count < MOST && states_decision(sentence) {
            count += 1;
            taken.add(FactKind::Decision, block, bounds::start(sentence, TEXT));
        }
    }
}

/// Whether a sentence asks.
fn asks(sentence: &str) -> bool {
    let bare = sentence.trim_end_matches([')', '"', '\'', '”', '’', '*', '_', '`']);
    bare.ends_with('?')
}

/// Whether a sentence says what was found out or settled.
fn states_decision(sentence: &str) -> bool {
    if asks(sentence) || sentence.ends_with(':') {
        return false;
    }
    let Some(plain) = Plain::new(sentence, DECISION) else {
        return false;
    };
    if plain.starts_with("if") || plain.starts_with("when") || plain.has(DOUBTS) {
        return false;
    }
    plain.finds() || plain.settles() || plain.contrasts()
}

/// Whether a sentence sets a rule.
fn sets_rule(sentence: &str) -> bool {
    if asks(sentence) {
        return false;
    }
    let Some(plain) = Plain::new(sentence, RULE) else {
        return false;
    };
    let words: Vec<&str> = plain.0.split_whitespace().collect();
    if words.first().is_some_and(|first| ASKING.contains(first)) {
        return false;
    }
    let order = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        before.is_none_or(|word| BEFORE_ORDERS.contains(word))
    };
    let after_modal = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        before.is_some_and(|word| BEFORE_RULES.contains(word))
    };
    (0..words.len()).any(|at| {
        let word = |further: usize| words.get(at + further).copied().unwrap_or_default();
        let says = word(1).starts_with(char::is_alphabetic);
        match word(0) {
            // Within a sentence it may only tell what something does.
            "never" | "always" => {
                let tells = at > 0 && (word(1).ends_with("ing") || word(1).ends_with('s'));
                says && !tells && word(1) != "mind" && (order(at) || after_modal(at))
            }
            "don't" | "dont" => says && order(at) && !NO_ORDER.contains(&word(1)),
            "do" => word(1) == "not" && order(at) && !NO_ORDER.contains(&word(2)),
            "should" | "shall" | "may" => word(1) == "not" && word(2) != "have",
            "must" | "mustn't" | "shouldn't" => says && word(1) != "have",
            "prefer" | "avoid" => {
                let first = words.first().copied().unwrap_or_default();
                says && (order(at) || (at == 1 && WISHERS.contains(&first)))
            }
            "only" => order(at) && ONLY.contains(&word(1)),
            "use" => order(at) && word(1) == "only",
            _ => false,
        }
    })
}

/// A sentence as the tables spell it: in lower case, words and punctuation a
/// space apart, what is quoted in it left out.
struct Plain(String);

impl Plain {
    /// `None` if it is too short or too long to be a statement.
    fn new(sentence: &str, least: usize) -> Option<Self> {
        if sentence.len() > LONGEST {
            return None;
        }
        let mut plain = String::with_capacity(sentence.len() + 16);
        plain.push(' ');
        let mut letters = sentence.chars().peekable();
        let mut quote: Option<char> = None;
        while let Some(letter) = letters.next() {
            if let Some(end) = quote {
                if letter == end {
                    quote = None;
                    plain.push_str("quoted ");
                }
                continue;
            }
            let next = letters.peek().copied().unwrap_or(' ');
            match letter {
                '`' => quote = Some('`'),
                '"' => quote = Some('"'),
                '“' => quote = Some('”'),
                '*' => {}
                '’' => plain.push('\''),
                '.' | ':' | '-' | ',' if next.is_alphanumeric() => plain.push(letter),
                ',' | ';' | ':' | '.' | '!' | '?' | '(' | ')' | '–' | '—' => {
                    plain.extend([' ', letter, ' ']);
                }
                letter if letter.is_whitespace() => plain.push(' '),
                letter => plain.extend(letter.to_lowercase()),
            }
        }
        plain.push(' ');
        let words: Vec<&str> = plain.split_whitespace().collect();
        let count = words
            .iter()
            .filter(|word| word.contains(char::is_alphanumeric))
            .count();
        (count >= least).then(|| Self(format!(" {} ", words.join(" "))))
    }

    /// What stands behind a phrase, wherever it is said first.
    fn behind(&self, phrase: &str) -> Option<&str> {
        parted(&self.0, phrase).map(|(_, behind)| behind)
    }

    fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.behind(phrase).is_some())
    }

    fn starts_with(&self, word: &str) -> bool {
        self.0.split_whitespace().next() == Some(word)
    }

    fn finds(&self) -> bool {
        FINDS.iter().any(|phrase| {
            self.behind(phrase).is_some_and(|behind| {
                let next = behind.split_whitespace().next().unwrap_or_default();
                behind.split_whitespace().count() >= FOUND && !EMPTY.contains(&next)
            })
        })
    }

    fn settles(&self) -> bool {
        SETTLES.iter().any(|phrase| {
            self.behind(phrase).is_some_and(|behind| {
                let next = behind.split_whitespace().next().unwrap_or_default();
                // To keep doing something settles nothing.
                let goes_on = phrase.ends_with("keep") && next.ends_with("ing");
                behind.split_whitespace().count() >= 2 && !goes_on
            })
        })
    }

    fn contrasts(&self) -> bool {
        let Some(before) = CONTRASTS.iter().find_map(|phrase| {
            let (before, _) = parted(&self.0, phrase)?;
            Some(before)
        }) else {
            return false;
        };
        let mut words = before.split_whitespace().filter(|word| *word != "now");
        let first = words.next().unwrap_or_default();
        let looks = |behind: &str| {
            let verb = behind.split_whitespace().next().unwrap_or_default();
            LOOKS.iter().any(|look| verb.starts_with(look))
        };
        CHANGES.contains(&first)
            || FIRST_PERSON.iter().any(|person| {
                let behind = parted(before, person);
                behind.is_some_and(|(_, behind)| !behind.trim().is_empty() && !looks(behind))
            })
    }
}

/// What stands before and behind a phrase where it is said first, a space at
/// each end of both.
fn parted<'t>(text: &'t str, phrase: &str) -> Option<(&'t str, &'t str)> {
    text.match_indices(phrase).find_map(|(at, _)| {
        let before = text.get(..at)?;
        let behind = text.get(at + phrase.len()..)?;
        (before.ends_with(' ') && behind.starts_with(' ')).then_some((before, behind))
    })
}

#[cfg(test)]
#[path = "stated_tests.rs"]
mod tests;
