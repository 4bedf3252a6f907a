//! Limits on what is taken in from clients.

use std::time::Duration;

/// How much may be taken in, and how slowly.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body.
    pub body_bytes: u64,
    /// Longest silence within a body.
    pub body_idle: Duration,
    /// Longest wait for room.
    pub buffer_wait: Duration,
}
