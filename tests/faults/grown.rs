//! Whether one view can have come out of another by passes alone.
//!
//! A pass takes more out and puts nothing back: a segment stays byte for byte
//! until another one covers it, a result that was cleared or trimmed does not come
//! back, nor does thinking that was left out. So a view that is made half by an
//! old overlay and half by a new one shows itself, also where it is not known
//! which passes were made in between.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::agent::CLEARED;

/// How what stands for hidden messages begins, without a summarizer and with one.
const TRUNCATED: &str = "[longhaul: messages ";
const SUMMARY: &str = "[longhaul: summary of messages ";

/// What is said of the result of a call that only opens a turn.
const OPENING: &str = "was cleared: the turn that it opens is shown from a later point on]";

/// What stands for messages, the first and the last counted from one.
struct Segment {
    from: usize,
    to: usize,
    text: String,
}

impl Segment {
    fn read(text: &str) -> Option<Self> {
        let mut starts = [TRUNCATED, SUMMARY].iter();
        let rest = starts.find_map(|start| text.strip_prefix(start))?;
        let mut rest = rest.split(' ');
        let from = rest.next()?.parse().ok()?;
        let to = rest.nth(1)?.parse().ok()?;
        let text = text.to_owned();
        Some(Self { from, to, text })
    }

    /// Whether this one may stand where the other stood: the same, or wider, or
    /// written by a summarizer where there had been none.
    fn follows(&self, other: &Self) -> bool {
        let covers = self.from <= other.from && other.to <= self.to;
        let wider = other.to - other.from < self.to - self.from;
        let heals = other.text.starts_with(TRUNCATED) && self.text.starts_with(SUMMARY);
        self.text == other.text || covers && (wider || heals)
    }
}

/// What a request says that may not change in any other way.
struct Parts {
    segments: Vec<Segment>,
    /// The content of each result.
    results: HashMap<String, Value>,
    thinking: HashSet<String>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(bytes).unwrap();
        let mut parts = Self {
            segments: Vec::new(),
            results: HashMap::new(),
            thinking: HashSet::new(),
        };
        for message in body["messages"].as_array().into_iter().flatten() {
            if let Some(text) = message["content"].as_str() {
                parts.segments.extend(Segment::read(text));
            }
            for block in message["content"].as_array().into_iter().flatten() {
                parts.add(block);
            }
        }
        parts
    }

    fn add(&mut self, block: &Value) {
        let string = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match string("type").as_str() {
            "text" => self.segments.extend(Segment::read(&string("text"))),
            "tool_result" => {
                let content = block["content"].clone();
                self.results.insert(string("tool_use_id"), content);
            }
            "thinking" => drop(self.thinking.insert(string("signature"))),
            "redacted_thinking" => drop(self.thinking.insert(string("data"))),
            _ => {}
        }
    }
}

/// Whether a later view takes out all that the view of an earlier history does.
pub fn grown(history: &[u8], earlier: &[u8], later: &[u8]) -> Result<(), String> {
    let [history, earlier, later] = [history, earlier, later].map(Parts::of);
    for old in &earlier.segments {
        if !later.segments.iter().any(|new| new.follows(old)) {
            let now: Vec<&str> = later.segments.iter().map(|s| s.text.as_str()).collect();
            return Err(format!("nothing follows {}\nin {now:?}", old.text));
        }
    }
    for (call, old) in &earlier.results {
        let is_changed = history.results.get(call).is_some_and(|own| own != old);
        let Some(new) = later
            .results
            .get(call)
            .filter(|new| is_changed && *new != old)
        else {
            continue;
        };
        let is_stub = |content: &Value| {
            let text = content.as_str().unwrap_or_default();
            text.starts_with("[longhaul: the result of ")
        };
        // How a turn opens is carried along, with the least that its call needs.
        let opens = new.as_str().is_some_and(|text| text.contains(OPENING));
        // What was trimmed, and the client has cleared itself since, is shown as
        // the client has it from the next pass on.
        let by_client = !is_stub(old) && new.as_str() == Some(CLEARED);
        if !opens && !by_client && (is_stub(old) || !is_stub(new)) {
            return Err(format!("the result of {call} was\n{old}\nand is\n{new}"));
        }
    }
    let mut back = history.thinking.difference(&earlier.thinking);
    match back.find(|thought| later.thinking.contains(*thought)) {
        Some(thought) => Err(format!("the thinking {thought} is back")),
        None => Ok(()),
    }
}
