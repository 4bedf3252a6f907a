//! What a lineage has been through, as far as the policy goes by it.
//!
//! Counted in requests of the lineage, not in turns: one prompt can mean five
//! hundred cycles. The course is part of the mark, so that it follows the
//! session through restarts and between processes.

use serde::{Deserialize, Serialize};

use super::account::Accounts;
use super::rates::Pico;

/// Requests within which a view that fills up again was refilled at once.
const REFILL: u32 = 5;
/// Wrong predictions, less the right ones, from which cold is not believed.
const DISTRUST: u32 = 2;
/// The most that is held against predictions.
const MOST_DISTRUST: u32 = 4;
/// How many of a hundred results agents fetch again although they still see them.
const USUAL: u32 = 30;
/// Fewer than this say nothing.
const USUAL_AT_LEAST: u32 = 4;
/// The most that a session may cost at any request, in percent of what it would
/// have cost without any pass.
const GUARD: Pico = 105;

/// The course of a lineage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Course {
    /// The view has passed the first watermark, and no pass has brought it down.
    pub latched: bool,
    /// Passes so far.
    pub passes: u32,
    /// Requests since the last.
    pub since_pass: u32,
    /// Passes in a row that were refilled at once.
    pub refills: u32,
    /// Passes do not last, and that has been said.
    pub thrashing: bool,
    /// How far predictions of a cold cache are not to be believed.
    distrust: u32,
    /// The size at which nothing worth doing was found.
    pub looked_at: u64,
    /// What the lineage has cost, in pico-dollars.
    spent: u64,
    /// What passes have saved it, net; may be negative.
    saved: i64,
    /// Requests of it whose model has no known price: they were taken at usual
    /// prices, which will do for decisions but is not what was paid.
    unpriced: u32,
    /// Results that passes have cleared.
    pub cleared: u32,
    /// What carrying old content has cost.
    pub accounts: Accounts,
    /// Somebody asked for a pass that is not complete yet: its summary is taken
    /// as soon as it is ready.
    pub compacting: bool,
    /// A summary is due, and was not there yet when that was found.
    pub preparing: bool,
}

impl Course {
    /// How much more than usual the agent fetches again what passes removed, in
    /// percent, when it has done so this often.
    pub fn fetches(&self, again: usize) -> u32 {
        let again = u32::try_from(again).unwrap_or(u32::MAX);
        let usual = self.cleared.saturating_mul(USUAL) / 100;
        let usual = usual.max(USUAL_AT_LEAST);
        let percent = again.saturating_mul(100) / usual;
        percent.clamp(100, 400)
    }

    /// Whether a summary is to be written.
    pub fn wants_summary(&self) -> bool {
        self.compacting || self.preparing
    }

    /// Another request.
    pub fn goes_on(&mut self) {
        self.since_pass = self.since_pass.saturating_add(1);
    }

    /// Whether the view is full again right after a pass.
    pub fn is_refilled(&self) -> bool {
        self.passes > 0 && self.since_pass <= REFILL
    }

    /// Whether passes do not last, so that there is no point in another.
    pub fn thrashes(&self, limit: u32) -> bool {
        self.is_refilled() && self.refills.saturating_add(1) >= limit
    }

    /// A pass was made; `reached`: the view is at or under the floor.
    pub fn passed(&mut self, reached: bool) {
        self.refills = if self.is_refilled() {
            self.refills.saturating_add(1)
        } else {
            0
        };
        self.passes = self.passes.saturating_add(1);
        self.since_pass = 0;
        self.looked_at = 0;
        self.latched &= !reached;
    }

    /// Notes whether passes last; `true` if they have just stopped to.
    pub fn note_thrash(&mut self, thrashes: bool) -> bool {
        let new = thrashes && !self.thrashing;
        self.thrashing = thrashes;
        new
    }

    /// A cold cache was predicted.
    pub fn predicted(&mut self, right: bool) {
        self.distrust = if right {
            self.distrust.saturating_sub(1)
        } else {
            (self.distrust + 1).min(MOST_DISTRUST)
        };
    }

    /// Whether predictions of a cold cache have been wrong too often.
    pub fn distrusts(&self) -> bool {
        self.distrust >= DISTRUST
    }

    /// A request was paid for.
    pub fn billed(&mut self, cost: Pico, saved: Pico) {
        let cost = u64::try_from(cost.max(0)).unwrap_or(u64::MAX);
        self.spent = self.spent.saturating_add(cost);
        let saved = i64::try_from(saved).unwrap_or(if saved < 0 { i64::MIN } else { i64::MAX });
        self.saved = self.saved.saturating_add(saved);
    }

    /// What a pass may cost, should this be the last request: given what the request
    /// costs as it is, and what it would have cost without any pass.
    pub fn allowance(&self, as_is: Pico, without: Pico) -> Pico {
        let spent = Pico::from(self.spent);
        let without = spent + Pico::from(self.saved) + without;
        without * GUARD / 100 - spent - as_is
    }

    /// Something else was paid for: an attempt at a summary.
    pub fn charged(&mut self, cost: Pico) {
        self.billed(cost, -cost);
    }

    /// A request was billed at usual prices.
    pub fn note_unpriced(&mut self) {
        self.unpriced = self.unpriced.saturating_add(1);
    }

    /// Whether all of it was billed at known prices.
    pub fn is_priced(&self) -> bool {
        self.unpriced == 0
    }

    /// What was spent, and what would have been without any pass, in pico-dollars.
    pub fn totals(&self) -> (Pico, Pico) {
        let spent = Pico::from(self.spent);
        (spent, spent + Pico::from(self.saved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_refilled_at_once_are_thrash_and_a_long_calm_ends_it() {
        let mut course = Course::default();
        assert!(!course.thrashes(1), "nothing to refill yet");
        for expected in [false, false, true] {
            course.passed(true);
            course.goes_on();
            assert_eq!(course.thrashes(3), expected, "{course:?}");
        }
        for _ in 0..REFILL {
            course.goes_on();
        }
        assert!(!course.thrashes(3));
        course.passed(true);
        assert_eq!(course.refills, 0);
    }

    #[test]
    fn the_latch_opens_only_when_the_floor_is_reached() {
        let mut course = Course {
            latched: true,
            ..Course::default()
        };
        course.passed(false);
        assert!(course.latched);
        course.passed(true);
        assert!(!course.latched);
    }

    #[test]
    fn two_wrong_predictions_are_distrusted_until_right_ones_outweigh_them() {
        let mut course = Course::default();
        course.predicted(false);
        assert!(!course.distrusts());
        course.predicted(false);
        assert!(course.distrusts());
        course.predicted(true);
        assert!(!course.distrusts());
    }

    #[test]
    fn what_was_earned_may_be_spent_and_what_was_lost_may_not_be_lost_again() {
        let mut course = Course::default();
        assert_eq!(course.allowance(0, 0), 0);
        assert_eq!(course.allowance(1_000, 1_000), 50);
        course.billed(1_000_000, 0);
        assert_eq!(course.allowance(0, 0), 50_000);
        course.billed(0, 10_000);
        assert_eq!(course.allowance(0, 0), 60_500);
        course.charged(100_000);
        assert!(course.allowance(0, 0) < 0);
        assert_eq!(course.totals(), (1_100_000, 1_010_000));
    }
}
