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
        assert_eq!(watch.planted("lost_value", Shape::Sentence), None);
        watch.passed(hiding(""), Vec::new());
        let need = watch.planted("lost_value", Shape::Sentence).unwrap();
        assert_eq!((need.kind, need.in_view), (Kind::Planted, false));
        assert_eq!(watch.planted("kept_value", Shape::Sentence), None);
        assert_eq!(watch.planted("never_heard", Shape::Sentence), None);
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

    fn read(content: &str) -> Value {
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": content}]})
    }

    fn calls(name: &str, input: &Value) -> Value {
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "2", "name": name, "input": input}]})
    }

    const LINES: &str = "   11→fn open_store(max_wait: u64) {\n   12→    let port = 8443;\n   13→}";

    /// What an answer finds in a view where a text stands for what was read.
    fn judged(summary: &str, answer: &Value) -> Quality {
        let mut watch = Watch::default();
        for (at, message) in [say("user", "Go."), say("assistant", "Yes."), read(LINES)]
            .iter()
            .enumerate()
        {
            watch.heard(at, message);
        }
        watch.passed(hiding(summary), Vec::new());
        watch.judge_answer(answer, 1);
        watch.quality()
    }

    #[test]
    fn what_the_next_call_names_must_be_in_view_as_far_as_the_history_has_it() {
        let call = calls(
            "Grep",
            &json!({"pattern": "open_store|brand_new|please", "port": 8443, "limit": 2000}),
        );
        for (summary, found) in [("", 0), ("open_store", 1), ("open_store on 8443", 2)] {
            let tally = judged(summary, &call).next_action.total();
            assert_eq!((tally.asked, tally.found), (2, found), "{summary}");
        }
    }

    #[test]
    fn an_edit_needs_its_old_lines_and_word_soup_has_none() {
        let whole = "fn open_store(max_wait: u64) {\n    let port = 8443;\n}";
        let part = "open_store(max_wait: u64";
        let rows = [
            (
                whole,
                "| 11: fn open_store(max_wait: u64) {\n| 12:     let port = 8443;",
                1,
            ),
            (whole, "   11→fn open_store(max_wait: u64) {", 0),
            (whole, "open_store max_wait u64 port 8443 fn let", 0),
            (part, "fn open_store(max_wait: u64) {", 1),
            (part, "open_store max_wait u64", 0),
        ];
        for (old, summary, found) in rows {
            let call = calls("Edit", &json!({"file_path": "/w/a", "old_string": old}));
            let tally = judged(summary, &call).edits.total();
            assert_eq!((tally.asked, tally.found), (1, found), "{old} {summary}");
        }
        let unknown = calls("Edit", &json!({"old_string": "never shown to anybody"}));
        assert_eq!(judged("", &unknown).edits.total().asked, 0);
    }

    #[test]
    fn an_order_must_survive_word_for_word() {
        let rows = [
            ("> Never touch legacy_tables, please.", 1),
            ("legacy_tables never touch please", 0),
        ];
        for (summary, found) in rows {
            let mut watch = watched();
            watch.passed(hiding(summary), Vec::new());
            watch.judge_pass(2);
            let quality = watch.quality();
            let tally = quality.rules.total();
            assert_eq!((tally.asked, tally.found), (1, found), "{summary}");
            assert_eq!(quality.rules_by_age[0], tally);
        }
    }
}
