//! The rules by which races are settled and room is counted, as pure functions.
//!
//! Every home of the store must answer alike, so what decides an answer stands
//! here once: whether a commit holds, what a newer mark changes, how much room
//! a thing is taken to need. The room is a rule and not a measurement, so that
//! a collection does the same wherever the things are kept.

use super::{Commit, MarkRow, Moment, StoreError};
use crate::engine::ids::{ChainHash, LineageId};

/// What becomes of a commit at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is written.
    Write,
    /// It is there already, word for word.
    There,
    /// What is there stays.
    Lost,
}

/// Whether a commit holds at a place, given what is there. The first one wins;
/// asking again for what is already there is not losing.
pub fn judge(held: Option<&MarkRow>, commit: &Commit) -> Verdict {
    match held {
        Some(held) if *held == commit.mark => Verdict::There,
        Some(held) if held.overlay != commit.parent => Verdict::Lost,
        Some(held) if held.sealed && !commit.refused => Verdict::Lost,
        _ => Verdict::Write,
    }
}

/// Refuses a commit that contradicts itself.
pub fn check(commit: &Commit) -> Result<(), StoreError> {
    match &commit.overlay {
        Some((id, _)) if commit.mark.overlay != Some(*id) => Err(StoreError::Failed(
            "a commit brings an overlay that its mark does not point to".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// A mark points to an overlay that is not kept.
pub fn unknown_overlay() -> StoreError {
    StoreError::Failed("a commit points to an overlay that is not in the store".to_owned())
}

/// Lets a mark take in a newer one of the same place and model. An older one only
/// seals; one with another overlay changes nothing, unless it gives way. Whether
/// anything changed.
pub fn renew(held: &mut MarkRow, newer: &MarkRow) -> bool {
    if held.overlay != newer.overlay && !gives_way(held, newer) {
        return false;
    }
    let sealed = held.sealed || newer.sealed;
    if newer.seen_at >= held.seen_at {
        newer.clone_into(held);
    }
    held.sealed = sealed;
    true
}

/// Whether a view that was only committed gives way to one that was answered: a
/// commit that was given up as too slow may come about after all, and what one
/// replica has sent without the store another one knows nothing of. Not if it was
/// committed later: then upstream has refused the other.
pub fn gives_way(held: &MarkRow, answered: &MarkRow) -> bool {
    answered.sealed && !held.sealed && answered.seen_at >= held.seen_at
}

/// What tells a damaged overlay from a whole one.
pub fn proof(body: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(body);
    let mut proof = [0; 8];
    proof
        .iter_mut()
        .zip(hash.as_bytes())
        .for_each(|(to, from)| *to = *from);
    proof
}

/// The room a mark is taken to need, with its share of the indexes.
pub fn mark_bytes(mark: &MarkRow) -> u64 {
    400 + mark.model.len() as u64 + mark.figures.len() as u64
}

/// The room an overlay is taken to need.
pub fn overlay_bytes(body: usize) -> u64 {
    100 + body as u64
}

/// The room a blob or a segment is taken to need, given its packed form.
pub fn packed_bytes(packed: usize) -> u64 {
    100 + packed as u64
}

/// What orders the marks of a session: the larger, the newer.
pub fn recency(mark: &MarkRow) -> (Moment, u32, ChainHash, &str) {
    (mark.seen_at, mark.messages, mark.chain, &mark.model)
}

/// The first and the last session whose name begins so; `None` if no name does.
pub fn named(beginning: &str) -> Option<(LineageId, LineageId)> {
    let size = LineageId::from_bytes([0; 16]).to_string().len();
    let padded = |with: char| {
        let missing = size.checked_sub(beginning.len())?;
        let rest = std::iter::repeat_n(with, missing);
        LineageId::from_text(&beginning.chars().chain(rest).collect::<String>())
    };
    Some((padded('0')?, padded('f')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_stands_for_all_names_that_begin_so() {
        let name = |text: &str| LineageId::from_text(text).unwrap();
        assert_eq!(
            named("a0f"),
            Some((
                name("a0f00000000000000000000000000000"),
                name("a0ffffffffffffffffffffffffffffff")
            ))
        );
        let whole = "0123456789abcdef0123456789abcdef";
        assert_eq!(named(whole), Some((name(whole), name(whole))));
        assert!(named("").is_some());
        for other in ["xyz", "A0", "\u{e9}", "' OR 1=1", &format!("{whole}0")] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
