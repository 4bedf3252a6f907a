//! The stretch of a text that shows best why it was found.

use crate::engine::recall::terms::each;
use crate::engine::summary::segment::unforged;

/// What stands where something was cut off.
const CUT: char = '…';

/// At most so many characters of a text, around where most of the terms stand
/// together, at whole lines where they are near. The terms are the most telling
/// first. No line of it looks like one of ours.
pub fn snippet(text: &str, terms: &[String], limit: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= limit {
        return unforged(text);
    }
    let room = limit.saturating_sub(2);
    let (from, to) = best(text, terms, room * 3 / 4);
    // What is left of the room goes to both sides, more of it behind.
    let spare = room.saturating_sub(text.get(from..to).map_or(0, |shown| shown.chars().count()));
    let before = back(text, from, spare / 3);
    let from = begin(text, before, from);
    let behind = forth(text, from, room);
    let to = end(text, to.min(behind), behind);
    let shown = text.get(from..to).unwrap_or_default().trim();
    let mut snippet = String::new();
    if from > 0 {
        snippet.push(CUT);
    }
    snippet.push_str(shown);
    if to < text.len() {
        snippet.push(CUT);
    }
    unforged(&snippet)
}

/// Where the terms stand closest that are worth most: bytes, not further apart
/// than `room`.
fn best(text: &str, terms: &[String], room: usize) -> (usize, usize) {
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    each(text, |found| {
        if let Some(term) = terms.iter().position(|term| term == found.term) {
            places.push((found.at.start, found.at.end, term));
        }
    });
    let mut counts = vec![0usize; terms.len()];
    let worth = |counts: &[usize]| -> (usize, usize) {
        let held = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let distinct = held
            .map(|(term, _)| terms.len() + 1 + (terms.len() - term))
            .sum();
        (distinct, counts.iter().sum())
    };
    let mut best = ((0, 0), (0, 0));
    let mut from = 0;
    for (_, end, term) in &places {
        if let Some(count) = counts.get_mut(*term) {
            *count += 1;
        }
        while let Some((start, _, first)) = places.get(from).copied()
            && end.saturating_sub(start) > room
            && start < *end
        {
            if let Some(count) = counts.get_mut(first) {
                *count = count.saturating_sub(1);
            }
            from += 1;
        }
        let start = places.get(from).map_or(*end, |place| place.0.min(*end));
        let value = worth(&counts);
        if value > best.0 {
            best = (value, (start, *end));
        }
    }
    best.1
}

/// So many characters before a place.
fn back(text: &str, at: usize, letters: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let mut starts = before.char_indices().rev().map(|(start, _)| start);
    match letters.checked_sub(1) {
        Some(last) => starts.nth(last).unwrap_or(0),
        None => at,
    }
}

/// So many characters behind a place.
fn forth(text: &str, at: usize, letters: usize) -> usize {
    let behind = text.get(at..).unwrap_or_default();
    let mut starts = behind.char_indices().map(|(start, _)| start);
    starts.nth(letters).map_or(text.len(), |start| at + start)
}

/// The first line or word that begins between two places.
fn begin(text: &str, from: usize, to: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let between = text.get(from..to).unwrap_or_default();
    let line = between.find('\n').map(|at| at + 1);
    let word = || between.find(' ').map(|at| at + 1);
    line.or_else(word).map_or(from, |at| from + at)
}

/// The last line or word that ends between two places.
fn end(text: &str, from: usize, to: usize) -> usize {
    if to == text.len() {
        return to;
    }
    let between = text.get(from..to).unwrap_or_default();
    let line = between.rfind('\n').or_else(|| between.rfind(' '));
    line.map_or(to, |at| from + at)
}
