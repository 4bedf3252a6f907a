//! What is recorded of a request only once upstream has accepted its credential.
//!
//! A request by a credential that nobody has vouched for is rendered by the plan
//! its session has. Where it cannot be sent like that, or the client asks for a
//! pass itself, the pass is made for this request alone: no model is asked, and
//! nothing is written. With a successful answer the credential is accepted, and
//! then, before the client sees anything of the answer, everything is recorded in
//! the usual order: the content, then the overlay and the pointer to it.

use super::prepare::Prepared;
use super::{Fault, Views};
use crate::engine::ids::OverlayId;
use crate::engine::policy::{Ask, Urge};
use crate::engine::reduce::{Evicted, Freed};
use crate::store::Committed;

/// What waits for the credential of a request to be accepted.
#[derive(Default)]
pub struct Deferred {
    /// The request has a plan that is not committed.
    plan: Option<Uncommitted>,
    /// What its passes have left out, and what is said of them.
    left_out: Vec<(Vec<Evicted>, String)>,
    /// What its passes have freed.
    passes: Vec<Pass>,
}

struct Uncommitted {
    /// The overlay that the session has meanwhile.
    parent: Option<OverlayId>,
}

/// A pass that was made for one request.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// What started it.
    pub trigger: &'static str,
    /// What it freed.
    pub freed: Freed,
    /// Tokens of the view before it.
    pub before: u64,
    /// Only something oversized was trimmed as it arrived: that changes nothing
    /// that was sent before, and is not counted as a pass.
    pub on_arrival: bool,
}

impl Deferred {
    /// A plan was put in place that is to be committed later.
    pub fn put_plan(&mut self, parent: Option<OverlayId>) {
        self.plan.get_or_insert(Uncommitted { parent });
    }

    /// A pass has left something out.
    pub fn leave_out(&mut self, evicted: Vec<Evicted>, said: String) {
        self.left_out.push((evicted, said));
    }

    /// A pass was made.
    pub fn add_pass(&mut self, pass: Pass) {
        self.passes.push(pass);
    }
}

impl Views {
    /// Whether a pass is made for this request now. Without a credential that
    /// upstream has accepted only one that the client asks for, or that the
    /// request cannot do without.
    pub(super) fn allows_pass(&self, prepared: &Prepared, asked: Option<Ask>) -> bool {
        let urge = || self.situation(prepared, asked).urge();
        prepared.credential.is_accepted
            || asked.is_some()
            || matches!(urge(), Ok((_, Urge::Must(_))))
    }

    /// Records what had to wait until the credential was accepted.
    pub(super) async fn record_deferred(&self, prepared: &mut Prepared) {
        let Deferred {
            plan,
            left_out,
            passes,
        } = std::mem::take(&mut prepared.deferred);
        // A view that was reduced for once is not remembered at all.
        let Some(plan) = plan.filter(|_| prepared.remembers) else {
            return;
        };
        let outcome = match self.record_plan(prepared, plan, &left_out).await {
            Ok(Committed::Done) => {
                for (evicted, said) in left_out {
                    self.index_pass(prepared, evicted, None, said);
                }
                "committed"
            }
            Ok(Committed::Lost(_)) => {
                // Another plan holds there: the next request goes by it.
                prepared.remembers = false;
                "abandoned"
            }
            Err(fault) => {
                prepared.remembers = false;
                prepared.is_unrecorded = true;
                self.metrics.fail_open(fault.stage());
                tracing::error!(
                    error = %fault,
                    session = %prepared.lineage,
                    "a pass for a new credential could not be recorded: the next request makes it again"
                );
                "failed"
            }
        };
        for made in &passes {
            self.count_pass(made, outcome);
        }
    }

    async fn record_plan(
        &self,
        prepared: &mut Prepared,
        plan: Uncommitted,
        left_out: &[(Vec<Evicted>, String)],
    ) -> Result<Committed, Fault> {
        // The answer has confirmed it, and what stood before was never stored.
        prepared.figures.provisional = None;
        let all = left_out.iter().flat_map(|(evicted, _)| evicted);
        let all: Vec<Evicted> = all.cloned().collect();
        if !all.is_empty() || prepared.bare {
            let archived = self.archive_patiently(prepared, &all, None).await;
            archived.map_err(|fault| Fault::Unrecorded(Box::new(fault)))?;
        }
        let place = prepared.recognised.last().ok_or(Fault::Bug("no chain"))?;
        let overlay = prepared.overlay.as_ref();
        let new = overlay.filter(|(id, _)| Some(*id) != plan.parent);
        let stored = match new {
            Some((_, overlay)) => {
                let stored = overlay.store(place);
                Some(stored.ok_or(Fault::Bug("an overlay cannot be stored"))?)
            }
            None => None,
        };
        self.write_plan(prepared, plan.parent, stored).await
    }
}
