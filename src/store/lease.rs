//! Who holds a lease, and the leases of one process.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Somebody who can hold leases, told from everybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder([u8; 16]);

impl Holder {
    /// Somebody new.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().into_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Leases in memory.
#[derive(Default)]
pub(super) struct Leases {
    held: HashMap<String, (Holder, Instant)>,
}

impl Leases {
    /// Takes or extends one; `false` if it is somebody else's.
    pub(super) fn take(
        &mut self,
        name: &str,
        holder: Holder,
        time: Duration,
        now: Instant,
    ) -> bool {
        self.held.retain(|_, (_, until)| *until > now);
        let (has, until) = self
            .held
            .entry(name.to_owned())
            .or_insert((holder, now + time));
        if *has == holder {
            *until = now + time;
        }
        *has == holder
    }

    /// Whether somebody has one of these.
    pub(super) fn has_any(&self, names: &[String], now: Instant) -> bool {
        let mut held = names.iter().filter_map(|name| self.held.get(name));
        held.any(|(_, until)| *until > now)
    }

    /// Gives one back.
    pub(super) fn give_back(&mut self, name: &str, holder: Holder) {
        if self.held.get(name).is_some_and(|(has, _)| *has == holder) {
            self.held.remove(name);
        }
    }
}
