//! Changes to a body, as places and what stands there instead.
//!
//! A view is the client's own bytes with a few stretches replaced. Nothing is
//! ever written anew: what is not replaced is shared with the body as it came,
//! so a view of any size costs a list of pieces and no copy. Replacements must
//! not overlap; two that do are a mistake of ours, and the caller falls back to
//! the body as it is.

use std::ops::Range;

use bytes::Bytes;

/// A stretch of a body and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The stretch; empty to insert.
    pub at: Range<usize>,
    /// What stands there instead; empty to leave out.
    pub with: Bytes,
}

impl Splice {
    /// Puts `with` at a place, replacing nothing.
    pub fn insert(at: usize, with: impl Into<Bytes>) -> Self {
        Self::replace(at..at, with)
    }

    /// Puts `with` where something else stood.
    pub fn replace(at: Range<usize>, with: impl Into<Bytes>) -> Self {
        let with = with.into();
        Self { at, with }
    }

    /// Leaves a stretch out.
    pub fn remove(at: Range<usize>) -> Self {
        Self::replace(at, Bytes::new())
    }
}

/// Two changes touch the same bytes, or one lies outside the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("two changes of a body overlap at byte {0}")]
pub struct Overlap(pub usize);

/// The body with every change made, as pieces in order. Changes may come in any
/// order; those at one place stay in theirs.
pub fn splice(body: &Bytes, mut changes: Vec<Splice>) -> Result<Vec<Bytes>, Overlap> {
    changes.sort_by_key(|change| (change.at.start, change.at.end));
    let mut pieces = Vec::with_capacity(changes.len() * 2 + 1);
    let mut keep = |piece: Bytes| {
        if !piece.is_empty() {
            pieces.push(piece);
        }
    };
    let mut done = 0;
    for change in changes {
        let Range { start, end } = change.at;
        if start < done || end < start || end > body.len() {
            return Err(Overlap(start));
        }
        keep(body.slice(done..start));
        keep(change.with);
        done = end;
    }
    keep(body.slice(done..));
    Ok(pieces)
}

/// How many bytes some pieces have together.
pub fn length(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

/// Pieces in one.
pub fn joined(pieces: &[Bytes]) -> Bytes {
    if let [piece] = pieces {
        return piece.clone();
    }
    let mut whole = Vec::with_capacity(length(pieces));
    for piece in pieces {
        whole.extend_from_slice(piece);
    }
    whole.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(body: &'static str, changes: Vec<Splice>) -> Result<String, Overlap> {
        let pieces = splice(&Bytes::from_static(body.as_bytes()), changes)?;
        Ok(String::from_utf8(joined(&pieces).to_vec()).unwrap())
    }

    #[test]
    fn changes_are_made_where_they_say_in_any_order() {
        let changes = vec![
            Splice::insert(6, "!"),
            Splice::remove(1..2),
            Splice::replace(3..5, "xyz"),
            Splice::insert(0, "<"),
        ];
        assert_eq!(made("abcdef", changes).unwrap(), "<acxyzf!");
        assert_eq!(made("abc", vec![]).unwrap(), "abc");
    }

    #[test]
    fn changes_at_one_place_keep_their_order() {
        let changes = vec![Splice::insert(1, "1"), Splice::insert(1, "2")];
        assert_eq!(made("ab", changes).unwrap(), "a12b");
    }

    #[test]
    fn overlaps_and_places_outside_are_refused() {
        for changes in [
            vec![Splice::remove(0..2), Splice::remove(1..3)],
            vec![Splice::remove(0..3), Splice::insert(1, "x")],
            vec![Splice::remove(2..9)],
            vec![Splice::insert(9, "x")],
        ] {
            assert!(made("abc", changes).is_err());
        }
    }

    proptest! {
        /// Nothing but the changed stretches differs, and nothing is copied.
        #[test]
        fn untouched_bytes_are_the_body_s_own(body in "[a-z]{20,40}", cuts in prop::collection::btree_set(0usize..20, 0..8)) {
            let bytes = Bytes::from(body.clone());
            let changes = cuts.iter().map(|at| Splice::replace(*at..*at + 1, "_")).collect();
            let pieces = splice(&bytes, changes).unwrap();
            let expected: String = body.chars().enumerate().map(|(at, c)| if cuts.contains(&at) { '_' } else { c }).collect();
            prop_assert_eq!(joined(&pieces), expected.as_bytes());
            prop_assert_eq!(length(&pieces), bytes.len());
        }
    }
}
