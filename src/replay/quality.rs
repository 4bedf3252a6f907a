//! What a run is judged by beside its cost: counts, from which shares are told.
//!
//! Each is kept by the number of the pass after which it was counted, so that it
//! can be seen whether views get worse from pass to pass.

/// Something that was looked for, so many times, and was there so many times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Times it was looked for.
    pub asked: usize,
    /// Times it was there.
    pub found: usize,
}

impl Tally {
    /// Adds one.
    pub fn add(&mut self, is_found: bool) {
        self.asked += 1;
        self.found += usize::from(is_found);
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            found: self.found + other.found,
        }
    }

    /// Times it was not there.
    pub fn missed(self) -> usize {
        self.asked.saturating_sub(self.found)
    }

    /// The share that was there.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn share(self) -> Option<f64> {
        (self.asked > 0).then(|| self.found as f64 / self.asked as f64)
    }
}

/// What they are called in reports: the first pass, the second, the third, later.
pub const PASSES: [&str; 4] = ["1", "2", "3", "4+"];

/// Counts by the number of the pass that was the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByPass([Tally; PASSES.len()]);

impl ByPass {
    /// Adds one, after so many passes. A view without any has at most something
    /// trimmed, and counts with the first.
    pub fn add(&mut self, passes: usize, is_found: bool) {
        let last = PASSES.len() - 1;
        let at = passes.saturating_sub(1).min(last);
        if let Some(tally) = self.0.get_mut(at) {
            tally.add(is_found);
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (to, from) in self.0.iter_mut().zip(other.0) {
            *to = to.plus(from);
        }
        self
    }

    /// All of them together.
    pub fn total(&self) -> Tally {
        self.0.into_iter().fold(Tally::default(), Tally::plus)
    }

    /// Each, in order.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, Tally)> {
        PASSES.into_iter().zip(self.0)
    }
}

/// The counts of a run, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quality {
    /// Requests whose view differed from the history.
    pub requests: usize,
    /// Specific words in the next call's arguments, of those in the history.
    pub next_action: ByPass,
    /// Edits, of those that name lines of the history.
    pub edits: ByPass,
    /// Orders of the user's, each looked for with each pass.
    pub rules: ByPass,
    /// The same by age.
    pub rules_by_age: [Tally; 4],
    /// Values that were replaced, each looked for with each pass: those that are
    /// not shown without the new one.
    pub fresh_values: ByPass,
}

impl Quality {
    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (to, from) in self.rules_by_age.iter_mut().zip(other.rules_by_age) {
            *to = to.plus(from);
        }
        Self {
            requests: self.requests + other.requests,
            next_action: self.next_action.plus(&other.next_action),
            edits: self.edits.plus(&other.edits),
            rules: self.rules.plus(&other.rules),
            rules_by_age: self.rules_by_age,
            fresh_values: self.fresh_values.plus(&other.fresh_values),
        }
    }

    /// So many for each hundred requests whose view differed from the history.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn per_hundred(&self, count: usize) -> Option<f64> {
        (self.requests > 0).then(|| count as f64 * 100.0 / self.requests as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_pass_and_add_up() {
        let mut counts = ByPass::default();
        for (passes, is_found) in [(0, true), (1, true), (2, false), (4, true), (9, false)] {
            counts.add(passes, is_found);
        }
        let each: Vec<(usize, usize)> = counts.each().map(|(_, it)| (it.asked, it.found)).collect();
        assert_eq!(each, [(2, 2), (1, 0), (0, 0), (2, 1)]);
        let total = counts.plus(&counts).total();
        assert_eq!((total.asked, total.missed()), (10, 4));
        assert_eq!(total.share(), Some(0.6));
        assert_eq!(Tally::default().share(), None);
        let quality = Quality {
            requests: 50,
            ..Quality::default()
        };
        assert_eq!(quality.plus(&quality).per_hundred(3), Some(3.0));
        assert_eq!(Quality::default().per_hundred(0), None);
    }
}
