//! Kinds of numbers, each within a range: counts, sizes, durations, shares.
//!
//! A number in the wrong type is refused rather than bent: `3.0` is no count,
//! and `60` is no duration because it has no unit.

use super::Kind;
use crate::config::compaction::Clamp;
use crate::config::ratio::Ratio;
use crate::config::unit::{format_bytes, format_duration, parse_bytes, parse_duration};
use std::fmt::Display;
use std::time::Duration;
use toml::Value;

/// A whole number within a range.
pub(in crate::config) struct Count<N>(pub N, pub N);

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
pub(in crate::config) struct Bytes(pub u64, pub u64);

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
pub(in crate::config) struct Time(pub Duration, pub Duration);

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
pub(in crate::config) struct Share(pub Ratio, pub Ratio);

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

/// Two whole numbers, the smaller first, within a range.
pub(in crate::config) struct Between(pub u64, pub u64);

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

/// A whole number or a float as a float.
pub(super) fn number(given: &Value) -> Option<f64> {
    match given {
        Value::Float(number) => Some(*number),
        // Larger whole numbers are in no range anyway.
        Value::Integer(number) => i32::try_from(*number).ok().map(f64::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn numbers_stay_in_their_range() {
        check(
            &Count(2_u32, 9),
            &[
                ("2", Some("2")),
                ("9", Some("9")),
                ("1", None),
                ("10", None),
                ("-3", None),
                ("3.0", None),
                ("'3'", None),
                ("9223372036854775807", None),
            ],
        );
        check(
            &Share(Ratio::ZERO, Ratio::percent(50)),
            &[
                ("0.25", Some("0.25")),
                ("0", Some("0.0")),
                ("0.51", None),
                ("-0.1", None),
                ("nan", None),
                ("'0.1'", None),
            ],
        );
        check(
            &Between(0, 9),
            &[
                ("[2, 8]", Some("[2, 8]")),
                ("[3, 3]", Some("[3, 3]")),
                ("[8, 2]", None),
                ("[2]", None),
                ("[2, 10]", None),
                ("2", None),
            ],
        );
    }

    #[test]
    fn sizes_and_durations_stay_in_their_range() {
        check(
            &Bytes(1_024, 1 << 20),
            &[
                ("'1MiB'", Some("\"1MiB\"")),
                ("2048", Some("\"2KiB\"")),
                ("1023", None),
                ("'2MiB'", None),
                ("-1", None),
                ("1.5", None),
            ],
        );
        check(
            &Time(Duration::ZERO, Duration::from_mins(1)),
            &[
                ("'60s'", Some("\"1m\"")),
                ("'0s'", Some("\"0s\"")),
                ("'61s'", None),
                ("60", None),
            ],
        );
    }
}
