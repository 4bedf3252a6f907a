//! Numbers, times and reasons, as people read them.

use crate::engine::money;
use crate::engine::numerals::grouped;
use crate::store::Moment;

/// A number with its thousands apart, where it may be missing.
pub(super) fn maybe(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), grouped)
}

/// In three digits or so: 812, 14.3K, 182K, 1.20M.
pub(super) fn short(number: u64) -> String {
    let value = float(number);
    match number {
        0..1_000 => number.to_string(),
        1_000..99_950 => format!("{:.1}K", value / 1e3),
        99_950..999_500 => format!("{:.0}K", value / 1e3),
        _ => format!("{:.2}M", value / 1e6),
    }
}

/// A size in bytes.
pub(super) fn bytes(number: u64) -> String {
    let value = float(number);
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        _ => format!("{:.1} MB", value / 1e6),
    }
}

/// Dollars, with a true minus.
pub(super) fn dollars(value: f64) -> String {
    money::dollars(value).replace('-', "−")
}

/// Dollars, where they may not be known.
pub(super) fn maybe_dollars(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), dollars)
}

/// A part of a whole, in percent; at most 999.
pub(super) fn percent(part: u64, whole: u64) -> Option<u64> {
    let percent = part.checked_mul(100)?.checked_add(whole / 2)?;
    percent.checked_div(whole).map(|percent| percent.min(999))
}

/// How long ago something was.
pub(super) fn ago(then: Moment, now: Moment) -> String {
    let seconds = now.0.saturating_sub(then.0).max(0) / 1_000;
    match seconds {
        0..5 => "now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// A moment as it is written elsewhere, to the second and without its letters.
pub(super) fn clock(written: &str) -> String {
    let whole = written.split_once('.').map_or(written, |(whole, _)| whole);
    whole.replace('T', " ")
}

/// Why a pass was made.
pub(super) fn reason(trigger: &str) -> &'static str {
    match trigger {
        "arrival" => "a tool result was oversized as it arrived",
        "budget" => "the view was filling up",
        "structural" => "the model or the request's shape changed",
        "temporal" => "the cache had gone cold, so it was free",
        "reactive" => "upstream found the prompt too long",
        "manual" => "somebody asked for it",
        "heal" => "a summary replaced what had been truncated",
        _ => "for a reason this version does not know",
    }
}

/// What a kind of pass does.
pub(super) fn kind(kind: &str) -> &'static str {
    match kind {
        "clear" => "old tool results gave way to stubs",
        "trim" => "oversized tool results kept their head and tail",
        "summary" => "old turns became a summary",
        "journal" => "old turns went to the journal",
        "truncate" => "old turns were left out without a summary",
        _ => "something this version does not know",
    }
}

/// The class of a kind: what is not known has none.
pub(super) fn class(kind: &str) -> &'static str {
    match kind {
        "clear" => "clear",
        "trim" => "trim",
        "summary" => "summary",
        "journal" => "journal",
        "truncate" => "truncate",
        _ => "unknown",
    }
}

/// The first words of a text, on one line.
pub(super) fn excerpt(text: &str, letters: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > letters * 4 {
            break;
        }
    }
    clipped(&line, letters).map_or_else(|| line.clone(), |clipped| format!("{clipped}…"))
}

/// So many letters of a text; none if it has no more.
pub(super) fn clipped(text: &str, letters: usize) -> Option<&str> {
    let (at, _) = text.char_indices().nth(letters)?;
    text.get(..at)
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        for (number, expected) in [
            (812, "812"),
            (14_321, "14.3K"),
            (99_949, "99.9K"),
            (99_950, "100K"),
            (182_345, "182K"),
            (999_500, "1.00M"),
        ] {
            assert_eq!(short(number), expected);
        }
        assert_eq!(dollars(-0.5), "−$0.50");
        assert_eq!(maybe_dollars(Some(12.345)), "$12.35");
        assert_eq!(maybe_dollars(None), "–");
        assert_eq!(bytes(12), "12 B");
        assert_eq!(bytes(12_345), "12.3 kB");
        assert_eq!(maybe(None), "–");
    }

    #[test]
    fn a_share_of_nothing_is_none_and_of_little_is_bounded() {
        assert_eq!(percent(1, 0), None);
        assert_eq!(percent(1, 3), Some(33));
        assert_eq!(percent(2, 3), Some(67));
        assert_eq!(percent(5_000, 1), Some(999));
        assert_eq!(percent(u64::MAX, 7), None);
    }

    #[test]
    fn times_are_told_from_now() {
        for (seconds, expected) in [
            (-9, "now"),
            (4, "now"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (7_200, "2 h ago"),
            (200_000, "2 days ago"),
        ] {
            assert_eq!(ago(Moment(0), Moment(seconds * 1_000)), expected);
        }
        assert_eq!(clock("2025-11-16T23:59:59.999Z"), "2025-11-16 23:59:59");
    }

    #[test]
    fn an_excerpt_is_one_line_and_cut_between_letters() {
        assert_eq!(excerpt(" a\n\tb ", 9), "a b");
        assert_eq!(excerpt("éééé", 2), "éé…");
        assert_eq!(clipped("éé", 2), None);
        assert_eq!(clipped("ééx", 2), Some("éé"));
    }
}
