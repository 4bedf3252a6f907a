//! Where each specific word and each line of a history stands.
//!
//! Every message is read once. What a view still shows is then a matter of its
//! places: a word or line is in view if one of the places where it stands is
//! shown as it was, or if a pass has put it in again.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::lines::{LineKey, forms, is_weighty, key, readable};
use super::probes::words;
use super::tokens::tokens;
use crate::engine::overlay::{Change, Overlay};

/// The most places that are remembered of one thing: the first, and the newest.
const PLACES: usize = 64;

/// A message and a block in it.
pub type Place = (usize, usize);

/// What a history says, and where.
#[derive(Default)]
pub struct Index {
    texts: HashMap<Place, String>,
    tokens: HashMap<String, VecDeque<Place>>,
    lines: HashMap<LineKey, VecDeque<Place>>,
}

impl Index {
    /// Adds a block of the history.
    pub fn add(&mut self, place: Place, block: &Value) {
        let text = readable_words(block);
        if text.is_empty() {
            return;
        }
        for token in tokens(&text) {
            if let Some(places) = self.tokens.get_mut(token) {
                note(places, place);
            } else {
                self.tokens.insert(token.to_owned(), [place].into());
            }
        }
        for line in text.lines().filter(|line| is_weighty(line)) {
            for form in forms(line) {
                note(self.lines.entry(key(form)).or_default(), place);
            }
        }
        self.texts.insert(place, text);
    }

    /// Where a word stands; nothing if the history does not have it.
    pub fn places(&self, token: &str) -> Option<&VecDeque<Place>> {
        self.tokens.get(token)
    }

    /// Where a line stands; nothing if the history does not have it.
    pub fn line_places(&self, line: &str) -> Option<&VecDeque<Place>> {
        self.lines.get(&key(line))
    }

    /// Where a part of a line stands, found by the rarest word in it.
    pub fn part_places(&self, part: &str) -> Vec<Place> {
        let part = part.trim();
        let known = tokens(part).filter_map(|token| self.tokens.get(token));
        let rarest = known.min_by_key(|places| places.len());
        let places = rarest.into_iter().flatten().copied();
        places
            .filter(|place| self.text(*place).contains(part))
            .collect()
    }

    /// What a place says.
    pub fn text(&self, place: Place) -> &str {
        self.texts.get(&place).map_or("", String::as_str)
    }

    /// Every word, with the places where it stands.
    pub fn all(&self) -> impl Iterator<Item = (&str, &VecDeque<Place>)> {
        let each = self.tokens.iter();
        each.map(|(token, places)| (token.as_str(), places))
    }
}

/// All that a block says, as lines.
pub fn readable_words(block: &Value) -> String {
    let mut text = String::new();
    for word in words(block) {
        text.push_str(&readable(word));
        text.push('\n');
    }
    text
}

fn note(places: &mut VecDeque<Place>, place: Place) {
    if places.back() == Some(&place) {
        return;
    }
    places.push_back(place);
    // The first may stand in the head, which no pass touches.
    if places.len() > PLACES {
        places.remove(1);
    }
}

/// Whether a view shows a place as it was.
pub fn is_shown(overlay: &Overlay, (message, block): Place) -> bool {
    let change = overlay.change_at(message, block);
    let as_it_was = change.is_none_or(|change| matches!(change, Change::Append(_)));
    overlay.shows(message) && as_it_was
}

/// Whether a view shows one of these places as it was. The newest come first:
/// they are shown most often.
pub fn is_any_shown<'a>(
    overlay: &Overlay,
    places: impl IntoIterator<Item = &'a Place, IntoIter: DoubleEndedIterator>,
) -> bool {
    let mut places = places.into_iter().rev();
    places.any(|place| is_shown(overlay, *place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_and_lines_and_parts_of_lines_are_found_where_they_stand() {
        let mut index = Index::default();
        let read = "   11→fn load_all(path: &str) {\n   12→}";
        index.add((2, 0), &json!({"type": "tool_result", "content": read}));
        let said = "I call load_all next.";
        index.add((3, 1), &json!({"type": "text", "text": said}));
        assert_eq!(index.places("load_all").unwrap(), &[(2, 0), (3, 1)]);
        let line = "fn load_all(path: &str) {";
        assert_eq!(index.line_places(line).unwrap(), &[(2, 0)]);
        assert_eq!(index.line_places("}"), None);
        assert_eq!(index.part_places(" load_all(path"), [(2, 0)]);
        assert!(index.part_places("load_all(other").is_empty());
        assert_eq!(index.places("1"), None);
    }

    #[test]
    fn the_first_place_and_the_newest_are_remembered() {
        let mut places = VecDeque::new();
        (0..100).for_each(|at| note(&mut places, (at, 0)));
        assert_eq!(places.len(), PLACES);
        assert_eq!((places[0], places[1]), ((0, 0), (37, 0)));
    }
}
