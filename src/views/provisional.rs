//! Plans made for a refusal, which hold only once an answer confirms them.
//!
//! Such a plan is committed before it is sent, as any other: its overlay must be
//! in the store when the answer comes. But the refusal may not have been about
//! what the plan changes, or the process may end before anybody knows. So the mark
//! also keeps the plan as it was before the first refusal, and as long as the mark
//! is not sealed everybody takes that one.

use super::build::Plan;
use super::prepare::Prepared;
use crate::engine::figures::{Earlier, Figures};
use crate::engine::ids::{ChainHash, OverlayId};
use crate::store::MarkRow;

/// A plan as it was before the first refusal of a request.
pub struct Before {
    /// The plan.
    pub(super) plan: Plan,
    view: ChainHash,
    sealed: bool,
}

impl Before {
    /// The plan that a request has now.
    pub(super) fn of(prepared: &Prepared) -> Self {
        Self {
            plan: Plan {
                overlay: prepared.overlay.clone(),
                figures: prepared.figures.clone(),
                view: None,
            },
            view: prepared.view_hash,
            sealed: prepared.settled,
        }
    }

    /// What a mark keeps of it.
    pub(super) fn kept(&self) -> Earlier {
        let overlay = self.plan.overlay.as_ref().map(|(id, _)| *id);
        Earlier::new(overlay, self.view, self.sealed, &self.plan.figures)
    }
}

/// Whether a mark points to a plan that no answer has confirmed.
pub(super) fn is_provisional(row: &MarkRow) -> bool {
    !row.sealed && Figures::read(&row.figures).provisional.is_some()
}

/// A mark as others see it: with the plan before a refusal, if the one it has was
/// made for that and is not confirmed.
pub(super) fn as_confirmed(row: MarkRow) -> MarkRow {
    if row.sealed {
        return row;
    }
    let Some(earlier) = Figures::read(&row.figures).provisional else {
        return row;
    };
    let Some((overlay, view)) = earlier.plan() else {
        return row;
    };
    MarkRow {
        overlay,
        view,
        sealed: earlier.sealed,
        figures: earlier.figures.store(),
        ..row
    }
}

/// The overlay of a mark, and its figures, for a request that lost a race.
pub(super) fn plan_for(row: &MarkRow, refused: bool) -> (Option<OverlayId>, ChainHash, Figures) {
    // Who was refused as well is served by what was made for that.
    let row = if refused {
        row.clone()
    } else {
        as_confirmed(row.clone())
    };
    (row.overlay, row.view, Figures::read(&row.figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::LineageId;
    use crate::store::Moment;

    fn row(sealed: bool, figures: &Figures) -> MarkRow {
        MarkRow {
            chain: ChainHash::from_bytes([1; 32]),
            model: "m".to_owned(),
            lineage: LineageId::from_bytes([2; 16]),
            messages: 9,
            overlay: Some(OverlayId::from_bytes([3; 32])),
            view: ChainHash::from_bytes([4; 32]),
            hint: None,
            sealed,
            figures: figures.store(),
            seen_at: Moment(7),
        }
    }

    #[test]
    fn a_plan_made_for_a_refusal_counts_only_once_it_is_confirmed() {
        let view = ChainHash::from_bytes([5; 32]);
        for (overlay, sealed) in [(None, false), (Some(OverlayId::from_bytes([6; 32])), true)] {
            let old = Figures::read(br#"{"requests":41}"#);
            let mut new = Figures::read(br#"{"requests":42}"#);
            new.provisional = Some(Box::new(Earlier::new(overlay, view, sealed, &old)));
            let seen = as_confirmed(row(false, &new));
            assert_eq!(
                (seen.overlay, seen.view, seen.sealed),
                (overlay, view, sealed)
            );
            assert_eq!(Figures::read(&seen.figures).requests, 41);
            assert_eq!((seen.messages, seen.seen_at), (9, Moment(7)));
            assert!(is_provisional(&row(false, &new)) && !is_provisional(&row(true, &new)));
            assert_eq!(as_confirmed(row(true, &new)), row(true, &new));
            assert_eq!(plan_for(&row(false, &new), false).0, overlay);
            assert_eq!(
                plan_for(&row(false, &new), true).0,
                row(false, &new).overlay
            );
        }
        let plain = row(false, &Figures::default());
        assert_eq!(as_confirmed(plain.clone()), plain);
    }
}
