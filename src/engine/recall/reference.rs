//! The references that views show for what they leave out.
//!
//! A reference is permission as well as a name, so each is derived from a hash
//! that covers the whole conversation and the tenant: whoever has not seen it
//! cannot make it up. What it stands for is part of it, each sort of thing under
//! a heading of its own, so that no two things have the same one.
//!
//! Models copy references with more or less care; reading one takes that into
//! account, but never guesses between two.

use crate::engine::ids::{ChainHash, Reference, SegmentId};

/// How a reference begins when it is shown.
const PREFIX: &str = "lh-";
/// Its digits.
const DIGITS: usize = 20;

/// The reference of a block.
pub fn reference_at(seed: ChainHash, message: u32, block: u32) -> Reference {
    derived(
        b"longhaul reference 1\0",
        &[
            seed.as_bytes(),
            &message.to_le_bytes(),
            &block.to_le_bytes(),
        ],
    )
}

/// The reference of messages, the last one excluded.
pub fn reference_of_span(seed: ChainHash, from: u32, to: u32) -> Reference {
    derived(
        b"longhaul reference of a span 1\0",
        &[seed.as_bytes(), &from.to_le_bytes(), &to.to_le_bytes()],
    )
}

/// The reference of a finished segment.
pub fn reference_of_segment(segment: SegmentId) -> Reference {
    derived(
        b"longhaul reference of a segment 1\0",
        &[segment.as_bytes()],
    )
}

fn derived(heading: &[u8], pieces: &[&[u8]]) -> Reference {
    let mut hasher = blake3::Hasher::new();
    hasher.update(heading);
    for piece in pieces {
        hasher.update(piece);
    }
    Reference::beginning(&hasher.finalize().into())
}

/// A reference as a view shows it.
pub fn shown(reference: Reference) -> String {
    format!("{PREFIX}{reference}")
}

/// The reference in whatever a model passes for one; `None` if there is none, or
/// more than one.
pub fn read(text: &str) -> Option<Reference> {
    let text = text.to_ascii_lowercase();
    let is_space = |letter: char| letter.is_whitespace() || letter.is_control();
    let closed_up = || text.replace(is_space, "");
    match found(&text) {
        Found::One(reference) => Some(reference),
        Found::Several => None,
        Found::None => match found(&closed_up()) {
            Found::One(reference) => Some(reference),
            Found::Several => None,
            // The digits alone, whatever stands around them.
            Found::None => Reference::from_text(
                closed_up().trim_matches(|letter: char| !letter.is_ascii_alphanumeric()),
            ),
        },
    }
}

enum Found {
    None,
    One(Reference),
    Several,
}

/// The references in a text in lower case, if there is but one.
fn found(text: &str) -> Found {
    let mut one = None;
    for reference in written(text) {
        match one {
            Some(other) if other != reference => return Found::Several,
            _ => one = Some(reference),
        }
    }
    one.map_or(Found::None, Found::One)
}

/// The references that are written out in a text, as views show them, in order.
pub fn written(text: &str) -> impl Iterator<Item = Reference> {
    text.match_indices(PREFIX).filter_map(move |(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let from = at + PREFIX.len();
        let digits = text.get(from..from + DIGITS);
        let reference = digits.and_then(Reference::from_text)?;
        let behind = text
            .get(from + DIGITS..)
            .and_then(|rest| rest.chars().next());
        let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        (!is_word(before) && !is_word(behind)).then_some(reference)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::chain;
    use proptest::prelude::*;

    #[test]
    fn no_two_things_have_the_same_reference() {
        let (one, other) = (chain::start("one"), chain::start("other"));
        let all = [
            reference_at(one, 3, 5),
            reference_at(one, 5, 3),
            reference_at(other, 3, 5),
            reference_of_span(one, 3, 5),
            reference_of_span(other, 3, 5),
            reference_of_segment(SegmentId::from_bytes([1; 32])),
            reference_of_segment(SegmentId::from_bytes([2; 32])),
        ];
        for (at, reference) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(reference));
        }
        assert_eq!(reference_at(one, 3, 5), all[0]);
        assert_eq!(shown(all[0]).len(), 23);
    }

    #[test]
    fn a_reference_is_found_in_whatever_a_model_passes() {
        let reference = reference_at(chain::start("t"), 1, 2);
        let text = shown(reference);
        let digits = text[3..].to_owned();
        let rows = [
            text.clone(),
            text.to_uppercase(),
            format!("  \"{text}\"\n"),
            format!("[{text}]"),
            format!("`{text}`."),
            format!("lh-{} {}", &digits[..8], &digits[8..]),
            format!("lh - {digits}"),
            digits.clone(),
            format!("({digits})"),
            format!(
                "[longhaul: the result of Read a.rs (9 bytes) was cleared; archived as {text}]"
            ),
            format!("{text} and {text} again"),
        ];
        for row in rows {
            assert_eq!(read(&row), Some(reference), "{row}");
        }
        let other = shown(reference_at(chain::start("t"), 1, 3));
        let rows = [
            String::new(),
            "lh-".to_owned(),
            format!("{text} {other}"),
            format!("{text}0"),
            format!("x{text}"),
            text[..22].to_owned(),
            format!("lh-{}g", &digits[..19]),
            "src/lib.rs".to_owned(),
        ];
        for row in rows {
            assert_eq!(read(&row), None, "{row}");
        }
    }

    proptest! {
        #[test]
        fn any_text_at_all_is_survived(text in ".{0,60}", digits in "(lh-)?[0-9a-fA-F é]{0,30}") {
            let _ = (read(&text), read(&digits));
        }
    }
}
