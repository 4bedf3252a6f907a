//! Values that were replaced by others.
//!
//! A view that shows what a setting was, and not what it is now, is worse than
//! one that shows neither. A value counts as replaced where that is certain: an
//! edit of a file changes it, or the same whole file, or the same command, shows
//! another one later. A name that stands in one text with two values says nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::assignments::assignments;
use super::index::{Place, is_any_shown, readable_words};
use super::inserted::Inserted;
use super::recording::{kind, text};
use crate::engine::acts::{Act, Part, act};
use crate::engine::overlay::Overlay;

/// The most assignments of one text.
const MOST: usize = 400;
/// Fields that hold what is replaced, and what replaces it.
const PAIRS: [(&str, &str); 3] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];

/// What names were given which values, by the file or command that says so.
#[derive(Default)]
pub struct Values {
    /// What calls that have no result yet are about.
    open: HashMap<String, String>,
    known: HashMap<(String, String), Vec<Given>>,
}

/// A value and where it is given.
struct Given {
    value: String,
    places: Vec<Place>,
}

/// How many values were replaced, and how many of those are shown alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Names whose value was replaced.
    pub all: usize,
    /// Those of them of which the view shows an old value and not the new one.
    pub stale: usize,
}

impl Values {
    /// A block is added to the history.
    pub fn add(&mut self, place: Place, block: &Value) {
        match kind(block) {
            "tool_use" => self.called(place, block),
            "tool_result" => {
                if let Some(source) = self.open.remove(text(block, "tool_use_id")) {
                    let given = certain(&readable_words(block));
                    self.give(&source, given, place);
                }
            }
            _ => {}
        }
    }

    fn called(&mut self, place: Place, block: &Value) {
        let Some(input) = block.get("input") else {
            return;
        };
        let act = act(text(block, "name"), input.to_string().as_bytes());
        if let [written] = act.writings() {
            let path = written.file.path.clone();
            if written.is_full {
                self.give(&path, certain(text(input, "content")), place);
            }
            self.edited(&path, input, place);
            return;
        }
        let source = match &act {
            Act::Asks(_) => Some(act.subject()),
            Act::Runs(command) if command.reading.is_none() => Some(act.subject()),
            _ => act
                .reading()
                .filter(|reading| reading.part == Part::Whole)
                .map(|reading| reading.file.path.clone()),
        };
        if let Some(source) = source.filter(|source| !source.is_empty()) {
            self.open.insert(text(block, "id").to_owned(), source);
        }
    }

    /// What an edit replaces by another value of the same name.
    fn edited(&mut self, path: &str, value: &Value, place: Place) {
        match value {
            Value::Array(list) => list.iter().for_each(|it| self.edited(path, it, place)),
            Value::Object(fields) => {
                for (old, new) in PAIRS {
                    let (old, new) = (certain(text(value, old)), certain(text(value, new)));
                    let both = |name: &String| old.contains_key(name) && new.contains_key(name);
                    let of_both = |given: &BTreeMap<String, String>| {
                        let pairs = given.clone().into_iter();
                        pairs.filter(|(name, _)| both(name)).collect()
                    };
                    self.give(path, of_both(&old), place);
                    self.give(path, of_both(&new), place);
                }
                let lists = fields.values().filter(|it| it.is_array());
                lists.for_each(|list| self.edited(path, list, place));
            }
            _ => {}
        }
    }

    fn give(&mut self, source: &str, given: BTreeMap<String, String>, place: Place) {
        for (name, value) in given {
            let all = self.known.entry((source.to_owned(), name)).or_default();
            match all.last_mut().filter(|last| last.value == value) {
                Some(last) => last.places.push(place),
                None => all.push(Given {
                    value,
                    places: vec![place],
                }),
            }
        }
    }

    /// What a view shows of values that were replaced.
    pub fn replaced(&self, overlay: &Overlay, inserted: &Inserted) -> Replaced {
        let mut replaced = Replaced::default();
        for ((_, name), all) in &self.known {
            let Some((now, before)) = all.split_last() else {
                continue;
            };
            let is_seen = |given: &Given| {
                let assignment = (name.clone(), given.value.clone());
                is_any_shown(overlay, &given.places) || inserted.has_value(&assignment)
            };
            let mut old = before.iter().filter(|given| given.value != now.value);
            if old.clone().next().is_some() {
                replaced.all += 1;
                replaced.stale += usize::from(old.any(is_seen) && !is_seen(now));
            }
        }
        replaced
    }
}

/// The assignments of a text whose names have one value in it.
fn certain(text: &str) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    let mut doubtful = HashSet::new();
    for (name, value) in assignments(text).take(MOST) {
        let before = given.insert(name.clone(), value);
        if before.is_some_and(|before| given.get(&name) != Some(&before)) {
            doubtful.insert(name);
        }
    }
    given.retain(|name, _| !doubtful.contains(name));
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Change, Edit};
    use crate::replay::index::Index;
    use serde_json::json;

    /// A file is read, edited, and something else happens; then a view shows the
    /// blocks that are asked for and a text in place of the others.
    fn seen(hidden: &[u32], text: &str) -> Replaced {
        let call = |name: &str, id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let read = call("Read", "a", json!({"file_path": "/w/a.toml"}));
        let result = json!({"type": "tool_result", "tool_use_id": "a",
            "content": "port = 8080\nsame = 1\ntwice = 1\ntwice = 2"});
        let edit = call(
            "Edit",
            "b",
            json!({"file_path": "/w/a.toml", "old_string": "port = 8080",
                "new_string": "port = 9090"}),
        );
        let (mut values, mut index) = (Values::default(), Index::default());
        for (at, block) in [read, result, edit].iter().enumerate() {
            values.add((at + 1, 0), block);
            index.add((at + 1, 0), block);
        }
        let edits = hidden.iter().map(|message| Edit {
            message: *message,
            block: 0,
            change: Change::Payload(json!(text).to_string()),
        });
        let overlay = Overlay {
            made_at: 9,
            edits: edits.collect(),
            ..Overlay::default()
        };
        let inserted = Inserted::new(&overlay, &index);
        values.replaced(&overlay, &inserted)
    }

    #[test]
    fn an_old_value_without_the_new_one_is_stale_and_word_soup_is_no_new_value() {
        let rows: [(&[u32], &str, usize); 6] = [
            (&[], "", 0),
            // The edit went, and what the file said before stands there alone.
            (&[3], "[cleared]", 1),
            (&[3], "9090 port 8080 toml", 1),
            (&[3], "| port = 9090", 0),
            (&[2, 3], "[cleared]", 0),
            (&[2, 3], "| 1: port = 8080", 1),
        ];
        for (hidden, text, stale) in rows {
            assert_eq!(seen(hidden, text), Replaced { all: 1, stale }, "{text}");
        }
    }
}
