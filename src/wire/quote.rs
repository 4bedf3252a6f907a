//! The end of a string, found at the speed of memory.
//!
//! Nearly all bytes of a body are inside strings that nobody here looks into, so
//! this loop decides what a body costs. Stopping at every escape would be slow:
//! code in JSON has one in every dozen bytes. So 64 bytes are taken at a time,
//! as one bit each: where quotes are, where backslashes are, and, by arithmetic
//! on whole words, which bytes a backslash escapes. What is escaped, and whether
//! that escape exists, is not judged: it goes upstream as it is. Nor are control
//! characters.

use wide::u8x64;

/// A bit for each of 64 bytes, the lowest for the first.
type Bits = u64;

const BLOCK: usize = Bits::BITS as usize;
const EVERY_OTHER: Bits = 0xAAAA_AAAA_AAAA_AAAA;

/// Where the quote stands that ends the string whose inside `rest` begins with.
pub(super) fn end(rest: &[u8]) -> Option<usize> {
    let (blocks, last) = rest.as_chunks::<BLOCK>();
    let mut escapes_next = false;
    for (index, block) in blocks.iter().enumerate() {
        if let Some(found) = end_in(*block, &mut escapes_next) {
            return Some(index * BLOCK + found);
        }
    }
    let mut padded = [0; BLOCK];
    padded.get_mut(..last.len())?.copy_from_slice(last);
    end_in(padded, &mut escapes_next).map(|found| blocks.len() * BLOCK + found)
}

/// The same within a block. `escapes_next` tells whether the block before ended
/// in a backslash that escapes the first byte of this one.
#[inline]
fn end_in(block: [u8; BLOCK], escapes_next: &mut bool) -> Option<usize> {
    let block = u8x64::new(block);
    let quotes: Bits = block.simd_eq(u8x64::splat(b'"')).to_bitmask();
    let backslashes: Bits = block.simd_eq(u8x64::splat(b'\\')).to_bitmask();
    let ends = quotes & !escaped(backslashes, escapes_next);
    (ends != 0).then(|| ends.trailing_zeros() as usize)
}

/// Which bytes are escaped. In a run of backslashes every other one escapes the
/// byte after it, beginning with the first; the borrow of one subtraction walks
/// all runs of a word at once. (The method is simdjson's.)
#[inline]
fn escaped(backslashes: Bits, escapes_next: &mut bool) -> Bits {
    let first = Bits::from(*escapes_next);
    let begin = backslashes & !first;
    let walked = ((begin << 1) | EVERY_OTHER).wrapping_sub(begin) ^ EVERY_OTHER;
    *escapes_next = (walked & backslashes) >> (Bits::BITS - 1) != 0;
    walked ^ (backslashes | first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                    assert_eq!(end(rest), plainly(rest), "{before} {run} {after}");
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
            prop_assert_eq!(end(rest), plainly(rest));
        }

        #[test]
        fn it_is_found_in_any_bytes_at_all(rest in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(end(&rest), plainly(&rest));
        }

        #[test]
        fn it_is_found_in_long_runs(runs in prop::collection::vec((0usize..90, 0usize..90, any::<bool>()), 0..12)) {
            let mut text = String::new();
            for (letters, backslashes, quote) in runs {
                text += &"x".repeat(letters);
                text += &"\\".repeat(backslashes);
                text += if quote { "\"" } else { "" };
            }
            prop_assert_eq!(end(text.as_bytes()), plainly(text.as_bytes()));
        }
    }
}
