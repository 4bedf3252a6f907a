//! The names under which a view shows what it leaves out.
//!
//! A reference is permission: whoever shows it may read what it stands for and
//! search the conversations that contain it. So it is derived from a whole
//! history and not from the content, which somebody could guess; what is shared,
//! a summary of a beginning that several conversations have in common, has a
//! name that comes from that beginning.

use crate::engine::ids::{ChainHash, Reference, SegmentId};

/// How a reference begins where it is shown.
const PREFIX: &str = "lh-";

/// A block of a history. `seed` is the chain hash of the history whose view was
/// made smaller.
pub fn reference_at(seed: ChainHash, message: u32, block: u32) -> Reference {
    named(&[b"block", seed.as_bytes(), &pair(message, block)])
}

/// Messages of a history, the last one excluded.
pub fn reference_of_span(seed: ChainHash, from: u32, to: u32) -> Reference {
    named(&[b"span", seed.as_bytes(), &pair(from, to)])
}

/// The messages that a segment stands for.
pub fn reference_of_segment(id: SegmentId) -> Reference {
    named(&[b"segment", id.as_bytes()])
}

/// The reference as it is shown.
pub fn shown(reference: Reference) -> String {
    format!("{PREFIX}{reference}")
}

fn named(parts: &[&[u8]]) -> Reference {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"longhaul reference 1\0");
    for part in parts {
        hasher.update(part);
        hasher.update(b"\0");
    }
    Reference::beginning(hasher.finalize().as_bytes())
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) << 32 | u64::from(second)).to_le_bytes()
}
