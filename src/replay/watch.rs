//! Watches a conversation: what was said where, what a pass took out of view,
//! and what is needed of that afterwards.
//!
//! Something is at stake when an answer of the recording names it, it was
//! mentioned before, and no place where it was mentioned is shown any more as it
//! was. It is recovered if what a pass has put in place of those, be it a summary,
//! a pinned index or a stub, has the same word: a part of a longer one is another
//! thing. A rule of the user's is asked for once, when an answer is first about
//! what it forbids or demands after it was hidden.
//!
//! Beside that each answer is held against the view it was given for: did the
//! view have what the next call names, and the lines that an edit takes for
//! granted? And each pass is asked what it left of the user's orders, and which
//! values it shows that no longer hold.

use std::collections::HashSet;

use serde_json::Value;

use super::edits::{OldLine, edits};
use super::index::{Index, is_any_shown};
use super::inserted::{Bags, Inserted};
use super::lines::is_weighty;
use super::plant::Shape;
use super::probes::{
    Kind, constraints, decisions, gather, is_path, is_term, long_words, terms, uses, words,
};
use super::quality::Quality;
use super::recording::{blocks, kind, text};
use super::reread::{self, Thing};
use super::rules::{Age, orders};
use super::tokens::{is_number, tokens};
use super::values::Values;
use crate::engine::conversation::Conversation;
use crate::engine::overlay::Overlay;
use crate::engine::pinned::genuine;
use crate::wire::body::Body;

pub use super::index::Place;

/// So many things of one call are asked for, the first that were mentioned: a file
/// that is written whole may have hundreds.
const CALL: usize = 40;

/// Something that is needed and was taken out of view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What kind of thing it is.
    pub kind: Kind,
    /// The thing itself.
    pub what: String,
    /// Where it was mentioned.
    pub places: Vec<Place>,
    /// How it was planted, if it was.
    pub shape: Option<Shape>,
    /// The view has it all the same.
    pub in_view: bool,
    /// The view has it in the line it comes from, and says where that is.
    pub in_line: bool,
    /// Bags of names in place of what was put in would have had it.
    pub bags: Bags,
}

impl Need {
    /// Whether it is a rule, to be known word for word.
    pub fn is_rule(&self) -> bool {
        self.kind == Kind::Constraint
    }
}

/// A conversation that is watched.
#[derive(Default)]
pub struct Watch {
    index: Index,
    values: Values,
    decided: HashSet<String>,
    rules: Vec<(usize, String)>,
    orders: Vec<(usize, String)>,
    /// How many messages there are.
    length: usize,
    overlay: Overlay,
    /// What the overlay has put in.
    inserted: Inserted,
    /// What it has removed and nothing shows any more.
    gone: Vec<Thing>,
    /// What was ever removed, and what of that was fetched again.
    removed: HashSet<u64>,
    fetched: HashSet<u64>,
    /// The rules that were asked for.
    asked: HashSet<String>,
    /// Words of the system prompt and the tools: no pass touches them.
    always: HashSet<String>,
    quality: Quality,
}

impl Watch {
    /// A message is added to the history.
    pub fn heard(&mut self, at: usize, message: &Value) {
        let blocks = blocks(message);
        self.length = at + 1;
        for (block, said) in blocks.iter().enumerate() {
            self.index.add((at, block), said);
            self.values.add((at, block), said);
        }
        let texts = blocks.iter().filter(|block| kind(block) == "text");
        if text(message, "role") == "assistant" {
            let sentences = texts.flat_map(|block| decisions(text(block, "text")));
            let named = sentences.flat_map(terms).map(str::to_owned);
            self.decided.extend(named);
        } else if texts.count() > 0 {
            let own = own_words(message);
            let rules = constraints(&own).map(|rule| (at, rule.to_owned()));
            self.rules.extend(rules);
            let orders = orders(&own).map(|order| (at, order.to_owned()));
            self.orders.extend(orders);
        }
    }

    /// A pass has given the conversation another overlay, and with it these
    /// things are gone.
    pub fn passed(&mut self, overlay: Overlay, gone: Vec<Thing>) {
        self.inserted = Inserted::new(&overlay, &self.index);
        self.overlay = overlay;
        self.removed.extend(gone.iter().map(|thing| thing.id));
        self.gone = gone;
    }

    /// What an answer needs that is no longer shown as it was.
    pub fn needs(&mut self, answer: &Value) -> Vec<Need> {
        if self.overlay.is_empty() {
            return Vec::new();
        }
        let blocks = blocks(answer);
        let mut seen = HashSet::new();
        let mut needs = Vec::new();
        for block in &blocks {
            let most = match kind(block) {
                "tool_use" => CALL,
                _ => usize::MAX,
            };
            let used = words(block).into_iter().flat_map(tokens);
            let used = used.filter(|it| is_term(it) || is_number(it));
            let known = used.filter(|token| self.index.places(token).is_some());
            let fresh = known.filter(|token| seen.insert(*token));
            let (numbers, names): (Vec<&str>, Vec<&str>) = fresh.partition(|it| is_number(it));
            let kind = |name: &str| match name {
                name if is_path(name) => Kind::Path,
                name if self.decided.contains(name) => Kind::Decision,
                _ => Kind::Identifier,
            };
            let names = names.into_iter().take(most).map(|it| (it, kind(it)));
            let numbers = numbers.into_iter().take(most);
            let all = names.chain(numbers.map(|it| (it, Kind::Number)));
            needs.extend(all.filter_map(|(token, kind)| self.need(token, kind)));
        }
        let said = blocks.iter().flat_map(words).map(long_words);
        let said = said.flatten().collect();
        for (at, rule) in &self.rules {
            let is_asked = self.overlay.shows(*at) || self.asked.contains(rule);
            if !is_asked && uses(rule, &said) {
                self.asked.insert(rule.clone());
                needs.push(Need {
                    kind: Kind::Constraint,
                    what: rule.clone(),
                    places: vec![(*at, 0)],
                    shape: None,
                    in_view: self.inserted.has_text(rule),
                    in_line: self.inserted.has_text(rule),
                    bags: Bags::default(),
                });
            }
        }
        needs
    }

    /// A fact that was planted, if it is no longer shown as it was.
    pub fn planted(&self, fact: &str, shape: Shape) -> Option<Need> {
        let shape = Some(shape);
        let need = self.need(fact, Kind::Planted)?;
        Some(Need { shape, ..need })
    }

    /// What was mentioned, if no place shows it any more.
    fn need(&self, token: &str, kind: Kind) -> Option<Need> {
        let places = self.index.places(token)?;
        if is_any_shown(&self.overlay, places) {
            return None;
        }
        let places: Vec<Place> = places.iter().copied().collect();
        let in_line = self.inserted.has_in_line(token, &self.index, &places);
        Some(Need {
            kind,
            what: token.to_owned(),
            places,
            shape: None,
            in_view: self.inserted.has(token),
            in_line,
            bags: self.inserted.bags_have(token),
        })
    }

    /// Words that every request has beside its messages.
    pub fn always(&mut self, around: &Value) {
        let mut words = Vec::new();
        gather(Some(around), &mut words);
        let words = words.into_iter().flat_map(tokens);
        self.always.extend(words.map(str::to_owned));
    }

    /// Whether the view has a specific word of the history; nothing if the history
    /// does not have it.
    pub fn has(&self, token: &str) -> Option<bool> {
        let places = self.index.places(token)?;
        Some(is_any_shown(&self.overlay, places) || self.inserted.has(token))
    }

    /// Holds an answer against the view that it was given for, after so many
    /// passes.
    pub fn judge_answer(&mut self, answer: &Value, passes: usize) {
        if self.overlay.is_empty() {
            return;
        }
        self.quality.requests += 1;
        let blocks = blocks(answer);
        let mut seen = HashSet::new();
        for call in blocks.iter().filter(|it| kind(it) == "tool_use") {
            let arguments = arguments(call);
            let named = tokens(&arguments).filter(|it| !self.always.contains(*it));
            let named = named.filter(|it| seen.insert((*it).to_owned()));
            let named = named.filter_map(|it| self.has(it)).take(CALL);
            let named: Vec<bool> = named.collect();
            let edits = edits(call.get("input").unwrap_or(&Value::Null));
            let edits = edits.iter().filter_map(|edit| self.has_lines(edit));
            let edits: Vec<bool> = edits.collect();
            for in_view in named {
                self.quality.next_action.add(passes, in_view);
            }
            for in_view in edits {
                self.quality.edits.add(passes, in_view);
            }
        }
    }

    /// Whether the view has all lines of an edit that the history has; nothing if
    /// it has none of them.
    fn has_lines(&self, edit: &[OldLine]) -> Option<bool> {
        let lines = edit.iter().filter(|line| is_weighty(&line.text));
        let known = lines.filter_map(|line| self.has_line(line));
        known.reduce(|all, one| all && one)
    }

    fn has_line(&self, line: &OldLine) -> Option<bool> {
        if let Some(places) = self.index.line_places(&line.text) {
            let is_inserted = || self.inserted.has_line(&line.text);
            return Some(is_any_shown(&self.overlay, places) || is_inserted());
        }
        let places = if line.may_be_part {
            self.index.part_places(&line.text)
        } else {
            Vec::new()
        };
        let is_inserted = || self.inserted.has_text(line.text.trim());
        (!places.is_empty()).then(|| is_any_shown(&self.overlay, &places) || is_inserted())
    }

    /// Asks the view that the last pass has made, the first or a later one, for
    /// the user's orders and for values that were replaced.
    pub fn judge_pass(&mut self, passes: usize) {
        for (at, order) in &self.orders {
            let is_found = self.overlay.shows(*at) || self.inserted.has_text(order);
            self.quality.rules.add(passes, is_found);
            let age = Age::of((self.length - at) / 2);
            let by_age = self.quality.rules_by_age.iter_mut().zip(Age::ALL);
            let of_it = by_age.filter(|(_, of)| *of == age);
            of_it.for_each(|(tally, _)| tally.add(is_found));
        }
        let replaced = self.values.replaced(&self.overlay, &self.inserted);
        for at in 0..replaced.all {
            self.quality.fresh_values.add(passes, at >= replaced.stale);
        }
    }

    /// What came of all that.
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// Notes what an answer fetches of what is gone.
    pub fn fetches(&mut self, answer: &Value) {
        for call in blocks(answer).iter().filter(|it| kind(it) == "tool_use") {
            let input = call.get("input").map(Value::to_string).unwrap_or_default();
            let Some(wanted) = reread::thing(text(call, "name"), input.as_bytes()) else {
                continue;
            };
            let again = self.gone.iter().filter(|gone| gone.overlaps(&wanted));
            self.fetched.extend(again.map(|gone| gone.id));
        }
    }

    /// How many things were removed, and how many of them were fetched again.
    pub fn rereads(&self) -> (usize, usize) {
        (self.removed.len(), self.fetched.len())
    }

    /// A history begins anew; what was counted stays.
    pub fn begins(&mut self) {
        let before = std::mem::take(self);
        self.removed = before.removed;
        self.fetched = before.fetched;
        self.asked = before.asked;
        self.always = before.always;
        self.quality = before.quality;
    }

    /// The overlay that holds.
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }
}

/// What a call is asked for, numbers included, as one text.
fn arguments(call: &Value) -> String {
    fn numbers(value: &Value, text: &mut String) {
        match value {
            Value::Number(number) => {
                text.push_str(&number.to_string());
                text.push('\n');
            }
            Value::Array(list) => list.iter().for_each(|inner| numbers(inner, text)),
            Value::Object(fields) => fields.values().for_each(|inner| numbers(inner, text)),
            _ => {}
        }
    }
    let mut text = words(call).join("\n");
    text.push('\n');
    numbers(call.get("input").unwrap_or(&Value::Null), &mut text);
    text
}

/// What the user wrote in a message, without what the client put there.
fn own_words(message: &Value) -> String {
    let body = format!(r#"{{"model":"m","messages":[{message}]}}"#).into_bytes();
    let Ok(split) = Body::split(&body) else {
        return String::new();
    };
    genuine(&Conversation::new(&body, &split), 0).unwrap_or_default()
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
