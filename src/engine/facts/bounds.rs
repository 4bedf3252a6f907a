//! Texts no longer than they may be.
//!
//! Each keeps its beginning; one of which the end matters too, as with the output
//! of a build, keeps both and says how much is missing. What stays is there letter
//! for letter, but for the one character that not every store can hold.

/// The first so many characters.
pub(in crate::engine) fn start(text: &str, most: usize) -> String {
    let text = text.trim();
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    let kept = end.map(|_| letters(text, most.saturating_sub(1)).0);
    match kept {
        None => storable(text),
        Some(kept) => storable(&format!("{}…", kept.trim_end())),
    }
}

/// The beginning and the end, together about so many characters at most.
pub(super) fn ends(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.char_indices().nth(most).is_none() {
        return storable(text);
    }
    let room = most.saturating_sub(NOTICE);
    let (first, rest) = letters(text, room * 2 / 3);
    let last = rest.char_indices().rev().nth((room / 3).saturating_sub(1));
    let (middle, last) = rest
        .split_at_checked(last.map_or(0, |(at, _)| at))
        .unwrap_or_default();
    let missing = middle.chars().count();
    storable(&format!(
        "{first}\n[longhaul: {missing} characters left out here]\n{last}"
    ))
}

/// Characters of the line that says how much is missing, at most.
const NOTICE: usize = 64;

/// A text, parted behind so many characters.
fn letters(text: &str, count: usize) -> (&str, &str) {
    let at = text
        .char_indices()
        .nth(count)
        .map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_keeps_its_beginning_or_both_ends() {
        assert_eq!(start(" né\0 ", 4), "né\u{fffd}");
        assert_eq!(start("abcdef", 4), "abc…");
        assert_eq!(ends("short\n", 10), "short");
        let long = format!("first {} last", "é".repeat(900));
        let kept = ends(&long, 200);
        assert!(
            kept.starts_with("first é") && kept.ends_with("é last"),
            "{kept}"
        );
        let left = 900 - kept.matches('é').count();
        assert!(kept.contains(&format!("\n[longhaul: {left} characters left out here]\n")));
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_it_may_be(text in "[a é\n😀\0]{0,300}", most in 1usize..250) {
            prop_assert!(start(&text, most).chars().count() <= most);
            prop_assert!(ends(&text, most.max(NOTICE)).chars().count() <= most.max(NOTICE));
        }
    }
}
