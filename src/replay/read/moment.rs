//! When something was said, from the ways in which recordings write it.
//!
//! Agents write RFC 3339; a number counts seconds or milliseconds since 1970,
//! whichever makes sense. Anything else is no time, and nobody minds.

use serde_json::Value;

/// Numbers from here on count milliseconds: as seconds they would be the year 5138.
const MILLISECONDS: u64 = 100_000_000_000;

/// The end of the year 9999: what is later was no time.
const LATEST: u64 = 253_402_300_799_999;

/// Milliseconds since 1970.
pub fn moment(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => written(text),
        number => {
            let number = number.as_u64()?;
            let is_millis = number >= MILLISECONDS;
            let millis = if is_millis { number } else { number * 1_000 };
            (millis <= LATEST).then_some(millis)
        }
    }
}

/// `2026-11-17T05:45:31.250Z`, or with an offset in place of the `Z`.
fn written(text: &str) -> Option<u64> {
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let separators = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    let is_separated = separators
        .iter()
        .all(|(at, mark)| text.get(*at..*at + 1) == Some(mark));
    if !is_separated {
        return None;
    }
    let days = days(digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let seconds = digits(11, 13)? * 3_600 + digits(14, 16)? * 60 + digits(17, 19)?;
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest.split_at(end.unwrap_or(rest.len()))
        }
        None => ("", rest),
    };
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = days * 86_400 + seconds - offset(zone)?;
    u64::try_from(seconds * 1_000 + millis).ok()
}

/// Seconds that a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => (1, zone.get(1..)?),
        Some(b'-') => (-1, zone.get(1..)?),
        Some(_) => return None,
    };
    let hours: i64 = rest.get(..2)?.parse().ok()?;
    let minutes: i64 = rest.get(rest.len().checked_sub(2)?..)?.parse().ok()?;
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// Days since 1970 of a date, with years that begin in March so that the day
/// that comes and goes is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_read_as_agents_write_them() {
        for (given, expected) in [
            (json!("1970-01-01T00:00:00Z"), Some(0)),
            (json!("2000-02-29T12:00:00.5Z"), Some(951_825_600_500)),
            (json!("2026-11-17T05:45:31.250Z"), Some(1_794_894_331_250)),
            (json!("2026-11-17T06:45:31+01:00"), Some(1_794_894_331_000)),
            (json!(1_794_894_331), Some(1_794_894_331_000)),
            (json!(1_794_894_331_000_u64), Some(1_794_894_331_000)),
            (json!(u64::MAX), None),
            (json!("yesterday"), None),
            (json!("2026-11-17Täglich"), None),
            (json!(null), None),
        ] {
            assert_eq!(moment(Some(&given)), expected, "{given}");
        }
        assert_eq!(moment(None), None);
    }
}
