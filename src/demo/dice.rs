//! Chance that is the same each time.

use std::ops::Range;

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (the generator is splitmix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number within a range; its start, if the range is empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        let span = u64::try_from(range.len()).unwrap_or(u64::MAX).max(1);
        range.start + usize::try_from(self.next() % span).unwrap_or(0)
    }

    /// One of a list; the default, if it is empty.
    pub fn one_of<T: Copy + Default>(&mut self, list: &[T]) -> T {
        let at = self.within(0..list.len());
        list.get(at).copied().unwrap_or_default()
    }

    /// Whether something happens that happens so often in a hundred.
    pub fn percent(&mut self, often: usize) -> bool {
        self.within(0..100) < often
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_and_stays_within_bounds() {
        let thrown = |seed| {
            let mut dice = Dice::new(seed);
            (0..200).map(|_| dice.within(3..9)).collect::<Vec<_>>()
        };
        assert_eq!(thrown(7), thrown(7));
        assert_ne!(thrown(7), thrown(8));
        assert!(thrown(7).iter().all(|number| (3..9).contains(number)));
        for number in 3..9 {
            assert!(thrown(7).contains(&number));
        }
        let mut dice = Dice::new(1);
        assert_eq!(dice.within(4..4), 4);
        assert_eq!(dice.one_of::<&str>(&[]), "");
    }
}
