//! The kinds of value a key may hold: how each is read from TOML, written
//! back, and described to somebody who got it wrong.
//!
//! A kind is used by the file, the environment, the flags and `check` alike,
//! so a range is stated once. What `write` gives, `read` takes.

use super::choice::Choice;
use super::compaction::Clamp;
use super::ratio::Ratio;
use super::unit::{format_bytes, format_duration, parse_bytes, parse_duration};
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use toml::Value;

/// Reads, writes and describes one kind of value.
pub(super) trait Kind {
    type Value;

    /// The value, or nothing if it is not acceptable.
    fn read(&self, given: &Value) -> Option<Self::Value>;
    /// The value as TOML.
    fn write(&self, value: &Self::Value) -> Value;
    /// What is accepted, after "expected".
    fn accepts(&self) -> String;
}

/// A whole number within a range.
pub(super) struct Count<N>(pub N, pub N);

impl<N> Kind for Count<N>
where
    N: Copy + PartialOrd + Display + TryFrom<i64> + TryInto<i64>,
{
    type Value = N;

    fn read(&self, given: &Value) -> Option<N> {
        let number = N::try_from(given.as_integer()?).ok()?;
        (self.0 <= number && number <= self.1).then_some(number)
    }

    fn write(&self, value: &N) -> Value {
        // In range, and every range ends below the largest TOML integer.
        Value::Integer((*value).try_into().unwrap_or(i64::MAX))
    }

    fn accepts(&self) -> String {
        format!("a whole number between {} and {}", self.0, self.1)
    }
}

/// A size in bytes within a range.
pub(super) struct Bytes(pub u64, pub u64);

impl Kind for Bytes {
    type Value = u64;

    fn read(&self, given: &Value) -> Option<u64> {
        let bytes = match given {
            Value::String(text) => parse_bytes(text)?,
            _ => u64::try_from(given.as_integer()?).ok()?,
        };
        (self.0..=self.1).contains(&bytes).then_some(bytes)
    }

    fn write(&self, value: &u64) -> Value {
        Value::String(format_bytes(*value))
    }

    fn accepts(&self) -> String {
        let (least, most) = (format_bytes(self.0), format_bytes(self.1));
        format!("a size such as \"64MiB\" between {least} and {most}")
    }
}

/// A duration within a range.
pub(super) struct Time(pub Duration, pub Duration);

impl Kind for Time {
    type Value = Duration;

    fn read(&self, given: &Value) -> Option<Duration> {
        let duration = parse_duration(given.as_str()?)?;
        (self.0..=self.1).contains(&duration).then_some(duration)
    }

    fn write(&self, value: &Duration) -> Value {
        Value::String(format_duration(*value))
    }

    fn accepts(&self) -> String {
        let (least, most) = (format_duration(self.0), format_duration(self.1));
        format!("a duration such as \"60s\" between {least} and {most}")
    }
}

/// A ratio within a range.
pub(super) struct Share(pub Ratio, pub Ratio);

impl Kind for Share {
    type Value = Ratio;

    fn read(&self, given: &Value) -> Option<Ratio> {
        let ratio = Ratio::from_number(number(given)?)?;
        (self.0..=self.1).contains(&ratio).then_some(ratio)
    }

    fn write(&self, value: &Ratio) -> Value {
        Value::Float(value.number())
    }

    fn accepts(&self) -> String {
        format!("a number between {} and {}", self.0, self.1)
    }
}

/// True or false.
pub(super) struct Switch;

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
pub(super) struct OneOf<E>(pub PhantomData<E>);

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
pub(super) struct Form<T>(pub &'static str, pub PhantomData<T>);

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
pub(super) struct Text(pub &'static str);

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
pub(super) struct FilePath(pub &'static str);

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

/// Two whole numbers, the smaller first, within a range.
pub(super) struct Between(pub u64, pub u64);

impl Kind for Between {
    type Value = Clamp;

    fn read(&self, given: &Value) -> Option<Clamp> {
        let [least, most] = given.as_array()?.as_slice() else {
            return None;
        };
        let bound = Count(self.0, self.1);
        let (least, most) = (bound.read(least)?, bound.read(most)?);
        (least <= most).then_some(Clamp { least, most })
    }

    fn write(&self, value: &Clamp) -> Value {
        let bound = Count(self.0, self.1);
        Value::Array(vec![bound.write(&value.least), bound.write(&value.most)])
    }

    fn accepts(&self) -> String {
        let (least, most) = (self.0, self.1);
        format!("[least, most], two whole numbers between {least} and {most}, the smaller first")
    }
}

/// A list of words that are not empty.
pub(super) struct Words(pub &'static str);

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

/// How a value that may be absent is written when it is.
#[derive(Clone, Copy)]
pub(super) enum Absent {
    Auto,
    Empty,
    Zero,
}

impl Absent {
    fn value(self) -> Value {
        match self {
            Self::Auto => Value::String("auto".to_owned()),
            Self::Empty => Value::String(String::new()),
            Self::Zero => Value::Integer(0),
        }
    }
}

/// A value that may be absent.
pub(super) struct Maybe<K>(pub Absent, pub K);

impl<K: Kind> Kind for Maybe<K> {
    type Value = Option<K::Value>;

    fn read(&self, given: &Value) -> Option<Self::Value> {
        if *given == self.0.value() {
            Some(None)
        } else {
            self.1.read(given).map(Some)
        }
    }

    fn write(&self, value: &Self::Value) -> Value {
        value
            .as_ref()
            .map_or_else(|| self.0.value(), |value| self.1.write(value))
    }

    fn accepts(&self) -> String {
        format!("{} or {}", self.0.value(), self.1.accepts())
    }
}

/// A whole number or a float as a float.
pub(super) fn number(given: &Value) -> Option<f64> {
    match given {
        Value::Float(number) => Some(*number),
        // Larger whole numbers are in no range anyway.
        Value::Integer(number) => i32::try_from(*number).ok().map(f64::from),
        _ => None,
    }
}
