//! Sessions for which a summary is being planned.
//!
//! Between a reply and the moment its summary is staged some time goes by, in
//! which the session's next requests arrive and would plan one too: each a span
//! a little longer, of which only the first should be asked for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::ids::LineageId;

type Sessions = Mutex<HashSet<LineageId>>;

/// Who is planning.
#[derive(Default)]
pub struct Planning(Arc<Sessions>);

/// The right to plan for a session, until it is dropped.
pub struct Claim {
    sessions: Arc<Sessions>,
    lineage: LineageId,
}

fn held(sessions: &Sessions) -> MutexGuard<'_, HashSet<LineageId>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Planning {
    /// The right to plan for a session, unless somebody has it.
    pub fn claim(&self, lineage: LineageId) -> Option<Claim> {
        let claim = || Claim {
            sessions: self.0.clone(),
            lineage,
        };
        held(&self.0).insert(lineage).then(claim)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        held(&self.sessions).remove(&self.lineage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_plans_for_a_session() {
        let planning = Planning::default();
        let session = |byte| LineageId::beginning(&[byte; 32]);
        let claim = planning.claim(session(1));
        assert!(claim.is_some());
        assert!(planning.claim(session(1)).is_none());
        assert!(planning.claim(session(2)).is_some(), "another session");
        drop(claim);
        assert!(planning.claim(session(1)).is_some());
    }
}
