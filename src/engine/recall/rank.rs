//! Which of the entries that have some of the words are the ones that were meant.
//!
//! In two steps, because a store can tell quickly which entries have which words
//! and only slowly what they say. The first goes by words alone: rare ones count
//! more, by how many of the matches have them. The second looks at the text of
//! the best: how often the words stand there, near to each other, as they were
//! written in the question, in the path or in the name of the tool.
//!
//! The same matches give the same order, everywhere and always.

mod snippet;
mod weigh;

pub use snippet::snippet;
pub use weigh::Candidate;

use std::collections::{HashMap, HashSet};

use crate::engine::ids::BlobId;
use weigh::Question;

/// The most results from one piece of content.
const SAME_CONTENT: usize = 3;
/// How good a further part of the same content must be, beside the best.
const AS_GOOD: f64 = 0.8;

/// What each of so many terms is worth, by the matches: an entry's number and the
/// terms that it has, a bit each.
pub fn weights(matches: &[(i64, u32)], terms: usize) -> Vec<f64> {
    let all = float(matches.len());
    let weight = |term: usize| {
        let have = matches.iter().filter(|(_, bits)| has(*bits, term));
        match have.count() {
            0 => 0.0,
            count => (1.0 + all / float(count)).ln(),
        }
    };
    (0..terms).map(weight).collect()
}

/// The numbers of the best matches by words alone, the best first; of equals the
/// newer one.
pub fn first(matches: &[(i64, u32)], weights: &[f64], limit: usize) -> Vec<i64> {
    let score = |bits: u32| -> f64 {
        let weights = weights.iter().enumerate();
        let held = weights.filter(|(term, _)| has(bits, *term));
        held.map(|(_, weight)| weight).sum()
    };
    let mut scored: Vec<(f64, i64)> = matches
        .iter()
        .map(|(number, bits)| (score(*bits), *number))
        .collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    scored
        .into_iter()
        .take(limit)
        .map(|(_, number)| number)
        .collect()
}

/// Whether the bit of a term is set.
fn has(bits: u32, term: usize) -> bool {
    let shifted = u32::try_from(term)
        .ok()
        .and_then(|term| bits.checked_shr(term));
    shifted.is_some_and(|bits| bits & 1 == 1)
}

/// A result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Which entry.
    pub number: i64,
    /// How well it fits; only to be compared within one question.
    pub score: f64,
}

/// Candidates by what they say, the best first. Of one piece of content there is
/// one result, unless other parts of it fit nearly as well, and what says the
/// very same stands there once, the newest of it.
pub fn second(
    query: &str,
    terms: &[String],
    weights: &[f64],
    candidates: &[Candidate<'_>],
) -> Vec<Ranked> {
    let question = Question::new(query, terms, weights);
    let mut scored: Vec<(f64, &Candidate<'_>)> = candidates
        .iter()
        .map(|candidate| (question.score(candidate), candidate))
        .collect();
    scored.sort_by(|one, other| {
        other
            .0
            .total_cmp(&one.0)
            .then(other.1.number.cmp(&one.1.number))
    });
    let mut texts: HashSet<&str> = HashSet::new();
    let mut pieces: HashMap<BlobId, (f64, usize)> = HashMap::new();
    let mut ranked = Vec::new();
    for (score, candidate) in scored {
        let says = candidate.text.trim();
        if !says.is_empty() && texts.contains(says) {
            continue;
        }
        if let Some(blob) = candidate.blob {
            let (best, count) = pieces.entry(blob).or_insert((score, 0));
            if *count >= SAME_CONTENT || score < *best * AS_GOOD {
                continue;
            }
            *count += 1;
        }
        texts.insert(says);
        ranked.push(Ranked {
            number: candidate.number,
            score,
        });
    }
    ranked
}

/// A count to reckon with.
fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
