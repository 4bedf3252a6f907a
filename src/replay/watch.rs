//! Watches a conversation: what was said where, what a pass took out of view,
//! and what is needed of that afterwards.
//!
//! Something is at stake when an answer of the recording names it, it was
//! mentioned before, and no place where it was mentioned is shown any more as it
//! was. It is recovered if what a pass has put in place of those, be it a summary,
//! a pinned index or a stub, has it too. A rule of the user's is needed all the
//! time, so it is asked for once with every pass.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::probes::{Kind, constraints, decisions, gather, is_path, needed, terms, words};
use super::recording::{blocks, kind, text};
use crate::engine::acts::{act, key};
use crate::engine::conversation::Conversation;
use crate::engine::overlay::{Change, Overlay};
use crate::engine::pinned::genuine;
use crate::wire::body::Body;

/// The most places that are remembered of one thing, the newest.
const PLACES: usize = 64;

/// A message and a block in it.
pub type Place = (usize, usize);

/// Something that is needed and was taken out of view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What kind of thing it is.
    pub kind: Kind,
    /// The thing itself.
    pub what: String,
    /// Where it was mentioned.
    pub places: Vec<Place>,
    /// The view has it all the same.
    pub in_view: bool,
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
    mentions: HashMap<String, VecDeque<Place>>,
    decided: HashSet<String>,
    rules: Vec<(usize, String)>,
    overlay: Overlay,
    /// What the overlay has put in.
    inserted: String,
    /// What it has removed and nothing shows any more.
    gone: HashSet<u64>,
    /// What was ever removed, and what of that was fetched again.
    removed: HashSet<u64>,
    fetched: HashSet<u64>,
}

impl Watch {
    /// A message is added to the history.
    pub fn heard(&mut self, at: usize, message: &Value) {
        let blocks = blocks(message);
        for (index, block) in blocks.iter().enumerate() {
            for term in words(block).into_iter().flat_map(terms) {
                let places = self.mentions.entry(term.to_owned()).or_default();
                if places.back() != Some(&(at, index)) {
                    places.push_back((at, index));
                }
                if places.len() > PLACES {
                    places.pop_front();
                }
            }
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
        }
    }

    /// A pass has given the conversation another overlay, and with it these
    /// things are gone. What of the user's rules is no longer shown as it was.
    pub fn passed(&mut self, overlay: Overlay, gone: HashSet<u64>) -> Vec<Need> {
        self.inserted = inserted(&overlay);
        self.overlay = overlay;
        self.removed.extend(&gone);
        self.gone = gone;
        let hidden = self.rules.iter().filter(|(at, _)| !self.overlay.shows(*at));
        let need = |(at, rule): &(usize, String)| Need {
            kind: Kind::Constraint,
            what: rule.clone(),
            places: vec![(*at, 0)],
            in_view: self.inserted.contains(rule),
        };
        hidden.map(need).collect()
    }

    /// What an answer needs that is no longer shown as it was.
    pub fn needs(&self, answer: &Value) -> Vec<Need> {
        if self.overlay.is_empty() {
            return Vec::new();
        }
        let blocks = blocks(answer);
        let named = blocks.iter().flat_map(needed).flat_map(terms);
        let mut seen = HashSet::new();
        let mut needs = Vec::new();
        for term in named.filter(|term| seen.insert(*term)) {
            let Some(places) = self.mentions.get(term) else {
                continue;
            };
            if places.iter().rev().any(|place| self.is_shown(*place)) {
                continue;
            }
            needs.push(Need {
                kind: match term {
                    term if is_path(term) => Kind::Path,
                    term if self.decided.contains(term) => Kind::Decision,
                    _ => Kind::Identifier,
                },
                what: term.to_owned(),
                places: places.iter().copied().collect(),
                in_view: self.inserted.contains(term),
            });
        }
        needs
    }

    /// Notes what an answer fetches of what is gone.
    pub fn fetches(&mut self, answer: &Value) {
        for call in blocks(answer).iter().filter(|it| kind(it) == "tool_use") {
            let name = text(call, "name");
            let input = call.get("input").map(Value::to_string).unwrap_or_default();
            let fetched = key(name, &act(name, input.as_bytes()));
            self.fetched
                .extend(fetched.filter(|it| self.gone.contains(it)));
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
    }

    /// The overlay that holds.
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    fn is_shown(&self, (message, block): Place) -> bool {
        let change = self.overlay.change_at(message, block);
        let as_it_was = change.is_none_or(|change| matches!(change, Change::Append(_)));
        self.overlay.shows(message) && as_it_was
    }
}

/// All text that an overlay puts in.
fn inserted(overlay: &Overlay) -> String {
    let segments = overlay.segments.iter().map(|segment| &segment.block);
    let edits = overlay.edits.iter().filter_map(|edit| match &edit.change {
        Change::Payload(json) | Change::Block(json) | Change::Append(json) => Some(json),
        Change::Gone => None,
    });
    let native = overlay.native.iter();
    let pieces = native.chain(&overlay.before).chain(segments);
    let mut text = String::new();
    for piece in pieces.chain(&overlay.after).chain(edits) {
        let value: Value = serde_json::from_str(piece).unwrap_or_default();
        let mut words = Vec::new();
        gather(Some(&value), usize::MAX, &mut words);
        for word in words {
            text.push_str(word);
            text.push('\n');
        }
    }
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
mod tests {
    use super::*;
    use crate::engine::overlay::{Edit, Origin, Segment};
    use serde_json::json;

    fn say(role: &str, words: &str) -> Value {
        json!({"role": role, "content": [{"type": "text", "text": words}]})
    }

    fn watched() -> Watch {
        let mut watch = Watch::default();
        let messages = [
            say("user", "Port it to new_api."),
            say(
                "assistant",
                "I looked at src/old.rs and decided on flat_layout.",
            ),
            say("user", "Never touch legacy_tables, please."),
            say("assistant", "There is also lost_value and kept_value."),
            say("user", "Now kept_value again."),
        ];
        for (at, message) in messages.iter().enumerate() {
            watch.heard(at, message);
        }
        watch
    }

    fn hiding(summary: &str) -> Overlay {
        Overlay {
            made_at: 5,
            head: 1,
            cut: 4,
            segments: vec![Segment {
                block: json!({"type": "text", "text": summary}).to_string(),
                from: 1,
                to: 4,
                origin: Origin::Summary,
                pinned: 0,
            }],
            ..Overlay::default()
        }
    }

    #[test]
    fn what_is_named_again_must_be_shown_or_have_been_carried_over() {
        let mut watch = watched();
        let answer = say(
            "assistant",
            "new_api, src/old.rs, flat_layout, lost_value, kept_value, brand_new",
        );
        assert_eq!(watch.needs(&answer), []);
        let rules = watch.passed(hiding("src/old.rs; flat_layout"), HashSet::new());
        assert_eq!(rules.len(), 1);
        assert!(!rules[0].in_view);
        let needs = watch.needs(&answer);
        let told: Vec<_> = needs
            .iter()
            .map(|need| (need.what.as_str(), need.kind, need.in_view))
            .collect();
        assert_eq!(
            told,
            [
                ("src/old.rs", Kind::Path, true),
                ("flat_layout", Kind::Decision, true),
                ("lost_value", Kind::Identifier, false),
            ]
        );
        assert_eq!(needs[2].places, [(3, 0)]);
    }

    #[test]
    fn a_rule_is_needed_with_every_pass_that_hides_it() {
        let mut watch = watched();
        let summary = "The user: Never touch legacy_tables, please.";
        let rules = watch.passed(hiding(summary), HashSet::new());
        assert_eq!(rules.len(), 1);
        assert!(rules[0].in_view);
        let nothing_hidden = Overlay {
            made_at: 5,
            edits: vec![Edit {
                message: 1,
                block: 0,
                change: Change::Block("{}".to_owned()),
            }],
            ..Overlay::default()
        };
        assert_eq!(watch.passed(nothing_hidden, HashSet::new()), []);
    }

    #[test]
    fn what_is_gone_and_fetched_again_is_counted_once() {
        let mut watch = watched();
        let call = |path: &str| {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1",
                "name": "Read", "input": {"file_path": path}}]})
        };
        let key_of = |path: &str| {
            let input = json!({"file_path": path}).to_string();
            key("Read", &act("Read", input.as_bytes())).unwrap()
        };
        let gone = [key_of("/a"), key_of("/b")].into_iter().collect();
        watch.passed(hiding(""), gone);
        for path in ["/a", "/c", "/a"] {
            watch.fetches(&call(path));
        }
        assert_eq!(watch.rereads(), (2, 1));
    }
}
