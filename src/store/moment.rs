//! A moment as people write it: date and time of day, UTC, to the millisecond.

use std::fmt;

use super::Moment;

const DAY: i64 = 24 * 60 * 60 * 1000;

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, millis) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

/// The date so many days after the first of January 1970. Years are counted from
/// March, so that a leap day is the last of its year, in eras of 400 years, after
/// which the calendar repeats.
fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months from March on have 31 and 30 days in turn, with a pair of 31 after
    // five: 153 days in five months.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_people_do() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_763_337_599_999, "2025-11-16T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (4_107_456_000_000, "2100-02-28T00:00:00.000Z"),
        ];
        for (millis, expected) in rows {
            assert_eq!(Moment(millis).to_string(), expected);
        }
        // No moment is too far away to be written.
        for extreme in [i64::MIN, i64::MAX] {
            assert!(Moment(extreme).to_string().ends_with('Z'));
        }
    }
}
