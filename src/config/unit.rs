//! Sizes and durations as people write them: `"64MiB"`, `"250ms"`.
//!
//! A size may be a bare number of bytes; a duration never is, because nobody
//! can tell whether `60` meant seconds or milliseconds. What is formatted here
//! parses back to the same value.

use std::time::Duration;

/// A kibibyte.
pub(super) const KIB: u64 = 1 << 10;
/// A mebibyte.
pub(super) const MIB: u64 = 1 << 20;
/// A gibibyte.
pub(super) const GIB: u64 = 1 << 30;
/// A millisecond.
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
/// A second.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// An hour.
pub(super) const HOUR: Duration = Duration::from_hours(1);
/// A day.
pub(super) const DAY: Duration = Duration::from_hours(24);

const BYTE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", GIB),
    ("MiB", MIB),
    ("KiB", KIB),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

const MILLISECOND_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The number of bytes in `"64MiB"`, `"64KB"` or `"65536"`.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        return Some(number);
    }
    let (_, factor) = BYTE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*factor)
}

/// The shortest exact spelling of a size, in binary units.
pub(super) fn format_bytes(bytes: u64) -> String {
    BYTE_UNITS
        .iter()
        .take(4)
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .map_or_else(
            || format!("{bytes}B"),
            |(name, factor)| format!("{}{name}", bytes / factor),
        )
}

/// The duration written as `"250ms"`, `"60s"`, `"5m"`, `"1h"` or `"30d"`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let (_, factor) = MILLISECOND_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor).map(Duration::from_millis)
}

/// The shortest exact spelling of a duration in whole milliseconds.
pub(super) fn format_duration(duration: Duration) -> String {
    // A configured duration came from a `u64` of milliseconds, so it fits one.
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    MILLISECOND_UNITS
        .iter()
        .find(|(_, factor)| milliseconds >= *factor && milliseconds.is_multiple_of(*factor))
        .map_or_else(
            || "0s".to_owned(),
            |(name, factor)| format!("{}{name}", milliseconds / factor),
        )
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("30MiB", Some(30 << 20)),
            ("2GiB", Some(2 << 30)),
            ("64KB", Some(64_000)),
            ("64 kib", Some(65_536)),
            ("1024", Some(1024)),
            ("12B", Some(12)),
            ("MiB", None),
            ("1.5GiB", None),
            ("-1", None),
            ("99999999999GiB", None),
            ("", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn durations_are_read_only_with_a_unit() {
        for (text, milliseconds) in [
            ("250ms", Some(250)),
            ("60s", Some(60_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("30d", Some(2_592_000_000)),
            ("0s", Some(0)),
            ("60", None),
            ("60S", None),
            ("s", None),
            ("-5s", None),
            ("99999999999999999d", None),
        ] {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_formatted_parses_back(number in any::<u64>()) {
            prop_assert_eq!(parse_bytes(&format_bytes(number)), Some(number));
            let duration = Duration::from_millis(number);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Some(duration));
        }
    }
}
