//! What a worker thread holds: its own way to upstream, and what all workers share.

use std::sync::Arc;

use super::limits::Limits;
use super::room::Room;
use crate::config::models::Models;
use crate::metrics::Metrics;
use crate::upstream::Upstream;
use crate::views::Views;

/// What one worker needs to carry requests.
pub struct Worker {
    /// The way to the API.
    pub upstream: Upstream,
    /// What is shared with the other workers.
    pub shared: Arc<Shared>,
}

/// What all workers share.
pub struct Shared {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// What makes views of conversations.
    pub views: Arc<Views>,
    /// Limits on what is taken in.
    pub limits: Limits,
    /// Room for request bodies.
    pub room: Room,
    /// The model table.
    pub models: Models,
}
