//! Kinds of words: switches, choices, names, paths, and texts with a form of
//! their own.
//!
//! Texts are compared as they are written: `"Auto"` is not `"auto"`, because a
//! file that is read leniently here is read differently elsewhere.

use super::Kind;
use crate::config::choice::Choice;
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;
use toml::Value;

/// True or false.
pub(in crate::config) struct Switch;

impl Kind for Switch {
    type Value = bool;

    fn read(&self, given: &Value) -> Option<bool> {
        given.as_bool()
    }

    fn write(&self, value: &bool) -> Value {
        Value::Boolean(*value)
    }

    fn accepts(&self) -> String {
        "true or false".to_owned()
    }
}

/// One of a closed set of words.
pub(in crate::config) struct OneOf<E>(pub PhantomData<E>);

impl<E: Choice> Kind for OneOf<E> {
    type Value = E;

    fn read(&self, given: &Value) -> Option<E> {
        // `true` and `false` are words too where a key has them.
        let given = match given {
            Value::Boolean(switch) => switch.to_string(),
            _ => given.as_str()?.to_owned(),
        };
        let found = E::WORDS.iter().find(|(word, _)| *word == given);
        found.map(|(_, value)| *value)
    }

    fn write(&self, value: &E) -> Value {
        match value.word() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            word => Value::String(word.to_owned()),
        }
    }

    fn accepts(&self) -> String {
        let words: Vec<String> = E::WORDS
            .iter()
            .map(|(_, value)| self.write(value).to_string())
            .collect();
        format!("one of {}", words.join(", "))
    }
}

/// A text with a form of its own; the argument describes it.
pub(in crate::config) struct Form<T>(pub &'static str, pub PhantomData<T>);

impl<T: FromStr + Display> Kind for Form<T> {
    type Value = T;

    fn read(&self, given: &Value) -> Option<T> {
        given.as_str()?.parse().ok()
    }

    fn write(&self, value: &T) -> Value {
        Value::String(value.to_string())
    }

    fn accepts(&self) -> String {
        self.0.to_owned()
    }
}

/// A text that is not empty; the argument describes it.
pub(in crate::config) struct Text(pub &'static str);

impl Kind for Text {
    type Value = String;

    fn read(&self, given: &Value) -> Option<String> {
        let text = given.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    }

    fn write(&self, value: &String) -> Value {
        Value::String(value.clone())
    }

    fn accepts(&self) -> String {
        self.0.to_owned()
    }
}

/// The path of a file or folder; the argument says which.
pub(in crate::config) struct FilePath(pub &'static str);

impl Kind for FilePath {
    type Value = PathBuf;

    fn read(&self, given: &Value) -> Option<PathBuf> {
        given.as_str().map(PathBuf::from)
    }

    fn write(&self, value: &PathBuf) -> Value {
        Value::String(value.to_string_lossy().into_owned())
    }

    fn accepts(&self) -> String {
        self.0.to_owned()
    }
}

/// A list of words that are not empty.
pub(in crate::config) struct Words(pub &'static str);

impl Kind for Words {
    type Value = Vec<String>;

    fn read(&self, given: &Value) -> Option<Vec<String>> {
        let items = given.as_array()?.iter();
        items
            .map(|item| item.as_str().filter(|word| !word.is_empty()))
            .map(|word| word.map(str::to_owned))
            .collect()
    }

    fn write(&self, value: &Vec<String>) -> Value {
        Value::Array(value.iter().cloned().map(Value::String).collect())
    }

    fn accepts(&self) -> String {
        format!("a list of {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::config::choice::RecallMcp;

    #[test]
    fn words_are_taken_from_their_set_only() {
        check(
            &OneOf::<RecallMcp>(PhantomData),
            &[
                ("'auto'", Some("\"auto\"")),
                ("true", Some("true")),
                ("'false'", Some("false")),
                ("'Auto'", None),
                ("1", None),
            ],
        );
        check(
            &Words("tools"),
            &[
                ("['a', 'b']", Some("[\"a\", \"b\"]")),
                ("[]", Some("[]")),
                ("['']", None),
                ("[1]", None),
                ("'a'", None),
            ],
        );
        check(&Text("a name"), &[("'a'", Some("\"a\"")), ("''", None)]);
    }
}
