//! The arguments of a tool call, read with an answer for every mistake.
//!
//! A model reads what is wrong and tries again, so each mistake is told with what
//! would be right. Numbers that come as text are taken, because models send them
//! so; whatever has no sensible reading is refused and never guessed at.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// Characters of somebody's words that a mistake quotes.
const QUOTED: usize = 40;

/// What is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// There is one that the tool does not take.
    #[error("{name:?} is no argument of this tool: it takes {known}")]
    Unknown {
        /// Its name, in short.
        name: String,
        /// Those it takes.
        known: String,
    },
    /// One is missing.
    #[error("{0:?} is missing: it must be a text that is not empty")]
    Missing(&'static str),
    /// One is no text.
    #[error("{0:?} must be a text")]
    NoText(&'static str),
    /// A text is too long.
    #[error("{name:?} has {bytes} bytes: at most {most} are taken")]
    TooLong {
        /// Which.
        name: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// One is no number, or too small or large.
    #[error("{name:?} must be a whole number from {least} to {most}")]
    NoNumber {
        /// Which.
        name: &'static str,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
}

/// The arguments of a call.
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Those of a call, if the tool takes all of them.
    pub fn new(given: Option<Map<String, Value>>, known: &[&str]) -> Result<Self, Wrong> {
        let given = given.unwrap_or_default();
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(given)),
            Some(name) => Err(Wrong::Unknown {
                name: name.chars().take(QUOTED).collect(),
                known: known.join(", "),
            }),
        }
    }

    /// A text that must be there, without the space around it.
    pub fn text(&self, name: &'static str, most: usize) -> Result<&str, Wrong> {
        self.maybe_text(name, most)?.ok_or(Wrong::Missing(name))
    }

    /// A text that may be missing, or empty.
    pub fn maybe_text(&self, name: &'static str, most: usize) -> Result<Option<&str>, Wrong> {
        let text = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(Wrong::NoText(name)),
        };
        if text.len() > most {
            let bytes = text.len();
            return Err(Wrong::TooLong { name, bytes, most });
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A number that may be missing.
    pub fn number(
        &self,
        name: &'static str,
        otherwise: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, Wrong> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => Some(otherwise),
            Some(Value::Number(number)) => whole(number),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        let (least, most) = (*range.start(), *range.end());
        number
            .filter(|number| range.contains(number))
            .ok_or(Wrong::NoNumber { name, least, most })
    }
}

/// A number that counts something; some clients write `3.0`.
fn whole(number: &serde_json::Number) -> Option<u32> {
    if let Some(number) = number.as_u64() {
        return u32::try_from(number).ok();
    }
    let text = number.to_string();
    text.strip_suffix(".0")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(given: Value) -> Result<Arguments, Wrong> {
        let Value::Object(given) = given else {
            panic!("no object");
        };
        Arguments::new(Some(given), &["query", "limit"])
    }

    #[test]
    fn a_number_is_read_however_it_is_written_and_no_other_thing_is_one() {
        let rows = [
            (json!({}), Some(5)),
            (json!({"limit": null}), Some(5)),
            (json!({"limit": 1}), Some(1)),
            (json!({"limit": 20}), Some(20)),
            (json!({"limit": 3.0}), Some(3)),
            (json!({"limit": "7"}), Some(7)),
            (json!({"limit": " 7 "}), Some(7)),
            (json!({"limit": 0}), None),
            (json!({"limit": 21}), None),
            (json!({"limit": -1}), None),
            (json!({"limit": 2.5}), None),
            (json!({"limit": 1e300}), None),
            (json!({"limit": u64::MAX}), None),
            (json!({"limit": "many"}), None),
            (json!({"limit": ""}), None),
            (json!({"limit": [1]}), None),
            (json!({"limit": true}), None),
        ];
        for (given, expected) in rows {
            let read = arguments(given.clone()).unwrap().number("limit", 5, 1..=20);
            assert_eq!(read.ok(), expected, "{given}");
        }
    }

    #[test]
    fn every_mistake_says_what_would_be_right() {
        let long = "x".repeat(11);
        let rows = [
            (json!({}), "\"query\" is missing"),
            (json!({"query": ""}), "\"query\" is missing"),
            (json!({"query": " \n"}), "\"query\" is missing"),
            (json!({"query": 7}), "\"query\" must be a text"),
            (json!({"query": ["a"]}), "\"query\" must be a text"),
            (json!({"query": long}), "has 11 bytes: at most 10"),
            (json!({"querry": "a"}), "it takes query, limit"),
        ];
        for (given, expected) in rows {
            let wrong =
                arguments(given).and_then(|given| given.text("query", 10).map(str::to_owned));
            let wrong = wrong.unwrap_err().to_string();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }
}
