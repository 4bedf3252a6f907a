//! When a credential counts as accepted by upstream.
//!
//! Anybody can send a request; only upstream knows who may. Until it has
//! answered a credential's conversation, nothing is stored, learned or asked for
//! on its behalf. Only a successful answer proves that a credential is accepted:
//! an upstream, or what stands before it, may refuse a body as malformed or too
//! large, or answer that it is busy, before it has looked at the credential at
//! all, and a sender chooses its body.

/// How long an accepted credential counts as accepted, in milliseconds.
const LIFETIME: i64 = 24 * 60 * 60 * 1_000;
/// After how long an acceptance is written down again, in milliseconds.
const RENEWAL: i64 = 60 * 60 * 1_000;

/// What the status of an answer says about the credential of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Upstream accepts it.
    Accepted,
    /// Upstream does not know it, or no longer.
    Rejected,
    /// Nothing.
    None,
}

impl Proof {
    /// What a status proves.
    pub fn from_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Accepted,
            401 => Self::Rejected,
            _ => Self::None,
        }
    }
}

/// Whether a credential that was accepted at `at` still counts as accepted.
/// Clocks of replicas may differ a little, so the future is no reason to doubt.
pub fn is_recent(at: i64, now: i64) -> bool {
    now.saturating_sub(at) < LIFETIME
}

/// Whether an acceptance that was written down at `noted` is written again.
pub fn is_due_for_renewal(noted: i64, now: i64) -> bool {
    now.saturating_sub(noted) >= RENEWAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_success_proves_a_credential_and_only_401_disproves_it() {
        let rows = [
            (200, Proof::Accepted),
            (201, Proof::Accepted),
            (401, Proof::Rejected),
            (302, Proof::None),
            (400, Proof::None),
            (403, Proof::None),
            (404, Proof::None),
            (413, Proof::None),
            (429, Proof::None),
            (500, Proof::None),
            (529, Proof::None),
        ];
        for (status, expected) in rows {
            assert_eq!(Proof::from_status(status), expected, "{status}");
        }
    }

    #[test]
    fn an_acceptance_lasts_a_day_and_is_written_every_hour() {
        let at = 1_000_000;
        assert!(is_recent(at, at));
        assert!(is_recent(at, at - 5_000));
        assert!(is_recent(at, at + LIFETIME - 1));
        assert!(!is_recent(at, at + LIFETIME));
        assert!(!is_due_for_renewal(at, at + RENEWAL - 1));
        assert!(is_due_for_renewal(at, at + RENEWAL));
    }
}
