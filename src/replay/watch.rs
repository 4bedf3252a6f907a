//! Watches a conversation: what was said where, what a pass took out of view,
//! and what is needed of that afterwards.
//!
//! Something is at stake when an answer of the recording names it, it was
//! mentioned before, and no place where it was mentioned is shown any more as it
//! was. It is recovered if what a pass has put in place of those, be it a summary,
//! a pinned index or a stub, has the same word: a part of a longer one is another
//! thing. A rule of the user's is asked for once, when an answer is first about
//! what it forbids or demands after it was hidden.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::probes::{
    Kind, constraints, decisions, gather, is_path, long_words, terms, uses, words,
};
use super::recording::{blocks, kind, text};
use super::reread::{self, Thing};
use crate::engine::conversation::Conversation;
use crate::engine::overlay::{Change, Overlay};
use crate::engine::pinned::genuine;
use crate::wire::body::Body;

/// The most places that are remembered of one thing, the newest.
const PLACES: usize = 64;
/// So many things of one call are asked for, the first that were mentioned: a file
/// that is written whole may have hundreds.
const CALL: usize = 40;

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
    /// What the overlay has put in, and the terms in it.
    inserted: String,
    inserted_terms: HashSet<String>,
    /// What it has removed and nothing shows any more.
    gone: Vec<Thing>,
    /// What was ever removed, and what of that was fetched again.
    removed: HashSet<u64>,
    fetched: HashSet<u64>,
    /// The rules that were asked for.
    asked: HashSet<String>,
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
    /// things are gone.
    pub fn passed(&mut self, overlay: Overlay, gone: Vec<Thing>) {
        self.inserted = inserted(&overlay);
        self.inserted_terms = terms(&self.inserted).map(str::to_owned).collect();
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
            let named = words(block).into_iter().flat_map(terms);
            let known = named.filter(|term| self.mentions.contains_key(*term));
            let named = known.filter(|term| seen.insert(*term)).take(most);
            let kind = |term: &str| match term {
                term if is_path(term) => Kind::Path,
                term if self.decided.contains(term) => Kind::Decision,
                _ => Kind::Identifier,
            };
            needs.extend(named.filter_map(|term| self.need(term, kind(term))));
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
                    in_view: self.inserted.contains(rule),
                });
            }
        }
        needs
    }

    /// A fact that was planted, if it is no longer shown as it was.
    pub fn planted(&self, fact: &str) -> Option<Need> {
        self.need(fact, Kind::Planted)
    }

    /// What was mentioned, if no place shows it any more.
    fn need(&self, term: &str, kind: Kind) -> Option<Need> {
        let places = self.mentions.get(term)?;
        let is_shown = places.iter().rev().any(|place| self.is_shown(*place));
        (!is_shown).then(|| Need {
            kind,
            what: term.to_owned(),
            places: places.iter().copied().collect(),
            in_view: self.inserted_terms.contains(term),
        })
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
        gather(Some(&value), &mut words);
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
    use crate::engine::overlay::{Origin, Segment};
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
        watch.passed(hiding("src/old.rs; flat_layout"), Vec::new());
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

    /// `src/main` is not in view because `src/main.rs` is.
    #[test]
    fn a_part_of_a_longer_word_is_another_thing() {
        for (summary, in_view) in [
            ("See lost_value_2 and old_lost_value.", false),
            ("See lost_value/x.rs.", false),
            ("See `lost_value`.", true),
        ] {
            let mut watch = watched();
            watch.passed(hiding(summary), Vec::new());
            let needs = watch.needs(&say("assistant", "lost_value"));
            assert_eq!(needs[0].in_view, in_view, "{summary}");
        }
    }

    #[test]
    fn what_a_long_input_names_is_needed_up_to_a_bound() {
        let mut watch = watched();
        let names: Vec<String> = (0..60).map(|at| format!("name_{at:02}")).collect();
        watch.heard(2, &say("assistant", &names.join(" ")));
        watch.passed(hiding(""), Vec::new());
        let call = |content: &str| {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1",
                "name": "Write", "input": {"file_path": "/n", "content": content}}]})
        };
        let long = format!("{} lost_value", "unknown_word ".repeat(100));
        let needs = watch.needs(&call(&long));
        assert_eq!(needs.len(), 1);
        assert_eq!(needs[0].what, "lost_value");
        assert_eq!(watch.needs(&call(&names.join(" "))).len(), CALL);
    }

    #[test]
    fn a_rule_is_asked_for_once_when_an_answer_is_about_it() {
        let rule = "Never change legacy tables without asking, please.";
        let mut watch = watched();
        watch.heard(2, &say("user", rule));
        watch.passed(hiding(&format!("The user: {rule}")), Vec::new());
        assert_eq!(watch.needs(&say("assistant", "Something else.")), []);
        let about = say("assistant", "I will change no legacy tables without it.");
        let needs = watch.needs(&about);
        assert_eq!(needs.len(), 1);
        assert!(needs[0].is_rule() && needs[0].in_view);
        watch.passed(hiding(""), Vec::new());
        assert_eq!(watch.needs(&about), []);
    }

    #[test]
    fn a_planted_fact_is_asked_for_where_it_is_hidden() {
        let mut watch = watched();
        assert_eq!(watch.planted("lost_value"), None);
        watch.passed(hiding(""), Vec::new());
        let need = watch.planted("lost_value").unwrap();
        assert_eq!((need.kind, need.in_view), (Kind::Planted, false));
        assert_eq!(watch.planted("kept_value"), None);
        assert_eq!(watch.planted("never_heard"), None);
    }

    #[test]
    fn what_is_gone_and_fetched_again_is_counted_once() {
        let mut watch = watched();
        let input = |path: &str| json!({"file_path": path, "offset": 1, "limit": 50});
        let call = |path: &str| {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1",
                "name": "Read", "input": input(path)}]})
        };
        let whole = |path: &str| {
            let input = json!({"file_path": path}).to_string();
            reread::thing("Read", input.as_bytes()).unwrap()
        };
        watch.passed(hiding(""), vec![whole("/a"), whole("/b")]);
        for path in ["/a", "/c", "/a"] {
            watch.fetches(&call(path));
        }
        assert_eq!(watch.rereads(), (2, 1));
    }
}
