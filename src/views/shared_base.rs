//! Who has lately used a system prompt and tools.
//!
//! They are the beginning of every prompt, and sessions that share them keep
//! them in the provider's cache for each other. That they were read from it
//! tells that a session's own cache was alive only if no other session has used
//! them meanwhile.

use crate::bounded::Bounded;
use crate::engine::ids::LineageId;
use crate::store::Moment;

/// The most that are remembered.
const BASES: usize = 1024;

/// The last two sessions that have used one, the newest first.
type Users = Vec<(LineageId, Moment)>;

/// Who has used which, by digest.
pub struct SharedBase(Bounded<[u8; 16], Users>);

impl Default for SharedBase {
    fn default() -> Self {
        Self(Bounded::new(BASES))
    }
}

impl SharedBase {
    /// A session uses one; whether another has used it since a moment.
    pub fn uses(&self, base: [u8; 16], lineage: LineageId, now: Moment, since: Moment) -> bool {
        self.0.update(base, |users| {
            users.retain(|(user, _)| *user != lineage);
            let shared = users.iter().any(|(_, used)| used.0 >= since.0);
            users.insert(0, (lineage, now));
            users.truncate(2);
            shared
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_session_and_only_a_recent_one_counts() {
        let bases = SharedBase::default();
        let id = |n: u8| LineageId::beginning(&[n; 32]);
        let at =
            |n: u8, now: i64, since: i64| bases.uses([1; 16], id(n), Moment(now), Moment(since));
        assert!(!at(1, 100, 0));
        assert!(!at(1, 200, 0), "oneself does not count");
        assert!(at(2, 300, 150));
        assert!(!at(1, 900, 400), "too long ago");
        assert!(
            !bases.uses([2; 16], id(3), Moment(900), Moment(0)),
            "another base"
        );
    }
}
