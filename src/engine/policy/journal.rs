//! When the journal style hides old turns.
//!
//! What is older than the turns it keeps has no place in the view, so it goes when
//! that pays, however small the view still is, and in batches, because each
//! writes the whole tail once more. Results in the turns that stay are cleared and
//! trimmed as in the other style. Where all that does not come down to the floor,
//! and the conversation has come to where a summary would be taken, fewer turns
//! stay.

use super::choice::{Chosen, Closing, Offer, Worth};
use super::decision::{Closes, Rest};
use super::rates::gain;
use super::{Situation, Urge};

impl Situation {
    /// Whether old turns may go although the view is not full: not at once after
    /// a pass, or each would be a batch of its own.
    pub(super) fn moves(&self) -> bool {
        self.beyond && !self.course.is_refilled()
    }

    /// Whether fewer turns may stay than the style keeps.
    pub fn shortens(&self) -> bool {
        self.journal && (self.is_due() || self.asked.is_some() || self.too_many_bytes)
    }
}

/// What goes, if the urge is satisfied with it; `lighter` hides nothing.
pub(super) fn settle(
    situation: &Situation,
    offer: &Offer,
    urge: Urge,
    worth: &Worth,
    lighter: Result<Chosen, Rest>,
) -> Result<(Chosen, Closes), Rest> {
    let (forced, target) = match urge {
        Urge::Must(target) => (true, target),
        Urge::All => (true, situation.watermarks.floor),
        Urge::Free | Urge::IfItPays => (false, situation.watermarks.floor),
        // A client's wish is to clear; and nothing was summed up.
        Urge::AllOf(_) | Urge::Swap | Urge::SwapIfItPays | Urge::IfDue => {
            return lighter.map(|chosen| (chosen, Closes::Nothing));
        }
    };
    // When nothing is cached, to clear costs as little as to hide.
    let full = forced || urge == Urge::Free || situation.presses();
    let excess = if full {
        situation.size.saturating_sub(target)
    } else {
        0
    };
    let least = if forced { 1 } else { situation.at_least.max(1) };
    let closed = |closing: Option<Closing>, closes: Closes| {
        let chosen = offer.closed(closing?, worth, excess);
        (chosen.frees >= least).then_some((chosen, closes))
    };
    let old_turns = closed(offer.old_turns, Closes::OldTurns);
    let more = closed(offer.more, Closes::More).filter(|_| situation.shortens() || forced);
    // Old turns grow from nothing, so they were carried along at half of their
    // size, about, since the last pass: what that has cost must come to what it
    // costs to be rid of them, or batch would follow batch.
    let carried = (situation.course.since_pass / 2).clamp(1, worth.horizon.max(1));
    let pays = |chosen: &Chosen| {
        let Chosen {
            frees, rewrites, ..
        } = *chosen;
        let so_far = gain(&worth.rates, worth.cache, frees, rewrites, carried);
        forced || so_far.min(chosen.gain) > 0
    };
    let most = old_turns.as_ref().map(|(chosen, _)| chosen.gain);
    let first = match old_turns.clone().filter(|(chosen, _)| pays(chosen)) {
        Some(paying) => Ok(paying),
        // Nothing is cleared from a view that is small, while it is cached.
        None if urge == Urge::IfItPays && !full => Err(match most {
            Some(gain) => Rest::DoesNotPay { gain },
            None => Rest::TooLittle { frees: 0 },
        }),
        None => lighter.map(|chosen| (chosen, Closes::Nothing)),
    };
    let reaches =
        |(chosen, _): &(Chosen, Closes)| situation.size.saturating_sub(chosen.frees) <= target;
    if first.as_ref().is_ok_and(reaches) || !(forced || situation.is_due()) {
        return first;
    }
    let unavoidable = forced || situation.will_be_full();
    let other = more.or(old_turns);
    other
        .filter(|(chosen, _)| chosen.gain > 0 || unavoidable)
        .map_or(first, Ok)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
