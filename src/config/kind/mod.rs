//! The kinds of value a key may hold: how each is read from TOML, written
//! back, and described to somebody who got it wrong.
//!
//! A kind is used by the file, the environment, the flags and `check` alike,
//! so a range is stated once. What `write` gives, `read` takes.

mod number;
mod price;
mod text;

pub(super) use number::{Between, Bytes, Count, Share, Time};
pub(super) use price::{Dollars, Steps};
pub(super) use text::{FilePath, Form, OneOf, Switch, Text, Words};

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

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table;

    /// Reads each text and writes it back; nothing where it is refused.
    pub(super) fn check<K: Kind>(kind: &K, table: &[(&str, Option<&str>)]) {
        for (given, expected) in table {
            let parsed: Table = format!("value = {given}").parse().unwrap();
            let read = kind.read(&parsed["value"]);
            let written = read.map(|it| kind.write(&it).to_string());
            assert_eq!(written.as_deref(), *expected, "{given}: {}", kind.accepts());
        }
    }

    #[test]
    fn what_may_be_absent_is_written_so() {
        let auto = Maybe(Absent::Auto, Count(1, 9));
        check(
            &auto,
            &[
                ("'auto'", Some("\"auto\"")),
                ("5", Some("5")),
                ("0", None),
                ("''", None),
            ],
        );
        assert_eq!(auto.accepts(), "\"auto\" or a whole number between 1 and 9");
        let zero = Maybe(Absent::Zero, Count(5, 9));
        check(&zero, &[("0", Some("0")), ("5", Some("5")), ("4", None)]);
        let empty = Maybe(Absent::Empty, Text("a name"));
        check(&empty, &[("''", Some("\"\"")), ("'a'", Some("\"a\""))]);
    }
}
