//! How long digests are: each for itself, and all of a view together.
//!
//! About a tenth of a result in its stub, less in a segment, and no
//! more than a bound for all of them, because digests in proportion to a history
//! would never stop growing. Overlays do not change between passes, so what has
//! been said stands: a pass shares out what is left of the bound, and where that
//! is not enough the least needed get the least, and of those that it writes once
//! more in any case the oldest give their room to it. What a pass closes into a
//! segment gives its room back. Stubs and segments have a part of the bound each:
//! a segment is written while stubs come and go, and lands whenever it is ready.
//!
//! Sizes are bytes, because a tokenizer would be most of the work.

use crate::engine::overlay::{Change, Overlay, Segment};
use crate::engine::pinned::quote::DATA;

/// Bytes that are a token, about, where there are many names.
pub const TOKEN: usize = 3;
/// Tokens of all digests of a view.
pub const BOUND: usize = 12_000;
/// Tokens of one, at the most, if nothing else is said.
const MOST: usize = 1_500;
/// A stub keeps one byte of this many of its result.
const STUB: usize = 10;
/// And in a segment, where there is room.
const SEGMENT: usize = 12;
/// Bytes of a digest that is worth its line of introduction.
const LEAST: usize = 90;
/// Tokens of a view that comes down to no more than this have few digests: what is
/// left out must not come back as a quotation.
const SMALL: u64 = 20_000;
/// Digests may take one token of this many of such a view.
const OF_SMALL: u64 = 32;
/// And the part of what a larger one has above it.
const OF_LARGE: u64 = 3;

/// How the lines of a digest are introduced in a stub.
pub(in crate::engine) const LINES: &str = "ome of its lines:\n";
/// The same, as it stands in JSON.
const ESCAPED: &str = "ome of its lines:\\n";
/// The heading of digests in a segment.
pub(in crate::engine) const HEADING: &str = "Lines of tool results and of files written";

/// How long digests are, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// One, at the most.
    each: usize,
    /// All of a view together.
    all: usize,
}

impl Size {
    /// As is usual, with room enough.
    pub const USUAL: Self = Self {
        each: MOST * TOKEN,
        all: BOUND * TOKEN,
    };

    /// From the configuration: tokens of one, none for what is usual. In views that
    /// come down to `floor` tokens they are together a part of that, and of it one
    /// in `part`.
    pub fn new(tokens: Option<u64>, floor: u64, part: usize) -> Self {
        let bytes = |tokens: u64| {
            let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
            tokens.saturating_mul(TOKEN)
        };
        let most = floor.saturating_sub(SMALL) / OF_LARGE;
        let all = bytes(most.max(floor / OF_SMALL)).min(Self::USUAL.all);
        Self {
            each: tokens.map_or(Self::USUAL.each, bytes),
            all: all / part.max(1),
        }
    }

    /// Bytes of the digest of this many bytes in a stub, with room enough.
    pub fn in_stub(self, bytes: usize) -> usize {
        part(bytes / STUB, self.each)
    }

    /// Bytes of digests in stubs that this overlay leaves free.
    pub fn left(self, overlay: &Overlay) -> usize {
        match self.each {
            0 => 0,
            _ => (self.all / 3).saturating_sub(held_by_stubs(overlay)),
        }
    }

    /// Bytes of digests in a segment that follows on these: three fifths of what
    /// they have left, so that later ones have room as well.
    pub fn for_segment<'s>(self, before: impl Iterator<Item = &'s Segment>) -> usize {
        match self.each {
            0 => 0,
            _ => (self.all / 3 * 2).saturating_sub(held_by_segments(before)) / 5 * 3,
        }
    }
}

/// Bytes of the digest of this many bytes in a segment, with room enough.
pub fn in_segment(bytes: usize) -> usize {
    part(bytes / SEGMENT, MOST * TOKEN)
}

/// Bytes of all digests in a segment that stands for this many bytes of messages,
/// with room enough.
pub(in crate::engine) fn all_in_segment(bytes: usize) -> usize {
    bytes / SEGMENT
}

fn part(wanted: usize, most: usize) -> usize {
    let part = wanted.min(most);
    if part < LEAST { 0 } else { part }
}

/// What a digest would like to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Bytes.
    pub bytes: usize,
    /// How much it is needed.
    pub need: u64,
}

/// Shares a room out. Where it is not enough, each has half of its fair share if
/// that says anything, and the most needed have the rest.
pub fn share(wants: &[Want], room: usize) -> Vec<usize> {
    let all: usize = wants.iter().map(|want| want.bytes).sum();
    if all <= room {
        return wants.iter().map(|want| want.bytes).collect();
    }
    let fair = |bytes: usize| {
        let fair = bytes as u128 * room as u128 / (all.max(1) as u128 * 2);
        part(usize::try_from(fair).unwrap_or(0), bytes)
    };
    let mut shares: Vec<usize> = wants.iter().map(|want| fair(want.bytes)).collect();
    let mut left = room.saturating_sub(shares.iter().sum());
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let need = |at: &usize| wants.get(*at).map_or(0, |want| want.need);
    order.sort_by_key(|at| (std::cmp::Reverse(need(at)), std::cmp::Reverse(*at)));
    for at in order {
        if let (Some(share), Some(want)) = (shares.get_mut(at), wants.get(at)) {
            let more = (want.bytes - *share).min(left);
            *share += more;
            left -= more;
        }
    }
    shares
}

/// Bytes that the digests in stubs and trimmed results of a view take.
pub(in crate::engine) fn held_by_stubs(overlay: &Overlay) -> usize {
    let shown = |message: u32| overlay.shows(message as usize);
    let edits = overlay.edits.iter().filter(|edit| shown(edit.message));
    edits.map(|edit| in_change(&edit.change)).sum()
}

/// Bytes that the digests of segments take.
pub(in crate::engine) fn held_by_segments<'s>(
    segments: impl Iterator<Item = &'s Segment>,
) -> usize {
    segments.map(|segment| in_block(&segment.block)).sum()
}

/// Bytes of the digest in a stub or in a trimmed result, as JSON. A trimmed
/// result goes on behind it.
fn in_change(change: &Change) -> usize {
    let Change::Payload(with) = change else {
        return 0;
    };
    let Some((_, behind)) = with.split_once(ESCAPED) else {
        return 0;
    };
    quoted_lines(behind)
}

/// What stands for a result or an input, without its digest, and the bytes of that;
/// none: it has none.
pub(in crate::engine) fn without_digest(with: &str) -> Option<(String, usize)> {
    let (before, behind) = with.split_once(ESCAPED)?;
    let before = before.strip_suffix("; s")?;
    let bytes = quoted_lines(behind);
    let mut rest = behind;
    while rest.starts_with(DATA) {
        let (_, end) = line_end(rest);
        rest = rest.get(end..).unwrap_or_default();
    }
    (bytes > 0).then(|| (format!("{before}{rest}"), bytes))
}

/// Bytes of the digests in a segment.
fn in_block(block: &str) -> usize {
    let begins = format!("\\n## {HEADING}\\n");
    let Some((_, behind)) = block.split_once(&begins) else {
        return 0;
    };
    quoted_lines(behind)
}

/// Bytes of the lines that begin with a mark, in a text that stands in JSON: what
/// is escaped counts as what it stands for.
fn quoted_lines(json: &str) -> usize {
    let mut rest = json;
    let mut bytes = 0;
    while rest.starts_with(DATA) {
        let (line, end) = line_end(rest);
        bytes += line;
        rest = rest.get(end..).unwrap_or_default();
    }
    bytes
}

/// Bytes of the first line of a text that stands in JSON, and where it ends there.
fn line_end(json: &str) -> (usize, usize) {
    let (mut bytes, mut escaped) = (0, false);
    for (at, byte) in json.bytes().enumerate() {
        let begins = byte == b'\\' && !escaped;
        bytes += usize::from(!begins);
        if byte == b'n' && escaped {
            return (bytes, at + 1);
        }
        escaped = begins;
    }
    (bytes, json.len())
}
