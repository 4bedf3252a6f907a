//! The to-do list as it stood at the end of a span.
//!
//! Most agents write their list anew as a whole; the newest stands for all before
//! it, and counts only if none stands behind the span, where the model still sees
//! it. Some write it item by item: what they set down in the span and before is
//! put together here, because a later change names an item only by its number.

use std::collections::HashMap;

use serde_json::Value;

use super::quote::{self, DATA};
use crate::engine::acts::{Act, plain_name};
use crate::engine::candidates::{self, Deed, Fate};

/// Items shown, at most.
const ITEMS: usize = 100;
/// A longer input is not looked into.
const INPUT: usize = 256 * 1024;

/// Where a list stands in the arguments.
const LISTS: [&str; 6] = ["todos", "plan", "task_list", "todoList", "items", "tasks"];
/// Where an item says what is to be done.
const TEXTS: [&str; 8] = [
    "content",
    "step",
    "title",
    "subject",
    "description",
    "text",
    "task",
    "name",
];
/// What it means that an item is in a state, its name folded like a tool's; any
/// other is still to be done.
const STATES: [(&str, &str); 8] = [
    ("completed", DONE),
    ("complete", DONE),
    ("done", DONE),
    ("inprogress", "[~]"),
    ("doing", "[~]"),
    ("active", "[~]"),
    ("cancelled", CANCELLED),
    ("canceled", CANCELLED),
];
const DONE: &str = "[x]";
const CANCELLED: &str = "[-]";
const OPEN: &str = "[ ]";
/// What the result of a call that adds an item says before its number.
const NUMBER: &[u8] = b"Task #";

/// An item, as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    state: &'static str,
    text: String,
}

/// A to-do list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    items: Vec<Item>,
    /// How many more there are.
    left_out: usize,
}

impl Plan {
    /// The list after the calls before and within a span; empty if none within is
    /// about it, or if one behind writes all of it anew.
    pub(super) fn new(before: &[Deed<'_>], within: &[Deed<'_>], behind: &[Deed<'_>]) -> Self {
        let is_whole = |deed: &Deed<'_>| deed.fate == Fate::Worked && deed.act == Act::Plans;
        let is_about = |deed: &Deed<'_>| is_whole(deed) || step(deed).is_some();
        if behind.iter().any(is_whole) || !within.iter().any(is_about) {
            return Self::default();
        }
        let calls = before.iter().chain(within);
        // The newest whole list stands for all that was before it.
        let newest = calls.clone().enumerate().filter(|(_, deed)| is_whole(deed));
        let from = newest.last().map_or(0, |(at, _)| at);
        let mut list = List::default();
        for deed in calls.skip(from) {
            if is_whole(deed) {
                list = List::whole(deed.input);
            } else if let Some(step) = step(deed) {
                list.take(step, deed);
            }
        }
        list.finish()
    }

    /// The items, a state and a text each.
    pub(super) fn items(&self) -> impl Iterator<Item = (String, bool)> {
        let item = |item: &Item| {
            let is_open = !matches!(item.state, DONE | CANCELLED);
            (format!("{} {}", item.state, item.text), is_open)
        };
        self.items.iter().map(item)
    }

    /// The list, quoted.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            quote::quote(&mut text, DATA, &format!("{} {}", item.state, item.text));
        }
        if self.left_out > 0 {
            text.push_str(&quote::notice(&format!("{} more", self.left_out)));
        }
        text
    }
}

/// A list in the making.
#[derive(Default)]
struct List {
    items: Vec<Option<Item>>,
    /// Which item has which number.
    numbers: HashMap<String, usize>,
}

/// What a call does to one item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    Change,
}

fn step(deed: &Deed<'_>) -> Option<Step> {
    // Cheap before exact: a history has thousands of calls.
    if deed.fate != Fate::Worked || deed.act != Act::Opaque {
        return None;
    }
    match plain_name(&deed.tool).as_str() {
        "taskcreate" => Some(Step::Add),
        "taskupdate" => Some(Step::Change),
        _ => None,
    }
}

impl List {
    /// All that a call writes at once.
    fn whole(input: &[u8]) -> Self {
        let input = parsed(input).unwrap_or_default();
        let list = LISTS.iter().find_map(|name| input.get(name));
        let items = match list {
            Some(Value::Array(items)) => items.iter().filter_map(item).map(Some).collect(),
            // Some write it as text, with a box before each item.
            Some(Value::String(text)) => text.lines().filter_map(boxed).map(Some).collect(),
            _ => Vec::new(),
        };
        Self {
            items,
            numbers: HashMap::new(),
        }
    }

    fn take(&mut self, step: Step, deed: &Deed<'_>) {
        let Some(input) = parsed(deed.input) else {
            return;
        };
        if step == Step::Add {
            let count = self.items.len() + 1;
            let number = number(deed.payload).unwrap_or_else(|| count.to_string());
            if let Some(item) = item(&input) {
                self.numbers.insert(number, self.items.len());
                self.items.push(Some(item));
            }
            return;
        }
        let number = meant(&input);
        let at = number.and_then(|number| self.numbers.get(&number));
        let Some(place) = at.and_then(|at| self.items.get_mut(*at)) else {
            return;
        };
        let status = input.get("status").and_then(Value::as_str);
        if status == Some("deleted") {
            *place = None;
        } else if let Some(item) = place {
            item.state = status.map_or(item.state, state);
            let subject = input.get("subject").and_then(Value::as_str);
            if let Some(subject) = subject {
                item.text = candidates::line(subject);
            }
        }
    }

    /// As much as is shown: what is done goes first.
    fn finish(self) -> Plan {
        let mut items: Vec<Item> = self.items.into_iter().flatten().collect();
        let all = items.len();
        let mut over = all.saturating_sub(ITEMS);
        items.retain(|item| {
            let goes = over > 0 && item.state == DONE;
            over -= usize::from(goes);
            !goes
        });
        items.truncate(ITEMS);
        Plan {
            left_out: all - items.len(),
            items,
        }
    }
}

/// What one call says of the list, as lines.
pub(in crate::engine) enum Told {
    /// All of it: a line each, those that are done and had no room left out.
    All(String),
    /// One item, by its number: that it is there, or what it is now.
    Item(String),
}

/// The word for an item that is gone, and for one that only has another text.
pub(in crate::engine) const GONE: &str = "deleted";
pub(in crate::engine) const RENAMED: &str = "renamed";

/// What a call says of the list; `None` if it is not about it.
pub(in crate::engine) fn told(deed: &Deed<'_>) -> Option<Told> {
    if deed.fate == Fate::Worked && deed.act == Act::Plans {
        let plan = List::whole(deed.input).finish();
        let lines = plan.items.iter();
        let lines: Vec<String> = lines.map(|i| format!("{} {}", i.state, i.text)).collect();
        return Some(Told::All(lines.join("\n")));
    }
    let step = step(deed)?;
    let input = parsed(deed.input)?;
    if step == Step::Add {
        let Item { state, text } = item(&input)?;
        let number = number(deed.payload).unwrap_or_default();
        return Some(Told::Item(format!("#{number} {state} {text}")));
    }
    let number = meant(&input).filter(|number| !number.contains(char::is_whitespace))?;
    let status = input.get("status").and_then(Value::as_str);
    let now = match status {
        Some("deleted") => GONE,
        status => status.map_or(RENAMED, state),
    };
    let subject = input.get("subject").and_then(Value::as_str);
    let subject = subject.map(candidates::line).unwrap_or_default();
    let says = now != RENAMED || !subject.is_empty();
    let said = format!("#{number} {now} {subject}");
    says.then(|| Told::Item(said.trim_end().to_owned()))
}

/// The number of the item that a call is about.
fn meant(input: &Value) -> Option<String> {
    ["taskId", "task_id", "id"].iter().find_map(|name| {
        let value = input.get(name)?;
        let number = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Some(number)
    })
}

fn parsed(input: &[u8]) -> Option<Value> {
    let input = Some(input).filter(|input| input.len() <= INPUT)?;
    serde_json::from_slice(input).ok()
}

fn item(value: &Value) -> Option<Item> {
    let text = TEXTS.iter().find_map(|name| value.get(name)?.as_str());
    let status = value.get("status").and_then(Value::as_str);
    Some(Item {
        state: status.map_or(OPEN, state),
        text: candidates::line(text.or(value.as_str())?),
    })
}

fn boxed(line: &str) -> Option<Item> {
    let line = line.trim().trim_start_matches(['-', '*']).trim_start();
    let (inside, text) = line.strip_prefix('[')?.split_once(']')?;
    let state = match inside {
        "x" | "X" => DONE,
        "-" | "~" => "[~]",
        _ => OPEN,
    };
    Some(Item {
        state,
        text: candidates::line(text),
    })
}

fn state(name: &str) -> &'static str {
    let name = plain_name(name);
    let row = STATES.iter().find(|(state, _)| *state == name);
    row.map_or(OPEN, |(_, sign)| sign)
}

/// The number that a new item was given.
fn number(payload: &[u8]) -> Option<String> {
    let first = payload.get(..100).unwrap_or(payload);
    let at = memchr::memmem::find(first, NUMBER)? + NUMBER.len();
    let digits = first
        .get(at..)?
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let digits: String = digits.map(|byte| char::from(*byte)).collect();
    (!digits.is_empty()).then_some(digits)
}
