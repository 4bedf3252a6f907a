//! Breakers that everybody knows who shares the store.
//!
//! A provider that is down is found out once and not by every replica. What
//! changes in a breaker is written down, and whoever is about to call reads
//! before it asks for leave: once for each summary, and never on the path of a
//! request that needs none. It spares calls and proves nothing: if the store is
//! away each goes by what it has seen itself. Names are digests, as everywhere.

use super::Compactor;
use super::gates::Gate;

/// What the breaker of a summarizer is called.
fn name(gate: Gate) -> String {
    format!("breaker:{}", blake3::Hash::from_bytes(gate).to_hex())
}

impl Compactor {
    /// Takes over what others have found out about these summarizers.
    pub(super) async fn hear(&self, gates: &[Gate]) {
        let names: Vec<String> = gates.iter().copied().map(name).collect();
        match self.store.learned_of(&names).await {
            Ok(told) => {
                for (gate, name) in gates.iter().zip(&names) {
                    if let Some((_, said)) = told.iter().find(|(held, _)| held == name) {
                        self.gates.hear(*gate, said);
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "breakers of other replicas are out of reach"),
        }
    }

    /// Tells others what was found out here.
    pub(super) async fn tell(&self) {
        for (gate, said) in self.gates.untold() {
            if let Err(error) = self.store.learn(&name(gate), &said).await {
                tracing::debug!(%error, "other replicas do not know of a breaker");
            }
        }
    }
}
