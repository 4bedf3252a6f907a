//! The metrics of the journal and of what is recalled from it.

use prometheus::{IntCounter, IntGauge, Registry};

/// What is counted about the journal.
pub struct JournalMetrics {
    bytes: IntGauge,
    appends: IntCounter,
    recalls: IntCounter,
    handoffs: IntCounter,
    unrecorded: IntCounter,
}

impl JournalMetrics {
    /// Registers every one.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            bytes: IntGauge::new("journal_bytes", "Bytes that the journal takes.")?,
            appends: IntCounter::new("journal_appends_total", "Entries added to the journal.")?,
            recalls: IntCounter::new("recalls_total", "Things asked back from the journal.")?,
            handoffs: IntCounter::new(
                "handoffs_due_total",
                "Sessions that came to policy.max_segments and had better be handed off.",
            )?,
            unrecorded: IntCounter::new(
                "unrecorded_total",
                "Views that left something out which the journal does not hold.",
            )?,
        };
        registry.register(Box::new(metrics.bytes.clone()))?;
        registry.register(Box::new(metrics.appends.clone()))?;
        registry.register(Box::new(metrics.recalls.clone()))?;
        registry.register(Box::new(metrics.handoffs.clone()))?;
        registry.register(Box::new(metrics.unrecorded.clone()))?;
        Ok(metrics)
    }
}

impl super::Metrics {
    /// So many bytes are in the journal.
    pub fn journal_bytes(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.journal.bytes.set(bytes);
    }

    /// So many entries were added to it.
    pub fn appended(&self, entries: usize) {
        self.journal.appends.inc_by(entries as u64);
    }

    /// A session has as many segments as it may have.
    pub fn handoff_due(&self) {
        self.journal.handoffs.inc();
    }

    /// A view was sent that leaves something out which is not in the journal.
    pub fn unrecorded(&self) {
        self.journal.unrecorded.inc();
    }

    /// Something was asked back from it.
    pub fn recalled(&self) {
        self.journal.recalls.inc();
    }
}
