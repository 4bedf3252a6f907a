//! The simulated API, with a runtime to serve it.

use longhaul::sim::{Entry, Options, Running, Sim};
use tokio::runtime::Runtime;

/// A simulator that runs.
pub struct Simulated {
    pub sim: Running,
    _runtime: Runtime,
}

impl Simulated {
    pub fn start(options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let sim = runtime.block_on(Sim::start(options)).unwrap();
        Self {
            sim,
            _runtime: runtime,
        }
    }

    /// Every request for a message or a count.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.sim.ledger().entries;
        entries.retain(|entry| entry.path.starts_with("/v1/messages"));
        entries
    }

    /// The last of them.
    pub fn last(&self) -> Entry {
        self.entries().pop().expect("a request has come")
    }
}
