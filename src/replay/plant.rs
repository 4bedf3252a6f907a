//! Planted probes: facts that the replay itself puts into a recording.
//!
//! What a recording names again may be what is easy to keep. So a few lines, each
//! with a value that nobody could guess, are put into early results and words of
//! the user's, and after so many requests each is asked for: where it is no
//! longer shown, does the view have it, and does a reference lead to it? Where
//! they stand and what they say depends on the session's name and length alone,
//! and both runs have them. What is kept of a text depends on how it says a thing,
//! so each is put in another way.

use serde_json::Value;

use super::recording::kind;
use super::session::Session;

/// Sessions with fewer requests have none.
const LEAST: usize = 12;
/// After how many requests each is asked for; once more with the last one.
const DISTANCES: [usize; 3] = [8, 24, 72];

/// How a fact is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// In a sentence.
    Sentence,
    /// As a value in JSON.
    Json,
    /// In a cell of a table.
    Table,
    /// In a line that tells of an error.
    Error,
    /// As an address.
    Address,
    /// As a path.
    Path,
}

impl Shape {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Sentence,
        Self::Json,
        Self::Table,
        Self::Error,
        Self::Address,
        Self::Path,
    ];

    /// Its name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sentence => "sentence",
            Self::Json => "json",
            Self::Table => "table",
            Self::Error => "error",
            Self::Address => "address",
            Self::Path => "path",
        }
    }

    /// A value that nobody could guess, and the line that says it.
    fn say(self, seed: &str) -> (String, String) {
        let hash = blake3::hash(seed.as_bytes());
        let digits = hash.to_hex();
        let (name, rest) = digits.split_at(8);
        let hidden = format!("v{}", rest.get(..12).unwrap_or_default());
        let value = match self {
            Self::Address => {
                let [a, b, c, ..] = *hash.as_bytes();
                // Three digits each, so that no address ends in two noughts.
                let part = |byte: u8| 101 + u16::from(byte) % 98;
                format!("10.{}.{}.{}", part(a), part(b), part(c))
            }
            Self::Path => format!("/srv/{hidden}/state.db"),
            _ => hidden,
        };
        let line = match self {
            Self::Sentence => format!("The token of probe_{name} is {value} until further notice."),
            Self::Json => format!("{{\"probe_{name}\": {{\"value\": \"{value}\"}}}}"),
            Self::Table => format!("| probe_{name} | {value} | active |"),
            Self::Error => format!("error: probe_{name} failed with code {value}"),
            Self::Address => format!("probe_{name} listens on {value}:8443"),
            Self::Path => format!("probe_{name} writes to {value}"),
        };
        (value, line)
    }
}

/// The facts of a session.
#[derive(Debug, Default)]
pub struct Plants {
    facts: Vec<Fact>,
    requests: usize,
}

/// A line that is put in.
#[derive(Debug, PartialEq, Eq)]
struct Fact {
    /// With which request.
    request: usize,
    line: String,
    /// What is asked for.
    value: String,
    shape: Shape,
}

impl Plants {
    /// Where facts are planted in a session: spread over its first two thirds.
    pub fn new(session: &Session) -> Self {
        let requests = session.steps.len();
        let mut plants = Self {
            facts: Vec::new(),
            requests,
        };
        if requests < LEAST {
            return plants;
        }
        let end = requests * 2 / 3;
        let mut from = 1;
        for (number, shape) in Shape::ALL.into_iter().enumerate() {
            let about = (end * number / Shape::ALL.len()).max(from);
            let steps = session.steps.iter().enumerate().take(end).skip(about);
            let mut fit = steps.filter(|(_, step)| place(&mut step.asked.clone()).is_some());
            let Some((request, _)) = fit.next() else {
                break;
            };
            let seed = format!("longhaul plant 1 {} {number}", session.name);
            let (value, line) = shape.say(&seed);
            plants.facts.push(Fact {
                request,
                line,
                value,
                shape,
            });
            from = request + 1;
        }
        plants
    }

    /// A message of the user's, with the fact that belongs to this request.
    pub fn sown(&self, request: usize, message: &Value) -> Value {
        let mut message = message.clone();
        let fact = self.facts.iter().find(|fact| fact.request == request);
        if let (Some(fact), Some(text)) = (fact, place(&mut message)) {
            // In the middle, where neither end of a long result protects it.
            let middle = text.floor_char_boundary(text.len() / 2);
            let rest = text.get(middle..).unwrap_or_default();
            let line_end = rest.find('\n').map_or(text.len(), |at| middle + at);
            text.insert_str(line_end, &format!("\n{}", fact.line));
        }
        message
    }

    /// The values that are asked for with this request, and how they were said.
    pub fn due(&self, request: usize) -> impl Iterator<Item = (&str, Shape)> {
        let is_last = request + 1 == self.requests;
        let facts = self.facts.iter().filter(move |fact| {
            let since = request.checked_sub(fact.request);
            since.is_some_and(|since| is_last || DISTANCES.contains(&since))
        });
        facts.map(|fact| (fact.value.as_str(), fact.shape))
    }
}

/// The first text of a message that a line can be put into.
fn place(message: &mut Value) -> Option<&mut String> {
    match message.get_mut("content")? {
        Value::String(text) => Some(text),
        Value::Array(blocks) => blocks.iter_mut().find_map(in_block),
        _ => None,
    }
}

fn in_block(block: &mut Value) -> Option<&mut String> {
    let field = match kind(block) {
        "text" => "text",
        "tool_result" => "content",
        _ => return None,
    };
    match block.get_mut(field)? {
        Value::String(text) => Some(text),
        Value::Array(inner) => inner.iter_mut().find_map(in_block),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::tokens::tokens;
    use serde_json::json;
    use std::time::Duration;

    fn session(cycles: usize) -> Session {
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "one\ntwo\nthree"}]});
        let call = json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "Read", "input": {}}]});
        let mut messages = vec![json!({"role": "user", "content": "go"}), call.clone()];
        for _ in 1..cycles {
            messages.extend([result.clone(), call.clone()]);
        }
        Session::of("made", &messages, Duration::ZERO)
    }

    #[test]
    fn facts_stand_in_the_first_two_thirds_and_are_asked_for_later() {
        let session = session(90);
        let plants = Plants::new(&session);
        let at: Vec<usize> = plants.facts.iter().map(|fact| fact.request).collect();
        assert_eq!(at, [1, 10, 20, 30, 40, 50]);
        assert_eq!(plants.facts, Plants::new(&session).facts);
        let asked = (0..90).flat_map(|request| plants.due(request));
        let first = plants.facts[0].value.as_str();
        assert_eq!(asked.filter(|(value, _)| *value == first).count(), 4);
        assert_eq!(plants.due(89).count(), 6);
    }

    #[test]
    fn a_fact_is_a_line_of_its_own_and_its_value_tells_something() {
        let session = session(30);
        let plants = Plants::new(&session);
        for (fact, shape) in plants.facts.iter().zip(Shape::ALL) {
            let sown = plants.sown(fact.request, &session.steps[fact.request].asked);
            let text = sown["content"][0]["content"].as_str().unwrap();
            assert_eq!(text, format!("one\ntwo\n{}\nthree", fact.line));
            assert!(tokens(text).any(|it| it == fact.value), "{}", fact.line);
            assert_eq!(fact.shape, shape);
        }
        let other = &session.steps[0].asked;
        assert_eq!(&plants.sown(0, other), other);
    }

    #[test]
    fn a_short_session_is_left_as_it_is() {
        assert!(Plants::new(&self::session(LEAST - 1)).facts.is_empty());
    }
}
