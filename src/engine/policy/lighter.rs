//! What goes without a summary.
//!
//! Where something must go, the cheapest that reaches the target; at an operator's
//! watermark, what pays, and what the session can afford should this be its last
//! request.

use super::choice::{Chosen, Limits, Offer, Worth, best};
use super::decision::Rest;
use super::{Situation, Urge};

/// What goes, if the urge is satisfied with it.
pub(super) fn lighter(
    situation: &Situation,
    offer: &Offer,
    urge: Urge,
    worth: &Worth,
) -> Result<Chosen, Rest> {
    let floor = situation.watermarks.floor;
    let limits = |target: u64| Limits {
        excess: situation.size.saturating_sub(target),
        allowance: None,
        at_least: 0,
    };
    let nothing = Rest::TooLittle { frees: 0 };
    match urge {
        // If it takes more than there is, all of it goes: what other means then
        // take from the conversation is worth more to the agent.
        Urge::Must(target) => Ok(best(
            offer,
            worth,
            &Limits {
                at_least: situation.size.saturating_sub(target),
                ..limits(target)
            },
        )
        .unwrap_or_else(|| offer.all(worth))),
        Urge::All => Ok(offer.all(worth)),
        Urge::AllOf(at_least) => enough(offer.all(worth), at_least),
        Urge::Swap | Urge::IfDue => Err(nothing),
        Urge::Free => {
            let chosen = best(offer, worth, &limits(floor)).ok_or(nothing)?;
            enough(chosen, situation.at_least)
        }
        Urge::IfItPays | Urge::SwapIfItPays => {
            let stake = situation.allowance();
            let affordable = Limits {
                allowance: Some(stake),
                at_least: situation.at_least,
                ..limits(floor)
            };
            let Some(chosen) = best(offer, worth, &affordable) else {
                let daring = Limits {
                    allowance: None,
                    ..affordable
                };
                let loss = best(offer, worth, &daring).ok_or(nothing)?.loss(worth);
                return Err(Rest::TooMuchAtStake { loss, stake });
            };
            let chosen = enough(chosen, situation.at_least)?;
            if chosen.gain <= 0 && !situation.will_be_full() {
                return Err(Rest::DoesNotPay { gain: chosen.gain });
            }
            Ok(chosen)
        }
    }
}

pub(super) fn enough(chosen: Chosen, at_least: u64) -> Result<Chosen, Rest> {
    if chosen.frees < at_least.max(1) {
        return Err(Rest::TooLittle {
            frees: chosen.frees,
        });
    }
    Ok(chosen)
}
