//! How well one entry fits a question.

use std::collections::{BTreeSet, HashMap};

use super::{float, has};
use crate::engine::facts::FactKind;
use crate::engine::ids::BlobId;
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::terms::{each, is_stop};

/// From how often on more of the same word hardly counts, and how much of that
/// depends on the length of the text.
const SATURATION: f64 = 1.2;
const BY_LENGTH: f64 = 0.6;
/// Words of a usual passage.
const USUAL: f64 = 300.0;
/// What a word is worth that only belongs to an entry and is not in its text.
const BESIDE: f64 = 0.35;
/// What is added, in shares of a word's weight, where it stands as it was asked:
/// a word, and something that can hardly stand there by chance.
const VERBATIM: (f64, f64) = (0.25, 1.0);
/// Where all words stand together.
const TOGETHER: f64 = 0.8;
/// Words in between that make half of that.
const APART: f64 = 12.0;
/// Where the path names it, or the tool.
const PATH: f64 = 0.5;
const TOOL: f64 = 0.25;

/// An entry whose text is at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// Its number: newer ones have larger numbers.
    pub number: i64,
    /// What it tells of.
    pub kind: EntryKind,
    /// The tool; may be empty.
    pub tool: &'a str,
    /// What it is about; may be empty.
    pub path: &'a str,
    /// What it says.
    pub text: &'a str,
    /// The piece of content it is a part of.
    pub blob: Option<BlobId>,
    /// The terms it has, a bit each, as the store told.
    pub terms: u32,
}

/// A question, ready to be held against texts.
pub(super) struct Question<'q> {
    terms: HashMap<&'q str, usize>,
    weights: &'q [f64],
    total: f64,
    /// Words as they were asked, in lower case, with what finding them adds.
    words: Vec<(String, f64)>,
}

impl<'q> Question<'q> {
    pub(super) fn new(query: &str, terms: &'q [String], weights: &'q [f64]) -> Self {
        let numbered = terms.iter().enumerate();
        let terms: HashMap<&str, usize> = numbered.map(|(at, term)| (term.as_str(), at)).collect();
        let mut words: Vec<(String, f64)> = Vec::new();
        for word in query.split_whitespace() {
            let is_edge = |letter: char| !letter.is_alphanumeric() && letter != '_';
            let word = word.trim_matches(is_edge).to_lowercase();
            if word.is_empty() || is_stop(&word) || words.iter().any(|(held, _)| *held == word) {
                continue;
            }
            let mut worth: f64 = 0.0;
            let mut is_plain = true;
            each(&word, |found| {
                let weight = terms.get(found.term).and_then(|at| weights.get(*at));
                worth = worth.max(weight.copied().unwrap_or_default());
                is_plain &= !found.is_identifier && found.ordinal == 1;
            });
            let share = if is_plain { VERBATIM.0 } else { VERBATIM.1 };
            words.push((word, worth * share));
        }
        Self {
            terms,
            weights,
            total: weights.iter().sum(),
            words,
        }
    }

    fn weight(&self, term: usize) -> f64 {
        self.weights.get(term).copied().unwrap_or_default()
    }

    pub(super) fn score(&self, candidate: &Candidate<'_>) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        let mut counts = vec![0usize; self.weights.len()];
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut length = 0;
        each(candidate.text, |found| {
            length = found.ordinal;
            if let Some(term) = self.terms.get(found.term) {
                if let Some(count) = counts.get_mut(*term) {
                    *count += 1;
                }
                places.push((found.ordinal, *term));
            }
        });
        let damp = SATURATION * (1.0 - BY_LENGTH + BY_LENGTH * float(length) / USUAL);
        let mut score = 0.0;
        let mut covered = 0.0;
        for (term, count) in counts.iter().enumerate() {
            let weight = self.weight(term);
            if *count > 0 {
                let count = float(*count);
                score += weight * count * (SATURATION + 1.0) / (count + damp);
                covered += weight;
            } else if has(candidate.terms, term) {
                score += weight * BESIDE;
                covered += weight * BESIDE;
            }
        }
        score += self.verbatim(candidate.text);
        score += self.together(&places) * TOGETHER;
        score += self.named(candidate.path) * PATH + self.named(candidate.tool) * TOOL;
        score * (0.5 + 0.5 * covered / self.total) * of_kind(candidate.kind)
    }

    /// What the words add that stand in a text as they were asked.
    fn verbatim(&self, text: &str) -> f64 {
        let text = text.to_lowercase();
        let stands = |word: &str| {
            text.match_indices(word).any(|(at, _)| {
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let behind = text
                    .get(at + word.len()..)
                    .and_then(|behind| behind.chars().next());
                let is_word =
                    |letter: Option<char>| letter.is_some_and(|l| l.is_alphanumeric() || l == '_');
                !is_word(before) && !is_word(behind)
            })
        };
        self.words
            .iter()
            .filter(|(word, _)| stands(word))
            .map(|(_, worth)| worth)
            .sum()
    }

    /// What the terms of a text weigh that stand there, less the further apart
    /// they are; nothing if there is only one. Places are words and terms.
    fn together(&self, places: &[(usize, usize)]) -> f64 {
        let distinct: BTreeSet<usize> = places.iter().map(|(_, term)| *term).collect();
        if distinct.len() < 2 {
            return 0.0;
        }
        // The shortest stretch that has all of them.
        let mut held: HashMap<usize, usize> = HashMap::new();
        let mut shortest = usize::MAX;
        let mut from = 0;
        for (end, term) in places {
            *held.entry(*term).or_default() += 1;
            while held.len() == distinct.len() {
                let Some((start, first)) = places.get(from) else {
                    break;
                };
                shortest = shortest.min(end.saturating_sub(*start));
                from += 1;
                if let Some(count) = held.get_mut(first) {
                    *count -= 1;
                    if *count == 0 {
                        held.remove(first);
                    }
                }
            }
        }
        let gap = float(shortest.saturating_sub(distinct.len() - 1));
        let weight: f64 = distinct.into_iter().map(|term| self.weight(term)).sum();
        weight * APART / (APART + gap)
    }

    /// What the terms weigh that stand in a name.
    fn named(&self, name: &str) -> f64 {
        let mut named = 0.0;
        let mut seen = BTreeSet::new();
        each(name, |found| {
            if let Some(term) = self
                .terms
                .get(found.term)
                .filter(|term| seen.insert(**term))
            {
                named += self.weight(*term);
            }
        });
        named
    }
}

/// What is said and decided is meant more often than what merely happened.
fn of_kind(kind: EntryKind) -> f64 {
    match kind {
        EntryKind::Fact(FactKind::Decision | FactKind::Constraint) => 1.1,
        EntryKind::UserWords | EntryKind::Fact(FactKind::Words | FactKind::Error) => 1.05,
        EntryKind::Fact(_) => 0.9,
        EntryKind::Snapshot => 0.5,
        _ => 1.0,
    }
}
