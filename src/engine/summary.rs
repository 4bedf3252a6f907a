//! Summaries: how one is asked for, read, judged and shown.
//!
//! Everything here is values in, values out; who is asked, and when, is decided
//! elsewhere. A summary has two parts: the narrative, which a model writes, and
//! the pinned text, which is extracted by code and only passed through here. The
//! narrative is not believed as it comes: it must have the form that was asked
//! for, say what the session is about, and name nothing that the model was not
//! given.
//!
//! The order of things: [`prompt`] asks, with a [`transcript`] where another
//! model is asked, in [`parts`] where one call cannot hold it all; [`read`] reads
//! the answer, [`check`] judges it, and [`segment`] makes of it what a view shows.

pub mod check;
mod names;
pub mod parts;
pub mod prompt;
pub mod read;
mod said;
pub mod segment;
pub mod temperature;
pub mod transcript;

use serde::{Deserialize, Serialize};

/// The names of a narrative's fields, in order.
pub const KEYS: [&str; 7] = [
    "session_intent",
    "constraints",
    "decisions",
    "files_touched",
    "errors",
    "pending_questions",
    "next_steps",
];

/// What a model says about a span.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Narrative {
    /// What the user wants.
    pub session_intent: String,
    /// Rules that stand, prohibitions above all.
    pub constraints: Vec<String>,
    /// What was settled, and why.
    pub decisions: Vec<String>,
    /// Files, and what was done to them.
    pub files_touched: Vec<String>,
    /// What went wrong, in its own words.
    pub errors: Vec<String>,
    /// What nobody has answered yet.
    pub pending_questions: Vec<String>,
    /// What comes next.
    pub next_steps: Vec<String>,
}

impl Narrative {
    /// The fields that are lists, with their names, in order.
    pub fn lists(&self) -> [(&'static str, &[String]); 6] {
        [
            ("constraints", &self.constraints),
            ("decisions", &self.decisions),
            ("files_touched", &self.files_touched),
            ("errors", &self.errors),
            ("pending_questions", &self.pending_questions),
            ("next_steps", &self.next_steps),
        ]
    }

    /// The list of this name.
    fn list_mut(&mut self, name: &str) -> Option<&mut Vec<String>> {
        match name {
            "constraints" => Some(&mut self.constraints),
            "decisions" => Some(&mut self.decisions),
            "files_touched" => Some(&mut self.files_touched),
            "errors" => Some(&mut self.errors),
            "pending_questions" => Some(&mut self.pending_questions),
            "next_steps" => Some(&mut self.next_steps),
            _ => None,
        }
    }

    /// Everything it says, text by text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists().into_iter().flat_map(|(_, list)| list);
        std::iter::once(self.session_intent.as_str()).chain(lists.map(String::as_str))
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.texts().all(|text| text.trim().is_empty())
    }

    /// As the JSON object that was asked for.
    pub fn json(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_the_seven_that_are_asked_for() {
        let json = Narrative::default().json();
        let value: serde_json::Map<_, _> = serde_json::from_str(&json).unwrap();
        assert!(value.keys().eq(KEYS));
        let mut narrative = Narrative::default();
        let listed: Vec<_> = narrative.lists().map(|(name, _)| name).into();
        assert_eq!(listed, KEYS[1..]);
        for name in listed {
            narrative.list_mut(name).unwrap().push(name.to_owned());
        }
        assert!(
            narrative
                .lists()
                .iter()
                .all(|(name, list)| list[0] == *name)
        );
        assert!(
            narrative
                .texts()
                .eq([""].into_iter().chain(KEYS[1..].iter().copied()))
        );
    }

    #[test]
    fn white_space_says_nothing() {
        let blank = Narrative {
            session_intent: " \n".to_owned(),
            errors: vec![String::new()],
            ..Narrative::default()
        };
        assert!(blank.is_empty());
    }
}
