//! The end of a string, found at the speed of memory.
//!
//! Nearly all bytes of a body are inside strings that nobody here looks into, so
//! this loop decides what a body costs. Stopping at every escape would be slow:
//! code in JSON has one in every dozen bytes. So 64 bytes are taken at a time,
//! as one bit each: where quotes are, where backslashes are, and, by arithmetic
//! on whole words, which bytes a backslash escapes. What is escaped, and whether
//! that escape exists, is not judged: it goes upstream as it is. Nor are control
//! characters.

use wide::{u8x16, u8x64};

/// A bit for each of 64 bytes, the lowest for the first.
type Bits = u64;

const BLOCK: usize = Bits::BITS as usize;
const EVERY_OTHER: Bits = 0xAAAA_AAAA_AAAA_AAAA;

/// Where a string ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// How many bytes stand before the quote.
    pub at: usize,
    /// There may be a backslash among them; if not, there is none.
    pub is_escaped: bool,
}

/// The end of the string whose inside `rest` begins with.
#[inline]
pub(super) fn end(rest: &[u8]) -> Option<End> {
    at_once(rest).or_else(|| in_blocks(rest))
}

/// The same for keys and names: short and without escapes, or not at all.
#[inline]
fn at_once(rest: &[u8]) -> Option<End> {
    let few = u8x16::new(*rest.first_chunk()?);
    let quotes = few.simd_eq(u8x16::splat(b'"')).to_bitmask();
    let backslashes = few.simd_eq(u8x16::splat(b'\\')).to_bitmask();
    let at = quotes.trailing_zeros();
    (at < backslashes.trailing_zeros()).then_some(End {
        at: at as usize,
        is_escaped: false,
    })
}

fn in_blocks(rest: &[u8]) -> Option<End> {
    let (blocks, last) = rest.as_chunks();
    let mut seen = Seen::default();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(at) = seen.end_in(block) {
            return Some(seen.end(index, at));
        }
    }
    let mut padded = [0; BLOCK];
    padded.get_mut(..last.len())?.copy_from_slice(last);
    let at = seen.end_in(&padded)?;
    Some(seen.end(blocks.len(), at))
}

/// What the blocks so far say about the next one.
#[derive(Default)]
struct Seen {
    /// 1 if the last byte escapes the first of the next block.
    escapes_next: Bits,
    backslashes: Bits,
}

impl Seen {
    #[inline]
    fn end_in(&mut self, block: &[u8; BLOCK]) -> Option<u32> {
        let block = u8x64::new(*block);
        let quotes: Bits = block.simd_eq(u8x64::splat(b'"')).to_bitmask();
        let backslashes: Bits = block.simd_eq(u8x64::splat(b'\\')).to_bitmask();
        self.backslashes |= backslashes;
        let ends = quotes & !self.escaped(backslashes);
        (ends != 0).then_some(ends.trailing_zeros())
    }

    /// Which bytes of a block are escaped. In a run of backslashes every other
    /// one escapes the byte after it, beginning with the first; the borrow of one
    /// subtraction walks all runs at once. (The method is simdjson's.)
    #[inline]
    fn escaped(&mut self, backslashes: Bits) -> Bits {
        let first = self.escapes_next;
        let begin = backslashes & !first;
        let walked = ((begin << 1) | EVERY_OTHER).wrapping_sub(begin) ^ EVERY_OTHER;
        self.escapes_next = (walked & backslashes) >> (Bits::BITS - 1);
        walked ^ (backslashes | first)
    }

    #[inline]
    fn end(&self, blocks: usize, at: u32) -> End {
        End {
            at: blocks * BLOCK + at as usize,
            is_escaped: self.backslashes != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end_at(rest: &[u8]) -> Option<usize> {
        let end = end(rest)?;
        assert!(end.is_escaped || !rest[..end.at].contains(&b'\\'));
        Some(end.at)
    }

    /// What a string is, said in the plainest way.
    fn plainly(rest: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match rest.get(at)? {
                b'"' => return Some(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    #[test]
    fn an_escape_may_stand_anywhere_also_across_blocks_and_at_the_very_end() {
        for before in 0..200 {
            for run in 0..140 {
                for after in ["", "\"", "x\"", "\"\"", "\\", "n\\\\\""] {
                    let text = format!("{}{}{after}", "x".repeat(before), "\\".repeat(run));
                    let rest = text.as_bytes();
                    assert_eq!(end_at(rest), plainly(rest), "{before} {run} {after}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_end_is_where_a_plain_reading_finds_it(
            rest in prop::collection::vec(prop::sample::select(br#"\\\\\\\"xn"#.to_vec()), 0..300),
            start in 0usize..70,
        ) {
            let rest = rest.get(start..).unwrap_or(&[]);
            prop_assert_eq!(end_at(rest), plainly(rest));
        }

        #[test]
        fn it_is_found_in_any_bytes_at_all(rest in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(end_at(&rest), plainly(&rest));
        }

        #[test]
        fn it_is_found_in_long_runs(runs in prop::collection::vec((0usize..90, 0usize..90, any::<bool>()), 0..12)) {
            let mut text = String::new();
            for (letters, backslashes, quote) in runs {
                text += &"x".repeat(letters);
                text += &"\\".repeat(backslashes);
                text += if quote { "\"" } else { "" };
            }
            prop_assert_eq!(end_at(text.as_bytes()), plainly(text.as_bytes()));
        }
    }
}
